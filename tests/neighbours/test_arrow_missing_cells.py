"""Cells that are missing, as every library writes them: absent features, in columns, tables and
rows alike; and the kind of a feature is that of its column, whether or not a cell is missing."""

import random

import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tfwire as tfw

NAN = float("nan")
BIG = 2**53 + 1  # no float holds it
INTS, FLOATS, BOOLS = [BIG, None, -3], [1.5, None, -0.25], [True, None, False]
STRINGS, BYTES = ["a", None, "\u00e9"], [b"a", None, b"\xff"]
SMALL = [7, None, 100]
INT_LISTS, STRING_LISTS = [[BIG, 2], None, []], [["a", "b"], None, ["c"]]

# ---- Columns ------------------------------------------------------------------------------------


def pandas_arrow(type):
    return lambda values: pd.array(values, pd.ArrowDtype(type))


def chunked(type):
    return lambda values: pa.chunked_array([[], values[:1], values[1:]], type)


def sliced(type):
    return lambda values: pa.array([values[0], *values, values[0]], type)[1:-1]


def masked(dtype):
    def make(values):
        plain = [values[0] if value is None else value for value in values]
        return np.ma.MaskedArray(np.array(plain, dtype), [value is None for value in values])

    return make


COLUMNS = {
    "list": (list, [INTS, FLOATS, BOOLS, STRINGS, BYTES, INT_LISTS, STRING_LISTS]),
    "objects": (lambda v: np.array(v, object), [INTS, FLOATS, BOOLS, STRINGS, BYTES]),
    "numpy int64": (masked("i8"), [INTS]),
    "numpy uint8": (masked("u1"), [SMALL]),
    "numpy float64": (masked("f8"), [FLOATS]),
    "numpy bool": (masked("?"), [BOOLS]),
    "numpy str": (masked("U"), [STRINGS]),
    "pandas Int64": (lambda v: pd.array(v, "Int64"), [INTS, SMALL]),
    "pandas UInt8": (lambda v: pd.array(v, "UInt8"), [SMALL]),
    "pandas Float64": (lambda v: pd.array(v, "Float64"), [FLOATS]),
    "pandas Float32": (lambda v: pd.array(v, "Float32"), [FLOATS]),
    "pandas boolean": (lambda v: pd.array(v, "boolean"), [BOOLS]),
    "pandas str": (lambda v: pd.array(v, "str"), [STRINGS]),
    "pandas string": (lambda v: pd.array(v, "string"), [STRINGS]),
    "pandas string[python]": (lambda v: pd.array(v, "string[python]"), [STRINGS]),
    "pandas int64 of Arrow": (pandas_arrow(pa.int64()), [INTS]),
    "pandas double of Arrow": (pandas_arrow(pa.float64()), [FLOATS]),
    "pandas bool of Arrow": (pandas_arrow(pa.bool_()), [BOOLS]),
    "pandas string of Arrow": (pandas_arrow(pa.string()), [STRINGS]),
    "pandas lists of Arrow": (pandas_arrow(pa.list_(pa.int64())), [INT_LISTS]),
    "pandas category": (pd.Categorical, [INTS, FLOATS, STRINGS]),
    "pandas category of Int64": (
        lambda v: pd.Categorical(v, categories=pd.array([-3, BIG], "Int64")),
        [INTS],
    ),
    "pandas object": (
        lambda v: pd.Series(v, dtype=object),
        [INTS, FLOATS, BOOLS, STRINGS, BYTES, INT_LISTS, STRING_LISTS],
    ),
    "pandas object, NaN": (
        lambda v: pd.Series(v, dtype=object).fillna(NAN),
        [INTS, BOOLS, STRINGS, BYTES, INT_LISTS, STRING_LISTS],
    ),
    "pandas object, NA": (lambda v: pd.Series(v, dtype=object).fillna(pd.NA), [INTS, STRINGS]),
    "pandas object, NaT": (lambda v: pd.Series(v, dtype=object).fillna(pd.NaT), [INTS, STRINGS]),
    "pandas Index": (lambda v: pd.Index(pd.array(v, "Int64")), [INTS]),
    "pyarrow": (pa.array, [INTS, FLOATS, BOOLS, STRINGS, BYTES, INT_LISTS, STRING_LISTS]),
    "pyarrow int16": (sliced(pa.int16()), [SMALL]),
    "pyarrow large_string": (sliced(pa.large_string()), [STRINGS]),
    "pyarrow string_view": (sliced(pa.string_view()), [STRINGS]),
    "pyarrow dictionary": (lambda v: pa.array(v).dictionary_encode(), [INTS, STRINGS, BYTES]),
    "pyarrow large_list": (sliced(pa.large_list(pa.int64())), [INT_LISTS]),
    "pyarrow list_view": (sliced(pa.list_view(pa.string())), [STRING_LISTS]),
    "pyarrow int chunks": (chunked(pa.int64()), [INTS]),
    "pyarrow float chunks": (chunked(pa.float32()), [FLOATS]),
    "pyarrow string chunks": (chunked(pa.string()), [STRINGS]),
    "pyarrow list chunks": (chunked(pa.list_(pa.string())), [STRING_LISTS]),
    "polars": (pl.Series, [INTS, FLOATS, BOOLS, STRINGS, BYTES, INT_LISTS, STRING_LISTS]),
    "polars categorical": (lambda v: pl.Series(v, dtype=pl.Categorical), [STRINGS]),
    "polars chunks": (
        lambda v: pl.concat([pl.Series(v[:1]), pl.Series(v[1:])], rechunk=False),
        [INTS, STRINGS],
    ),
    "nanoarrow": (lambda v: na.Array(pa.array(v)), [INTS, FLOATS, BOOLS, STRINGS, BYTES]),
}
CASES = [
    pytest.param(make, values, id=f"{name}-{i}")
    for name, (make, all_values) in COLUMNS.items()
    for i, values in enumerate(all_values)
]


