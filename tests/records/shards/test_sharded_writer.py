"""Writing several files that appear together."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import pickle
import signal
import threading
import tracemalloc
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.records.writing import files_of_at_most, filled_in_turn
from tfwire._records.files.byte_sinks import ShardSink
from tfwire._records.index.random_access import TFRecordFiles
from tfwire._records.index.record_index import RecordIndex
from tfwire._records.reading.publishing_markers import MARKER
from tfwire._records.shards.shard_threads import ShardThreads
from tfwire._records.shards.sharded_writer import ShardedWriter
from tfwire.sharding import recover_shards

RECORDS = [bytes([i]) * (i * 7 % 50) for i in range(60)]
PATTERN = "train-{shard:05d}-of-{shards:05d}.tfrecord"


def contents(writer):
    return [list(tfw.read_records(path)) for path in writer.paths]


def test_records_are_dealt_round_robin_from_call_to_call(tmp_path):
    with ShardedWriter(tmp_path / PATTERN, num_shards=4) as writer:
        writer.write(RECORDS[0])
        writer.write_many(RECORDS[1:10])
        writer.write_many([])
        writer.write_many(iter(RECORDS[10:13]))
        for record in RECORDS[13:]:
            writer.write(record)
        assert 60 == writer.num_records
    assert [RECORDS[i::4] for i in range(4)] == contents(writer)
    expected = [str(tmp_path / f"train-{i:05d}-of-00004.tfrecord") for i in range(4)]
    assert expected == writer.paths
    assert sorted(expected) == sorted(str(path) for path in tmp_path.iterdir())


@given(
    lengths=st.lists(st.integers(0, 60), max_size=40),
    size=st.integers(1, 300),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    threads=st.integers(1, 3),
)
@settings(max_examples=60, deadline=None)
def test_files_are_filled_in_turn(lengths, size, cuts, threads, tmp_path_factory):
    """However the records arrive, whatever their sizes, and by however many threads."""
    folder = tmp_path_factory.mktemp("data")
    records = [bytes([i]) * length for i, length in enumerate(lengths)]
    with ShardedWriter(folder / PATTERN, shard_size=size, num_threads=threads) as writer:
        bounds = [0, *sorted(cuts), len(records)]
        for begin, end in itertools.pairwise(bounds):
            writer.write_many(records[begin:end])
    assert filled_in_turn(records, size) == contents(writer)
    assert sorted(os.listdir(folder)) == sorted(map(os.path.basename, writer.paths))


def test_without_records_there_is_one_file_or_as_many_as_asked_for(tmp_path):
    with ShardedWriter(tmp_path / "a{shard}", shard_size=100) as one:
        pass
    with ShardedWriter(tmp_path / "b{shard}", num_shards=3) as three:
        pass
    assert [[]] == contents(one)
    assert [[], [], []] == contents(three)


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
@pytest.mark.parametrize("counts", [{"num_shards": 3}, {"shard_size": 300}])
def test_files_may_be_compressed_and_indexed(tmp_path, counts, compression):
    level = compression and 1
    with ShardedWriter(
        tmp_path / PATTERN, options=compression, compression_level=level, index=True, **counts
    ) as writer:
        writer.write_many(RECORDS)
    assert len(writer.paths) * 2 == len(os.listdir(tmp_path))
    for path in writer.paths:
        assert RecordIndex.build(path) == RecordIndex.load(path)
        assert (compression or "") == RecordIndex.load(path).compression
    assert sorted(RECORDS) == sorted(TFRecordFiles(writer.paths))


def test_everything_that_a_writer_takes(tmp_path):
    with ShardedWriter(tmp_path / "{shard}", num_shards=2) as writer:
        writer.write({"a": 1})
        writer.write("text")
        writer.write(bytearray(b"bytes"))
        writer.write_columns({"a": [2, 3, 4]})
    first, second = contents(writer)
    assert [tfw.encode_example({"a": 1}), b"bytes", tfw.encode_example({"a": 3})] == first
    assert [b"text", tfw.encode_example({"a": 2}), tfw.encode_example({"a": 4})] == second


@pytest.mark.parametrize("threads", [1, 2])
def test_many_shards_are_not_written_record_by_record(tmp_path, monkeypatch, threads):
    """Each write opens a file: 64 shards of 24 KB take a few of them, not one for every block."""
    columns = {"a": np.arange(50_000)}
    records = tfw.encode_columns(columns)
    writes = []
    real = ShardSink.write
    monkeypatch.setattr(ShardSink, "write", lambda *arguments: writes.append(1) or real(*arguments))
    with ShardedWriter(tmp_path / PATTERN, num_shards=64, num_threads=threads) as writer:
        writer.write_columns(columns)
    assert len(writes) < 64 * 5
    assert [records[i::64] for i in range(64)] == contents(writer)


@pytest.mark.parametrize("threads", [1, 2])
def test_columns_before_a_fault_are_written_to_many_shards(tmp_path, threads):
    """Also what was waiting for more."""
    offsets = np.arange(0, 200_001, 10)
    data, expected = np.zeros(offsets[-1], np.uint8), 15_000
    column = tfw.BytesColumn(data, offsets)
    offsets[expected + 1] = 3  # before the string begins
    writer = ShardedWriter(tmp_path / PATTERN, num_shards=64, num_threads=threads)
    with pytest.raises(ValueError, match="decrease"):
        writer.write_columns({"a": column})
    writer.close()
    assert expected == writer.num_records == sum(map(len, contents(writer)))


def test_a_shard_that_nothing_is_written_to_takes_little_memory(tmp_path):
    ShardedWriter(tmp_path / PATTERN, num_shards=1).close()
    tracemalloc.start()
    try:
        with ShardedWriter(tmp_path / PATTERN, num_shards=64):
            taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 64 * 32 * 1024


def test_records_before_a_faulty_one_are_written(tmp_path):
    with ShardedWriter(tmp_path / "{shard}", num_shards=2) as writer:
        with pytest.raises(TypeError, match="found int"):
            writer.write_many([b"a", b"b", b"c", 4, b"e"])
        writer.write(b"d")
    assert [[b"a", b"c"], [b"b", b"d"]] == contents(writer)


# ---- Failure -----------------------------------------------------------------------------------


def write_until_an_exception(folder):
    with ShardedWriter(folder / PATTERN, shard_size=100, index=True) as writer:
        writer.write_many(RECORDS)
        assert [] == [name for name in os.listdir(folder) if name.startswith("train")]
        raise RuntimeError("of the user")


def test_nothing_appears_before_close_and_nothing_stays_after_an_exception(tmp_path):
    (tmp_path / "old").write_bytes(b"")
    with pytest.raises(RuntimeError, match="of the user"):
        write_until_an_exception(tmp_path)
    assert ["old"] == os.listdir(tmp_path)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_full_disk_leaves_no_files(tmp_path, threads):
    with files_of_at_most(3000):
        writer = ShardedWriter(tmp_path / PATTERN, num_shards=2, num_threads=threads)
        writer.write_many([bytes(500)] * 20)
        with pytest.raises(OSError, match=os.strerror(errno.EFBIG)):
            writer.close()
    assert [] == os.listdir(tmp_path)


@pytest.mark.parametrize("counts", [{"num_shards": 5}, {"shard_size": 100_000}])
@pytest.mark.parametrize("threads", [2, 3, 9])
def test_threads_change_nothing_in_the_files(tmp_path, counts, threads):
    """Nor is a thread left when they are closed."""
    # The same ones always: of some random data isal makes now one, now another valid stream.
    random = Random(1)
    records = [random.randbytes(i * 37 % 5000) for i in range(300)]
    before = threading.active_count()
    files = []
    for count in (1, threads):
        folder = tmp_path / str(count)
        folder.mkdir()
        with ShardedWriter(
            folder / PATTERN, **counts, options="GZIP", index=True, num_threads=count
        ) as writer:
            for begin in range(0, 300, 7):
                writer.write_many(records[begin : begin + 7])
        assert before == threading.active_count()
        files.append({path.name: path.read_bytes() for path in folder.glob("*.tfrecord")})
        assert all(len(RecordIndex.load(path)) for path in writer.paths)
    assert files[0] == files[1]


def test_a_failure_in_a_thread_ends_the_writing(tmp_path, monkeypatch):
    """It is raised by the next call, or the one after, and by close."""

    def fail(*_):
        raise OSError(errno.ENOSPC, "no room")

    before = threading.active_count()
    writer = ShardedWriter(tmp_path / PATTERN, num_shards=2, num_threads=2)
    monkeypatch.setattr("tfwire._records.writing.writer.TFRecordWriter.write_many", fail)
    with pytest.raises(OSError, match="no room"):
        writer.write_many(itertools.cycle(RECORDS))
    with pytest.raises(OSError, match="no room"):
        writer.close()
    assert [] == os.listdir(tmp_path)
    assert before == threading.active_count()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("method", "counts"),
    [
        ("write_many", {"num_shards": 2}),
        ("write_many", {"shard_size": 3000}),
        ("close", {"shard_size": 3000}),
        ("__init__", {"shard_size": 3000}),
    ],
)
def test_what_failed_once_is_reported_by_close_too(tmp_path, monkeypatch, method, counts, threads):
    """Were the files completed, they would lack records."""
    errors = [OSError(errno.EIO, "broken")]
    real = getattr(tfw.TFRecordWriter, method)

    def fail_once(*args, **options):
        if errors:
            raise errors.pop()
        return real(*args, **options)

    writer = ShardedWriter(tmp_path / PATTERN, **counts, num_threads=threads)
    monkeypatch.setattr(tfw.TFRecordWriter, method, fail_once)
    for _ in range(3):
        with contextlib.suppress(OSError):
            writer.write_many([bytes(500)] * 20)
    with pytest.raises(OSError, match="broken"):
        writer.close()
    assert writer.paths is None
    assert [] == os.listdir(tmp_path)


def test_a_folder_that_cannot_be_synced_leaves_no_files(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "not on disk")

    writer = ShardedWriter(tmp_path / PATTERN, num_shards=2, index=True)
    monkeypatch.setattr("tfwire._base.system.sync_folder", fail)
    with pytest.raises(OSError, match="not on disk"):
        writer.close()
    assert [] == os.listdir(tmp_path)


def test_a_name_that_cannot_be_taken_leaves_no_files(tmp_path):
    taken = tmp_path / "b1"
    taken.mkdir()
    writer = ShardedWriter(tmp_path / "b{shard}", num_shards=3, index=True)
    writer.write_many(RECORDS)
    with pytest.raises(IsADirectoryError):
        writer.close()
    assert ["b1"] == os.listdir(tmp_path)


def test_a_pipe_or_device_is_not_replaced(tmp_path):
    """A user with the permission, root say, would lose /dev/null."""
    pipe = tmp_path / "b1"
    os.mkfifo(pipe)
    writer = ShardedWriter(tmp_path / "b{shard}", num_shards=3, index=True)
    writer.write_many(RECORDS)
    with pytest.raises(FileExistsError, match=r"cannot be replaced.*b1"):
        writer.close()
    with pytest.raises(FileExistsError, match=r"cannot be replaced.*b1"):
        tfw.TFRecordWriter(pipe, atomic=True)
    assert pipe.is_fifo()
    assert ["b1"] == os.listdir(tmp_path)


@contextlib.contextmanager
def few_files(spare):
    """Lets the process open so many more files."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)  # the lowest number that is free
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + spare, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_there_may_be_more_shards_than_files_that_a_process_may_open(tmp_path, options):
    with (
        few_files(8),
        ShardedWriter(tmp_path / "{shard}", num_shards=100, options=options, index=True) as writer,
    ):
        writer.write_many([b"%d" % i for i in range(1000)])
    assert [[b"%d" % k for k in range(i, 1000, 100)] for i in range(100)] == contents(writer)
    assert 200 == len(os.listdir(tmp_path))


