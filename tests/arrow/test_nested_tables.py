"""Tables with lists in lists: refused, or written as their metadata or a specification says."""

import itertools
import json
import re

import numpy as np
import pytest

import tfwire as tfw
from helpers.arrow.columns import Batch, Node, lay_out, table_of
from tfwire.arrow import open_reader

LISTS = ["+l", "+L", "+vl", "+vL", "+w:2"]
RAGGED = tfw.RaggedFeature


def table(format, values, before=2):
    return Batch(table_of({"x": lay_out(format, values, before)}))


@pytest.mark.parametrize("outer", LISTS)
@pytest.mark.parametrize("inner", LISTS)
def test_lists_in_lists_are_refused_unless_they_have_one_size(outer, inner):
    values = [[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]]
    made = table((outer, (inner, "i")), values)
    if inner == "+w:2":
        rows = tfw.decode_examples(tfw.encode_columns(made))
        assert [[*range(1, 5)], None, [*range(5, 9)]] == [
            row["x"].tolist() if row else None for row in rows
        ]
        return
    with pytest.raises(TypeError, match=r"^feature 'x': lists in lists, .* features="):
        tfw.encode_columns(made)
    assert made.made == made.released > 0


@pytest.mark.parametrize("outer", LISTS)
@pytest.mark.parametrize("inner", LISTS)
@pytest.mark.parametrize("before", [0, 9])
def test_a_specification_says_how_they_are_written(outer, inner, before):
    values = [[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]]
    spec = {"x": RAGGED("int64", None, [RAGGED.RowLengths("n")])}
    expected = tfw.encode_columns({"x": values}, features=spec)
    made = table((outer, (inner, "i")), values, before)
    assert expected == tfw.encode_columns(made, features=spec)
    assert made.made == made.released > 0
    spec = (None, {"x": tfw.VarLenFeature("int64")})
    steps = [*values, [None, [9, 9]]]
    expected = tfw.encode_columns({"x": steps}, features=spec)
    assert expected == tfw.encode_columns(
        table((outer, (inner, "i")), steps, before), features=spec
    )


def test_nulls_below_the_steps_are_refused():
    spec = {"x": RAGGED("int64", None, [RAGGED.RowLengths("n")])}
    for values in ([[[1]], [[2], None]], [[[1]], [[2, None]]]):
        with pytest.raises(TypeError, match=r"^feature 'x': record 1: a null inside"):
            tfw.encode_columns(table(("+l", ("+l", "i")), values), features=spec)
    deep = (None, {"x": RAGGED("int64", None, [RAGGED.RowLengths("n")])})
    values = [[[[1]]], [None, [None]]]
    with pytest.raises(TypeError, match=r"^feature 'x': record 1: a null inside"):
        tfw.encode_columns(table(("+l", ("+l", ("+l", "i"))), values), features=deep)


def test_types_without_values_take_the_kind_of_the_specification():
    spec = {"x": RAGGED("string", None, [RAGGED.RowLengths("n")])}
    values = [[[], []], None, []]
    expected = tfw.encode_columns({"x": values}, features=spec)
    for kind in "nlz":
        assert expected == tfw.encode_columns(table(("+l", ("+l", kind)), values), features=spec)
    assert [{}, {}] == tfw.decode_examples(
        tfw.encode_columns(table("n", [None, None]), features={"x": tfw.VarLenFeature("string")})
    )


# ---- The metadata of tables ---------------------------------------------------------------------