def expected_records(values):
    """Each record by itself, by numpy alone; an empty list has the kind of the others."""
    filled = [np.empty(0, np.int64) if value == [] else value for value in values]
    return [tfw.encode_example({} if value is None else {"x": value}) for value in filled]


@pytest.mark.parametrize(("make", "values"), CASES)
def test_a_missing_cell_is_an_absent_feature(tmp_path, make, values):
    expected = expected_records(values)
    columns = {"x": make(values)}
    assert expected == tfw.encode_columns(columns)
    assert expected == tfw.encode_columns(columns, bytes_as="column", num_threads=2).to_list()
    with tfw.ShardedWriter(tmp_path / "x", num_shards=1) as writer:
        writer.write_columns(columns)
    assert expected == list(tfw.read_records(tmp_path / "x"))


@pytest.mark.parametrize(("make", "values"), CASES)
def test_the_kind_does_not_depend_on_it(make, values):
    """A column of the same type without a missing cell."""
    full = [values[0] if value is None else value for value in values]
    found = tfw.encode_columns({"x": make(full)})
    assert expected_records(full) == found
    assert found[::2] == tfw.encode_columns({"x": make(values)})[::2]


@pytest.mark.parametrize(("make", "values"), CASES)
def test_tables_of_it(make, values):
    """The same in a DataFrame or table of the library that has the column."""
    column = make(values)
    tables = []
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        tables = [pa.table({"x": column}), pa.record_batch({"x": pa.array(column.to_pylist())})]
    elif isinstance(column, pl.Series):
        tables = [pl.DataFrame({"x": column}), pl.DataFrame({"x": column}).to_arrow()]
    elif isinstance(column, (pd.Series, pd.Index, pd.api.extensions.ExtensionArray)):
        tables = [pd.DataFrame({"x": column})]
    for table in tables:
        assert expected_records(values) == tfw.encode_columns(table)


@pytest.mark.parametrize("values", [INTS, BOOLS, STRINGS, STRING_LISTS])
def test_cells_that_reindexing_leaves_empty(values):
    """pandas fills them with NaN, also those of objects."""
    series = pd.Series([values[0], values[2]], [0, 2], dtype=object).reindex(range(3))
    assert expected_records(values) == tfw.encode_columns({"x": series})
    assert expected_records(values) == tfw.encode_columns(series.to_frame("x"))


