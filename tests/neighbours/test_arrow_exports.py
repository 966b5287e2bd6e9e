"""Every type, with nulls, empty, sliced and in many batches, in each library of Arrow data, which
releases what it was given exactly once."""

from __future__ import annotations

import threading

import duckdb
import nanoarrow as na
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from counted import CountedBatch, CountedReader

import tfwire as tfw
from tfwire.arrow import open_reader

INT64, FLOAT, STRING = tfw.int64, tfw.float32, tfw.string
RAGGED, VAR, STEPS = tfw.RaggedFeature, tfw.VarLenFeature, tfw.FixedLenSequenceFeature
LENGTHS = RAGGED.RowLengths
FEATURES = {
    "n": tfw.FixedLenFeature([], INT64),
    "f": tfw.FixedLenFeature([], FLOAT),
    "b": tfw.FixedLenFeature([], STRING),
    "grid": tfw.FixedLenFeature([2, 3], INT64),
    "two": tfw.FixedLenFeature([2], STRING),
    "ints": VAR(INT64),
    "floats": VAR(FLOAT),
    "strings": VAR(STRING),
    "pairs": STEPS([2], FLOAT, allow_missing=True),
    "cubes": STEPS([2, 2], STRING, allow_missing=True),
    "rows": RAGGED(STRING, "v", [LENGTHS("p")]),
    "nested": RAGGED(INT64, "w", [LENGTHS("q"), LENGTHS("r")]),
    "uniform": RAGGED(FLOAT, "u", [LENGTHS("s"), RAGGED.UniformRowLength(2)]),
    "sparse": tfw.SparseFeature("i", "x", STRING, size=9),
}
# How many items the lists of record i have; None: the record has none of the features; -1: they
# have no kind.
PATTERNS = {
    "mixed": lambda i: [None, 0, 3, 1, -1, 2][i % 6],
    "absent": lambda i: None,
    "kindless": lambda i: -1,
    "empty": lambda i: 0,
    "full": lambda i: 2,
}


DTYPES = {
    **dict.fromkeys(["ints", "p", "w", "q", "r", "s", "i"], np.int64),
    **dict.fromkeys(["floats", "pairs", "u"], np.float32),
    **dict.fromkeys(["strings", "cubes", "v", "x"], object),
}


def record(i, n):
    """A record, and what a table holds of it."""
    name = [b"", b"\0", "é".encode(), b"a long string, of more than twelve bytes"][i % 4]
    given = {"n": -i, "f": i / 4, "b": name, "grid": np.arange(i, i + 6), "two": [name, b"x"]}
    held = {**given, "grid": [[i, i + 1, i + 2], [i + 3, i + 4, i + 5]]}
    lists = [name for name in FEATURES if name not in given]
    if n is None:
        return given, {**held, **dict.fromkeys(lists)}
    if n < 0:
        return {**given, **{name: [] for name in DTYPES}}, {**held, **dict.fromkeys(lists)}
    many = {
        "ints": [i] * n,
        "floats": [i / 2] * n,
        "strings": [name] * n,
        "pairs": [float(i)] * 2 * n,
        "cubes": [name] * 4 * n,
        "v": [name] * 2 * n,
        "p": [2] * n,
        "w": [i] * 2 * n,
        "q": [1] * n,
        "r": [2] * n,
        "u": [0.5] * 2 * n,
        "s": [1] * n,
        "i": list(range(n)),
        "x": [name] * n,
    }
    held |= {name: many[name] for name in ("ints", "floats", "strings")}
    held |= {"pairs": [[float(i)] * 2] * n, "cubes": [[[name] * 2] * 2] * n}
    held |= {"rows": [[name] * 2] * n, "nested": [[[i] * 2]] * n, "uniform": [[[0.5] * 2]] * n}
    held["sparse"] = {"indices": list(range(n)), "values": [name] * n}
    return {**given, **{name: np.array(many[name], DTYPES[name]) for name in many}}, held


@pytest.fixture(scope="module", params=[*PATTERNS, "none", "one"])
def table(request, tmp_path_factory):
    """The path of a file and the rows that it holds."""
    pattern = PATTERNS.get(request.param, PATTERNS["mixed"])
    count = {"none": 0, "one": 1}.get(request.param, 53)
    records = [record(i, pattern(i)) for i in range(count)]
    path = str(tmp_path_factory.mktemp("exports") / request.param)
    tfw.write_records(path, [given for given, _ in records])
    return path, [held for _, held in records]


