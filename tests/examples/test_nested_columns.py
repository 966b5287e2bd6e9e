"""Columns of lists in lists, written as a specification says."""

import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.arrow.columns import Batch, lay_out, table_of

RAGGED = tfw.RaggedFeature
LENGTHS = RAGGED("int64", None, [RAGGED.RowLengths("n")])
KEYED = ["RowLengths", "RowSplits", "RowStarts", "RowLimits", "ValueRowIds"]
ITEMS = {
    "int64": st.integers(-3, 2**62),
    "float32": st.floats(width=32, allow_nan=False),
    "string": st.binary(max_size=3),
}
ARROW = {"int64": "l", "float32": "f", "string": "z"}
DTYPES = {"int64": np.int64, "float32": np.float32, "string": object}


# ---- By hand ------------------------------------------------------------------------------------


def partition_by_hand(kind, rows):
    """The numbers of a partition of one record's rows."""
    lengths = list(map(len, rows))
    limits = list(itertools.accumulate(lengths))
    return {
        "RowLengths": lengths,
        "RowSplits": [0, *limits],
        "RowStarts": [0, *limits[:-1]] if rows else [],
        "RowLimits": limits,
        "ValueRowIds": [number for number, row in enumerate(rows) for _ in row],
    }[kind]


def cell_by_hand(rows, feature):
    """The features of one record, or one step, with rows as a RaggedFeature x has them."""
    found = {}
    for partition in feature.partitions:
        if type(partition).__name__ != "UniformRowLength":
            found[partition.key] = (np.int64, partition_by_hand(type(partition).__name__, rows))
        rows = list(itertools.chain.from_iterable(rows))
    return {**found, "values": (DTYPES[feature.dtype.name], rows)}


def feature_by_hand(dtype, values):
    made = tfw.train.Feature()
    field = {np.int64: "int64_list", np.float32: "float_list", object: "bytes_list"}[dtype]
    getattr(made, field).value.extend(values)
    getattr(made, field).SetInParent()
    return made


def by_hand(records, feature, steps):
    """The messages, made one by one."""
    for record in records:
        message = tfw.train.SequenceExample() if steps else tfw.train.Example()
        for step in [record] if not steps else record or []:
            for name, of in cell_by_hand(step or [], feature).items():
                if steps:
                    made = message.feature_lists.feature_list[name].feature.add()
                    if step is not None:
                        made.CopyFrom(feature_by_hand(*of))
                elif step is not None:
                    message.features.feature[name].CopyFrom(feature_by_hand(*of))
        if steps and record == []:
            for name in cell_by_hand([], feature):
                message.feature_lists.feature_list[name].SetInParent()
        yield message


def as_read(messages):
    """Messages whose sections are there, also if they hold nothing."""
    for message in messages:
        empty = b"\n\0\x12\0" if isinstance(message, tfw.train.SequenceExample) else b"\n\0"
        yield type(message).FromString(message.SerializeToString() + empty)


# ---- Drawn data ---------------------------------------------------------------------------------


@st.composite
def columns(draw):
    """A RaggedFeature, whether it is one of steps, and a column for it."""
    dtype = draw(st.sampled_from(sorted(ITEMS)))
    kinds = draw(st.lists(st.sampled_from([*KEYED, "UniformRowLength"]), max_size=3))
    partitions = [
        RAGGED.UniformRowLength(2) if kind == "UniformRowLength" else getattr(RAGGED, kind)(f"p{i}")
        for i, kind in enumerate(kinds)
    ]
    rows = ITEMS[dtype]
    sizes = [(0, 3)] + [(2, 2) if kind == "UniformRowLength" else (0, 3) for kind in kinds]
    for least, most in reversed(sizes):
        rows = st.lists(rows, min_size=least, max_size=most)
    steps = draw(st.booleans())
    if steps:
        rows = st.lists(st.none() | rows, max_size=3)
    return RAGGED(dtype, "values", partitions), steps, draw(st.lists(st.none() | rows, max_size=4))


def last_row_is_empty(records, feature, steps):
    """Whether some record has a last row that ValueRowIds do not hold."""
    for record in records:
        for rows in (record or []) if steps else [record]:
            rows = rows or []
            for partition in feature.partitions:
                if type(partition).__name__ == "ValueRowIds" and rows and not rows[-1]:
                    return True
                rows = list(itertools.chain.from_iterable(rows))
    return False