@pytest.mark.parametrize(("make", "values"), CASES)
def test_rows_of_its_cells(make, values):
    """A NaN for a missing cell is a number in a row, which does not show what other rows have."""
    column = make(values)
    cells = list(column.iter_scalar() if isinstance(column, na.Array) else column)
    if "NaN" in str(cells) or "nan" in str(cells):
        cells = [None if isinstance(cell, float) and cell != cell else cell for cell in cells]
    rows = [{"x": cell} for cell in cells]
    expected = expected_records(values)
    if values is INT_LISTS:  # a list, or a Series, of no values; an empty array has its kind
        rows, expected = rows[:2], expected[:2]
    assert expected == tfw.encode_examples(rows)
    assert expected == [tfw.encode_example(row) for row in rows]


MISSING = [None, pd.NA, pd.NaT, np.ma.masked, np.datetime64("NaT", "s")]
MISSING += [pa.scalar(None, pa.int64())]


@pytest.mark.parametrize("missing", MISSING, ids=lambda value: type(value).__name__)
def test_a_missing_value_of_a_row(missing):
    rows = [{"a": 1, "x": missing}, {"x": missing}, {"x": 2, "y": missing}]
    expected = tfw.encode_examples([{"a": 1}, {}, {"x": 2}])
    assert expected == tfw.encode_examples(rows) == [tfw.encode_example(row) for row in rows]
    assert expected[0] == tfw.encode_columns({"a": [1], "x": [missing]})[0]
    for inside in ([1, missing], [[1], [missing]]):
        with pytest.raises(TypeError, match=r"^feature 'x': a null inside a list"):
            tfw.encode_example({"x": inside})
        with pytest.raises(TypeError, match=r"^feature 'x': record 1: a null inside a list"):
            tfw.encode_examples([{}, {"x": inside}])
        with pytest.raises(TypeError, match=r"^feature 'x': record 1: a null inside a list"):
            tfw.encode_columns({"x": [[1], inside]})


def test_scalars_of_arrow_in_rows():
    for value in (BIG, 1.5, True, "a", b"\xff", [BIG, 2], ["a", "b"]):
        assert tfw.encode_example({"x": value}) == tfw.encode_example({"x": pa.scalar(value)})
    with pytest.raises(TypeError, match=r"feature 'x': .*found dict"):
        tfw.encode_example({"x": pa.scalar({"a": 1})})
    with pytest.raises(ValueError, match=r"feature 'x': lists in lists"):
        tfw.encode_example({"x": pa.scalar([["a"], ["b"]])})


# ---- Nulls in lists -----------------------------------------------------------------------------

INSIDE = [[1, 2], None, [3, None]]
NULL_IN_LIST = {
    "list": INSIDE,
    "pandas object": pd.Series(INSIDE, dtype=object),
    "pandas arrays": pd.Series([pd.array([1, 2], "Int64"), None, pd.array([3, None], "Int64")]),
    "pandas Arrow": pd.array(INSIDE, pd.ArrowDtype(pa.list_(pa.int64()))),
    "pyarrow": pa.array(INSIDE),
    "pyarrow chunks": pa.chunked_array([INSIDE[:2], INSIDE[2:]]),
    "pyarrow arrays": [pa.array([1, 2]), None, pa.array([3, None])],
    "polars": pl.Series(INSIDE),
    "polars Series": [pl.Series([1, 2]), None, pl.Series([3, None])],
    "rows of a RaggedTensor": tfw.RaggedTensor(pd.array([1, 2, None], "Int64"), [0, 1, 1, 3]),
}


@pytest.mark.parametrize("column", NULL_IN_LIST.values(), ids=NULL_IN_LIST)
def test_null_in_a_list_is_an_error(column):
    with pytest.raises(TypeError, match=r"^feature 'x': record 2: a null inside a list"):
        tfw.encode_columns({"x": column})
    if isinstance(column, tfw.RaggedTensor):
        return
    cells = list(column)
    with pytest.raises(TypeError, match=r"^feature 'x': record 2: a null inside a list"):
        tfw.encode_examples({"x": cell} for cell in cells)


