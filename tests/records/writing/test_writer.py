"""Writing records: what is taken, what reaches the file, appending, replacing, faults."""

from __future__ import annotations

import array
import gzip
import io
import os
import pickle
import zlib
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.records.writing import MIXED, drop, write_and_fail
from helpers.reference import file_of, flip, frame, header, read

COMPRESSIONS = ["", "GZIP", "ZLIB"]
INFLATE = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}


# ---- What is taken ----------------------------------------------------------------------------


class Tensor:
    """An object with a numpy() method, as TensorFlow's and torch's."""

    def __init__(self, value):
        self.numpy = lambda: value


class Message:
    def SerializeToString(self):
        return b"serialized"


EXAMPLE = {"name": ["goat", "cat"]}  # one key: protobuf gives several in any order

TAKEN = [
    (b"bytes", b"bytes"),
    (bytearray(b"bytearray"), b"bytearray"),
    (memoryview(b"memoryview")[2:], b"moryview"),
    (memoryview(b"a-b-c")[::2], b"abc"),
    (array.array("B", b"array"), b"array"),
    (np.frombuffer(b"ndarray", np.uint8), b"ndarray"),
    (np.arange(6, dtype="<u2").reshape(2, 3), bytes([0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0])),
    (np.frombuffer(b"a.b.", np.uint8)[::2], b"ab"),
    (np.bytes_(b"numpy bytes"), b"numpy bytes"),
    (np.array(b"object", dtype=object), b"object"),
    ("tekst, \u00e9", "tekst, \u00e9".encode()),
    (np.str_("numpy str"), b"numpy str"),
    (Message(), b"serialized"),
    (Tensor(b"tensor"), b"tensor"),
    (Tensor(np.array(b"tensor", dtype=object)), b"tensor"),
    (EXAMPLE, tfw.encode_example(EXAMPLE)),
    (tfw.train.Example.FromString(tfw.encode_example(EXAMPLE)), tfw.encode_example(EXAMPLE)),
]


@pytest.mark.parametrize(("record", "expected"), TAKEN)
def test_what_write_takes(path, record, expected):
    with tfw.TFRecordWriter(path) as writer:
        writer.write(record)
    assert frame(expected) == path.read_bytes()


def test_what_write_many_takes_in_any_mixture(path):
    records, expected = zip(*TAKEN, strict=True)
    tfw.write_records(path, records)
    assert file_of(list(expected)) == path.read_bytes()


@pytest.mark.parametrize("other", [b"", bytes(300_000), bytearray(b"other"), "other"])
def test_in_bulk_any_record_may_stand_anywhere(path, other):
    records = [b"%d" % i * (i % 7) for i in range(3000)]
    records[70] = records[1000] = records[-1] = other
    tfw.write_records(path, records)
    expected = other.encode() if isinstance(other, str) else bytes(other)
    assert [expected if r is other else r for r in records] == list(tfw.read_records(path))


def test_write_many_takes_scalars_whose_len_raises(path):
    tfw.write_records(path, [np.array(b"first", object), b"second"])
    assert file_of([b"first", b"second"]) == path.read_bytes()


@pytest.mark.parametrize(
    "record",
    [5, 1.5, None, True, ["a"], object(), np.int64(5), np.array(["a"], object), Tensor(7)],
)
def test_anything_else_is_refused_by_the_name_of_its_type(path, record):
    with tfw.TFRecordWriter(path) as writer:
        with pytest.raises(TypeError, match="a record must be bytes-like"):
            writer.write(record)
        with pytest.raises(TypeError, match="a record must be bytes-like"):
            writer.write_many([b"before", record, b"behind"])
        with pytest.raises(TypeError, match="a record must be bytes-like"):
            writer.write_many([EXAMPLE, record])
    assert file_of([b"before", tfw.encode_example(EXAMPLE)]) == path.read_bytes()


def test_one_record_or_columns_are_no_iterable_of_records(path):
    with tfw.TFRecordWriter(path) as writer:
        for wrong in (b"record", "record", bytearray(b"record"), memoryview(b"record")):
            with pytest.raises(TypeError, match="expected an iterable of records"):
                writer.write_many(wrong)
        with pytest.raises(TypeError, match="write_columns"):
            writer.write_many({"label": [1, 2]})
        with pytest.raises(TypeError, match="'S' arrays"):
            writer.write_many(np.array([b"a\0"]))
    assert b"" == path.read_bytes()


