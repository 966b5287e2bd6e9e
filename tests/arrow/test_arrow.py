"""Record files as Arrow tables, read from the C structs by hand: no Arrow library takes part."""

import ctypes
import json

import numpy as np
import pytest

import tfwire as tfw
from helpers.arrow.structs import (
    EXPECTED,
    FEATURES,
    FLOAT,
    INT64,
    ROWS,
    SEQUENCE,
    STRING,
    Stream,
    damage,
    ffi,
    metadata_of,
    opened,
    release,
    rows_of_batch,
    rows_of_stream,
    schema_type,
    values_of,
    written,
)
from helpers.threads import at_once
from tfwire.arrow import open_reader

BYTES = "Z"


def table(tmp_path, rows, features, **options):
    """The rows of records, read as a stream and by iterating; both must be the same."""
    reader = open_reader(written(tmp_path, rows), features, **options)
    streamed = rows_of_stream(reader)
    assert streamed == [row for batch in reader for row in rows_of_batch(batch)]
    return streamed


# ---- Types ---------------------------------------------------------------------------------------


def test_a_file_is_a_table(tmp_path):
    assert table(tmp_path, ROWS, FEATURES) == EXPECTED


def test_the_types(tmp_path):
    reader = open_reader(written(tmp_path, ROWS), FEATURES)
    assert schema_type(reader) == (
        "+s",
        ("n", ("l",)),
        ("xs", ("+w:2", ("item", ("f",)))),
        ("name", (BYTES,)),
        ("tags", ("+L", ("item", ("l",)))),
    )


@pytest.mark.parametrize(
    ("shape", "kind", "rows"),
    [
        ([], ("l",), [1, 2]),
        ([2], ("+w:2", ("item", ("l",))), [[1, 2], [3, 4]]),
        (
            [2, 3],
            ("+w:2", ("item", ("+w:3", ("item", ("l",))))),
            [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [0, 1, 2]]],
        ),
        ([0], ("+w:0", ("item", ("l",))), [[], []]),
        ([2, 0], ("+w:2", ("item", ("+w:0", ("item", ("l",))))), [[[], []], [[], []]]),
    ],
)
def test_shapes_are_fixed_size_lists(tmp_path, shape, kind, rows):
    features = {"a": tfw.FixedLenFeature(shape, INT64)}
    records = [tfw.encode_columns({"a": np.array([row], np.int64)})[0] for row in rows]
    if 0 in shape:
        records = [tfw.encode_columns({"a": np.empty((1, 0), np.int64)})[0] for _ in rows]
    assert table(tmp_path, records, features) == [{"a": row} for row in rows]
    reader = open_reader(str(tmp_path / "data"), features)
    assert schema_type(reader) == ("+s", ("a", kind))


@pytest.mark.parametrize("shape", [[2**31], [2, 2**31], [2**16, 2**16, 0], [2**31 - 1, 2, 0, 5]])
def test_shapes_beyond_arrow_are_refused(tmp_path, shape):
    for feature in (
        tfw.FixedLenFeature(shape, INT64),
        tfw.FixedLenSequenceFeature(shape, INT64, allow_missing=True),
    ):
        with pytest.raises(ValueError, match=r"feature 'a': .* found the shape"):
            open_reader(str(tmp_path / "none"), {"a": feature})
    feature = tfw.FixedLenFeature([2**16, 2**15], INT64)
    with pytest.raises(ValueError, match=r"found the shape \[65536, 32768\]"):
        open_reader(str(tmp_path / "none"), {"a": feature}, tensors=True)


def test_many_lists_of_nothing(tmp_path):
    records = tfw.encode_columns({"a": np.empty((5, 0), np.int64)})
    feature = tfw.FixedLenFeature([2**16, 2**15 - 1, 0], INT64)
    [batch] = open_reader(written(tmp_path, records), {"a": feature})
    _, capsule = batch.__arrow_c_array__()
    array, lengths = opened(capsule, b"arrow_array").children[0], []
    while array.n_children:
        array = array.children[0]
        lengths.append(array.length)
    assert lengths == [5 * 2**16, 5 * 2**16 * (2**15 - 1), 0]