def test_arrays_as_values_of_rows():
    full = [3, BIG]
    for array in (pd.array(full, "Int64"), pl.Series(full), pa.array(full), pd.Series(full)):
        assert tfw.encode_example({"x": full}) == tfw.encode_example({"x": array})
        sequence = tfw.encode_sequence_example({}, {"x": [[value] for value in full]})
        assert sequence == tfw.encode_sequence_example({}, {"x": array})
    for array in (pl.Series(["a", "b"]), pd.Series(["a", "b"]), pa.chunked_array([["a"], ["b"]])):
        assert tfw.encode_example({"x": ["a", "b"]}) == tfw.encode_example({"x": array})
    rows, pairs = [[1, 2], [3, 4]], pa.list_(pa.int64(), 2)
    for array in (pl.Series(rows, dtype=pl.Array(int, 2)), pa.array(rows, pairs)):
        assert tfw.encode_example({"x": [1, 2, 3, 4]}) == tfw.encode_example({"x": array})
    for empty in (pl.Series([], dtype=pl.Int64), pa.array([], pa.int64()), pd.array([], "Int64")):
        expected = tfw.encode_example({"x": np.empty(0, np.int64)})
        assert expected == tfw.encode_example({"x": empty})
    for array in (pl.Series([[1], [2, 3]]), pa.array([[1], [2, 3]])):
        with pytest.raises(ValueError, match="feature 'x': lists in lists"):
            tfw.encode_example({"x": array})


# ---- What is no missing cell --------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        np.array([1.5, NAN]),
        [1.5, NAN],
        pd.Series([1.5, NAN]),
        pd.Series([1.5, NAN], dtype=object),
        pd.arrays.SparseArray([1.5, NAN]),
        pd.arrays.ArrowExtensionArray(pa.array([1.5, NAN])),
        pl.Series([1.5, NAN]),
        pa.array([1.5, NAN]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_nan_among_floats_is_a_value(column):
    expected = tfw.encode_examples([{"x": 1.5}, {"x": NAN}])
    assert expected == tfw.encode_columns({"x": column})
    if not isinstance(column, (list, np.ndarray)):
        library = pl if isinstance(column, pl.Series) else pd
        table = pa.table({"x": column}) if isinstance(column, pa.Array) else library.DataFrame
        table = table if isinstance(table, pa.Table) else table({"x": column})
        assert expected == tfw.encode_columns(table)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.to_datetime(["2020-01-01", None])),
        pd.Series(pd.to_datetime([None, None])),
        pd.Series(pd.to_datetime(["2020-01-01", None])).dt.tz_localize("Europe/Berlin"),
        pd.Series(pd.to_timedelta([1, None])),
        pd.Series(pd.PeriodIndex(["2020", None], freq="Y")),
        pd.Series(pd.interval_range(0, 2)),
        pd.array([None, None], pd.ArrowDtype(pa.timestamp("us"))),
        pd.Categorical(pd.to_datetime(["2020-01-01", None])),
        pl.Series([None, None], dtype=pl.Date),
        pa.array([None, None], pa.date32()),
        pa.array([{"a": 1}, None]),
    ],
    ids=lambda column: str(getattr(column, "dtype", getattr(column, "type", None))),
)
def test_a_type_that_no_feature_holds_is_named_whatever_is_missing(column):
    with pytest.raises(TypeError, match=r"^feature 'x': "):
        tfw.encode_columns({"x": column})


# ---- DataFrames ---------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [BYTES, STRINGS, INTS, INT_LISTS[:2]], ids=str)
def test_objects_of_polars_are_values_not_addresses(values):
    column = pl.Series("x", values, pl.Object)
    expected = tfw.encode_columns({"x": values})
    assert tfw.encode_columns({"x": column}) == expected
    with pytest.raises(TypeError, match=r"^feature 'x': objects of Python are not Arrow data"):
        tfw.encode_columns(column.to_frame())


