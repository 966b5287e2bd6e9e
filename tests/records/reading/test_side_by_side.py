"""verify_files, RecordIndex.build_many, TFRecordFiles: several files at a time give the same."""

from __future__ import annotations

import collections
import gzip
import os
import random
import threading
import zlib

import pytest

import tfwire as tfw
from helpers.reference import file_of
from helpers.threads import Consumer, nothing_left, threads_of_tfwire, wait_for
from tfwire._base.parallel_map import ParallelMap
from tfwire._records.reading.pipeline import NativePipeline

THREADS = [1, 2, 8]
RECORDS = [bytes([i]) * (i % 50) for i in range(200)]
PLAIN = file_of(RECORDS)


def damaged(data, seed):
    """Some bits flipped, some bytes taken out, or the end cut off."""
    chance, data = random.Random(seed), bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    if chance.random() < 0.3:
        at = chance.randrange(len(data))
        del data[at : at + chance.randrange(1, 40)]
    return bytes(data[: chance.randrange(len(data))] if chance.random() < 0.2 else data)


CONTENTS = {
    "empty": b"",
    "zeros": bytes(100),
    "text": b"no records at all, but text\n" * 40,
    "plain": PLAIN,
    "torn": PLAIN[:-5],
    "gzip": gzip.compress(PLAIN),
    "zlib": zlib.compress(PLAIN),
    "members": gzip.compress(PLAIN) + gzip.compress(file_of([b"more"] * 9)),
    "torn gzip": gzip.compress(PLAIN)[:-20],
    **{f"damaged {seed}": damaged(PLAIN, seed) for seed in range(20)},
    **{f"damaged gzip {seed}": damaged(gzip.compress(PLAIN, 1), seed) for seed in range(20)},
}


@pytest.fixture
def paths(tmp_path):
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content)
    return [str(tmp_path / name) for name in CONTENTS]


@pytest.fixture(autouse=True)
def apart():
    with nothing_left():
        yield


# ---- verify_files -----------------------------------------------------------------------------


@pytest.mark.parametrize("threads", THREADS)
def test_reports_do_not_depend_on_the_number_of_threads(paths, threads):
    options = {"file_crc32c": True, "receipt": True}
    expected = [tfw.verify_file(path, **options) for path in paths]
    assert expected == list(tfw.verify_files(paths, num_threads=threads, **options))


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_reports_add_up_what_a_reader_finds(paths):
    for path, report in zip(paths, tfw.verify_files(paths, receipt=True), strict=True):
        with tfw.read_records(path, on_corrupt="skip", max_record_size=None) as reader:
            records = list(reader)
            assert report.skipped == reader.skipped
        lengths = list(map(len, records))
        assert (len(records), sum(lengths)) == (report.num_records, report.payload_bytes)
        assert (min(lengths, default=0), max(lengths, default=0)) == (
            report.shortest,
            report.longest,
        )
        assert report.first == (records[0] if records else None)
        assert tfw.Receipt.of(records) == report.receipt


@pytest.mark.parametrize("size", [1, 100, 5000])
def test_reports_do_not_depend_on_the_bytes_verified_at_once(paths, size, monkeypatch):
    options = {"file_crc32c": True, "receipt": True}
    expected = list(tfw.verify_files(paths, **options))
    monkeypatch.setattr("tfwire._records.reading.file_passes._LEAST_RANGE", size)
    for threads in THREADS:
        assert expected == list(tfw.verify_files(paths, num_threads=threads, **options))


