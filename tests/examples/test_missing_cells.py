"""Cells that are missing, by numpy alone: absent features in columns and rows alike."""

import io
import itertools

import numpy as np
import pytest

import tfwire as tfw
from tfwire._examples.column_types import RaggedTensor

NAN = float("nan")
BIG = 2**53 + 1  # no float holds it


def rows_of(records):
    """The kind of each feature, and its values."""
    rows = []
    for record in records:
        features = tfw.train.Example.FromString(record).features.feature
        kinds = {name: feature.WhichOneof("kind") for name, feature in features.items()}
        rows.append(
            {
                name: (kind, list(getattr(features[name], kind).value) if kind else [])
                for name, kind in kinds.items()
            }
        )
    return rows


def row(kind, *values):
    return {"x": (kind, list(values))}


def masked(values, mask, **options):
    return np.ma.MaskedArray(np.array(values, **options), mask)


INT, FLOAT, STR = "int64_list", "float_list", "bytes_list"

COLUMNS = {
    "ints": ([BIG, None, 3], [row(INT, BIG), {}, row(INT, 3)]),
    "bools": ([None, True], [{}, row(INT, 1)]),
    "floats": ([0.5, None, NAN], [row(FLOAT, 0.5), {}, row(FLOAT, NAN)]),
    "ints among floats": ([1, None, 0.5], [row(FLOAT, 1.0), {}, row(FLOAT, 0.5)]),
    "NaN in a list of numbers": ([1, NAN], [row(FLOAT, 1.0), row(FLOAT, NAN)]),
    "strings": (["a", None, b"\xff"], [row(STR, b"a"), {}, row(STR, b"\xff")]),
    "bytes": ([b"a", None, b""], [row(STR, b"a"), {}, row(STR, b"")]),
    "NaN among strings": (["a", NAN, np.float32("nan")], [row(STR, b"a"), {}, {}]),
    "NaN among lists": ([[BIG, 1], NAN], [row(INT, BIG, 1), {}]),
    "lists": ([[1], None, [], [2, 3]], [row(INT, 1), {}, row(INT), row(INT, 2, 3)]),
    "empty lists": ([[], None], [row(None), {}]),  # without a kind
    "arrays": ([None, np.arange(2), np.arange(0)], [{}, row(INT, 0, 1), row(INT)]),
    "arrays of rank 2": ([np.array([[1], [2]]), None], [row(INT, 1, 2), {}]),
    "scalars and lists": ([1, None, [2, 3]], [row(INT, 1), {}, row(INT, 2, 3)]),
    "all": ([None, None], [{}, {}]),
    "times": ([1, np.datetime64("NaT", "s"), np.timedelta64("NaT", "s")], [row(INT, 1), {}, {}]),
    "masked": (["a", np.ma.masked, masked(1, True)], [row(STR, b"a"), {}, {}]),
    "masked ints": (masked([BIG, 7], [0, 1]), [row(INT, BIG), {}]),
    "masked unsigned": (masked([1, 7], [1, 0], dtype=">u2"), [{}, row(INT, 7)]),
    "masked bools": (masked([True, False], [1, 0]), [{}, row(INT, 0)]),
    "masked floats": (masked([1.5, NAN, 2], [0, 0, 1]), [row(FLOAT, 1.5), row(FLOAT, NAN), {}]),
    "masked strings": (masked(["a", "b"], [0, 1]), [row(STR, b"a"), {}]),
    "masked objects": (masked(["a", None, 5], [0, 0, 1], dtype=object), [row(STR, b"a"), {}, {}]),
    "all masked": (masked([1, 2], True), [{}, {}]),
    "nothing masked": (masked([1, 2], False), [row(INT, 1), row(INT, 2)]),
    "masked, rank 2": (masked([[1, 2], [3, 4]], False), [row(INT, 1, 2), row(INT, 3, 4)]),
}
OBJECTS = {
    "NaN among ints": ([BIG, NAN], [row(INT, BIG), {}]),
    "NaN among bools": ([True, np.float64("nan")], [row(INT, 1), {}]),
    "NaN among floats": ([1.5, NAN, 1], [row(FLOAT, 1.5), row(FLOAT, NAN), row(FLOAT, 1.0)]),
    "NaN alone": ([NAN, NAN], [{}, {}]),
    "NaN and None": ([NAN, "a", None], [{}, row(STR, b"a"), {}]),
}