def test_a_record_is_taken_as_it_is_now(path):
    buffer = bytearray(b"before")
    with tfw.TFRecordWriter(path) as writer:
        writer.write(buffer)
        writer.write_many([buffer])
        buffer[:] = b"behind"
    assert file_of([b"before", b"before"]) == path.read_bytes()


@pytest.mark.parametrize("make", [list, tuple, iter, lambda values: (v for v in values)])
def test_write_many_takes_lists_and_iterators_of_any_length(path, make):
    records = [b"%d" % i * (i % 7) for i in range(10_000)]
    assert len(records) == tfw.write_records(path, make(records))
    assert records == list(tfw.read_records(path))


def test_an_iterator_of_long_records_is_taken_a_few_at_a_time(path):
    """Not much more than a block is held, whatever the iterator would give."""
    alive = {"now": 0, "most": 0}

    class Record(bytes):
        def __new__(cls):
            alive["now"] += 1
            alive["most"] = max(alive.values())
            return super().__new__(cls, 100_000)

        def __del__(self):
            alive["now"] -= 1

    assert 100 == tfw.write_records(path, (Record() for _ in range(100)))
    assert alive["most"] < 12
    assert 100 * 100_016 == path.stat().st_size


def test_rows_and_columns_are_written_as_examples(path):
    rows = [{"label": i, "name": f"n{i}"} for i in range(3000)]
    tfw.write_records(path, rows)
    by_rows = path.read_bytes()
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({"label": range(3000), "name": [f"n{i}" for i in range(3000)]})
    assert by_rows == path.read_bytes()


def test_rows_in_bulk_are_the_records_of_rows_one_by_one(path):
    """Narrow rows, wide ones, records among them; the last ones are too few for bulk."""
    wide = [{f"k{j}": i * 10**j for j in range(16)} for i in range(300)]
    narrow = [{"a": i, "b": b"x" * (i % 50)} for i in range(700)]
    for rows in (wide, narrow, narrow[:200] + [b"record"] + wide + [OrderedDict(z=1)] * 90):
        with tfw.TFRecordWriter(path) as writer:
            writer.write(b"first")
            assert len(rows) == writer.write_many(iter(rows))
            assert 1 == writer.write_many([{"last": 1}])
        expected = [r if isinstance(r, bytes) else tfw.encode_example(r) for r in rows]
        expected = [b"first", *expected, tfw.encode_example({"last": 1})]
        assert expected == list(tfw.read_records(path))


def test_rows_before_one_that_has_no_encoding_are_written(path):
    rows = [{"a": i} for i in range(1000)]
    with tfw.TFRecordWriter(path) as writer:
        with pytest.raises(TypeError, match=r"feature 'a': record 1000: a null inside a list"):
            writer.write_many([*rows, {"a": [None]}, *rows])
        writer.write(b"after")
    expected = [*tfw.encode_examples(rows), b"after"]
    assert expected == list(tfw.read_records(path))


def test_all_ways_of_writing_keep_their_order(path):
    with tfw.TFRecordWriter(path) as writer:
        writer.write(b"1")
        writer.write_many([b"2", "3"])
        writer.write_columns({"a": [4]})
        writer.write(b"x" * 400_000)
        writer.write(b"6")
    expected = [b"1", b"2", b"3", tfw.encode_example({"a": 4}), b"x" * 400_000, b"6"]
    assert file_of(expected) == path.read_bytes()


@pytest.mark.parametrize("compression", COMPRESSIONS)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_records_in_any_calls_give_the_reference_file(tmp_path_factory, compression, data):
    path = tmp_path_factory.mktemp("any") / "data"
    sizes = st.one_of(st.integers(0, 300), st.sampled_from([16_384, 70_000, 300_000]))
    written: list[bytes] = []
    with tfw.TFRecordWriter(path, compression) as writer:
        for _ in range(data.draw(st.integers(0, 5))):
            records = [bytes([s & 255]) * s for s in data.draw(st.lists(sizes, max_size=8))]
            if data.draw(st.booleans()):
                writer.write_many(records)
            else:
                for record in records:
                    writer.write(record)
            if data.draw(st.booleans()):
                writer.flush()
            written += records
    content = INFLATE[compression](path.read_bytes())
    assert b"".join(map(frame, written)) == content