def depth_of(feature, steps):
    return 1 + steps + len(feature.partitions)


def spec_of(feature, steps):
    return ({}, {"x": feature}) if steps else {"x": feature}


def as_objects(column):
    array = np.empty(len(column), object)
    array[:] = column
    return array


def as_table(format):
    def make(column, feature, steps):
        kind = ARROW[feature.dtype.name]
        for _ in range(depth_of(feature, steps)):
            kind = (format, kind)
        return Batch(table_of({"x": lay_out(kind, column, 3)}))

    return make


FORMS = {
    "lists": lambda column, *_: {"x": column},
    "tuples": lambda column, *_: {"x": tuple(column)},
    "objects": lambda column, *_: {"x": as_objects(column)},
    **{kind: as_table(kind) for kind in ("+l", "+L", "+vl", "+vL")},
}


@pytest.mark.parametrize("form", FORMS)
@given(drawn=columns())
@settings(max_examples=40, deadline=None)
def test_rows_are_written_with_their_partitions(form, drawn):
    feature, steps, records = drawn
    table, spec = FORMS[form](records, feature, steps), spec_of(feature, steps)
    if last_row_is_empty(records, feature, steps):
        with pytest.raises(ValueError, match=r"^feature 'x': record \d: ValueRowIds"):
            tfw.encode_columns(table, features=spec)
        return
    encoded = tfw.encode_columns(table, features=spec)
    cls = tfw.train.SequenceExample if steps else tfw.train.Example
    assert [cls.FromString(record) for record in encoded] == [
        *as_read(by_hand(records, feature, steps))
    ]


@given(drawn=columns())
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read(drawn):
    feature, steps, records = drawn
    if last_row_is_empty(records, feature, steps):
        return
    encoded = tfw.encode_columns({"x": records}, features=spec_of(feature, steps))
    expected = [[] if record is None else record for record in records]
    if steps:
        parser = tfw.SequenceParser(None, {"x": feature})
        empty = [[[] if step is None else step for step in record] for record in expected]
        found, expected = parser.parse(encoded)[1]["x"], empty
    else:
        found = tfw.parse_example(encoded, {"x": feature})["x"] if encoded else None
    if encoded:
        assert found.to_list() == expected


# ---- Every class of specification -----------------------------------------------------------


def decoded(columns, spec):
    records = tfw.encode_columns(columns, features=spec)
    if isinstance(spec, tuple):
        return [
            tuple({k: plain(v) for k, v in part.items()} for part in tfw.decode_sequence_example(r))
            for r in records
        ]
    return [{k: plain(v) for k, v in row.items()} for row in tfw.decode_examples(records)]


def plain(value):
    return (
        value.tolist()
        if isinstance(value, np.ndarray)
        else [*map(plain, value)]
        if isinstance(value, list)
        else value
    )


@pytest.mark.parametrize(
    ("feature", "column", "rows"),
    [
        (tfw.FixedLenFeature([], "int64", 0), [1, None, 3], [[1], None, [3]]),
        (tfw.FixedLenFeature([], "float32"), [1, 2], [[1.0], [2.0]]),
        (tfw.FixedLenFeature([], "int64"), [[1], [2]], [[1], [2]]),
        (tfw.FixedLenFeature([2, 2], "int64"), [[[1, 2], [3, 4]]], [[1, 2, 3, 4]]),
        (tfw.FixedLenFeature([2, 2], "int64"), [[1, 2, 3, 4]], [[1, 2, 3, 4]]),
        (tfw.FixedLenFeature([2], "string", ["", ""]), [None, ["a", "b"]], [None, [b"a", b"b"]]),
        (tfw.VarLenFeature("int64"), [[1, 2], [], None], [[1, 2], [], None]),
        (tfw.VarLenFeature("int64"), [1, None], [[1], None]),
        (tfw.VarLenFeature("string"), [[], []], [[], []]),
        (
            tfw.FixedLenSequenceFeature([2], "int64", allow_missing=True),
            [[[1, 2], [3, 4]], [], None],
            [[1, 2, 3, 4], [], None],
        ),
        (RAGGED("float32"), [[1], np.array([2.5])], [[1.0], [2.5]]),
    ],
)
def test_every_specification_of_examples(feature, column, rows):
    expected = [{} if row is None else {"x": row} for row in rows]
    assert decoded({"x": column}, {"x": feature}) == expected
    if not any(value is None for value in column):
        assert decoded({"x": tuple(column)}, {"x": feature}) == expected