def test_defaults_are_no_nulls(tmp_path):
    features = {
        "n": tfw.FixedLenFeature([], INT64, default_value=7),
        "s": tfw.FixedLenFeature([2], STRING, default_value=["x", "y"]),
    }
    rows = [{"n": 1}, {"n": [], "s": ["a", "b"]}]
    expected = [{"n": 1, "s": [b"x", b"y"]}, {"n": 7, "s": [b"a", b"b"]}]
    assert table(tmp_path, rows, features) == expected


def test_nulls_of_many_records(tmp_path):
    """Bits of a bitmap of several bytes, and of batches that begin anywhere."""
    rows = [{"a": [i]} if i % 3 else {} for i in range(100)]
    expected = [{"a": [i] if i % 3 else None} for i in range(100)]
    features = {"a": tfw.VarLenFeature(INT64)}
    for batch_size in (1, 7, 8, 64, 100, 1000):
        assert table(tmp_path, rows, features, batch_size=batch_size) == expected


PARTITIONS = [
    ("RowLengths", [2, 0, 1], [2]),
    ("RowSplits", [0, 2, 2, 3], [0, 2]),
    ("RowStarts", [0, 2, 2], [0]),
    ("RowLimits", [2, 2, 3], [2]),
    ("ValueRowIds", [0, 0, 2], [0, 0]),
]


@pytest.mark.parametrize(("kind", "first", "second"), PARTITIONS)
def test_partitions_nest(tmp_path, kind, first, second):
    feature = tfw.RaggedFeature(STRING, "v", [getattr(tfw.RaggedFeature, kind)("p")])
    rows = [{"v": ["a", "b", "c"], "p": first}, {}, {"v": ["d", "e"], "p": second}]
    expected = [[[b"a", b"b"], [], [b"c"]], None, [[b"d", b"e"]]]
    assert table(tmp_path, rows, {"a": feature}) == [{"a": value} for value in expected]


def test_partitions_of_partitions(tmp_path):
    ragged = tfw.RaggedFeature
    partitions = [ragged.RowLengths("outer"), ragged.RowSplits("inner"), ragged.UniformRowLength(2)]
    feature = ragged(INT64, "v", partitions)
    rows = [
        {"v": list(range(8)), "inner": [0, 1, 1, 4], "outer": [1, 2]},
        {"v": [], "inner": [0], "outer": []},
    ]
    expected = [[[[[0, 1]]], [[], [[2, 3], [4, 5], [6, 7]]]], []]
    assert table(tmp_path, rows, {"a": feature}) == [{"a": value} for value in expected]


def test_rows_without_values_are_as_many_as_there_are(tmp_path):
    """More of them than row ids may ask for."""
    lengths = np.zeros((17, 1_000_000), np.int64)
    records = tfw.encode_columns({"v": np.empty((17, 0), np.int64), "p": lengths})
    feature = tfw.RaggedFeature(INT64, "v", [tfw.RaggedFeature.RowLengths("p")])
    [batch] = open_reader(written(tmp_path, records), {"a": feature})
    _, capsule = batch.__arrow_c_array__()
    rows = opened(capsule, b"arrow_array").children[0]
    assert (rows.length, rows.children[0].length) == (17, 17_000_000)


def test_sparse_features_are_structs(tmp_path):
    features = {
        "one": tfw.SparseFeature("i", "v", FLOAT, size=10),
        "two": tfw.SparseFeature(["i", "j"], "v", FLOAT, size=[10, 10]),
    }
    none, kindless = np.empty(0, np.int64), {"i": [], "j": [], "v": []}
    rows = [{"i": [3, 1], "j": [4, 5], "v": [0.5, 1.5]}, {}, {"i": none, "v": []}, kindless]
    assert table(tmp_path, rows, features) == [
        {
            "one": {"indices": [3, 1], "values": [0.5, 1.5]},
            "two": {"indices": [[3, 4], [1, 5]], "values": [0.5, 1.5]},
        },
        {"one": None, "two": None},
        {"one": {"indices": [], "values": []}, "two": {"indices": [], "values": []}},
        {"one": None, "two": None},
    ]


