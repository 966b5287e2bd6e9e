"""Lists of records of many files, which a pipeline reads: as one at a time, for any threads."""

from __future__ import annotations

import contextlib
import pickle
import random
import threading

import numpy as np
import pytest

import tfwire as tfw
from helpers.processes.forks import forked
from helpers.records.indexed import other_records, touch, with_fingerprint, write
from helpers.threads import at_once
from tfwire._base.native import ffi
from tfwire._records.index import fetched_records, offset_checks
from tfwire._records.index.random_access import _open_at as open_at

PARTS = [
    [random.Random(part).randbytes(size) for size in sizes]
    for part, sizes in enumerate([[30] * 700, [], [300_000, *range(300)], [0], [4000] * 90])
]
EXPECTED = [record for part in PARTS for record in part]
THREADS = pytest.mark.parametrize("num_threads", [1, 2, 3, 8])


@pytest.fixture
def paths(tmp_path):
    return [write(tmp_path / f"part-{number}", part) for number, part in enumerate(PARTS)]


@pytest.fixture(autouse=True)
def short_orders(monkeypatch):
    """So that a list of hundreds takes several."""
    monkeypatch.setattr(fetched_records, "FETCH_RECORDS", 150)
    monkeypatch.setattr(fetched_records, "_LEAST_ORDERED", 20)


def numbers_of(seed, count):
    return [random.Random(seed).randrange(len(EXPECTED)) for _ in range(count)]


@THREADS
@pytest.mark.parametrize("cache_bytes", [0, 1 << 30])
def test_any_list_gives_its_records(paths, num_threads, cache_bytes):
    with tfw.TFRecordFiles(paths, num_threads=num_threads, cache_bytes=cache_bytes) as records:
        for seed, count in enumerate([0, 1, 16, 17, 100, 1000, 3000]):
            numbers = numbers_of(seed, count)
            assert [EXPECTED[i] for i in numbers] == records[numbers]
        assert EXPECTED == records[:] == list(records)
        assert EXPECTED[::-7] == records[::-7]


@THREADS
def test_threads_and_children_share_files(paths, num_threads):
    records = tfw.TFRecordFiles(paths, num_threads=num_threads)

    def is_right(seed):
        return all(
            [EXPECTED[i] for i in numbers] == records[numbers]
            for numbers in (numbers_of(seed, count) for count in (30, 400, 90))
        )

    assert all(at_once(is_right))
    assert forked(lambda: is_right(7))
    assert is_right(8)
    assert [EXPECTED[i] for i in numbers_of(1, 99)] == pickle.loads(pickle.dumps(records))[
        numbers_of(1, 99)
    ]


