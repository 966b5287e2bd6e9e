"""Files and pipelines of the tests of Beam."""

from __future__ import annotations

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that, equal_to

import tfwire as tfw

TWO_WORKERS = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
FEATURES = {
    "id": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.VarLenFeature(tfw.string),
}
SIZE = 66_000
# A file can be split at each of them.
LONG = [bytes([65 + i]) * (SIZE - 16) for i in range(9)]
SHORT = [b"", b"a", b"bc" * 500, bytes(range(256)), b"\xff\x00"]
RECORDS = [*SHORT, b"d" * 70_000, *LONG]


def run(*arguments):
    return beam.Pipeline("FnApiRunner", PipelineOptions([*TWO_WORKERS, *arguments]))


def check_read(transform, expected, source=None):
    with run() as pipeline:
        assert_that((source(pipeline) if source else pipeline) | transform, equal_to(expected))


def row(number):
    return {"id": number, "name": [b"n%d" % number] * (number % 3)}


def write(path, records, index=False, compression=None):
    tfw.write_records(path, records, compression)
    if index:
        tfw.RecordIndex.build(path).save()
    return str(path)


def source_of(transform):
    """The source of the only file."""
    [bundle] = transform._source.split(float("inf"))
    return bundle.source


def read(source, start=None, stop=None):
    return list(source.read(source.get_range_tracker(start, stop)))


def read_all(source):
    return source.read(source.get_range_tracker(None, None))