def test_sequence_examples(tmp_path):
    lists = {"words": [["a", "b"], []], "frames": [[0.5, 1.5]], "v": [[1, 2, 3]], "p": [[1, 2]]}
    records = [
        tfw.encode_sequence_example({"id": 1, "notes": ["x"]}, lists),
        tfw.encode_sequence_example({"id": 2}, {"words": []}),
    ]
    assert table(tmp_path, records, SEQUENCE) == [
        {
            "id": 1,
            "notes": [b"x"],
            "words": [[b"a", b"b"], []],
            "frames": [[0.5, 1.5]],
            "rows": [[[1], [2, 3]]],
        },
        {"id": 2, "notes": None, "words": [], "frames": None, "rows": None},
    ]


def test_sequence_examples_by_an_inferred_schema(tmp_path):
    records = [tfw.encode_sequence_example({"id": i}, {"s": [[i]] * i}) for i in range(3)]
    reader = open_reader(written(tmp_path, records))
    assert rows_of_stream(reader) == [{"id": i, "s": [i] * i} for i in range(3)]
    chosen = open_reader(written(tmp_path, records), columns=["s"])
    assert rows_of_stream(chosen) == [{"s": [i] * i} for i in range(3)]


def test_the_type_of_strings(tmp_path):
    path = written(tmp_path, ROWS)
    formats = {"large_binary": "Z", "binary": "z", "large_string": "U", "string": "u"}
    for name, kind in formats.items():
        reader = open_reader(path, FEATURES, columns=["name"], binary_as=name)
        assert schema_type(reader) == ("+s", ("name", (kind,)))
        names = ["cat", "", "dög"]
        expected = names if "string" in name else [each.encode() for each in names]
        assert rows_of_stream(reader) == [{"name": each} for each in expected]


def test_tensors(tmp_path):
    features = {**FEATURES, "image": tfw.FixedLenFeature([2, 2], INT64)}
    rows = [{**ROWS[0], "image": np.arange(4).reshape(2, 2)}]
    path = written(tmp_path, rows)
    reader = open_reader(path, features, columns=["image", "n", "name"], tensors=True)
    assert schema_type(reader)[1] == ("image", ("+w:4", ("item", ("l",))))
    assert rows_of_stream(reader) == [{"image": [0, 1, 2, 3], "n": 1, "name": b"cat"}]
    capsule = reader.__arrow_c_schema__()
    metadata = metadata_of(opened(capsule, b"arrow_schema").children[0])
    assert metadata["ARROW:extension:name"] == "arrow.fixed_shape_tensor"
    assert json.loads(metadata["ARROW:extension:metadata"]) == {"shape": [2, 2]}
    plain = metadata_of(opened(capsule, b"arrow_schema").children[1])
    assert set(plain) == {"tfwire:feature"}


def test_the_metadata_is_the_specification(tmp_path):
    partition = tfw.RaggedFeature.RowLengths("p")
    features = {
        **FEATURES,
        b"\xff": tfw.RaggedFeature(STRING, "v", [partition]),
        "sparse": tfw.SparseFeature(["i"], "v2", FLOAT, size=[3]),
    }
    reader = open_reader(written(tmp_path, ROWS), features)
    capsule = reader.__arrow_c_schema__()
    schema = opened(capsule, b"arrow_schema")
    described = [
        json.loads(metadata_of(schema.children[i])["tfwire:feature"])
        for i in range(schema.n_children)
    ]
    assert described[1] == {
        "key": "xs",
        "feature": "FixedLenFeature",
        "shape": [2],
        "dtype": "float32",
    }
    assert described[4]["key"].encode("utf-8", "surrogateescape") == b"\xff"
    assert described[4]["partitions"] == [["RowLengths", "p"]]
    assert described[5]["index_key"] == ["i"]


# ---- Reading -------------------------------------------------------------------------------------


