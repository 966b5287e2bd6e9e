"""Messages in memory to columns, rows and dicts."""

from __future__ import annotations

import pytest

import peers
import tfwire as tfw
from tfwire import compat


def some_records(work, name):
    """A quarter of a workload, at most 20,000 messages."""
    records = work[name].records
    return records[: min(len(records) // 4, 20_000)]


@pytest.mark.parametrize(
    ("name", "eager", "compiled"), [("W1", 12, 7), ("W4", 5, 4.5), ("W5", 12, 9)]
)
def bench_parse_example(versus, work, name, eager, compiled):
    """Bytes as columns here, as numpy's object arrays there."""
    w = work[name]
    records = some_records(work, name)
    parser = tfw.Parser(w.spec(tfw), bytes_as="column")

    def ours():
        parser.parse(records)
        return len(records)

    rivals = {}
    if peers.HAS_TENSORFLOW:
        spec = w.spec(peers.TensorFlowIo)
        rivals = {
            "tf.io.parse_example, eager": (lambda: peers.parse_eager(records, spec), eager),
            "tf.function, string tensor": (peers.compiled_parse(records, spec), compiled),
        }
    versus("parse_example of a list of bytes", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize(("name", "eager"), [("W1", 200), ("W5", 150)])
def bench_parse_single_example(versus, work, name, eager):
    w = work[name]
    records = some_records(work, name)[:5000]
    spec = w.spec(tfw)

    def ours():
        for record in records:
            tfw.parse_single_example(record, spec)
        return len(records)

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = w.spec(peers.TensorFlowIo)
        few = records[:200]
        rivals["eager TensorFlow"] = (lambda: peers.parse_single(few, theirs), eager)
    versus("parse_single_example", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_inline_specification(versus, work, name):
    """A function of the user that makes the specification, mapped over a file: here it makes one
    for every record, in TensorFlow one when the function is traced."""
    w = work[name]
    some = 5000

    def ours():
        dataset = compat.data.TFRecordDataset([str(w.path)]).take(some)
        return peers.parse_inline(dataset, compat.io, lambda: w.spec(peers.CompatIo))

    rivals = {}
    if peers.HAS_TENSORFLOW:

        def theirs():
            dataset = peers.dataset(w.path).take(some)
            return peers.parse_inline(dataset, peers.tf.io, lambda: w.spec(peers.TensorFlowIo))

        rivals["tf.data, map"] = (theirs, 1)
    versus("specification inside map's function", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_decode_examples(versus, work, name):
    """Without a schema: dicts of arrays here, every field of a message as a list there; neither
    keeps what it is done with, a batch here and a message there."""
    w = work[name]
    records = some_records(work, name)
    batches = [records[i : i + peers.BATCH] for i in range(0, len(records), peers.BATCH)]
    few = records[: len(records) // 5]

    def ours():
        return sum(len(tfw.decode_examples(batch)) for batch in batches)

    rivals = {"protobuf FromString + read all": (lambda: peers.decode_messages(few), 6)}
    versus("decode without a schema", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_decode_examples_kept(versus, work, name):
    """The same, all results kept to the end: as dicts on both sides."""
    w = work[name]
    records = some_records(work, name)

    def ours():
        return len(tfw.decode_examples(records))

    rivals = {"protobuf FromString + dicts": (lambda: len(peers.decode_kept(records)), 6)}
    versus("decode without a schema, all kept", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_decode_example(versus, work, name):
    """The same, a message at a time: a dict of arrays here, of lists there."""
    w = work[name]
    records = some_records(work, name)[:2000]

    def ours():
        return sum(tfw.decode_example(record) is not None for record in records)

    def theirs():
        return sum(len(peers.decode_kept([record])) for record in records)

    rivals = {"protobuf FromString + dict": (theirs, None)}
    versus("decode_example, one at a time", name, ours, rivals, w.size / w.count)
