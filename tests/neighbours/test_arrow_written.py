"""Tables of pyarrow, polars, DuckDB, pandas and nanoarrow, written and read again."""

import datetime
import decimal
from itertools import pairwise

import duckdb
import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import tfwire as tfw

INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
INTS += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
STRINGS = [pa.string(), pa.large_string(), pa.string_view()]
STRINGS += [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)]
SOME = {
    **{type: [1, 0, None, 127] for type in INTS},
    **{type: [1.5, -0.25, None, 2.0**-14] for type in FLOATS},
    **{type: [b"cat", b"dog", None, b"emu"] for type in STRINGS},
    pa.bool_(): [True, False, None, True],
}
LISTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda type: pa.list_(type, 2)]


def rows_of(table, **arguments):
    rows = tfw.decode_examples(tfw.encode_columns(table, **arguments))
    return [{name: np.asarray(values).tolist() for name, values in row.items()} for row in rows]


def flattened(value):
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in flattened(part)]
    return [value.encode() if isinstance(value, str) else value]


def rows_expected(columns):
    """The rows of columns of Python values."""
    rows = zip(*columns.values(), strict=True)
    return [
        {
            name: flattened(value)
            for name, value in sorted(zip(columns, row, strict=True))
            if value is not None
        }
        for row in rows
    ]


@pytest.fixture(autouse=True)
def nothing_leaks():
    before = pa.total_allocated_bytes()
    yield
    assert before == pa.total_allocated_bytes()


# ---- pyarrow --------------------------------------------------------------------------------


def variants(array):
    """Tables of one column x, and its values: whole, sliced, chunked, empty; batches, a reader."""
    table = pa.table({"x": array})
    whole, count = array.to_pylist(), len(array)
    yield table, whole
    for first in range(1, count):
        yield table.slice(first), whole[first:]
        yield table.slice(0, first), whole[:first]
        yield (
            pa.concat_tables([table.slice(first), table.slice(0, 0), table]),
            whole[first:] + whole,
        )
    yield table.to_batches()[0], whole
    yield pa.RecordBatchReader.from_batches(table.schema, [*table.to_batches()] * 2), whole * 2
    yield table.slice(0, 0), []


@pytest.mark.parametrize("type", SOME, ids=str)
def test_every_type_of_pyarrow(type):
    array = pa.array(SOME[type], type)
    for table, values in variants(array):
        assert rows_expected({"x": values}) == rows_of(table)
    encodable = [pa.string(), pa.binary(), pa.int64(), pa.float32(), pa.int8(), pa.large_string()]
    if type in encodable:
        for index in (pa.int8(), pa.uint64()):
            encoded = array.dictionary_encode().cast(pa.dictionary(index, type))
            for table, values in variants(encoded):
                assert rows_expected({"x": values}) == rows_of(table)


@pytest.mark.parametrize("kind", LISTS)
def test_lists_of_every_type_of_pyarrow(kind):
    for type, (a, b, _, c) in SOME.items():
        values = [[a, b], None, [c, c], [b, a]]
        if kind is not LISTS[-1]:
            values += [[], [a]]
        for table, part in variants(pa.array(values, kind(type))):
            assert rows_expected({"x": part}) == rows_of(table)
    nested = [[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]]
    for table, values in variants(pa.array(nested, kind(LISTS[-1](pa.int16())))):
        assert rows_expected({"x": values}) == rows_of(table)


def test_extension_types_are_their_storage():
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    array = tensor.wrap_array(pa.array([[1.0, 2, 3, 4]] * 2, pa.list_(pa.float32(), 4)))
    assert [{"x": [1, 2, 3, 4]}] * 2 == rows_of(pa.table({"x": array}))
    assert [{"x": [b"\1" * 16]}] == rows_of(pa.table({"x": pa.array([b"\1" * 16], pa.uuid())}))


REFUSED = {
    pa.timestamp("us", "UTC"): "timestamp",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.time64("us"): "time",
    pa.duration("s"): "duration",
    pa.month_day_nano_interval(): "interval",
    pa.decimal128(5, 2): "decimal",
    pa.decimal256(50, 2): "decimal",
    pa.struct({"a": pa.int64()}): "struct",
    pa.map_(pa.string(), pa.int64()): "map",
    pa.sparse_union([pa.field("a", pa.int64())]): "union",
    pa.dense_union([pa.field("a", pa.int64())]): "union",
    pa.run_end_encoded(pa.int32(), pa.int64()): "run-end encoded",
    pa.dictionary(pa.int8(), pa.date32()): "date",
}