def test_features_are_inferred(tmp_path):
    text = [{**row, "name": row["name"].decode()} for row in EXPECTED]
    assert rows_of_stream(open_reader(written(tmp_path, ROWS))) == text


def test_columns_are_pushed_down(tmp_path):
    """The features not asked for are not parsed: they may be of another kind."""
    wrong = {**FEATURES, "n": tfw.FixedLenFeature([], FLOAT), "xs": tfw.FixedLenFeature([3], FLOAT)}
    path = written(tmp_path, ROWS)
    reader = open_reader(path, wrong, columns=["tags", "name"])
    assert rows_of_stream(reader) == [
        {"tags": row["tags"], "name": row["name"]} for row in EXPECTED
    ]
    assert list(reader.types) == ["tags", "name"]


def test_no_columns_are_rows_alone(tmp_path):
    reader = open_reader(written(tmp_path, ROWS), FEATURES, columns=[])
    assert rows_of_stream(reader) == [{}] * 3
    assert [batch.num_rows for batch in reader] == [3]


@pytest.mark.parametrize("features", [FEATURES, SEQUENCE])
def test_a_file_without_records(tmp_path, features):
    assert table(tmp_path, [], features) == []


def test_batches_span_files(tmp_path):
    paths = [written(tmp_path, [{"n": i} for i in range(k)], f"{k}") for k in (3, 0, 5, 1)]
    features = {"n": tfw.FixedLenFeature([], INT64)}
    reader = open_reader(paths, features, batch_size=4)
    stream = Stream(reader)
    sizes = [len(rows) for rows in stream]
    stream.close()
    assert sizes == [4, 4, 1] == [len(batch) for batch in reader]


def test_a_reader_is_opened_again_and_again(tmp_path):
    reader = open_reader(written(tmp_path, ROWS), FEATURES, batch_size=1)
    half = Stream(reader)
    next(half)
    assert rows_of_stream(reader) == rows_of_stream(reader) == EXPECTED
    assert [row for rows in half for row in rows] == EXPECTED[1:]
    half.close()


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_compressed_files(tmp_path, compression):
    path = written(tmp_path, ROWS, options=compression)
    reader = open_reader([path, written(tmp_path, ROWS, "plain")], FEATURES, batch_size=2)
    assert rows_of_stream(reader) == EXPECTED * 2 == rows_of_stream(reader)


def test_threads(tmp_path):
    rows = [{"n": i, "name": str(i)} for i in range(5000)]
    features = {"n": FEATURES["n"], "name": FEATURES["name"]}
    path = written(tmp_path, rows)
    reader = open_reader(path, features, batch_size=300, num_threads=3)
    expected = [{"n": i, "name": b"%d" % i} for i in range(5000)]
    assert rows_of_stream(reader) == expected
    assert [row for batch in reader for row in rows_of_batch(batch)] == expected


@pytest.mark.parametrize("compressed", [False, True])
def test_positions(tmp_path, compressed):
    paths = []
    for name in ("a", "b"):
        paths.append(written(tmp_path, ROWS, name, options="GZIP" if compressed else None))
    reader = open_reader(paths, FEATURES, columns=["n"], with_positions=True, batch_size=4)
    expected = [
        {"n": row["n"], "path": path, "record_index": number, "offset": offset}
        for path in paths
        for row, (_, number, offset, _) in zip(
            EXPECTED, tfw.read_records(path).with_positions(), strict=True
        )
    ]
    assert rows_of_stream(reader) == expected
    assert [row for batch in reader for row in rows_of_batch(batch)] == expected
    kinds = dict(schema_type(reader)[1:])
    assert kinds["path"] == ("i", ("U",))


def test_positions_past_damage(tmp_path):
    path = written(tmp_path, [{"n": i} for i in range(20)])
    damage(path, 7)
    features = {"n": tfw.FixedLenFeature([], INT64)}
    reader = open_reader(path, features, with_positions=True, on_corrupt="skip")
    with pytest.warns(tfw.TfwireWarning, match="left out 1 damaged"):
        rows = rows_of_stream(reader)
    assert [row["n"] for row in rows] == [row["record_index"] for row in rows]
    assert {row["n"] for row in rows} == set(range(20)) - {7}