def test_a_file_that_cannot_be_opened_leaves_no_others(tmp_path, monkeypatch):
    opened, really_open = [], os.open

    def fail_at_the_tenth(path, *arguments, **options):
        opened.append(path)
        if len(opened) == 10:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return really_open(path, *arguments, **options)

    monkeypatch.setattr(os, "open", fail_at_the_tenth)
    with pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
        ShardedWriter(tmp_path / "{shard}", num_shards=20)
    assert [] == os.listdir(tmp_path)


@pytest.mark.posix("it limits descriptors")
@pytest.mark.parametrize("index", [False, True])
def test_an_error_for_want_of_descriptors_names_the_files_and_not_the_marker(tmp_path, index):
    """Nor a temporary name. The number of files is known when all but publishing them is done."""

    def begun(pattern, **counts):
        writer = ShardedWriter(tmp_path / pattern, index=index, **counts)
        writer.write_many([b"x", b"y", b"z"])
        return writer

    begun("first-{shard}", num_shards=2).close()  # imports all that is needed
    failed = set()
    for spare in range(2):
        for name, use in {
            "a-0": lambda: begun("a-{shard}", num_shards=2)._discard(),
            "a-{shard}": lambda: begun("a-{shard}", shard_size=9)._discard(),
            "b-0": begun("b-{shard}", num_shards=2).close,
            "c": begun("c-{shard}-of-{shards}", shard_size=9).close,
            "": lambda: recover_shards(tmp_path),
        }.items():
            try:
                with few_files(spare):
                    use()
            except OSError as error:
                place = os.path.relpath(error.filename, tmp_path)
                failed.add((name, spare, error.errno, place))
            assert not (tmp_path / MARKER).exists()
    wanted = [("a-0", 0, "a-0"), ("a-{shard}", 0, "a-{shard}"), ("", 0, ".")]
    wanted += [("b-0", 0, "b-0"), ("b-0", 1, "b-0")]
    wanted += [("c", 0, "c-{shard}-of-{shards}"), ("c", 1, "c-0-of-3")]
    assert {(name, spare, errno.EMFILE, place) for name, spare, place in wanted} == failed