def test_a_frame_is_its_columns():
    frame = pd.DataFrame({"i": [1, 2], "f": [NAN, 2.5], "s": ["a", None], 7: [True, False]})
    expected = tfw.encode_examples(
        [{"i": 1, "f": NAN, "s": "a", "7": 1}, {"i": 2, "f": 2.5, "7": 0}]
    )
    assert expected == tfw.encode_columns(frame)
    assert expected == tfw.encode_columns({"i": frame["i"], **frame[["f", "s"]], "7": frame[7]})
    assert expected[1:] == tfw.encode_columns(frame.iloc[1:].reset_index(drop=True))
    with pytest.raises(ValueError, match="two columns are named '7'"):
        tfw.encode_columns(frame.assign(**{"7": 1}))
    with pytest.raises(ValueError, match="two columns are named 'i'"):
        tfw.encode_columns(frame[["i", "i"]])
    assert tfw.encode_columns(frame[:0]) == [] == tfw.encode_columns(pd.DataFrame())


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["p", "q"]),
        pd.Index(["p", "q"], name="label"),
        pd.Index([5, 3], name="x"),
        pd.RangeIndex(5, 7),
        pd.MultiIndex.from_tuples([("p", 1), ("q", 2)], names=["x", "n"]),
    ],
)
def test_labels_of_a_frame_are_columns_as_pyarrow_has_them(index):
    frame = pd.DataFrame({"x": [1, 2]}, index)
    assert tfw.encode_columns(pa.Table.from_pandas(frame)) == tfw.encode_columns(frame)


# ---- Any of it ----------------------------------------------------------------------------------

KINDS = {
    "int": lambda rng: rng.choice([rng.randrange(-(2**63), 2**63), rng.randrange(9)]),
    "float": lambda rng: rng.choice([rng.randrange(-99, 99) / 8, NAN, float("inf")]),
    "bool": lambda rng: rng.random() < 0.5,
    "str": lambda rng: "".join(rng.choices("ab\u00e9\0", k=rng.randrange(4))),
    "bytes": lambda rng: rng.randbytes(rng.randrange(4)),
}
TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "str": pa.string(),
    "bytes": pa.binary(),
}
NULLABLE = {"int": "Int64", "bool": "boolean", "str": "string"}


def series_of(values, kind, dtypes):
    if kind == "float":  # pandas' own ways to make it take NaN for null
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, pa.float64())))
    return pd.Series(values, dtype=dtypes.get(kind, object))


def frames_of(data, kinds):
    """The same data as tables and columns of every library."""
    table = pa.table({name: pa.array(values, TYPES[kinds[name]]) for name, values in data.items()})
    yield table
    yield pl.DataFrame(table)
    yield dict(zip(table.column_names, table.columns, strict=True))
    yield pl.DataFrame(table).to_dict()
    yield pl.DataFrame(table).to_dict(as_series=False)
    yield table.to_pandas(types_mapper=pd.ArrowDtype)
    for dtypes in (NULLABLE, {}):
        columns = {name: series_of(data[name], kinds[name], dtypes) for name in data}
        yield columns
        yield pd.DataFrame(columns)


@pytest.mark.parametrize("seed", range(60))
def test_the_same_data_by_every_library(seed):
    """With nulls and without; and what rows a null leaves out changes nothing of the others."""
    rng = random.Random(seed)
    count = rng.choice([1, 2, 3, 20])
    names = rng.sample("abcdefgh", rng.randrange(1, 5))
    kinds = {name: rng.choice(list(KINDS)) for name in names}
    chance = rng.choice([0, 0.1, 0.5, 1])
    full = {name: [KINDS[kinds[name]](rng) for _ in range(count)] for name in names}
    data = {
        name: [None if rng.random() < chance else value for value in values]
        for name, values in full.items()
    }
    for some in (full, data):
        rows = [dict(zip(some, row, strict=True)) for row in zip(*some.values(), strict=True)]
        present = [{k: v for k, v in row.items() if v is not None} for row in rows]
        expected = tfw.encode_examples(present)
        assert expected == tfw.encode_examples(rows) == [tfw.encode_example(row) for row in rows]
        for table in frames_of(some, kinds):
            found = tfw.encode_columns(table)
            assert expected == found, type(table)
