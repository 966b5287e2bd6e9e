"""Columns, rows and ready records to bytes and to files in memory."""

from __future__ import annotations

from functools import partial

import pytest

import peers
import tfwire as tfw

SMALL = 20_000  # rows that become Python objects


@pytest.mark.parametrize(("name", "target"), [("W1", 250), ("W4", 60), ("W5", 400)])
def bench_encode_examples(versus, work, name, target):
    w = work[name]
    few = w.rows[: max(200, min(w.count, SMALL) // 10)]

    def ours():
        return len(tfw.encode_columns(w.columns))

    rivals = {"protobuf messages": (lambda: peers.serialize_rows(few, w.fields), target)}
    versus("columns to a list of bytes", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize(("name", "target"), [("W1", 250), ("W4", 60), ("W5", 400)])
def bench_encode_examples_in_one_column(versus, work, name, target):
    """The same messages side by side in one buffer, with their offsets: no object for each."""
    w = work[name]
    few = w.rows[: max(200, min(w.count, SMALL) // 10)]

    def ours():
        return len(tfw.encode_columns(w.columns, bytes_as="column"))

    rivals = {"protobuf messages": (lambda: peers.serialize_rows(few, w.fields), target)}
    versus("columns to bytes in a column", name, ours, rivals, w.size / w.count)


def bench_encode_sequence_example(versus, work):
    w = work["W6"]
    pairs = w.pairs(500)

    def ours():
        for context, lists in pairs:
            tfw.encode_sequence_example(context, lists)
        return len(pairs)

    rivals = {"the tutorials' helpers": (lambda: peers.serialize_sequences(pairs[:100]), None)}
    versus("encode_sequence_example", "W6", ours, rivals, w.size / w.count)


@pytest.mark.parametrize(("name", "target"), [("W1", 120), ("W4", 50), ("W5", 120)])
def bench_write_examples(versus, work, scratch, name, target):
    w = work[name]
    few = w.rows[: max(200, min(w.count, SMALL) // 10)]

    def ours():
        with tfw.TFRecordWriter(scratch / "ours") as writer:
            writer.write_columns(w.columns)
        return w.count

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = partial(peers.write_rows, scratch / "theirs", few, w.fields)
        rivals["protobuf messages + TFRecordWriter"] = (theirs, target)
    versus("columns to a file", name, ours, rivals, w.size / w.count)


@pytest.mark.skipif(not peers.HAS_PYARROW, reason="needs pyarrow")
@pytest.mark.parametrize("name", ["W1", "W4", "W5"])
def bench_write_table(versus, work, scratch, name):
    """A table of Arrow data, beside the same columns of numpy."""
    w = work[name]
    table = peers.arrow_table(w.columns)

    def write(columns):
        with tfw.TFRecordWriter(scratch / "ours") as writer:
            writer.write_columns(columns)
        return w.count

    rivals = {
        "columns of numpy": (lambda: write(w.columns), 0.9),
        "Parquet by pyarrow": (lambda: peers.write_parquet(scratch / "theirs", table), None),
    }
    versus("table to a file", name, lambda: write(table), rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_encode_example(versus, work, name):
    w = work[name]
    rows = w.rows[: SMALL // 4]
    few = rows[:1000]

    def ours():
        for row in rows:
            tfw.encode_example(row)
        return len(rows)

    rivals = {"the tutorials' helpers": (lambda: peers.serialize_rows(few, w.fields), 5)}
    versus("encode_example(dict) one at a time", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W5"])
def bench_write_many_rows(versus, work, scratch, name):
    w = work[name]
    rows = w.rows[:SMALL]
    few = rows[:1000]

    def ours():
        with tfw.TFRecordWriter(scratch / "ours") as writer:
            writer.write_many(rows)
        return len(rows)

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = partial(peers.write_rows, scratch / "theirs", few, w.fields)
        rivals["the tutorials' helpers + TFRecordWriter"] = (theirs, 30)
    versus("write_many(rows as dicts)", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize(("name", "target"), [("W1", 6), ("W3", 2)])
def bench_write_records_in_bulk(versus, work, scratch, name, target):
    w = work[name]

    def ours():
        with tfw.TFRecordWriter(scratch / "ours") as writer:
            writer.write_many(w.records)
        return w.count

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = partial(peers.write_records, scratch / "theirs", w.records)
        rivals["TFRecordWriter"] = (theirs, target)
    versus("write ready-made records in bulk", name, ours, rivals, w.size / w.count)


def bench_write_records_compressed(versus, work, scratch):
    """GZIP at each library's default level."""
    w = work["W7"]

    def ours():
        with tfw.TFRecordWriter(scratch / "ours", "GZIP") as writer:
            writer.write_many(w.records)
        return w.count

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = partial(peers.write_records, scratch / "theirs", w.records, "GZIP")
        rivals["TFRecordWriter"] = (theirs, None)
    versus("write ready-made records in bulk", "W7", ours, rivals, w.size / w.count)


def bench_write_records_one_at_a_time(versus, work, scratch):
    w = work["W1"]

    def ours():
        with tfw.TFRecordWriter(scratch / "ours") as writer:
            for record in w.records:
                writer.write(record)
        return w.count

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = partial(peers.write_records, scratch / "theirs", w.records)
        rivals["TFRecordWriter"] = (theirs, 2)
    versus("write ready-made records one at a time", "W1", ours, rivals, w.size / w.count)