def ranges_of_200_bytes(monkeypatch):
    monkeypatch.setattr("tfwire._records.reading.file_passes._LEAST_RANGE", 200)
    monkeypatch.setattr("tfwire._records.reading.file_passes._MOST_RANGE", 200)


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("threads", THREADS)
def test_damage_at_any_range_is_what_a_reader_finds(tmp_path, threads, monkeypatch):
    """Also in files whose payloads are records, where guesses go wrong."""
    ranges_of_200_bytes(monkeypatch)
    contents = [file_of(RECORDS[:60]), file_of([file_of(RECORDS[:9])] * 6)]
    paths, expected = [], []
    for number, content in enumerate(contents):
        for at in range(0, len(content), 37):
            for kind in range(2):
                data = bytearray(content)
                data[at] ^= 8
                path = tmp_path / f"{number}-{at}-{kind}"
                path.write_bytes(content[:at] if kind else data)
                paths.append(path)
                with tfw.read_records(path, "", on_corrupt="skip", receipt=True) as reader:
                    collections.deque(reader, 0)
                    expected.append((reader.receipt, reader.skipped))
    reports = list(tfw.verify_files(paths, "", receipt=True, num_threads=threads))
    assert expected == [(report.receipt, report.skipped) for report in reports]
    for path, report in zip(paths, reports, strict=True):
        if any(region.reason != "data crc" for region in report.skipped):
            with pytest.raises(tfw.DataLossError):
                tfw.RecordIndex.build_many([path], "", num_threads=threads)
        else:
            index = tfw.RecordIndex.build_many([path], "", num_threads=threads)[0]
            assert path.stat().st_size == index.offsets[-1]


@pytest.mark.parametrize("threads", THREADS)
def test_a_file_that_changed_since_it_was_looked_at_is_read_as_it_is(
    tmp_path, threads, monkeypatch
):
    paths = [tmp_path / name for name in ("first", "grown", "replaced", "cut", "gone", "last")]

    class Late(NativePipeline):
        def __init__(self, *arguments):
            paths[1].write_bytes(PLAIN * 2)
            paths[2].unlink()
            paths[2].write_bytes(file_of(RECORDS[::-1]))
            paths[3].write_bytes(PLAIN[:-5])
            paths[4].unlink(missing_ok=True)
            super().__init__(*arguments)

    monkeypatch.setattr("tfwire._records.reading.file_passes.NativePipeline", Late)
    for path in paths:
        path.write_bytes(PLAIN)
    reports = tfw.verify_files(paths, num_threads=threads)
    assert [200, 400, 200, 199] == [next(reports).num_records for _ in range(4)]
    with pytest.raises(FileNotFoundError):
        next(reports)
    for path in paths:
        path.write_bytes(PLAIN)
    first, grown, replaced = tfw.RecordIndex.build_many(paths[:3], num_threads=threads)
    monkeypatch.undo()
    assert (len(first), grown) == (200, tfw.RecordIndex.build(paths[1]))
    assert replaced == tfw.RecordIndex.build(paths[2])
    assert RECORDS[-1] == tfw.TFRecordFile(paths[2], index=replaced)[0]


def test_thousands_of_tiny_files_are_few_calls_each(tmp_path):
    paths = []
    for number in range(500):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(file_of(RECORDS[: number % 3]))
    for threads in THREADS:
        reports = list(tfw.verify_files(paths, num_threads=threads))
        assert [number % 3 for number in range(500)] == [each.num_records for each in reports]
        assert list(map(str, paths)) == [report.path for report in reports]
        indexes = tfw.RecordIndex.build_many(paths, num_threads=threads)
        assert [number % 3 for number in range(500)] == list(map(len, indexes))


@pytest.mark.parametrize("threads", THREADS)
def test_a_file_that_cannot_be_read_is_an_error_in_its_place(paths, threads):
    reports = tfw.verify_files([*paths[:9], paths[0] + "-missing", *paths[9:]], num_threads=threads)
    assert paths[:9] == [next(reports).path for _ in range(9)]
    with pytest.raises(FileNotFoundError):
        next(reports)
    assert [] == list(reports)


@pytest.mark.parametrize("threads", THREADS)
def test_progress_ends_with_the_size_of_every_file(paths, threads):
    last = {}
    intact = [path for path in paths if os.path.basename(path) in ("plain", "gzip", "zlib")]
    list(tfw.verify_files(intact, progress=last.__setitem__, num_threads=threads))
    assert {path: os.path.getsize(path) for path in intact} == last