@pytest.mark.parametrize(
    ("feature", "column", "rows"),
    [
        (tfw.VarLenFeature("int64"), [[[1, 2], [], None], [], None], [[[1, 2], [], []], [], None]),
        (tfw.VarLenFeature("int64"), [[1, None, 2]], [[[1], [], [2]]]),
        (tfw.FixedLenSequenceFeature([], "int64"), [[1, 2], [3]], [[[1], [2]], [[3]]]),
        (tfw.FixedLenSequenceFeature([2], "string"), [[["a", "b"]], []], [[[b"a", b"b"]], []]),
        (tfw.FixedLenSequenceFeature([], "int64", allow_missing=True), [None, [1]], [None, [[1]]]),
        (tfw.VarLenFeature("float32"), [np.ones((2, 1))], [[[1.0], [1.0]]]),
    ],
)
def test_every_specification_of_steps(feature, column, rows):
    spec = ({"id": tfw.FixedLenFeature([], "int64")}, {"x": feature})
    numbers = list(range(len(column)))
    expected = [({"id": [i]}, {} if row is None else {"x": row}) for i, row in enumerate(rows)]
    assert decoded({"x": column, "id": numbers}, spec) == expected


def test_columns_that_are_not_named_are_written_as_they_are():
    columns = {"a": [1, None], "x": [[[1], []], [[2]]], "b": ["s", "t"]}
    spec = {"x": RAGGED("int64", None, [RAGGED.RowLengths("n")])}
    rows = [{"a": [1], "b": [b"s"], "n": [1, 0], "x": [1]}, {"b": [b"t"], "n": [1], "x": [2]}]
    assert decoded(columns, spec) == rows
    assert decoded({"a": [1]}, {}) == [{"a": [1]}]
    with pytest.raises(ValueError, match=r"features="):
        tfw.encode_columns(columns, features={})


def test_a_ragged_tensor_and_arrays_are_columns_of_rows():
    spec = {"x": RAGGED("int64", None, [RAGGED.RowLengths("n")])}
    ragged = tfw.RaggedTensor(tfw.RaggedTensor(np.arange(3), [0, 2, 2, 3]), [0, 2, 3])
    expected = tfw.encode_columns({"x": [[[0, 1], []], [[2]]]}, features=spec)
    assert tfw.encode_columns({"x": ragged}, features=spec) == expected
    cube = np.arange(8).reshape(2, 2, 2)
    for column in (cube, list(cube), cube.tolist(), cube.astype(object), [*map(list, cube)]):
        found = tfw.encode_columns({"x": column}, features=spec)
        assert found == tfw.encode_columns({"x": cube.tolist()}, features=spec)
    strings = tfw.BytesColumn(b"abcd", [0, 1, 2, 3, 4], (1, 2, 2))
    spec = {"x": RAGGED("string", None, [RAGGED.RowLengths("n")])}
    assert decoded({"x": strings}, spec) == [{"n": [2, 2], "x": [b"a", b"b", b"c", b"d"]}]


def test_rows_may_share_their_partitions():
    shared = [RAGGED.RowLengths("n")]
    spec = {"x": RAGGED("int64", None, shared), "y": RAGGED("string", "s", shared)}
    columns = {"x": [[[1], []], [[2, 3]]], "y": [[["a"], []], [["b", "c"]]]}
    rows = [{"n": [1, 0], "s": [b"a"], "x": [1]}, {"n": [2], "s": [b"b", b"c"], "x": [2, 3]}]
    assert decoded(columns, spec) == rows
    columns["y"][1] = [["b"], ["c"]]
    for other in ([["b"], ["c"]], [["b"]]):
        columns["y"][1] = other
        with pytest.raises(ValueError, match=r"^feature 'y': record 1: feature 'x' .*'n'; give"):
            tfw.encode_columns(columns, features=spec)