def flip_byte(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@THREADS
def test_the_first_damaged_record_is_named(paths, num_threads):
    records = tfw.TFRecordFiles(paths, num_threads=num_threads)
    everything = random.Random(1).sample(range(len(EXPECTED)), len(EXPECTED))
    for path, record, size in (paths[4], 80, 4016), (paths[0], 333, 46):
        status = path.stat()
        flip_byte(path, record * size + 13)
        touch(path, status)
        with pytest.raises(tfw.DataLossError) as raised:
            records[everything]
        error = raised.value
        assert (path, record, record * size) == (error.path, error.record_index, error.offset)
        assert error.reason == "data crc"
    assert EXPECTED[700:1000] == records[700:1000]


@THREADS
def test_records_that_have_other_numbers_are_refused(paths, num_threads, monkeypatch):
    """They lie where the index says, and verify."""
    monkeypatch.setattr(offset_checks, "_TICK", 0)
    records = tfw.TFRecordFiles(paths, num_threads=num_threads)
    status = paths[0].stat()
    write(paths[0], other_records(PARTS[0], 300, 600))
    touch(paths[0], status)
    with_fingerprint(records.indexes[0])
    assert EXPECTED[:100] == records[:100]
    for numbers in range(320, 500), range(5, 1000), range(350, 600, 3):
        with pytest.raises(tfw.DataLossError, match="stale") as raised:
            records[list(numbers)]
        assert ("index", paths[0]) == (raised.value.reason, raised.value.path)
    assert EXPECTED[700:900] == records[700:900]


@THREADS
@pytest.mark.parametrize("lie", [-1, 0, 5, 1 << 62, (1 << 63) - 1])
def test_offsets_that_change_are_refused(paths, num_threads, lie):
    records = tfw.TFRecordFiles(paths, num_threads=num_threads)
    assert EXPECTED[:50] == records[:50]
    offsets = records.indexes[0].offsets
    offsets.flags.writeable = True
    offsets[100] = lie
    with pytest.raises(tfw.DataLossError, match=r"record (99|100)\b"):
        records[50:400]


def test_closed_files_stay_closed(paths):
    records = tfw.TFRecordFiles(paths)
    pieces = iter(records)
    assert EXPECTED[:100] == records[:100]
    records.close()
    with pytest.raises(ValueError, match="closed"):
        records[:100]
    with pytest.raises(ValueError, match="closed"):
        list(pieces)


def test_files_that_threads_open_at_the_same_time_stay_open(paths):
    """A number of a closed one might be that of another file by then."""
    records = tfw.TFRecordFiles(paths, num_threads=2)
    opened, barrier = [], threading.Barrier(2)

    def open_file(number):
        opened.append(open_at(paths[number], records.indexes[number], str(paths[number]), None))
        if number == 0:
            barrier.wait(10)  # both threads have opened it
        return opened[-1]._access()

    def read(_):
        pieces = records._fetched.pieces(np.arange(len(EXPECTED)), open_file)
        return [record for piece in pieces for record in piece]

    assert [EXPECTED] * 2 == at_once(read, 2)
    kept = records._fetched._accesses
    assert {id(kept[number]) for number in kept} <= {id(file._access()) for file in opened}
    assert all(
        kept[number]._source.fd == records._fetched._opened.native[number].fd for number in kept
    )
    opened.clear()
    with contextlib.ExitStack() as others:  # which take numbers that are free
        for _ in range(20):
            others.enter_context(open(paths[1], "rb"))
        assert EXPECTED == records[:]


def test_a_file_that_is_opened_changes_nothing_that_another_thread_reads(paths):
    records = tfw.TFRecordFiles(paths, num_threads=2)
    fetched, lists = records._fetched, [list(range(500)), list(range(700, 1000)), [*range(1010)]]
    for numbers in lists:
        before = fetched._opened
        state = bytes(ffi.buffer(before.native)), before.is_open.tolist()
        for chosen in lists:  # of what was replaced by another thread, too
            assert [EXPECTED[i] for i in chosen] == records[chosen]
            fetched._opened = before
        assert [EXPECTED[i] for i in numbers] == records[numbers]
        assert fetched._opened is not before
        assert state == (bytes(ffi.buffer(before.native)), before.is_open.tolist())


@THREADS
def test_offsets_that_become_long_are_refused(paths, num_threads):
    """No read is longer than its room."""
    records = tfw.TFRecordFiles(paths, num_threads=num_threads)
    assert EXPECTED[:50] == records[:50]
    offsets = records.indexes[2].offsets
    offsets.flags.writeable = True
    offsets[1] = offsets[-1]  # the others lie within the first
    with pytest.raises(tfw.DataLossError):
        records[700:1000]


@THREADS
@pytest.mark.parametrize("count", [600, 800])
def test_a_file_that_is_indexed_anew_moves_no_others(paths, num_threads, count):
    records = tfw.TFRecordFiles(paths, num_threads=num_threads)
    write(paths[0], PARTS[0][:1] * count)
    records.indexes[0] = tfw.RecordIndex.build(paths[0])
    with contextlib.suppress(IndexError, tfw.DataLossError):
        assert EXPECTED[600:] == records[600:]
    assert EXPECTED[700:1000] == records[700:1000]


def test_more_threads_than_a_pipeline_has(paths):
    records = tfw.TFRecordFiles(paths, num_threads=5000)
    numbers = list(range(len(EXPECTED))) * 40
    assert EXPECTED * 40 == records[numbers]


def test_long_records_among_short_ones_are_read_alone(tmp_path, monkeypatch):
    parts = [[b"short"] * 3000 + [bytes([n]) * 3_000_000 for n in range(6)] for _ in range(2)]
    files = [write(tmp_path / f"{number}", part) for number, part in enumerate(parts)]
    expected = [record for part in parts for record in part]
    orders = []
    fetch = fetched_records.NativePipeline.fetch
    monkeypatch.setattr(
        fetched_records.NativePipeline,
        "fetch",
        lambda self, numbers: (orders.append(len(numbers)), fetch(self, numbers))[1],
    )
    long = [number for number, record in enumerate(expected) if len(record) > 5]
    for num_threads in (1, 2):
        records = tfw.TFRecordFiles(files, num_threads=num_threads)
        assert [expected[i] for i in long * 2] == records[long * 2]
        assert set(orders) <= {1}
        orders.clear()
        assert expected == records[:]
        orders.clear()