@pytest.mark.parametrize("type", REFUSED, ids=str)
def test_types_that_are_refused(tmp_path, type):
    for refused in (type, pa.list_(type)):
        schema = pa.schema({"good": pa.int64(), "when": refused})
        with (
            tfw.TFRecordWriter(tmp_path / "out") as writer,
            pytest.raises(TypeError, match=f"feature 'when': (an? )?{REFUSED[type]}"),
        ):
            writer.write_columns(pa.RecordBatchReader.from_batches(schema, []))


def test_the_casts_that_are_advised():
    when = pa.array([datetime.datetime(2026, 1, 2)], pa.timestamp("us"))
    price = pa.array([decimal.Decimal("1.25")], pa.decimal128(5, 2))
    table = pa.table({"when": when.cast(pa.int64()), "price": price.cast(pa.float64())})
    assert [{"when": [1767312000000000], "price": [1.25]}] == rows_of(table)
    assert [{"x": [b"1.25"]}] == rows_of(pa.table({"x": price.cast(pa.string())}))
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], [7, 8])
    assert [{"x": [7]}, {"x": [7]}, {"x": [8]}] == rows_of(
        pa.table({"x": pa.compute.run_end_decode(runs)})
    )


@st.composite
def arrays(draw):
    type = draw(st.sampled_from(list(SOME)))
    values = st.sampled_from([value for value in SOME[type] if value is not None])
    for kind in draw(st.lists(st.sampled_from(LISTS[:4]), max_size=2)):
        values, type = st.lists(values, max_size=4), kind(type)
    return pa.array(draw(st.lists(st.none() | values, min_size=30, max_size=30)), type)


def nested_features(table):
    """Partitions for the columns of lists in lists, and the numbers that these write."""
    found, lengths = {}, {}
    for name in table.column_names:
        kind, depth = table.schema.field(name).type, 0
        while hasattr(kind, "value_field"):
            kind, depth = kind.value_type, depth + 1
        is_integer = pa.types.is_integer(kind) or pa.types.is_boolean(kind)
        dtype = "int64" if is_integer else "float32" if pa.types.is_floating(kind) else "string"
        if depth == 2:
            partition = tfw.RaggedFeature.RowLengths(name + "/lengths")
            found[name] = tfw.RaggedFeature(dtype, None, [partition])
            rows = table[name].to_pylist()
            lengths[partition.key] = [row if row is None else [*map(len, row)] for row in rows]
    return found, lengths


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(arrays(), arrays(), st.lists(st.integers(0, 30), max_size=4), st.integers(1, 3))
def test_any_table(one, other, cuts, num_threads):
    table = pa.table({"y": one, "x": other})
    ends = [0, *sorted(cuts), 30]
    table = pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(ends)])
    features, lengths = nested_features(table)
    options = {"num_threads": num_threads, "features": features or None}
    found = rows_of(table, **options)
    assert rows_expected({"x": other.to_pylist(), "y": one.to_pylist(), **lengths}) == found
    column = tfw.encode_columns(table, bytes_as="column", **options)
    assert tfw.encode_columns(table, features=features or None) == column.to_list()


def test_a_reader_is_read_batch_by_batch(tmp_path):
    batch = pa.record_batch({"x": np.arange(1000), "y": np.arange(1000.0)})
    given, seen = [], []

    def batches():
        for i in range(50):
            given.append(i)
            seen.append(writer.receipt.num_records)
            yield batch

    with tfw.TFRecordWriter(tmp_path / "out") as writer:
        writer.write_columns(pa.RecordBatchReader.from_batches(batch.schema, batches()))
    assert 50 == len(given)
    assert [
        1000 * i for i in range(50)
    ] == seen  # all before was written when the next was asked for
    assert 50_000 == sum(1 for _ in tfw.read_records(tmp_path / "out"))


def test_a_reader_that_fails(tmp_path):
    batch = pa.record_batch({"x": [1, 2]})

    def batches():
        yield batch
        raise ValueError("the well is dry")

    with tfw.TFRecordWriter(tmp_path / "out") as writer:
        with pytest.raises(Exception, match=r"stream failed: .*the well is dry"):
            writer.write_columns(pa.RecordBatchReader.from_batches(batch.schema, batches()))
        writer.write_columns(batch)
    assert 4 == sum(1 for _ in tfw.read_records(tmp_path / "out"))


# ---- polars ---------------------------------------------------------------------------------