def plain(value):
    """Lists, dicts and scalars of Python."""
    if isinstance(value, (pl.Series, np.ndarray)):
        value = value.tolist() if isinstance(value, np.ndarray) else value.to_list()
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return None if value is pd.NA or value is None or value != value else value


# ---- Rows by library, all and from a number on --------------------------------------------------


def of_pyarrow(source):
    stream = pa.RecordBatchReader.from_stream(source)
    batches = []
    for batch in stream:  # list() would free them while an exception is set: no place for callbacks
        batches.append(batch)
        batch.validate(full=True)
        batch.slice(1).validate(full=True)
    found = pa.Table.from_batches(batches, stream.schema)
    assert found.slice(3).combine_chunks().to_pylist() == found.to_pylist()[3:]
    return found.to_pylist()


def of_polars(source):
    frame = pl.DataFrame(source)
    assert plain(frame.slice(3).to_dicts()) == plain(frame.to_dicts())[3:]
    assert frame.equals(frame.rechunk())
    return frame.to_dicts()


def of_duckdb(source):
    with duckdb.connect() as database:
        found = database.sql("select * from source")
        names, rows = found.columns, found.fetchall()
        assert rows[3:] == database.sql("select * from source offset 3").fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]


def of_pandas(source):
    frame = pd.DataFrame.from_arrow(source)
    rows = frame.to_dict("records")
    assert plain(frame.iloc[3:].to_dict("records")) == plain(rows)[3:]
    return rows


def of_pandas_with_types_of_arrow(source):
    frame = pa.table(source).to_pandas(types_mapper=pd.ArrowDtype)
    assert all(isinstance(dtype, pd.ArrowDtype) for dtype in frame.dtypes)
    return frame.to_dict("records")


def rebuilt(view, schema):
    """An array of nanoarrow from the buffers of another, fully validated. It does so for arrays
    without children; the offsets of a list are those of a string with a byte for every item."""
    children = [rebuilt(view.child(i), schema.child(i)) for i in range(view.n_children)]
    buffers = [view.buffer(i) for i in range(view.n_buffers)]
    options = {"null_count": view.null_count, "offset": view.offset}
    if view.storage_type == "large_list":
        items = bytes(view.child(0).offset + view.child(0).length)
        whole = na.large_binary(), view.length, [*buffers, items]
        na.c_array_from_buffers(*whole, **options, validation_level="full")
    level = "none" if children else "full"
    options |= {"children": children, "validation_level": level}
    return na.c_array_from_buffers(schema, view.length, buffers, **options)


def of_nanoarrow(source):
    rows = []
    for array in na.ArrayStream(source):
        for chunk in array.iter_chunks():
            native = na.c_array(chunk)
            again = na.Array(rebuilt(native.view(), native.schema)).to_pylist()
            assert again == chunk.to_pylist()
            rows += again
    return rows


LIBRARIES = {name[3:]: function for name, function in globals().items() if name.startswith("of_")}
every = pytest.mark.parametrize("read", LIBRARIES.values(), ids=LIBRARIES)