def object_array(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


def cases():
    for name, (column, rows) in COLUMNS.items():
        yield pytest.param(column, rows, id=name)
        if isinstance(column, list):
            yield pytest.param(tuple(column), rows, id=f"{name}, a tuple")
            if name != "NaN in a list of numbers":
                yield pytest.param(object_array(column), rows, id=f"{name}, objects")
    for name, (column, rows) in OBJECTS.items():
        yield pytest.param(object_array(column), rows, id=f"{name}, objects")


CASES = list(cases())


@pytest.mark.parametrize(("column", "rows"), CASES)
def test_a_missing_cell_of_a_column_is_an_absent_feature(column, rows):
    assert repr(rows) == repr(rows_of(tfw.encode_columns({"x": column})))
    columns = {"a": np.arange(len(rows)), "x": column}
    assert [{"a", *r} for r in rows] == [set(r) for r in rows_of(tfw.encode_columns(columns))]


@pytest.mark.parametrize(("column", "rows"), CASES)
@pytest.mark.parametrize("num_threads", [1, 2])
def test_writers_take_the_same_columns(tmp_path, column, rows, num_threads):
    records = tfw.encode_columns({"x": column})
    with tfw.TFRecordWriter(tmp_path / "one", num_threads=num_threads) as writer:
        writer.write_columns({"x": column})
    with tfw.ShardedWriter(tmp_path / "s", num_shards=1, num_threads=num_threads) as writer:
        writer.write_columns({"x": column})
    assert records == list(tfw.read_records(tmp_path / "one"))
    assert records == list(tfw.read_records(tmp_path / "s"))
    assert records == list(tfw.encode_columns({"x": column}, bytes_as="column"))


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_value_of_a_row_is_an_absent_feature(name):
    column, expected = COLUMNS[name]
    cells = [{"x": cell} for cell in column]
    buffer = io.BytesIO()
    with tfw.TFRecordWriter(buffer, kinds="any") as writer:
        writer.write_many(cells)
        for cell in cells:
            writer.write(cell)
    records = list(tfw.read_records(io.BytesIO(buffer.getvalue())))
    encoded = tfw.encode_examples(cells, kinds="any")
    assert encoded == [tfw.encode_example(cell) for cell in cells]
    assert records == encoded * 2
    absent = [cell for cell, wanted in zip(cells, expected, strict=True) if not wanted]
    if "NaN" not in name:  # a row does not show what other rows have
        assert [{}] * len(absent) == rows_of(tfw.encode_examples(absent))


def test_missing_values_stand_among_others():
    given = {"a": 1, "b": None, "c": np.ma.masked, "d": [1.5], "e": np.datetime64("NaT", "s")}
    rows = [dict(some) for some in itertools.permutations(given.items())]
    (record,) = set(tfw.encode_examples(rows))
    assert tfw.encode_example({"a": 1, "d": [1.5]}) == record
    assert tfw.encode_sequence_example(given, {}) == tfw.encode_sequence_example(
        {"a": 1, "d": [1.5]}, {}
    )


INSIDE = {
    "list": [[1], [2, None]],
    "NaT": [["a"], [np.datetime64("NaT", "s")]],
    "objects": [[1], np.array([1, None], object)],
    "objects, rank 2": np.array([[1, 2], [3, None]], object),
    "masked": [[1], masked([1, 2], [0, 1])],
    "masked, rank 2": masked([[1, 2], [3, 4]], [[0, 0], [1, 1]]),
    "ragged": RaggedTensor(object_array(["a", "b", None]), [0, 2, 3]),
}
SAID = "a null inside a list; leave it out or fill it"


@pytest.mark.parametrize("column", INSIDE.values(), ids=INSIDE)
def test_a_value_that_is_missing_in_a_list_is_an_error(column):
    with pytest.raises(TypeError, match=f"^feature 'x': record 1: {SAID}$"):
        tfw.encode_columns({"x": column})
    if isinstance(column, list):
        with pytest.raises(TypeError, match=f"^feature 'x': record 1: {SAID}$"):
            tfw.encode_examples({"x": cell} for cell in column)
        with pytest.raises(TypeError, match=f"^feature 'x': {SAID}$"):
            tfw.encode_example({"x": column[1]})


@pytest.mark.parametrize("steps", [[[1], None], masked([1, 2], [0, 1]), ["a", NAN]])
def test_a_step_is_not_missing(steps):
    with pytest.raises(TypeError, match=f"^feature 'w': step 1: {SAID}$"):
        tfw.encode_sequence_example({}, {"w": steps})


@pytest.mark.parametrize(
    "column",
    [
        [[1], None, {}],
        masked([[1], [2], {}], [0, 1, 0], dtype=object),
        masked([None, 7, {}], [0, 1, 0], dtype=object),
    ],
)
def test_other_errors_in_lists_name_the_record(column):
    with pytest.raises(TypeError, match=r"^feature 'x': record 2: expected numbers, .*found dict$"):
        tfw.encode_columns({"x": column})


def test_rows_of_empty_lists_have_no_kind():
    ragged = RaggedTensor([], [0, 0, 0])
    ragged.values = []
    expected = tfw.encode_examples([{"x": []}] * 2)
    assert expected == tfw.encode_columns({"x": ragged}) == tfw.encode_columns({"x": [[], []]})


def test_the_kind_of_a_column_does_not_depend_on_a_missing_cell():
    for values in ([BIG, 1], [0.5, NAN], ["a", "b"], [b"a", b"b"], [[1], [2, 3]], [True, False]):
        expected = tfw.encode_columns({"x": values})
        for count in (1, 2):
            for where in itertools.combinations(range(len(values) + count), count):
                rest = iter(values)
                cells = [None if i in where else next(rest) for i in range(len(values) + count)]
                found = tfw.encode_columns({"x": cells})
                assert expected == [record for record in found if record != b"\n\0"]
                assert count == found.count(b"\n\0")