# ---- Life ----------------------------------------------------------------------------------------


def test_batches_outlive_all_else(tmp_path):
    reader = open_reader(written(tmp_path, ROWS), FEATURES)
    [batch] = reader
    capsules = batch.__arrow_c_array__()
    del reader, batch
    array = opened(capsules[1], b"arrow_array")
    assert array.length == 3
    assert opened(capsules[0], b"arrow_schema").n_children == 4
    release(array)


def test_a_child_outlives_its_parent(tmp_path):
    """A consumer may move a child out of an array, and release the rest."""
    [batch] = open_reader(written(tmp_path, ROWS), FEATURES)
    schema_capsule, array_capsule = batch.__arrow_c_array__()
    schema, array = opened(schema_capsule, b"arrow_schema"), opened(array_capsule, b"arrow_array")
    moved = ffi.new("struct ArrowArray *", array.children[3][0])
    array.children[3].release = ffi.NULL
    release(array)
    del batch, array_capsule
    assert values_of(schema.children[3], moved) == [[1, 2], [], None]
    release(moved)


def test_a_batch_is_exported_again_and_again(tmp_path):
    [batch] = open_reader(written(tmp_path, ROWS), FEATURES)
    first, second = batch.__arrow_c_array__(), batch.__arrow_c_array__()
    one, two = (opened(each[1], b"arrow_array") for each in (first, second))
    assert one.children[0].buffers[1] == two.children[0].buffers[1]  # not copied
    release(one)
    assert rows_of_batch(batch) == EXPECTED
    del batch
    assert two.children[0].length == 3
    release(two)


def test_a_stream_outlives_its_reader(tmp_path):
    stream = Stream(open_reader(written(tmp_path, ROWS), FEATURES, batch_size=1))
    assert next(stream) == EXPECTED[:1]  # and the rest is never read
    stream.close()


def test_streams_in_threads_of_their_own(tmp_path):
    reader = open_reader(written(tmp_path, ROWS * 100), FEATURES, batch_size=7)
    assert at_once(lambda _: rows_of_stream(reader)) == [EXPECTED * 100] * 4


# ---- Arguments -----------------------------------------------------------------------------------


def test_other_users_of_ctypes_are_not_met(tmp_path, monkeypatch):
    """The functions in ctypes.pythonapi are shared, with the types that somebody sets."""
    shared = ctypes.pythonapi.PyCapsule_New
    before = shared.restype, shared.argtypes
    open_reader(written(tmp_path, ROWS)).__arrow_c_stream__()
    assert before == (shared.restype, shared.argtypes)
    monkeypatch.setattr(shared, "argtypes", [ctypes.c_char_p])
    monkeypatch.setattr(shared, "restype", ctypes.c_int)
    assert EXPECTED == rows_of_stream(open_reader(written(tmp_path, ROWS), FEATURES))


def test_a_reader_prints_its_types(tmp_path):
    path = written(tmp_path, ROWS)
    assert repr(open_reader(path, FEATURES)) == (
        f"ArrowReader({path})\n"
        "  n: int64\n"
        "  xs: fixed_size_list<float>[2]\n"
        "  name: large_binary\n"
        "  tags: large_list<int64>"
    )
    [batch] = open_reader(path, FEATURES)
    assert repr(batch) == "RecordBatch(3 rows, 4 columns)"


def test_paths_can_be_read_again(tmp_path):
    with open(written(tmp_path, ROWS), "rb") as file, pytest.raises(TypeError, match="read again"):
        open_reader(file, FEATURES)


def test_names_are_unique(tmp_path):
    path = written(tmp_path, [{"path": "x"}])
    with pytest.raises(ValueError, match="two columns would have the name 'path'"):
        open_reader(path, with_positions=True)
    feature = tfw.VarLenFeature(INT64)
    with pytest.raises(ValueError, match="the name 'a'"):
        open_reader(path, ({"a": feature}, {"a": feature}))
