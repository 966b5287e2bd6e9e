"""Records by key: indexes with keys, and what finds records by them."""

from __future__ import annotations

import gzip
import os
import pickle
import struct

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.records.keyed import COUNT, KEYS, by_key_of, numbers_of, saved, write
from tfwire._records.index import index_files, record_keys


@pytest.fixture(params=KEYS)
def keys(request):
    return KEYS[request.param]


@pytest.fixture(params=["", "GZIP", "ZLIB"])
def file(request, tmp_path, keys):
    path = write(tmp_path / "a", keys, request.param)
    tfw.RecordIndex.build(path, key="id").save()
    return path


# ---- Found ---------------------------------------------------------------------------------------


def test_records_are_found_by_key(file, keys):
    with tfw.TFRecordFile(file) as records:
        by_key = records.by_key
        assert len(keys) == len(by_key)
        for n in (0, 7, len(keys) - 1):
            assert records[n] == by_key[keys[n]] == by_key.get(keys[n])
            assert n == by_key.find(keys[n])
            assert keys[n] in by_key
        chosen = np.random.default_rng(0).integers(len(keys), size=500).tolist()
        wanted = [keys[n] for n in chosen]
        assert chosen == numbers_of(by_key[wanted]) == by_key.find(tuple(wanted)).tolist()
        assert chosen == numbers_of(by_key[np.array(wanted, object)])
        assert [] == by_key[[]] == by_key.find([]).tolist()
        assert "'id'" in repr(by_key)


def test_the_keys_are_in_the_order_of_the_records(file, keys):
    expected = [key.encode() if isinstance(key, str) else key for key in keys]
    with tfw.TFRecordFiles([file]) as records:
        assert expected == list(records.by_key) == list(records.by_key.keys())
        assert list(records) == list(records.by_key.values())


def test_one_call_is_one_read(tmp_path, monkeypatch):
    path = write(tmp_path / "a", KEYS["text"])
    with tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")) as records:
        calls = []
        many = type(records)._many
        monkeypatch.setattr(type(records), "_many", lambda *a: calls.append(len(a[1])) or many(*a))
        assert [7, 3, 7] == numbers_of(records.by_key[["id 7", "id 3", "id 7"]])
    assert [3] == calls


def test_keys_are_of_numpy_and_python_alike(tmp_path):
    path = write(tmp_path / "a", KEYS["int64"])
    by_key = tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key=b"id")).by_key
    for dtype in (np.int16, np.int32, np.int64):
        assert [1, 0] == by_key.find(np.array([-97, -100], dtype)).tolist()
    assert [35, 34] == by_key.find(np.array([5, 2], np.uint64)).tolist()
    assert 35 == by_key.find(np.int8(5))
    path = write(tmp_path / "b", KEYS["text"])
    by_key = tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")).by_key
    assert [1, 0] == by_key.find(np.array(["id 1", "id 0"])).tolist()
    assert [1, 0] == by_key.find([b"id 1", np.str_("id 0")]).tolist()


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("int64", [4, 2**63 - 1, -(2**63), 2**63, -(2**70)]),
        ("text", ["id", b"id 1\0", "", "\udcff"]),
    ],
)
def test_missing_keys_are_named(tmp_path, kind, missing):
    path = write(tmp_path / "a", KEYS[kind])
    with tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")) as records:
        for key in missing:
            assert key not in records.by_key
            assert records.by_key.get(key) is None
            with pytest.raises(KeyError) as caught:
                records.by_key[key]
            assert f"{path}: no record has the key {key!r}" == caught.value.args[0]
        for function in (records.by_key.__getitem__, records.by_key.find):
            with pytest.raises(KeyError) as caught:
                function([KEYS[kind][5], *missing])
            told = f"no record has {len(missing)} keys: {missing[0]!r}, {missing[1]!r}"
            assert told in caught.value.args[0]


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(
    "wrong", [1.5, None, True, [1.5], [[1]], {1}, {1: 2}, iter([1]), slice(3), object(), [None]]
)
def test_keys_of_another_type_are_refused(tmp_path, keys, wrong):
    path = write(tmp_path / "a", KEYS[keys])
    by_key = tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")).by_key
    other = "id 1" if keys == "int64" else 1
    for key in (wrong, other, [other]):
        with pytest.raises(TypeError):
            by_key[key]
        with pytest.raises(TypeError):
            by_key.find(key)
    with pytest.raises(TypeError, match="the keys of these records are"):
        by_key.__contains__(other)


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(
        st.lists(st.binary(max_size=40), unique=True),
        st.lists(st.integers(-(2**63), 2**63 - 1), unique=True),
    ),
    st.lists(st.one_of(st.binary(max_size=3), st.integers(-(2**64), 2**64)), max_size=9),
)
def test_any_keys_are_found_and_no_others(tmp_path_factory, keys, others):
    path = write(tmp_path_factory.getbasetemp() / "any keys", keys)
    index = tfw.RecordIndex.build(path, key="id")
    index.save()
    assert index == tfw.RecordIndex.load(path)
    with tfw.TFRecordFile(path) as records:
        by_key = records.by_key
        assert list(range(len(keys))) == by_key.find(keys).tolist() == numbers_of(by_key[keys])
        assert keys == list(by_key)
        is_bytes = bool(keys) and isinstance(keys[0], bytes)
        for key in others:
            if isinstance(key, bytes) == is_bytes:
                assert (key in keys) == (key in by_key)


