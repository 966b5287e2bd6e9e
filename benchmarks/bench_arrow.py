"""Files to Arrow tables, every checksum verified, beside parse_file and Parquet."""

from __future__ import annotations

from functools import partial

import pytest

import peers
import tfwire as tfw
from tfwire.arrow import open_reader

pytestmark = pytest.mark.skipif(not peers.HAS_PYARROW, reason="needs pyarrow")


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


def bench_table_of_two_columns(versus, work):
    w = work["W5"]
    spec = w.spec(tfw)
    ours = partial(table, w.path, spec, columns=list(spec)[:2])
    rivals = {"all forty": (partial(table, w.path, spec), None)}
    versus("two of forty columns to a table", "W5", ours, rivals, w.size / w.count)