def test_a_writer_that_is_forgotten_warns_and_leaves_nothing(tmp_path):
    writer = ShardedWriter(tmp_path / "{shard}", num_shards=2)
    with pytest.warns(ResourceWarning, match="was not closed"):
        del writer
    assert [] == os.listdir(tmp_path)


def test_a_closed_writer_takes_no_records(tmp_path):
    writer = ShardedWriter(tmp_path / "{shard}", num_shards=2)
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.write(b"")
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(writer)


@FORKS_BESIDE_THREADS
@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_process_disturbs_nothing(tmp_path, threads):
    def write():
        with pytest.raises(RuntimeError):
            writer.write(b"child")
        writer.close()
        writer.__del__()
        return True

    with ShardedWriter(tmp_path / "{shard}", shard_size=200, num_threads=threads) as writer:
        writer.write_many(RECORDS[:30])
        assert forked(write)()
        writer.write_many(RECORDS[30:])
    assert filled_in_turn(RECORDS, 200) == contents(writer)


@pytest.mark.parametrize("possible", [0, 1])
def test_where_too_few_threads_can_start_it_writes_with_fewer(tmp_path, monkeypatch, possible):
    def limited(thread):
        if len(started) == possible:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    started, start = [], threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", limited)
    with ShardedWriter(tmp_path / "{shard}", num_shards=4, num_threads=3) as writer:
        writer.write_columns({"x": range(100_000)})
        writer.write_many(RECORDS)
    assert possible == len(started)
    assert 100_000 + len(RECORDS) == len(list(tfw.read_records(writer.paths)))