# ---- Where it goes ----------------------------------------------------------------------------


def test_paths_and_file_objects(tmp_path):
    for target in (str(tmp_path / "a"), tmp_path / "a", os.fsencode(tmp_path / "a")):
        tfw.write_records(target, MIXED)
        assert file_of(MIXED) == (tmp_path / "a").read_bytes()
    target = io.BytesIO()
    tfw.write_records(target, MIXED)
    assert file_of(MIXED) == target.getvalue()  # not closed: it was not opened here
    with gzip.open(tmp_path / "b", "wb") as target:
        tfw.write_records(target, MIXED)
    assert MIXED == list(tfw.read_records(tmp_path / "b"))


def test_an_object_that_writes_little_or_tells_nothing(path):
    class Slow(io.RawIOBase):
        def __init__(self):
            self.data = b""

        def writable(self):
            return True

        def write(self, data):
            self.data += bytes(data[:7])
            return len(data[:7])

    class Silent:
        def __init__(self):
            self.pieces = []

        def write(self, data):
            self.pieces.append(data)  # kept, not copied

    slow, silent = Slow(), Silent()
    tfw.write_records(slow, MIXED[:2])
    assert file_of(MIXED[:2]) == slow.data
    tfw.write_records(silent, MIXED * 3)
    assert file_of(MIXED * 3) == b"".join(silent.pieces)


@pytest.mark.parametrize("claim", [0, -1])
def test_an_object_that_takes_nothing_is_an_error(claim):
    """And not tried forever, nor given anything twice."""

    class Full:
        def write(self, data):
            return claim

    with pytest.raises(OSError, match=f"took {claim} of 17 bytes"):
        tfw.write_records(Full(), [b"1"])


def test_targets_that_cannot_be(tmp_path):
    with pytest.raises(TypeError, match="found int"):
        tfw.TFRecordWriter(7)
    with (tmp_path / "text").open("w") as text, pytest.raises(TypeError, match="text mode"):
        tfw.TFRecordWriter(text)
    for append in (False, True):
        with pytest.raises(IsADirectoryError):
            tfw.TFRecordWriter(tmp_path, append=append)
    with pytest.raises(FileNotFoundError) as caught:
        tfw.TFRecordWriter(tmp_path / "no folder" / "file")
    assert str(tmp_path / "no folder" / "file") == str(caught.value.filename)


def test_a_file_is_emptied_and_gets_ordinary_permissions(path):
    path.write_bytes(b"something longer than nothing")
    tfw.write_records(path, [])
    assert b"" == path.read_bytes()
    (path.with_name("ordinary")).write_bytes(b"")
    for atomic in (False, True):
        path.unlink()
        tfw.TFRecordWriter(path, atomic=atomic).close()
        assert path.with_name("ordinary").stat().st_mode == path.stat().st_mode


# ---- Flushing and closing -----------------------------------------------------------------------


def test_flush_makes_records_visible(path):
    with tfw.TFRecordWriter(path) as writer:
        writer.write(b"1")
        assert b"" == path.read_bytes()
        writer.flush()
        assert frame(b"1") == path.read_bytes()
        writer.flush()
        assert frame(b"1") == path.read_bytes()


def test_after_close_writing_is_an_error(path):
    writer = tfw.TFRecordWriter(path)
    writer.write(b"1")
    assert "closed" not in repr(writer)
    writer.close()
    writer.close()
    assert "closed" in repr(writer)
    for call in (
        lambda: writer.write(b"2"),
        lambda: writer.write_many([b"2"]),
        lambda: writer.write_columns({"a": [1]}),
        writer.flush,
    ):
        with pytest.raises(ValueError, match="closed"):
            call()
    assert frame(b"1") == path.read_bytes()


def test_an_exception_within_with_closes_the_file(path):
    with pytest.raises(KeyError):
        write_and_fail(writer := tfw.TFRecordWriter(path), [b"1"])
    assert frame(b"1") == path.read_bytes()
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"2")


def test_a_writer_that_is_dropped_writes_what_it_has_and_warns(path):
    writer = tfw.TFRecordWriter(path)
    writer.write(b"1")
    writers = [writer]
    del writer
    with pytest.warns(ResourceWarning, match="was not closed"):
        drop(writers)
    assert frame(b"1") == path.read_bytes()