def test_hashes_that_collide_hide_no_key(tmp_path, monkeypatch):
    """Under the first seeds all strings have few hashes."""
    true, seeds = record_keys._hashes, set()

    def few(data, splits, seed):
        seeds.add(seed)
        found = true(data, splits, seed)
        return found % np.uint64(7) if len(seeds) < 4 else found

    monkeypatch.setattr(record_keys, "_hashes", few)
    path = write(tmp_path / "a", KEYS["text"])
    by_key = tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")).by_key
    assert 4 == len(seeds)
    assert list(range(COUNT)) == by_key.find(KEYS["text"]).tolist()
    assert "id 300" not in by_key
    monkeypatch.setattr(
        record_keys, "_hashes", lambda *a: np.full(len(a[1]) - 1, by_key._keys._table.ordered[0])
    )
    assert "id 300" not in by_key  # though it has the hash of another one


# ---- Built ---------------------------------------------------------------------------------------


def test_an_index_without_keys_is_the_same_as_before(tmp_path):
    path = write(tmp_path / "a", KEYS["text"])
    index = tfw.RecordIndex.build(path)
    index.save()
    assert 1 == struct.unpack_from("<I", saved(path), 8)[0]
    assert 48 + 4 * COUNT + 4 == len(saved(path))
    assert index.key is None
    for records in (tfw.TFRecordFile(path), tfw.TFRecordFiles([path])):
        with pytest.raises(ValueError, match=r"has no keys.*RecordIndex.build\(path, key=...\)"):
            by_key_of(records)


def test_keys_that_no_record_can_have_are_missing(tmp_path):
    tfw.write_records(tmp_path / "n", [{"id": 5}, {"id": -1}])
    tfw.write_records(tmp_path / "s", [{"id": "a"}])
    for name in ("n", "s"):
        tfw.RecordIndex.build(tmp_path / name, key="id").save()
    with tfw.TFRecordFile(tmp_path / "n") as numbers, tfw.TFRecordFile(tmp_path / "s") as strings:
        with pytest.raises(KeyError, match=r"no record has the key 9223372036854775808"):
            numbers.by_key[[2**63, -1]]
        with pytest.raises(KeyError, match=r"no record has the key 7"):
            numbers.by_key[np.array([7], np.uint64)]
        with pytest.raises(TypeError, match=r"int64, found str"):
            numbers.by_key[[5, "a"]]
        for text in ("\ud800", "\udc80"):
            assert text not in strings.by_key
        for wrong in (np.array(5), bytearray(b"a")):
            with pytest.raises(TypeError, match=r"a key, or a sequence of keys"):
                strings.by_key[wrong]


@pytest.mark.parametrize("kind", KEYS)
def test_an_index_with_keys_is_as_documented(tmp_path, kind):
    """docs/internals/index-format.md, by hand."""
    keys = KEYS[kind]
    path = write(tmp_path / "a", keys)
    tfw.RecordIndex.build(path).save()
    plain = saved(path)
    tfw.RecordIndex.build(path, key="id").save()
    expected = plain[:8] + struct.pack("<I", 4) + plain[12:-4] + struct.pack("<II", 0, 0)
    expected += struct.pack("<I", 2) + b"id" + struct.pack("<I", 3 if kind == "int64" else 1)
    if kind == "int64":
        expected += struct.pack(f"<{COUNT}q", *keys)
    else:
        strings = [key.encode() if isinstance(key, str) else key for key in keys]
        expected += struct.pack(f"<{len(keys)}I", *map(len, strings)) + b"".join(strings)
    expected += struct.pack("<I", tfw.checksum.masked_crc32c(expected))
    assert expected == saved(path)


