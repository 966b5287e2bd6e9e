"""Files to Arrow tables, every checksum verified, beside parse_file and Parquet."""

from __future__ import annotations

from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path

import pytest

import peers
import tfwire as tfw
from tfwire.arrow import open_reader
from tfwire.cli import main

pytestmark = pytest.mark.skipif(not peers.HAS_PYARROW, reason="needs pyarrow")

KEYS = {"W1": ("feature1", "feature3"), "W4": ("ids", "embedding"), "W5": ("label", "f_00")}


def table(path, spec, **options):
    import pyarrow

    return pyarrow.table(open_reader(path, spec, **options)).num_rows


def kept_batches(parser, path):
    """As much memory as a table takes."""
    batches = list(parser.parse_file(path, peers.BATCH))
    return sum(len(next(iter(batch.values()))) for batch in batches)


@pytest.mark.parametrize("name", ["W1", "W4", "W5"])
def bench_table(versus, work, name):
    w = work[name]
    spec = w.spec(tfw)
    parser = tfw.Parser(spec, bytes_as="column")
    parquet = peers.parquet_file(w.path, w.columns)
    rivals = {
        "parse_file, all batches kept": (partial(kept_batches, parser, w.path), 0.9),
        "Parquet by pyarrow": (partial(peers.parquet_batches, parquet), None),
    }
    versus("file to a pyarrow table", name, partial(table, w.path, spec), rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W3", "W5"])
def bench_table_that_is_inferred(versus, work, name):
    w = work[name]
    rivals = {"with features": (partial(table, w.path, w.spec(tfw)), None)}
    versus(
        "file to a table, inferred", name, partial(table, w.path, None), rivals, w.size / w.count
    )


def bench_table_of_two_columns(versus, work):
    w = work["W5"]
    spec = w.spec(tfw)
    ours = partial(table, w.path, spec, columns=list(spec)[:2])
    rivals = {"all forty": (partial(table, w.path, spec), 3)}
    versus("two of forty columns to a table", "W5", ours, rivals, w.size / w.count)


@pytest.mark.skipif(not peers.HAS_POLARS, reason="needs polars")
@pytest.mark.parametrize("name", KEYS)
def bench_group_by(versus, work, name):
    import polars

    from tfwire.polars import scan_tfrecord

    w = work[name]
    key, value = KEYS[name]
    scan = scan_tfrecord(w.path, w.spec(tfw))
    parquet = polars.scan_parquet(peers.parquet_file(w.path, w.columns))
    rivals = {
        "Parquet by polars": (partial(peers.group_by_in_polars, parquet, key, value), None),
    }
    if peers.HAS_TENSORFLOW and peers.HAS_PANDAS:
        spec = w.spec(peers.TensorFlowIo)
        theirs = partial(peers.group_by_in_pandas, w.path, spec, key, value)
        rivals["tf.data and pandas"] = (theirs, 5)
    ours = partial(peers.group_by_in_polars, scan, key, value)
    versus("group-by in polars", name, ours, rivals, w.size / w.count)


def convert(source, target):
    Path(target).unlink(missing_ok=True)
    with redirect_stderr(StringIO()):
        assert main(["convert", str(source), "-o", str(target)]) == 0


@pytest.mark.parametrize("name", ["W1", "W4", "W5"])
def bench_convert_to_parquet(versus, work, scratch, name):
    """All of the command but the start of Python; no schema is given, so the file is read twice."""
    import pyarrow.parquet as pq

    w = work[name]
    columns = peers.arrow_table(w.columns)

    def ours():
        convert(w.path, scratch / "converted.parquet")
        return w.count

    def written():
        pq.write_table(columns, scratch / "written.parquet")
        return w.count

    rivals = {"pyarrow from memory": (written, None)}
    versus("tfwire convert to Parquet", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W4", "W5"])
def bench_convert_from_parquet(versus, work, scratch, name):
    import pyarrow.parquet as pq

    w = work[name]
    source = peers.parquet_file(w.path, w.columns)

    def ours():
        convert(source, scratch / "converted.tfrecord")
        return w.count

    def written():
        with tfw.TFRecordWriter(scratch / "written.tfrecord") as writer:
            writer.write_columns(pq.read_table(source, use_threads=False))
        return w.count

    rivals = {"write_columns of pyarrow's table": (written, None)}
    versus("tfwire convert from Parquet", name, ours, rivals, w.size / w.count)
