"""Record files in pyarrow, polars, DuckDB, pandas and nanoarrow, as their users read them."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import output_of_python
from tfwire.arrow import open_reader, read_table

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")
na = pytest.importorskip("nanoarrow")

COUNT = 300
RAGGED = tfw.RaggedFeature
FEATURES = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "x": tfw.FixedLenFeature([2, 3], tfw.float32),
    "name": tfw.FixedLenFeature([], tfw.string),
    "two": tfw.FixedLenFeature([2], tfw.string, default_value=["a", "b"]),
    "tags": tfw.VarLenFeature(tfw.string),
    "pairs": tfw.FixedLenSequenceFeature([2], tfw.int64, allow_missing=True),
    "rows": RAGGED(tfw.int64, "v", [RAGGED.RowLengths("p"), RAGGED.UniformRowLength(2)]),
    "sparse": tfw.SparseFeature(["i", "j"], "w", tfw.float32, size=[9, 9]),
}


def row(i):
    """Every feature is absent, empty and present in some records."""
    found = {"n": i, "x": np.full((2, 3), float(i)), "name": f"name {i}", "two": ["c", str(i)]}
    if i % 3:
        found["tags"] = ["é"] * (i % 5)
    if i % 4:
        found["pairs"] = list(range(2 * (i % 4)))
    if i % 5:
        found |= {"v": range(4), "p": [1, 0, 1]} if i % 2 else {"v": [], "p": []}
    if i % 7:
        found |= {"i": [1] * (i % 3), "j": [2] * (i % 3), "w": [0.5] * (i % 3)}
    dtypes = {
        "tags": object,
        "w": np.float32,
        **dict.fromkeys(["pairs", "v", "p", "i", "j"], np.int64),
    }
    return found | {name: np.array(found[name], dtypes[name]) for name in dtypes if name in found}


def expected(i, binary=True):
    tags = ["é".encode() if binary else "é"] * (i % 5) if i % 3 else None
    indices = [[1, 2]] * (i % 3)
    rows = ([[[0, 1]], [], [[2, 3]]] if i % 2 else []) if i % 5 else None
    pairs = [[2 * k, 2 * k + 1] for k in range(i % 4)] if i % 4 else None
    two = ["c", str(i)]
    return {
        "n": i,
        "x": [[float(i)] * 3] * 2,
        "name": f"name {i}".encode() if binary else f"name {i}",
        "two": [value.encode() for value in two] if binary else two,
        "tags": tags,
        "pairs": pairs,
        "rows": rows,
        "sparse": {"indices": indices, "values": [0.5] * (i % 3)} if i % 7 else None,
    }


EXPECTED = [expected(i) for i in range(COUNT)]


@pytest.fixture(scope="module", params=["plain", "gzip"])
def path(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("arrow") / request.param
    rows = [row(i) for i in range(COUNT)]
    tfw.write_records(path, rows, "GZIP" if request.param == "gzip" else None)
    return str(path)


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
@pytest.mark.parametrize("num_threads", [1, 3])
def test_pyarrow(path, batch_size, num_threads):
    reader = open_reader(path, FEATURES, batch_size=batch_size, num_threads=num_threads)
    table = pa.table(reader)
    table.validate(full=True)
    assert table.to_pylist() == EXPECTED
    assert pa.schema(reader) == table.schema
    batches = [pa.record_batch(batch) for batch in reader]
    for batch in batches:
        batch.validate(full=True)
    assert pa.Table.from_batches(batches).to_pylist() == EXPECTED
    assert table.slice(11, 50).combine_chunks().to_pylist() == EXPECTED[11:61]


@pytest.mark.parametrize("binary_as", ["binary", "large_string", "string"])
def test_types_of_strings(path, binary_as):
    table = read_table(path, FEATURES, binary_as=binary_as)
    table.validate(full=True)
    assert table.schema.field("name").type == getattr(pa, binary_as)()
    binary = binary_as == "binary"
    assert table.to_pylist() == [expected(i, binary) for i in range(COUNT)]


def test_tensors(path):
    table = read_table(path, FEATURES, columns=["x", "n"], tensors=True)
    table.validate(full=True)
    assert table.schema.field("x").type == pa.fixed_shape_tensor(pa.float32(), [2, 3])
    tensors = table["x"].combine_chunks().to_numpy_ndarray()
    assert (tensors == np.arange(COUNT)[:, None, None]).all()
    assert tensors.shape == (COUNT, 2, 3)


def test_polars(path):
    reader = open_reader(path, FEATURES, batch_size=50)
    frame = pl.DataFrame(reader)
    assert frame.drop("x").to_dicts() == [
        {key: value for key, value in each.items() if key != "x"} for each in EXPECTED
    ]
    assert frame["x"].to_numpy().tolist() == [each["x"] for each in EXPECTED]
    groups = frame.lazy().group_by(pl.col("n") % 3).agg(pl.len()).sort("n").collect()
    assert groups.rows() == [(0, 100), (1, 100), (2, 100)]
    assert pl.concat([pl.DataFrame(batch) for batch in reader]).equals(frame)


def lists(value):
    """DuckDB gives lists of a fixed size as tuples."""
    return [lists(each) for each in value] if isinstance(value, (list, tuple)) else value


def test_duckdb(path):
    reader = open_reader(path, FEATURES, batch_size=50)  # noqa: F841 - SQL names it
    for _ in range(2):  # each query opens the stream again
        assert duckdb.sql("select count(*), sum(n), min(name) from reader").fetchall() == [
            (COUNT, sum(range(COUNT)), b"name 0")
        ]
    found = duckdb.sql("select n, tags, pairs, rows from reader where n > 250").fetchall()
    assert lists(sorted(found)) == [
        [EXPECTED[i][key] for key in ("n", "tags", "pairs", "rows")] for i in range(251, COUNT)
    ]
    joined = "select count(*) from reader a join reader b on a.n = b.n + 1"
    assert duckdb.sql(joined).fetchall() == [(COUNT - 1,)]


def test_pandas(path):
    frame = pd.DataFrame.from_arrow(open_reader(path, FEATURES, columns=["n", "name"]))
    assert frame["n"].sum() == sum(range(COUNT))
    assert frame["name"].tolist() == [each["name"] for each in EXPECTED]


def test_nanoarrow(path):
    reader = open_reader(path, FEATURES, batch_size=50)
    stream = na.ArrayStream(reader)
    assert [list(array.to_pylist()) for array in stream] == [
        EXPECTED[i : i + 50] for i in range(0, COUNT, 50)
    ]
    for batch in reader:
        na.c_array(batch).view()
        view = na.c_array(batch)
        assert na.Array(view).to_pylist()


@pytest.mark.parametrize("num_threads", [1, 2])
def test_positions(path, num_threads):
    reader = open_reader(
        [path, path], FEATURES, columns=["n"], with_positions=True, num_threads=num_threads
    )
    table = pa.table(reader)
    table.validate(full=True)
    positions = list(tfw.read_records(path).with_positions())
    assert table["record_index"].to_pylist() == [number for _, number, _, _ in positions] * 2
    assert table["offset"].to_pylist() == [offset for _, _, offset, _ in positions] * 2
    assert set(table["path"].to_pylist()) == {path}
    assert pl.DataFrame(reader)["path"].cast(pl.String).to_list() == [path] * (2 * COUNT)


def test_a_sequence(tmp_path):
    path = tmp_path / "sequences"
    lists = [{"words": [["a"] * (i % 3)] * i, "frames": [[0.5, i]] * i} for i in range(50)]
    records = [tfw.encode_sequence_example({"id": i}, lists[i] if i % 5 else {}) for i in range(50)]
    tfw.write_records(path, records)
    features = (
        {"id": FEATURES["n"]},
        {
            "words": tfw.VarLenFeature(tfw.string),
            "frames": tfw.FixedLenSequenceFeature([2], tfw.float32, allow_missing=True),
        },
    )
    table = read_table(str(path), features)
    table.validate(full=True)
    assert table.to_pylist() == [
        {
            "id": i,
            "words": [[b"a"] * (i % 3) or None] * i if i % 5 else None,
            "frames": [[0.5, i]] * i if i % 5 else None,
        }
        for i in range(50)
    ]


def test_empty_files(tmp_path):
    path = str(tmp_path / "empty")
    tfw.write_records(path, [])
    table = read_table(path, FEATURES)
    assert table.num_rows == 0
    assert table.column_names == list(FEATURES)
    assert pl.DataFrame(open_reader(path, FEATURES)).shape == (0, len(FEATURES))


def test_rows_without_columns(path):
    table = read_table(path, FEATURES, columns=[])
    assert (table.num_rows, table.num_columns) == (COUNT, 0)


# ---- Errors --------------------------------------------------------------------------------------


def test_consumers_raise_what_the_stream_says(tmp_path):
    path = str(tmp_path / "wrong")
    tfw.write_records(path, [{"n": i} for i in range(100)] + [{"n": 0.5}])
    reader = open_reader(path, {"n": FEATURES["n"]}, batch_size=10)
    message = f"{path}: record 100: Key: n.  Data types don't match. "
    message += "Data type: float32 but expected type: int64"
    stream = pa.RecordBatchReader.from_stream(reader)
    rows = []
    with pytest.raises(pa.ArrowInvalid) as caught:
        rows.extend(value for batch in stream for value in batch["n"].to_pylist())
    assert rows == list(range(100))  # those before it arrived
    assert message in str(caught.value)
    with pytest.raises(Exception, match="record 100: Key: n"):
        pl.DataFrame(reader)
    with pytest.raises(duckdb.Error, match="record 100: Key: n"):
        duckdb.sql("select sum(n) from reader").fetchall()
    with pytest.raises(Exception, match="record 100: Key: n"):
        na.ArrayStream(reader).read_all()


def test_damage_is_an_os_error(tmp_path):
    path = tmp_path / "cut"
    tfw.write_records(path, [{"n": i} for i in range(10)])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match="record 9 at byte"):
        pa.table(open_reader(str(path), {"n": FEATURES["n"]}))


# ---- Life ----------------------------------------------------------------------------------------


def test_streams_left_half_read(path):
    for _ in range(20):
        stream = pa.RecordBatchReader.from_stream(open_reader(path, FEATURES, batch_size=7))
        batch = stream.read_next_batch()
        del stream
        assert batch.to_pylist() == EXPECTED[:7]  # it outlives its stream
        open_reader(path, FEATURES).__arrow_c_stream__()  # nobody takes it
        next(iter(open_reader(path, FEATURES))).__arrow_c_array__()


def test_threads_read_side_by_side(path):
    reader = open_reader(path, FEATURES, batch_size=11)
    found = []

    def read():
        for _ in range(5):
            found.append(pa.table(reader).num_rows + pl.DataFrame(reader).height)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2 * COUNT] * 20


AT_EXIT = """
import sys, threading
import duckdb, nanoarrow, pandas, polars, pyarrow
from tfwire.arrow import open_reader
reader = open_reader(sys.argv[1], batch_size=7)
stream = pyarrow.RecordBatchReader.from_stream(reader)
kept = stream.read_next_batch(), polars.DataFrame(reader), reader.__arrow_c_stream__()
relation = duckdb.connect().execute("select * from reader")
relation.fetchmany(3)
other = nanoarrow.ArrayStream(reader)
last = next(iter(other))
sys.kept = kept, relation, other, next(iter(reader)).__arrow_c_array__()
sys.frame = pandas.DataFrame.from_arrow(reader)

def busy():
    while True:
        pyarrow.table(reader)

threading.Thread(target=busy, daemon=True).start()
print("ready")
"""


def test_exports_that_live_at_exit(tmp_path):
    path = tmp_path / "data"
    tfw.write_records(path, [{"n": i, "tags": ["x"] * (i % 3)} for i in range(100)])
    assert "ready\n" == output_of_python("-X", "dev", "-c", AT_EXIT, path)