def test_writers_refuse_to_be_pickled(path):
    with tfw.TFRecordWriter(path) as writer, pytest.raises(TypeError, match="pickled"):
        pickle.dumps(writer)


# ---- Appending --------------------------------------------------------------------------------


def test_a_zlib_file_cannot_be_continued(path):
    with tfw.TFRecordWriter(path, "ZLIB", append=True) as writer:
        writer.write(b"1")
    with pytest.raises(ValueError, match="TensorFlow reads its first stream only"):
        tfw.TFRecordWriter(path, "ZLIB", append=True)
    assert [b"1"] == list(tfw.read_records(path))


def test_append_must_know_how_the_file_is_compressed(path):
    tfw.write_records(path, [b"1"], "GZIP")
    with pytest.raises(ValueError, match="the file is GZIP, options say not compressed"):
        tfw.TFRecordWriter(path, append=True)
    tfw.write_records(path, [b"1"])
    with pytest.raises(ValueError, match="the file is not compressed, options say GZIP"):
        tfw.TFRecordWriter(path, "GZIP", append=True)


def test_every_torn_tail_is_refused_and_repaired_on_demand(path):
    records = [b"first", b"", b"third"]
    data = file_of(records)
    for size in range(len(data)):
        whole = read(data[:size], "tail").records
        path.unlink(missing_ok=True)
        path.write_bytes(data[:size])
        if file_of(whole) != data[:size]:
            with pytest.raises(tfw.DataLossError, match="repair_tail=True"):
                tfw.TFRecordWriter(path, append=True)
            assert data[:size] == path.read_bytes()
        with tfw.TFRecordWriter(path, append=True, repair_tail=True) as writer:
            writer.write(b"more")
        assert file_of([*whole, b"more"]) == path.read_bytes(), size


@pytest.mark.parametrize(
    "tail", [bytes(5), bytes(500), flip(frame(b"never written"), 8 * 14), header(2**40)]
)
def test_what_a_crash_of_the_system_leaves_is_a_torn_tail(path, tail):
    path.write_bytes(file_of([b"1", b"2"]) + tail)
    with pytest.raises(tfw.DataLossError) as caught:
        tfw.TFRecordWriter(path, append=True)
    assert (34, 2) == (caught.value.offset, caught.value.record_index)
    with tfw.TFRecordWriter(path, append=True, repair_tail=True) as writer:
        writer.write(b"3")
    assert file_of([b"1", b"2", b"3"]) == path.read_bytes()


def test_a_tail_with_records_that_verify_is_never_cut_off(path):
    """A writer died, and another one went on after what it had left."""
    data = file_of([b"1"]) + frame(bytes(99))[:40] + file_of([b"2", b"3"])
    path.write_bytes(data)
    with pytest.raises(tfw.DataLossError, match="records that verify follow it") as caught:
        tfw.TFRecordWriter(path, append=True, repair_tail=True)
    assert ("truncated", 17) == (caught.value.reason, caught.value.offset)
    assert data == path.read_bytes()


@pytest.mark.parametrize("repair_tail", [False, True])
def test_other_damage_is_never_cut_off(path, repair_tail):
    data = flip(file_of([b"1", b"2", b"3"]), 8 * 20)
    path.write_bytes(data)
    with pytest.raises(tfw.DataLossError) as caught:
        tfw.TFRecordWriter(path, append=True, repair_tail=repair_tail)
    assert ("length crc", 1) == (caught.value.reason, caught.value.record_index)
    assert data == path.read_bytes()


def test_a_torn_gzip_file_is_not_continued(path):
    tfw.write_records(path, MIXED, "GZIP")
    data = path.read_bytes()[:-5]
    path.write_bytes(data)
    with pytest.raises(tfw.DataLossError) as caught:
        tfw.TFRecordWriter(path, "GZIP", append=True, repair_tail=True)
    assert "compressed stream" == caught.value.reason
    assert data == path.read_bytes()


def test_arguments_that_exclude_each_other(path):
    for arguments in ({"append": True, "atomic": True}, {"repair_tail": True}):
        with pytest.raises(ValueError, match="append"):
            tfw.TFRecordWriter(path, **arguments)
    for target in (io.BytesIO(), "memory://x"):
        for arguments in ({"append": True}, {"atomic": True}):
            with pytest.raises(ValueError, match="need the path of a file"):
                tfw.TFRecordWriter(target, **arguments)
    assert not path.exists()