@pytest.mark.parametrize("kind", KEYED)
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ([[1], [2, 3]], [[1], [2], [3]]),  # another number of rows
        ([[1], [2, 3]], [[1, 2], [3]]),  # of the same number, others
        ([[1], [2, 3]], None),
    ],
)
def test_columns_that_write_something_else_name_the_record(kind, steps, good, bad):
    shared = [getattr(RAGGED, kind)("n")]
    spec = {"x": RAGGED("int64", None, shared), "y": RAGGED("int64", None, shared)}
    many = [[good, [[7]]] if steps else good] * 9 + [[] if steps else [[7]]]
    other = [*many, [good, bad] if steps else bad, *many]
    columns = {"x": [*many, [good, good] if steps else good, *many], "y": other}
    with pytest.raises(ValueError, match=r"^feature 'y': record 10: feature 'x' writes something"):
        tfw.encode_columns(columns, features=({}, spec) if steps else spec)


def test_values_and_partitions_of_one_key():
    spec = {"x": RAGGED("int64", "n", [RAGGED.RowLengths("n")])}
    assert decoded({"x": [[[1]]]}, spec) == [{"n": [1]}]
    with pytest.raises(ValueError, match=r"^feature 'x': record 1: its values and partitions are"):
        tfw.encode_columns({"x": [[[1]], [[2]]]}, features=spec)
    values = {"x": RAGGED("string", "s"), "y": RAGGED("string", "s")}
    columns = {"x": [["a", "b"], ["c"], []], "y": [["a", "b"], ["d"], []]}
    for wrong in (["d"], ["cc"], [b"\xff"]):
        columns["y"][1] = wrong
        with pytest.raises(ValueError, match=r"^feature 'y': record 1: feature 'x' writes"):
            tfw.encode_columns(columns, features=values)


def test_no_records_and_no_values_are_no_error():
    spec = {"x": LENGTHS, "y": tfw.FixedLenFeature([2], "int64")}
    assert tfw.encode_columns({"x": [], "y": []}, features=spec) == []
    assert tfw.encode_columns({}, features={"x": LENGTHS}) == []
    none = {"x": [None, None], "z": [None, None]}
    assert tfw.encode_columns(none, features={"x": LENGTHS}) == [tfw.encode_example({})] * 2
    for none in ([], np.empty(0), np.empty(0, object), np.empty((0, 2), np.int64)):
        assert tfw.encode_columns({"x": none}, features={"x": LENGTHS}) == []
    empty = tfw.RaggedTensor(tfw.RaggedTensor(np.empty(0), [0]), [0, 0])
    assert decoded({"x": empty}, {"x": LENGTHS}) == [{"n": [], "x": []}]


def test_a_column_that_lies_of_its_shape_is_refused():
    strings = tfw.BytesColumn(b"ab", [0, 1, 2], (1, 2))
    strings.shape = (1, 2**40)
    spec = {"x": RAGGED("string", None, [RAGGED.UniformRowLength(2)])}
    with pytest.raises((ValueError, MemoryError)):
        tfw.encode_columns({"x": strings}, features=spec)


# ---- Writers --------------------------------------------------------------------------------


def written(columns, spec, threads):
    buffer = io.BytesIO()
    with tfw.TFRecordWriter(buffer, num_threads=threads) as writer:
        writer.write_columns(columns, features=spec)
        writer.write_columns(columns, features=spec)
    return list(tfw.read_records(io.BytesIO(buffer.getvalue())))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("steps", [False, True])
def test_writers_take_the_specification(tmp_path, threads, steps):
    x = [[list(range(i % 3)), [i]] for i in range(4_000)]
    feature = (
        tfw.VarLenFeature("int64") if steps else RAGGED("int64", None, [RAGGED.RowSplits("n")])
    )
    spec = spec_of(feature, steps)
    expected = tfw.encode_columns({"x": x}, features=spec)
    assert list(tfw.encode_columns({"x": x}, features=spec, bytes_as="column")) == expected
    assert written({"x": x}, spec, threads) == expected * 2
    path = tmp_path / "one.gz"
    with tfw.TFRecordWriter(path, "GZIP", num_threads=threads) as writer:
        writer.write_columns({"x": x}, features=spec)
    assert list(tfw.read_records(path)) == expected
    for name, options in (("size", {"shard_size": 40_000}), ("count", {"num_shards": 3})):
        pattern = tmp_path / (name + "-{shard}-of-{shards}")
        with tfw.ShardedWriter(pattern, num_threads=threads, **options) as writer:
            writer.write_columns({"x": x}, features=spec)
        found = [list(tfw.read_records(path)) for path in writer.paths]
        assert len(found) > 2
        dealt = [expected[i::3] for i in range(3)] if name == "count" else None
        assert found == dealt if dealt else [*itertools.chain(*found)] == expected