def test_polars():
    columns = {
        "i": [1, None, 3],
        "f": [0.5, 1.5, None],
        "s": ["short", None, "a string that is longer than a view"],
        "b": [b"\0\xff", b"", None],
        "t": [True, False, None],
        "l": [[1, 2], None, []],
        "ll": [[[1], [2, 3]], [[]], None],
        "ls": [["a", "b" * 20], [], None],
    }
    frame = pl.DataFrame(columns)
    features, lengths = nested_features(frame.to_arrow())
    rows = rows_expected({**columns, **lengths})
    said = {"features": features}
    assert ["ll"] == list(features)
    assert rows == rows_of(frame, **said)
    assert rows == rows_of({name: frame[name] for name in columns}, **said)
    assert rows[1:] == rows_of(frame.slice(1), **said)
    assert rows * 2 == rows_of(pl.concat([frame, frame], rechunk=False), **said)
    assert [] == rows_of(frame.clear(), **said)
    assert rows == rows_of(frame.lazy().collect(), **said)


REFUSED_FORMS = {
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pandas": pd.DataFrame,
    "pandas by Arrow": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "columns of polars": lambda columns: {"x": pl.Series(columns["x"])},
    "columns of pyarrow": lambda columns: {"x": pa.chunked_array([columns["x"]])},
    "lists": dict,
}


@pytest.mark.parametrize("form", REFUSED_FORMS)
def test_lists_in_lists_are_refused_unless_it_is_said_how_they_are_written(form):
    columns = {"x": [[[1], [2, 3]], [[]], None, [[4]]]}
    made = REFUSED_FORMS[form](columns)
    with pytest.raises(
        (TypeError, ValueError), match=r"^feature 'x': .*lists in lists.* features="
    ):
        tfw.encode_columns(made)
    features = {"x": tfw.RaggedFeature("int64", None, [tfw.RaggedFeature.RowSplits("s")])}
    steps = (None, {"x": tfw.VarLenFeature("int64")})
    for spec in (features, steps):
        expected = tfw.encode_columns(columns, features=spec)
        assert expected == tfw.encode_columns(REFUSED_FORMS[form](columns), features=spec)


def test_types_of_polars():
    some = {
        pl.Categorical: ["a", None, "b"],
        pl.Enum(["a", "b"]): ["b", "a", None],
        pl.Array(pl.Float32, 2): [[1.0, 2.0], None, [3.0, 4.0]],
        pl.List(pl.Categorical): [["a", "b"], [], None],
        pl.Null: [None, None, None],
        pl.UInt8: [1, 2, None],
    }
    for dtype, values in some.items():
        frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
        assert rows_expected({"x": values}) == rows_of(frame)
        assert rows_expected({"x": values[1:]}) == rows_of(frame[1:])
    refused = [pl.Date, pl.Datetime, pl.Time, pl.Duration, pl.Decimal(5, 2)]
    for dtype in (*refused, pl.Struct({"a": pl.Int8})):
        with pytest.raises(TypeError, match="feature 'x'"):
            rows_of(pl.DataFrame({"x": pl.Series([], dtype=dtype)}))
    struct = pl.DataFrame({"x": [{"a": 1, "b": "c"}]})
    assert [{"a": [1], "b": [b"c"]}] == rows_of(struct.unnest("x"))


# ---- DuckDB, pandas, nanoarrow ----------------------------------------------------------------


def test_duckdb(tmp_path):
    relation = duckdb.sql(
        "select range as i, range / 2 as f, 'animal number ' || range as s, "
        "[range, 7] as l, case when range % 3 = 0 then null else ['x', 'y'] end as n, "
        "'b'::enum('a', 'b') as e from range(5000)"
    )
    with tfw.TFRecordWriter(tmp_path / "out") as writer:
        writer.write_columns(relation)
    found = tfw.decode_examples(list(tfw.read_records(tmp_path / "out")))
    assert 5000 == len(found)
    for i, row in enumerate(found):
        assert (i, np.float32(i / 2), b"animal number %d" % i) == (
            row["i"][0],
            row["f"][0],
            row["s"][0],
        )
        assert [i, 7] == row["l"].tolist()
        assert (i % 3 == 0) == ("n" not in row)
        assert [b"b"] == row["e"]
    for query, what in (
        ("now()", "timestamp"),
        ("1.5::decimal(4,1)", "decimal"),
        ("{'a': 1}", "struct"),
    ):
        with pytest.raises(TypeError, match=f"feature 'x': an? {what}"):
            rows_of(duckdb.sql(f"select {query} as x"))


def test_nanoarrow():
    type = na.struct({"x": na.int32(), "s": na.string()})
    array = na.c_array_from_buffers(
        type,
        2,
        [None],
        children=[na.c_array([1, 2], na.int32()), na.c_array(["a", "b"], na.string())],
    )
    rows = [{"s": [b"a"], "x": [1]}, {"s": [b"b"], "x": [2]}]
    assert rows == rows_of(array)
    assert rows == rows_of(na.Array(array))
    assert rows == rows_of(na.ArrayStream(array))