@pytest.mark.parametrize("threads", THREADS)
def test_closing_ends_a_verification_between_two_steps(paths, threads, monkeypatch):
    """Also by another thread: the file that is being verified is given up."""
    monkeypatch.setattr("tfwire._records.reading.verify_files._PROGRESS_BYTES", 1)
    begun, closed = threading.Event(), threading.Event()
    steps = []

    def progress(path, done):
        steps.append(done)
        begun.set()
        closed.wait(30)

    reports = tfw.verify_files([paths[3]] * 20, progress=progress, num_threads=threads)
    consumer = Consumer(reports)
    assert begun.wait(30)
    closer = threading.Thread(target=reports.close, daemon=True)
    closer.start()
    assert wait_for(reports._tasks.stopped.is_set)
    closed.set()
    closer.join(30)
    consumer.join()
    assert not closer.is_alive()
    assert wait_for(lambda: not threads_of_tfwire())
    assert [] == consumer.found
    assert len(steps) <= threads


@pytest.mark.parametrize("threads", THREADS)
def test_leaving_the_loop_closes(paths, threads):
    with tfw.verify_files(paths, num_threads=threads) as reports:
        assert next(reports).path == paths[0]
    assert [] == list(reports)


def test_no_files_are_no_reports():
    with pytest.warns(tfw.TfwireWarning, match="paths is empty"):
        assert [] == list(tfw.verify_files([], num_threads=4))


def test_a_function_that_raises_stop_iteration_is_an_error(paths):
    def progress(path, done):
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        list(tfw.verify_files(paths[3], progress=progress))


def test_the_threads_compute_no_more_than_one_item_ahead():
    """Of those that they are at: memory does not grow with the number of items."""
    begun, consumed = [], []
    with ParallelMap(lambda item, check: begun.append(item) or item, range(100), 3) as results:
        for result in results:
            consumed.append(result)
            assert len(begun) <= len(consumed) + 4
    assert list(range(100)) == consumed


# ---- Indexes ----------------------------------------------------------------------------------


@pytest.fixture
def intact(paths):
    return [path for path in paths if os.path.basename(path) in INTACT] * 3


INTACT = ("empty", "plain", "gzip", "zlib", "members")


@pytest.mark.parametrize("threads", THREADS)
def test_indexes_do_not_depend_on_the_number_of_threads(intact, threads):
    expected = [tfw.RecordIndex.build(path) for path in intact]
    assert expected == tfw.RecordIndex.build_many(intact, num_threads=threads)
    with tfw.TFRecordFiles(intact, num_threads=threads) as files:
        assert expected == files.indexes
    assert expected[:1] == tfw.RecordIndex.build_many(intact[0], num_threads=threads)


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_file_at_fault_is_the_error(intact, paths, threads):
    torn = next(path for path in paths if path.endswith("torn"))
    with pytest.raises(tfw.DataLossError, match="torn: "):
        tfw.RecordIndex.build_many([*intact, torn, "missing"], num_threads=threads)
    with pytest.raises(FileNotFoundError):
        tfw.TFRecordFiles([*intact, "missing", torn], num_threads=threads)


@pytest.mark.parametrize("sizes", [[0], [3], [5000], [5000, 0], [0, 0, 900]])
def test_room_for_offsets_grows_whatever_the_lengths(path, sizes, monkeypatch):
    """The first records do not show how many follow."""
    monkeypatch.setattr("tfwire._records.index.find_offsets._FIRST_WALK_RECORDS", 4)
    monkeypatch.setattr("tfwire._records.index.find_offsets.WALK_RECORDS", 64)
    records = [bytes(size) for size in sizes for _ in range(500)]
    path.write_bytes(file_of(records))
    lengths = tfw.RecordIndex.build(path).lengths
    assert list(map(len, records)) == lengths.tolist()