# ---- What is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "feature", "column", "said"),
    [
        (ValueError, tfw.VarLenFeature("int64"), [[[1]]], "record 0: expected a list .*VarLenF"),
        (ValueError, LENGTHS, [[1]], "expected lists in a list in each record, .*found a list"),
        (ValueError, LENGTHS, [1], "expected lists in a list in each record, .*found a value"),
        (ValueError, LENGTHS, [[[[1]]]], "found lists 3 deep"),
        (TypeError, LENGTHS, [None, [[1], None]], "record 1: a null inside a list"),
        (TypeError, LENGTHS, [[[1, None]]], "record 0: a null inside a list"),
        (
            TypeError,
            LENGTHS,
            [[[1]], [[1], 2]],
            "record 1: expected lists, or values, in all pl",
        ),
        (TypeError, LENGTHS, [[["a"]]], "record 0: expected int64, as Ragged.* says, found string"),
        (TypeError, LENGTHS, [[[1.5]]], "expected int64, as RaggedFeature says, found float32"),
        (TypeError, LENGTHS, [[], None, [[{}]]], "record 2: .*found dict"),
        (ValueError, LENGTHS, [[[1]], [[2**63]]], "record 1: a value outside of int64"),
        (
            ValueError,
            RAGGED("int64", None, [RAGGED.UniformRowLength(2)]),
            [[[1, 2]], [[1]]],
            "record 1: a row whose length is not 2",
        ),
        (
            ValueError,
            tfw.FixedLenFeature([2, 2], "int64"),
            [[[1, 2], [3, 4]], [[1, 2]]],
            r"record 1: expected the shape \[2, 2\]",
        ),
        (
            ValueError,
            tfw.FixedLenFeature([2, 2], "int64"),
            [[[1, 2], [3]]],
            r"record 0: expected the shape \[2, 2\]",
        ),
        (ValueError, tfw.FixedLenFeature([2], "int64"), [[1, 2], None], "record 1: .*is missing"),
        (ValueError, tfw.FixedLenFeature([], "int64"), [[1], [1, 2]], "record 1: expected the sh"),
    ],
)
def test_columns_that_do_not_fit_are_refused(kind, feature, column, said):
    with pytest.raises(kind, match=f"^feature 'x': .*{said}"):
        tfw.encode_columns({"x": column}, features={"x": feature})


@pytest.mark.parametrize(
    ("kind", "spec", "columns", "said"),
    [
        (ValueError, {"y": tfw.FixedLenFeature([], "int64")}, {"x": [1]}, "'y': there is no such"),
        (ValueError, {"x": LENGTHS}, {"x": [[[1]]], "n": [1]}, "'n': feature 'x' writes"),
        (ValueError, {"x": LENGTHS}, {"x": [[[1]]], "y": [1, 2]}, "differ in length"),
        (TypeError, {"x": tfw.SparseFeature("i", "v", "int64", 3)}, {"x": [1]}, "SparseFeature"),
        (ValueError, ({"x": LENGTHS}, {"x": LENGTHS}), {"x": [1]}, "context and a feature list"),
        (ValueError, {"x": 3}, {"x": [1]}, "Unsupported int"),
        (TypeError, 3, {"x": [1]}, "features must be a dict"),
        (
            ValueError,
            (None, {"x": tfw.FixedLenSequenceFeature([], "int64")}),
            {"x": [[1], None]},
            "record 1: .*is missing",
        ),
        (
            TypeError,
            (None, {"x": tfw.FixedLenSequenceFeature([2], "int64")}),
            {"x": [[[1, 2], None]]},
            "record 0: a null inside a list",
        ),
    ],
)
def test_specifications_that_do_not_fit_are_refused(kind, spec, columns, said):
    with pytest.raises(kind, match=said):
        tfw.encode_columns(columns, features=spec)