def test_there_are_no_more_threads_than_files(tmp_path):
    before = threading.active_count()
    with ShardedWriter(tmp_path / "{shard}", shard_size=200, num_threads=10**9) as writer:
        writer.write_many(RECORDS)
        started = threading.active_count() - before
    assert 1 < started <= len(writer.paths)
    assert filled_in_turn(RECORDS, 200) == contents(writer)


@pytest.mark.posix("it sends signals")
def test_no_call_runs_after_any_number_of_interrupts():
    """C encodes in the calls, from memory that is freed after them."""
    threads, seen, running = ShardThreads(2), [], []
    interrupted, go_on = threading.Semaphore(0), threading.Event()

    def note(number, frame):
        seen.append(number)
        interrupted.release()
        raise KeyboardInterrupt

    def call(number):
        running.append(number)
        go_on.wait()
        running.remove(number)

    def interrupt():
        while len(running) < 2:
            pass
        for _ in range(3):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            # A signal that comes just before a thread blocks is noticed with the next one.
            while not interrupted.acquire(timeout=1):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        go_on.set()

    before = signal.signal(signal.SIGINT, note)
    interrupter = threading.Thread(target=interrupt)
    try:
        interrupter.start()
        threads.begin(2)
        with pytest.raises(KeyboardInterrupt):
            threads.for_each(8, call)
        assert [] == running
        assert 3 <= len(seen)
    finally:
        interrupter.join()
        signal.signal(signal.SIGINT, before)
        threads.close()