SPECS = {
    "ragged": {
        "x": RAGGED("string", "words", [RAGGED.RowLengths("a"), RAGGED.RowSplits("b")]),
        "n": tfw.FixedLenFeature([], "int64"),
    },
    "other key": {"x": RAGGED("int64", "numbers")},
    "uniform": {"x": RAGGED("int64", None, [RAGGED.RowLimits("a"), RAGGED.UniformRowLength(2)])},
    "steps": (
        {"id": tfw.VarLenFeature("string")},
        {
            "x": tfw.VarLenFeature("int64"),
            "image": tfw.FixedLenSequenceFeature([2], "float32", allow_missing=True),
            "r": RAGGED("int64", None, [RAGGED.ValueRowIds("rows")]),
        },
    ),
    "dense": {"x": tfw.FixedLenFeature([2, 2], "int64")},
}
COLUMNS = {
    "ragged": {"x": [[[["a"], []], []], None, [], [[["b", "c"]]]], "n": [1, 2, 3, 4]},
    "other key": {"x": [[1, 2], [], None]},
    "uniform": {"x": [[[[1, 2]], []], [[[3, 4], [5, 6]]], None]},
    "steps": {
        "id": [["a"], None],
        "x": [[[1], None, [], [2, 3]], []],
        "image": [None, [[1, 2], [3, 4]]],
        "r": [[[[1], [2, 3]], None], [[]]],
    },
    "dense": {"x": np.arange(8).reshape(2, 2, 2)},
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("batch_size", [1, 100])
def test_a_table_says_itself_how_it_is_written(tmp_path, name, batch_size):
    path = tmp_path / "a.tfrecord"
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(COLUMNS[name], features=SPECS[name])
    records = list(tfw.read_records(path))
    reader = open_reader(path, SPECS[name], batch_size=batch_size)
    assert tfw.encode_columns(reader) == records
    again = tmp_path / "b.tfrecord"
    with tfw.TFRecordWriter(again) as writer:
        for batch in reader:
            writer.write_columns(batch)
    assert again.read_bytes() == path.read_bytes()


def test_names_that_a_table_cannot_have_come_back(tmp_path):
    rows = [{b"\xff": 1, "a\0b": "s"}]
    tfw.write_records(tmp_path / "a", rows)
    spec = {b"\xff": tfw.VarLenFeature("int64"), "a\0b": tfw.VarLenFeature("string")}
    assert tfw.encode_columns(open_reader(tmp_path / "a", spec)) == tfw.encode_examples(rows)


def described(format, values, text):
    node = lay_out(format, values)
    made = table_of({"x": node})
    if text is not None:
        data = text if isinstance(text, bytes) else json.dumps(text).encode()
        pairs = b"\1\0\0\0" + b"\x0e\0\0\0tfwire:feature" + len(data).to_bytes(4, "little") + data
        node.metadata = pairs
    return Batch(made)


GOOD = {
    "key": "x",
    "feature": "RaggedFeature",
    "dtype": "int64",
    "partitions": [["RowSplits", "s"]],
}
WRONG = {
    "no JSON": b"\xff{",
    "no object": [1],
    "no key": {"feature": "VarLenFeature", "dtype": "int64"},
    "a key that is no text": {**GOOD, "key": 3},
    "no class": {"key": "x", "dtype": "int64"},
    "another class": {**GOOD, "feature": "object"},
    "a class that is no text": {**GOOD, "feature": []},
    "a field too many": {**GOOD, "__class__": 1},
    "no dtype": {"key": "x", "feature": "RaggedFeature"},
    "another part": {**GOOD, "part": "both"},
    "another dtype": {**GOOD, "dtype": "float64"},
    "a dtype that is no text": {**GOOD, "dtype": {}},
    "another partition": {**GOOD, "partitions": [["mro", "s"]]},
    "a partition of a list": {**GOOD, "partitions": [[["RowSplits"], "s"]]},
    "a key of half a character": {**GOOD, "key": "\ud800"},
    "keys that are no texts": {"key": "x", "feature": "SparseFeature", "index_key": [["i"]]},
    "a partition alone": {**GOOD, "partitions": [["RowSplits"]]},
    "a partition of a number": {**GOOD, "partitions": [["RowSplits", 1]]},
    "no partitions": {**GOOD, "partitions": "RowSplits"},
    "a length of a text": {**GOOD, "partitions": [["UniformRowLength", "s"]]},
    "a length of 0": {**GOOD, "partitions": [["UniformRowLength", 0]]},
    "a shape below zero": {
        "key": "x",
        "feature": "FixedLenFeature",
        "dtype": "int64",
        "shape": [-1],
    },
    "a huge shape": {"key": "x", "feature": "FixedLenFeature", "dtype": "int64", "shape": [2**62]},
    "depth": b"[" * 100_000,
    "size": b'"' + b"a" * (1 << 20) + b'"',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_metadata_is_not_trusted(text):
    format, values = ("+l", ("+l", "l")), [[[1], [2, 3]], None]
    good = tfw.encode_columns(described(format, values, GOOD))
    assert tfw.decode_examples(good)[0]["s"].tolist() == [0, 1, 3]
    with pytest.raises(ValueError, match=r"^column 'x': its metadata .*features=") as caught:
        tfw.encode_columns(described(format, values, text))
    pythons = r"__|unpack|unhashable|unexpected|positional|attribute|codec|line 1|'key'"
    assert not re.search(pythons, str(caught.value))
    spec = {"x": RAGGED("int64", None, [RAGGED.RowSplits("s")])}
    assert tfw.encode_columns(described(format, values, text), features=spec) == good
    flat = described(("+l", "l"), [[1], [2, 3]], text)
    assert len(tfw.encode_columns(flat, features={})) == 2


SPARSE = {
    "x": tfw.SparseFeature("at", "value", "float32", 10),
    "y": tfw.SparseFeature(["row", "column"], "text", "string", [5, 5]),
}


def test_sparse_features_come_back(tmp_path):
    rows = [
        {"at": [1, 5], "value": [1.0, 2.0], "row": [1], "column": [2], "text": ["a"]},
        {"row": [3, 4], "column": [0, 1], "text": ["b", "c"]},
        {"at": [], "value": []},
    ]
    tfw.write_records(tmp_path / "a", rows)
    for batch_size in (1, 2, 100):
        reader = open_reader(tmp_path / "a", SPARSE, batch_size=batch_size)
        for features in (None, SPARSE):
            records = tfw.encode_columns(reader, features=features)
            assert sparse_of(records) == sparse_of(list(tfw.read_records(tmp_path / "a")))
    assert b"value" in tfw.encode_columns(open_reader(tmp_path / "a", SPARSE))[0]


def sparse_of(records):
    parsed = tfw.parse_example(records, SPARSE)
    return [array.tolist() for name in SPARSE for array in parsed[name]]


def structs(indices, values, bitmap=None, offset=0):
    """A column of structs of two lists, over two records."""
    fields = {"indices": indices, "values": values}
    for name, node in fields.items():
        node.name = name
    made = Node("+s", 2, [bitmap], list(fields.values()), offset=offset)
    made.null_count = -1 if bitmap is not None else 0
    return Batch(table_of({"x": made}))


def test_structs_of_lists_of_any_layout():
    expected = tfw.encode_columns({"at": [[1, 2], None], "value": [[0.5, 1.5], None]})
    for kind in ("+l", "+L", "+vl"):
        for before, hidden in itertools.product((0, 3), ([9], None)):
            made = structs(
                lay_out((kind, "i"), [[1, 2], hidden], before),
                lay_out(("+l", "g"), [[0.5, 1.5], hidden], before),
                np.array([1], np.uint8),
            )
            assert expected == tfw.encode_columns(made, features={"x": SPARSE["x"]})
            assert made.made == made.released > 0
    shifted = structs(
        lay_out(("+l", "i"), [[7], [1, 2], None]),
        lay_out(("+l", "g"), [[7.0], [0.5, 1.5], None]),
        offset=1,
    )
    assert expected == tfw.encode_columns(shifted, features={"x": SPARSE["x"]})


def test_other_structs_are_refused():
    lists = lay_out(("+l", "i"), [[1], [2]])
    made = structs(lists, lay_out(("+l", "f"), [[1.0], [2.0, 3.0]]))
    with pytest.raises(TypeError, match=r"feature 'x': a struct cannot be a feature; .* features"):
        tfw.encode_columns(made)
    said = "record 1: expected as many indices as values, found 1 in 'at' and 2 in 'value'"
    made = structs(lists, lay_out(("+l", "f"), [[1.0], [2.0, 3.0]]))
    with pytest.raises(ValueError, match=said):
        tfw.encode_columns(made, features={"x": SPARSE["x"]})
    other = Batch(table_of({"x": Node("+s", 2, [None], [lay_out("l", [1, 2])])}))
    with pytest.raises(TypeError, match=r"'indices' and 'values', .*, found one of 'x'"):
        tfw.encode_columns(other, features={"x": SPARSE["x"]})
    with pytest.raises(TypeError, match=r"'indices' and 'values', .*, found another type"):
        tfw.encode_columns(table("l", [1, 2]), features={"x": SPARSE["x"]})
    two = structs(lists, lay_out(("+l", "Z"), [[b"a"], [b"b"]]))
    with pytest.raises(ValueError, match="feature 'x': expected 2 integers in each of the indices"):
        tfw.encode_columns(two, features={"x": SPARSE["y"]})


def test_metadata_of_another_column_is_an_error_only_where_it_matters():
    with pytest.raises(ValueError, match=r"expected lists in a list .*found a list"):
        tfw.encode_columns(described(("+l", "l"), [[1], [2, 3]], GOOD))
    flat = {"key": "y", "feature": "FixedLenFeature", "dtype": "string", "shape": []}
    assert tfw.decode_examples(tfw.encode_columns(described("l", [1, 2], flat)))[1] == {"x": 2}
