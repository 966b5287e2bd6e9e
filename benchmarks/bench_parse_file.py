"""Files to column batches of 1024, every checksum verified."""

from __future__ import annotations

import os
from functools import partial

import pytest

import peers
import tfwire as tfw


def parse_file(parser, path, **options):
    return sum(len_of(batch) for batch in parser.parse_file(path, peers.BATCH, **options))


def len_of(batch):
    return len(next(iter(batch.values())))


PARQUET = {"W1": 1, "W4": 8, "W5": 1}


@pytest.mark.parametrize(
    ("name", "target"), [("W1", 18), ("W2", 7), ("W3", 6), ("W4", 12), ("W5", 17), ("W7", 6)]
)
def bench_parse_file(versus, work, name, target):
    w = work[name]
    parser = tfw.Parser(w.spec(tfw), bytes_as="column")
    rivals = {}
    if peers.HAS_TENSORFLOW:
        spec = w.spec(peers.TensorFlowIo)
        theirs = partial(peers.parse_file, w.path, spec, w.compression)
        rivals["TFRecordDataset.batch.map(parse_example)"] = (theirs, target)
    if peers.HAS_PYARROW and name in PARQUET:
        parquet = peers.parquet_file(w.path, w.columns)
        rivals["Parquet by pyarrow"] = (partial(peers.parquet_batches, parquet), PARQUET[name])
    ours = partial(parse_file, parser, w.path)
    versus("file to columns", name, ours, rivals, w.size / w.count)


def bench_parse_file_to_objects(versus, work):
    w = work["W1"]
    parser = tfw.Parser(w.spec(tfw), bytes_as="object")
    rivals = {}
    if peers.HAS_TENSORFLOW:
        spec = w.spec(peers.TensorFlowIo)
        theirs = partial(peers.parse_file, w.path, spec)
        rivals["TFRecordDataset.batch.map(parse_example)"] = (theirs, 12)
    ours = partial(parse_file, parser, w.path)
    versus("file to columns, bytes as objects", "W1", ours, rivals, w.size / w.count)


@pytest.mark.parametrize("order", ["foreign", "random"])
def bench_parse_file_in_other_key_orders(versus, work, order):
    """protobuf writes map entries in hash order: fixed per file, or another in every record."""
    w = work["W5"]
    path = w.reordered(order)
    parser = tfw.Parser(w.spec(tfw), bytes_as="column")
    rivals = {}
    if peers.HAS_TENSORFLOW:
        spec = w.spec(peers.TensorFlowIo)
        theirs = partial(peers.parse_file, path, spec)
        rivals["TFRecordDataset.batch.map(parse_example)"] = (theirs, None)
    ours = partial(parse_file, parser, path)
    versus(f"file to columns, {order} key order", "W5", ours, rivals, w.size / w.count)


def bench_parse_sequence_file(versus, work):
    w = work["W6"]
    parser = tfw.SequenceParser(*w.specs(tfw))
    rivals = {}
    if peers.HAS_TENSORFLOW:
        context, lists = w.specs(peers.TensorFlowIo)
        theirs = partial(peers.parse_sequence_file, w.path, context, lists)
        rivals["TFRecordDataset.batch.map(parse_sequence_example)"] = (theirs, 8)

    def ours():
        return sum(len(batch[0]["length"]) for batch in parser.parse_file(w.path, peers.BATCH))

    versus("file to columns", "W6", ours, rivals, w.size / w.count)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores")
@pytest.mark.usefixtures("all_cores")
@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_parse_file_on_two_cores(versus, work, name):
    w = work[name]
    parser = tfw.Parser(w.spec(tfw), bytes_as="column")
    rivals = {}
    if peers.HAS_TENSORFLOW:
        spec = w.spec(peers.TensorFlowIo)
        theirs = partial(peers.parse_file, w.path, spec, threads=2)
        rivals["parallel map"] = (theirs, 15)
    ours = partial(parse_file, parser, w.path, num_threads=2)
    versus("file to columns, two cores", name, ours, rivals, w.size / w.count)
