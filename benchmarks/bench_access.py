"""Records by number, and shuffled epochs."""

from __future__ import annotations

import os
import sqlite3
from functools import partial

import numpy as np
import pytest

import peers
import tfwire as tfw

COUNT = 10_000  # records fetched
AT_ONCE = 1000


@pytest.fixture(scope="module")
def records(work):
    """The 3 KB records of W2, by number."""
    with tfw.TFRecordFile(work["W2"].path) as file:
        yield file


@pytest.fixture(scope="module")
def numbers(records):
    return np.random.default_rng(1).integers(len(records), size=COUNT)


def bench_access_one_at_a_time(versus, work, records, numbers, scratch):
    """bagz reads its own format, without checksums."""
    some = numbers.tolist()

    def ours():
        for number in some:
            records[number]
        return COUNT

    rivals = {}
    if peers.HAS_BAGZ:
        reader = peers.bagz_reader(scratch / "records.bagz", records[:])

        def theirs():
            for number in some:
                reader[number]
            return COUNT

        rivals["bagz, its own format"] = (theirs, None)
    w = work["W2"]
    versus("random access, one at a time", "W2", ours, rivals, w.size / w.count, at_most=4e-6)


@pytest.mark.parametrize(("order", "at_most"), [("random order", 1.2e-6), ("file order", 0.7e-6)])
def bench_access_in_bulk(versus, work, records, numbers, order, at_most):
    w = work["W2"]
    wanted = numbers if order == "random order" else np.arange(COUNT) % w.count

    def ours():
        for first in range(0, COUNT, AT_ONCE):
            records[wanted[first : first + AT_ONCE]]
        return COUNT

    versus(f"random access, 1,000 at once, {order}", "W2", ours, {}, w.size / w.count, at_most)


def bench_access_of_many_files(versus, work, scratch):
    """What a loader asks for: batches of records in any order, of a data set in many files."""
    w = work["W1"]
    some = w.records[:32_000]
    paths = [scratch / f"access-{number:02}" for number in range(16)]
    for number, path in enumerate(paths):
        tfw.write_records(path, some[number::16])
        tfw.RecordIndex.build(path).save()
    records = tfw.TFRecordFiles(paths)
    batches = np.random.default_rng(1).integers(len(records), size=(COUNT // 256, 256))

    def ours():
        return sum(len(records[batch]) for batch in batches)

    def one_by_one():
        return sum(len([records[number] for number in batch]) for batch in batches.tolist())

    rivals = {"a record at a time": (one_by_one, 1)}
    versus("random access, 256 of 16 files", "W1", ours, rivals, w.size / w.count)


def bench_access_in_gzip(versus, work):
    """Seek points in the index, which rapidgzip finds; without them, from the beginning."""
    pytest.importorskip("rapidgzip", reason="it finds the seek points")
    w = work["W7"]
    index = tfw.RecordIndex.build(w.path)
    plain = tfw.RecordIndex.build(w.path)
    plain.offsets = plain.offsets.copy()  # which drops the points
    assert index.seek_points > 0 == plain.seek_points
    numbers = np.random.default_rng(1).integers(len(index), size=8).tolist()

    def reading(index):
        def read():
            with tfw.TFRecordFile(w.path, index) as records:
                return sum(bool(records[number]) for number in numbers)

        return read

    rivals = {"without seek points": (reading(plain), 1)}
    versus("records by number, 8 of a gzip file", "W7", reading(index), rivals, w.size / w.count)


def bench_access_by_key(versus, scratch):
    """Neither peer verifies what it reads."""
    count, path = 100_000, scratch / "by-key"
    rows = [{"id": f"id {i}", "label": i % 10, "x": [0.5] * 20} for i in range(count)]
    tfw.write_records(path, rows)
    index = tfw.RecordIndex.build(path, key="id")
    chosen = np.random.default_rng(1).integers(count, size=(COUNT // 1024, 1024))
    batches = [[rows[i]["id"] for i in batch] for batch in chosen.tolist()]
    places = {
        row["id"]: (length, offset + 12)
        for row, length, offset in zip(
            rows, index.lengths.tolist(), index.offsets[:-1].tolist(), strict=True
        )
    }
    table = sqlite3.connect(scratch / "by-key.sqlite")
    table.execute("create table records (id text primary key, record blob) without rowid")
    records = zip(places, tfw.TFRecordFile(path, index)[:], strict=True)
    table.executemany("insert into records values (?, ?)", records)
    table.commit()
    select = "select id, record from records where id in (" + ",".join("?" * 1024) + ")"

    def reading(read):
        return lambda: sum(len(read(batch)) for batch in batches)

    def by_sqlite(batch):
        found = dict(table.execute(select, batch))
        return [found[key] for key in batch]

    with tfw.TFRecordFile(path, index) as file, open(path, "rb") as plain:
        fd = plain.fileno()
        ours = reading(file.by_key.__getitem__)
        rivals = {
            "dict of offsets, pread": (
                reading(lambda batch: [os.pread(fd, *places[key]) for key in batch]),
                None,
            ),
            "SQLite": (reading(by_sqlite), 1),
        }
        versus("records by key, 1,024 at once", "own", ours, rivals, index.size / count, 5e-6)


def bench_shuffled_epoch(versus, work):
    """The tutorial's pipeline: shuffled by a buffer, batched, parsed."""
    w = work["W1"]
    spec = w.spec(tfw)

    def ours():
        dataset = tfw.TFRecordDataset(w.path).shuffle(10_000, seed=1).batch(256)
        return sum(len(batch["feature0"]) for batch in dataset.parse_example(spec))

    rivals = {}
    if peers.HAS_TENSORFLOW:
        theirs = partial(peers.shuffled_epoch, w.path, w.spec(peers.TensorFlowIo), 10_000, 256)
        rivals["tf.data"] = (theirs, 10)
    versus("shuffled, batched, parsed epoch", "W1", ours, rivals, w.size / w.count)


def bench_resume_on_fewer_hosts(versus, work):
    """An exact shuffle of four hosts that gave half of an epoch goes on with three: the first batch
    of each. Without such states, one host reads on to where they were."""
    w = work["W1"]
    dataset = tfw.TFRecordDataset(w.path, indexed=True).shuffle(w.count, seed=1).batch(100)
    hosts = [iter(dataset.shard_source(4, i)) for i in range(4)]
    for elements in hosts:
        for _ in range(w.count // 800):
            next(elements)
    states = [elements.state_dict() for elements in hosts]

    def ours():
        rest = dataset.resume(states)
        return sum(len(next(iter(rest.shard_source(3, i)))) for i in range(3))

    def reading_on():
        batches = iter(dataset)
        for _ in range(w.count // 200):
            next(batches)
        return sum(len(next(batches)) for _ in range(3))

    versus("resume 4 hosts on 3", "W1", ours, {"reading on": (reading_on, 1)}, w.size / w.count)
