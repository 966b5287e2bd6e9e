"""Record files in pyarrow, polars and DuckDB, as their users read them; test_arrow_exports.py has
every type, in each library of Arrow data."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tfwire as tfw
from helpers.command import output_of_python
from tfwire.arrow import open_reader, read_table

COUNT = 300
FEATURES = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "x": tfw.FixedLenFeature([2, 3], tfw.float32),
    "name": tfw.FixedLenFeature([], tfw.string),
    "two": tfw.FixedLenFeature([2], tfw.string, default_value=["a", "b"]),
    "sparse": tfw.SparseFeature(["i", "j"], "w", tfw.float32, size=[9, 9]),
}


def row(i):
    found = {"n": i, "x": np.full((2, 3), float(i)), "name": f"name {i}"}
    if i % 2:
        found["two"] = ["c", str(i)]
    if i % 7:
        found |= {"i": np.full(i % 3, 1), "j": np.full(i % 3, 2)}
        found["w"] = np.full(i % 3, 0.5, np.float32)
    return found


EXPECTED = [
    {
        "n": i,
        "x": [[float(i)] * 3] * 2,
        "name": b"name %d" % i,
        "two": [b"c", b"%d" % i] if i % 2 else [b"a", b"b"],
        "sparse": {"indices": [[1, 2]] * (i % 3), "values": [0.5] * (i % 3)} if i % 7 else None,
    }
    for i in range(COUNT)
]


@pytest.fixture(scope="module", params=["plain", "gzip"])
def path(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("arrow") / request.param
    rows = [row(i) for i in range(COUNT)]
    tfw.write_records(path, rows, "GZIP" if request.param == "gzip" else None)
    return str(path)


@pytest.mark.parametrize(("batch_size", "num_threads"), [(7, 1), (64, 3), (1000, 1)])
def test_pyarrow(path, batch_size, num_threads):
    reader = open_reader(path, FEATURES, batch_size=batch_size, num_threads=num_threads)
    table = pa.table(reader)
    table.validate(full=True)
    assert table.to_pylist() == EXPECTED
    assert pa.schema(reader) == table.schema
    assert pa.Table.from_batches(map(pa.record_batch, reader)).to_pylist() == EXPECTED


@pytest.mark.parametrize("binary_as", ["binary", "large_string", "string"])
def test_types_of_strings(path, binary_as):
    table = read_table(path, FEATURES, binary_as=binary_as)
    table.validate(full=True)
    assert table.schema.field("name").type == getattr(pa, binary_as)()


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
    groups = frame.lazy().group_by(pl.col("n") % 3).agg(pl.len()).sort("n").collect()
    assert groups.rows() == [(0, 100), (1, 100), (2, 100)]
    assert pl.concat([pl.DataFrame(batch) for batch in reader]).equals(frame)


def test_duckdb(path):
    reader = open_reader(path, FEATURES, batch_size=50)  # noqa: F841 - SQL names it
    for _ in range(2):  # each query opens the stream again
        assert duckdb.sql("select count(*), sum(n), min(name) from reader").fetchall() == [
            (COUNT, sum(range(COUNT)), b"name 0")
        ]
    found = duckdb.sql("select name from reader where n > 250 order by n").fetchall()
    assert found == [(EXPECTED[i]["name"],) for i in range(251, COUNT)]
    joined = "select count(*) from reader a join reader b on a.n = b.n + 1"
    assert duckdb.sql(joined).fetchall() == [(COUNT - 1,)]


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


def test_empty_files_and_rows_without_columns(path, tmp_path):
    tfw.write_records(tmp_path / "empty", [])
    table = read_table(str(tmp_path / "empty"), FEATURES)
    assert (0, list(FEATURES)) == (table.num_rows, table.column_names)
    table = read_table(path, FEATURES, columns=[])
    assert (COUNT, 0) == (table.num_rows, table.num_columns)


def test_consumers_raise_what_the_stream_says(tmp_path):
    path = str(tmp_path / "wrong")
    tfw.write_records(path, [{"n": i} for i in range(100)] + [{"n": 0.5}], kinds="any")
    reader = open_reader(path, {"n": FEATURES["n"]}, batch_size=10)
    message = f"{path}: record 100: Key: n.  Data types don't match. "
    message += "Data type: float32 but expected type: int64"
    stream = pa.RecordBatchReader.from_stream(reader)
    rows = []
    with pytest.raises(pa.ArrowInvalid) as caught:
        rows.extend(value for batch in stream for value in batch["n"].to_pylist())
    assert rows == list(range(100))  # those before it arrived
    assert message in str(caught.value)


def test_damage_is_an_os_error(tmp_path):
    path = tmp_path / "cut"
    tfw.write_records(path, [{"n": i} for i in range(10)])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(OSError, match="record 9 at byte"):
        pa.table(open_reader(str(path), {"n": FEATURES["n"]}))


def test_a_batch_outlives_its_stream(path):
    for _ in range(20):
        stream = pa.RecordBatchReader.from_stream(open_reader(path, FEATURES, batch_size=7))
        batch = stream.read_next_batch()
        del stream
        assert batch.to_pylist() == EXPECTED[:7]
        open_reader(path, FEATURES).__arrow_c_stream__()  # nobody takes it
        next(iter(open_reader(path, FEATURES))).__arrow_c_array__()


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