@every
@pytest.mark.parametrize(("batch_size", "num_threads"), [(1, 1), (7, 2), (1000, 1)])
def test_every_type(table, read, batch_size, num_threads):
    path, expected = table
    reader = CountedReader(
        open_reader(path, FEATURES, batch_size=batch_size, num_threads=num_threads)
    )
    assert expected == plain(read(reader))
    reader.check()
    kinds = reader.kinds()
    assert kinds["ArrowArrayStream"] >= 1
    assert kinds["ArrowArray"] >= -(-len(expected) // batch_size)


@every
@pytest.mark.parametrize("table", ["mixed", "none"], indirect=True)
@pytest.mark.parametrize("binary_as", ["binary", "string", "large_string"])
def test_every_type_of_strings(table, read, binary_as):
    path, expected = table
    features = {name: FEATURES[name] for name in ("b", "two", "strings", "cubes", "rows")}

    def text(value):
        if isinstance(value, list):
            return [text(each) for each in value]
        return value.decode() if isinstance(value, bytes) and "string" in binary_as else value

    wanted = [{name: text(row[name]) for name in features} for row in expected]
    reader = CountedReader(open_reader(path, features, batch_size=20, binary_as=binary_as))
    assert wanted == plain(read(reader))
    reader.check()


@every
@pytest.mark.parametrize("count", [0, 50])
def test_sequences_with_positions(tmp_path, read, count):
    path = str(tmp_path / "sequences")
    lists = [{"words": [["a"] * (i % 3)] * i, "frames": [[0.5, i]] * i} for i in range(count)]
    tfw.write_records(
        path,
        [tfw.encode_sequence_example({"id": i}, lists[i] if i % 5 else {}) for i in range(count)],
    )
    features = (
        {"id": tfw.FixedLenFeature([], INT64)},
        {"words": VAR(STRING), "frames": STEPS([2], FLOAT, allow_missing=True)},
    )
    positions = read is not of_nanoarrow  # does not build dictionaries from buffers
    reader = CountedReader(
        open_reader([path], features, batch_size=7, with_positions=positions, num_threads=2)
    )
    offsets = [offset for _, _, offset, _ in tfw.read_records(path).with_positions()]
    wanted = [
        {
            "id": i,
            "words": [[b"a"] * (i % 3) or None] * i if i % 5 else None,
            "frames": [[0.5, i]] * i if i % 5 else None,
            **({"path": path, "record_index": i, "offset": offsets[i]} if positions else {}),
        }
        for i in range(count)
    ]
    assert wanted == plain(read(reader))
    reader.check()


def test_batches_are_released_by_each_library(table):
    path, expected = table
    for batch in open_reader(path, FEATURES, batch_size=20, num_threads=2):
        for take in (pa.record_batch, pl.DataFrame, na.Array, na.c_array):
            counted = CountedBatch(batch)
            for _ in range(3):
                assert batch.num_rows == len(take(counted))
            counted.check()
            assert {"ArrowSchema": 3, "ArrowArray": 3} == counted.kinds()
    assert sum(map(len, open_reader(path, FEATURES))) == len(expected)


# ---- Streams that are not read to their end -----------------------------------------------------


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("numbers") / "data")
    tfw.write_records(path, [{"n": i, "tags": ["a"] * (i % 3)} for i in range(100_000)])
    return path


def begin_pyarrow(source):
    stream = pa.RecordBatchReader.from_stream(source)
    return stream.read_next_batch()["n"][0].as_py(), stream


def begin_nanoarrow(source):
    stream = na.ArrayStream(source)
    return next(iter(stream)).to_pylist()[0]["n"], stream


def begin_duckdb(source):
    database = duckdb.connect()
    query = database.execute("select n from source")
    return query.fetchone()[0], query


def begin_duckdb_with_a_limit(source):
    database = duckdb.connect()
    return database.sql("select n from source limit 1").fetchall()[0][0], database


BEGINNINGS = {name[6:]: f for name, f in globals().items() if name.startswith("begin_")}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=BEGINNINGS)
def test_a_stream_left_half_read_is_released(numbers, begin):
    for _ in range(5):
        reader = CountedReader(open_reader(numbers, columns=["n"], batch_size=1000))
        first, stream = begin(reader)
        assert 0 == first
        del stream
        reader.check()
        assert 1 == reader.kinds()["ArrowArrayStream"]


@pytest.mark.parametrize("name", ["pyarrow", "polars", "duckdb", "nanoarrow"])
def test_a_stream_that_fails_is_released(tmp_path, name):
    path = str(tmp_path / "wrong")
    tfw.write_records(path, [{"n": i} for i in range(100)] + [{"n": 0.5}], kinds="any")
    reader = CountedReader(open_reader(path, {"n": FEATURES["n"]}, batch_size=10))
    with pytest.raises(Exception, match="record 100: Key: n"):
        LIBRARIES[name](reader)
    reader.check()


# ---- Threads ------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("table", ["mixed"], indirect=True)
def test_threads_of_each_library(table, read):
    """Of one reader, each with streams of its own; batches of one thread are used by others."""
    path, expected = table
    reader = open_reader(path, FEATURES, batch_size=7)
    found = []
    threads = [threading.Thread(target=lambda: found.append(plain(read(reader)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [expected] * 4 == found


def test_a_query_of_many_threads(numbers):
    source = CountedReader(open_reader(numbers, batch_size=500))
    with duckdb.connect(config={"threads": 4}) as database:
        query = "select count(*), sum(n), sum(len(tags)) from source where n % 2 = 0"
        even = range(0, 100_000, 2)
        assert [(50_000, sum(even), sum(n % 3 for n in even))] == database.sql(query).fetchall()
        query = "select count(*) from source a join source b on a.n = b.n"
        assert [(100_000,)] == database.sql(query).fetchall()
    source.check()