def test_an_index_with_keys_pickles_and_compares(file):
    index = tfw.RecordIndex.load(file)
    assert "id" == index.key
    again = pickle.loads(pickle.dumps(index))
    assert index == again
    assert index != tfw.RecordIndex.build(file)
    with tfw.TFRecordFiles([file]) as records:
        copy = pickle.loads(pickle.dumps(records.by_key))
        assert records.by_key.find(list(copy)).tolist() == list(range(len(copy)))
    again.offsets = again.offsets.copy()
    assert again.key is None  # nothing says that they belong to these records


def test_keys_do_not_change_what_else_an_index_says(file):
    plain, index = tfw.RecordIndex.build(file), tfw.RecordIndex.build(file, key="id")
    assert plain.offsets.tolist() == index.offsets.tolist()
    assert plain._header() == index._header()
    assert plain._identity == index._identity


def test_a_compressed_file_has_points_and_keys(tmp_path):
    pytest.importorskip("rapidgzip", reason="it finds the seek points")
    rows = [{"id": f"id {n}", "n": n, "x": os.urandom(900)} for n in range(8000)]
    tfw.write_records(tmp_path / "a", rows)
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "a").read_bytes(), 1))
    index = tfw.RecordIndex.build(tmp_path / "a.gz", key="id")
    assert index.seek_points > 0
    index.save()
    loaded = tfw.RecordIndex.load(tmp_path / "a.gz")
    assert index == loaded
    assert index.seek_points == loaded.seek_points
    with tfw.TFRecordFile(tmp_path / "a.gz") as records:
        assert [7900, 5, 4000] == numbers_of(records.by_key[["id 7900", "id 5", "id 4000"]])


@pytest.mark.parametrize("key", KEYS)
def test_a_key_that_two_records_have_is_refused(tmp_path, key):
    keys = list(KEYS[key])
    keys[250] = keys[30]
    keys[200] = keys[40]
    path = write(tmp_path / "a", keys)
    with pytest.raises(ValueError, match="record 40 and record 200 have the same key") as caught:
        tfw.RecordIndex.build(path, key="id")
    found = keys[40].encode() if isinstance(keys[40], str) else keys[40]
    assert str(caught.value).startswith(f"{path}: ")
    assert str(caught.value).endswith(repr(found))
    tfw.RecordIndex.build(path)


@pytest.mark.parametrize("key", [7, "seven"])
def test_the_first_of_many_records_with_the_same_key_are_named(tmp_path, key):
    path = write(tmp_path / "a", [key] * 10_000)
    with pytest.raises(ValueError, match="record 0 and record 1 have the same key"):
        tfw.RecordIndex.build(path, key="id")


def test_keys_may_be_of_a_series(tmp_path):
    """Whose labels are no places."""

    class Series(list):
        def __getitem__(self, label):
            raise KeyError(f"no label {label}")

    path = write(tmp_path / "a", KEYS["text"])
    by_key = tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")).by_key
    assert [3, 2] == by_key.find(Series(["id 3", "id 2"])).tolist()
    with pytest.raises(KeyError, match="no record has the key 'no'"):
        by_key[Series(["id 3", "no"])]
    with pytest.raises(TypeError, match="are strings, found int"):
        by_key[Series([3])]


WRONG = {
    "missing": ({"n": 1}, "required but could not be found. The record has n."),
    "none": ({"id": np.array([], np.int64), "n": 1}, "Values size: 0"),
    "two": ({"id": [1, 2]}, "Values size: 2"),
    "another kind": ({"id": b"seven"}, "string but expected type: int64"),
    "a float": ({"id": 1.5}, "float32 but expected type: int64"),
}


@pytest.mark.parametrize("options", ["", "GZIP"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_record_without_one_key_is_named(tmp_path, wrong, options):
    row, text = WRONG[wrong]
    rows = [tfw.encode_example({"id": i}) for i in range(5000)]
    rows[4321] = tfw.encode_example(row)
    path = str(tmp_path / "a")
    tfw.write_records(path, rows, options)
    offset = tfw.RecordIndex.build(path).offsets[4321]
    with pytest.raises(tfw.ParseError) as caught:
        tfw.RecordIndex.build(path, key="id")
    assert str(caught.value).startswith(f"{path}: record 4321 (at byte {offset}): ")
    assert text in str(caught.value)
    assert (path, 4321, "id") == (caught.value.path, caught.value.record_index, "id")


def test_the_first_record_may_have_a_key_of_either_kind(tmp_path):
    for row, text in (({"n": 1}, r"type: int64 or string\) is req"), ({"id": 1.5}, "or string")):
        tfw.write_records(tmp_path / "a", [row])
        with pytest.raises(tfw.ParseError, match=text):
            tfw.RecordIndex.build(tmp_path / "a", key="id")


def test_what_is_no_example_or_damaged_has_no_key(tmp_path):
    tfw.write_records(tmp_path / "a", [b"\xff\xff"])
    with pytest.raises(tfw.ParseError, match="record 0"):
        tfw.RecordIndex.build(tmp_path / "a", key="id")
    path = write(tmp_path / "b", KEYS["text"])
    data = bytearray((tmp_path / "b").read_bytes())
    data[-10] ^= 1
    (tmp_path / "b").write_bytes(data)
    tfw.RecordIndex.build(path)
    with pytest.raises(tfw.DataLossError, match=f"record {COUNT - 1}"):
        tfw.RecordIndex.build(path, key="id")
    for key in (3, ["id"], 1.5):
        with pytest.raises(TypeError, match="key must be the name of a feature"):
            tfw.RecordIndex.build(path, key=key)


# ---- Several files -------------------------------------------------------------------------------


@pytest.mark.parametrize("num_threads", [1, 3])
@pytest.mark.parametrize("options", ["", "GZIP"])
def test_files_are_one_mapping(tmp_path, keys, options, num_threads):
    paths = [write(tmp_path / "empty", [])]
    paths += [write(tmp_path / str(i), keys[i::3], options) for i in range(3)]
    for index in tfw.RecordIndex.build_many(paths, key="id", num_threads=num_threads):
        index.save()
    in_order = [key for i in range(3) for key in keys[i::3]]
    with tfw.TFRecordFiles(paths, num_threads=num_threads) as records:
        chosen = np.random.default_rng(0).integers(len(keys), size=200).tolist()
        expected = [records[n] for n in chosen]
        assert expected == records.by_key[[in_order[n] for n in chosen]]
        assert list(range(len(keys))) == records.by_key.find(in_order).tolist()


def test_an_empty_file_has_no_keys_of_any_type(tmp_path):
    path = write(tmp_path / "empty", [])
    by_key = tfw.TFRecordFile(path, tfw.RecordIndex.build(path, key="id")).by_key
    assert "a" not in by_key
    assert 3 not in by_key
    with pytest.raises(KeyError, match=r"no record has the key 'a'"):
        by_key["a"]


def test_a_file_that_is_given_twice_is_named(tmp_path):
    path = write(tmp_path / "a", ["x", "y"])
    tfw.RecordIndex.build(path, key="id").save()
    with pytest.raises(ValueError, match=r"a: the file is given twice"):
        tfw.TFRecordFiles([path, path]).by_key["x"]


def test_a_key_in_two_files_is_refused(tmp_path):
    paths = [write(tmp_path / "a", ["x", "y"]), write(tmp_path / "b", ["z", "y"])]
    for index in tfw.RecordIndex.build_many(paths, key="id"):
        index.save()
    with tfw.TFRecordFiles(paths) as records:
        with pytest.raises(ValueError, match="have the same key") as caught:
            by_key_of(records)
        assert 4 == len(records)
    told = f"{paths[0]}: record 1 and record 1 of {paths[1]} have the same key, b'y'"
    assert told == str(caught.value)


def test_indexes_with_other_keys_are_refused_together(tmp_path):
    paths = [write(tmp_path / "a", ["x", "y"]), write(tmp_path / "b", [3, 4])]
    indexes = tfw.RecordIndex.build_many(paths, key="id")
    for index in indexes:
        index.save()
    with pytest.raises(ValueError, match="b: its keys are int64, others strings"):
        by_key_of(tfw.TFRecordFiles(paths))
    tfw.RecordIndex.build(paths[1], key="n").save()
    with pytest.raises(ValueError, match="b: its index has the keys of b'n', not b'id'"):
        by_key_of(tfw.TFRecordFiles(paths))
    with pytest.raises(ValueError, match="no files"):
        by_key_of(tfw.TFRecordFiles(iter(())))


# ---- Objects -------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["", "GZIP"])
def test_objects_have_keys_too(keys, options):
    url = "memory://keys/a"
    write(url, keys, options)
    index = tfw.RecordIndex.build(url, key="id")
    index.save()
    assert index == tfw.RecordIndex.load(url)
    with tfw.TFRecordFiles([url]) as records:
        assert [7, 3] == numbers_of(records.by_key[[keys[7], keys[3]]])
    fsspec.filesystem("memory").rm("/keys", recursive=True)


def test_an_index_of_several_requests_has_keys(monkeypatch, tmp_path):
    url = "memory://keys/b"
    write(url, KEYS["text"])
    tfw.RecordIndex.build(url, key="id").save()
    monkeypatch.setattr(index_files, "_FETCHED", 1000)
    with tfw.TFRecordFile(url) as records:
        assert [200] == numbers_of([records.by_key["id 200"]])
    fsspec.filesystem("memory").rm("/keys", recursive=True)
