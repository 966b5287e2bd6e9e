"""Writers that replace a file at once, that fail, and that a fork shares."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import sys
import traceback

import pytest

import tfwire as tfw
from helpers.processes.forks import forked
from helpers.records.writing import MIXED, drop, write_and_fail
from helpers.reference import file_of, read
from tfwire._base import system
from tfwire._records.files import byte_sinks

COMPRESSIONS = ["", "GZIP", "ZLIB"]


# ---- Replacing at once ------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_atomic_shows_all_or_nothing(path, compression):
    path.write_bytes(b"the old content")
    with tfw.TFRecordWriter(path, compression, atomic=True) as writer:
        writer.write_many(MIXED)
        writer.flush()
        assert b"the old content" == path.read_bytes()
    assert MIXED == list(tfw.read_records(path))
    assert [path.name] == os.listdir(path.parent)


def test_atomic_leaves_no_trace_of_what_was_not_completed(path):
    path.write_bytes(b"the old content")
    with pytest.raises(KeyError):
        write_and_fail(tfw.TFRecordWriter(path, atomic=True), MIXED)
    with pytest.warns(ResourceWarning):
        drop([tfw.TFRecordWriter(path, atomic=True)])
    assert b"the old content" == path.read_bytes()
    assert [path.name] == os.listdir(path.parent)


@pytest.mark.posix("it makes a link")
def test_atomic_follows_a_symbolic_link(path):
    link = path.with_name("link")
    link.symlink_to(path.name)
    tfw.TFRecordWriter(link, atomic=True).close()
    assert link.is_symlink()
    assert b"" == path.read_bytes()


def test_a_failing_fsync_is_reported_and_leaves_the_old_file(path, monkeypatch):
    def fail(fd):
        raise OSError(errno.EIO, "broken disk")

    path.write_bytes(b"the old content")
    writer = tfw.TFRecordWriter(path, atomic=True)
    writer.write(b"1")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="broken disk") as caught:
        writer.close()
    assert str(path) == caught.value.filename
    writer.close()
    assert b"the old content" == path.read_bytes()
    assert [path.name] == os.listdir(path.parent)


# ---- Faults -----------------------------------------------------------------------------------


def test_a_file_that_cannot_be_cut_is_reported_and_closed(path, monkeypatch):
    opened = []

    def fail(fd, size):
        opened.append(fd)
        raise OSError(errno.EIO, "broken disk")

    path.write_bytes(file_of(MIXED) + b"torn")
    monkeypatch.setattr(os, "ftruncate", fail)
    with pytest.raises(OSError, match="broken disk") as caught:
        tfw.TFRecordWriter(path, append=True, repair_tail=True)
    assert str(path) == caught.value.filename
    with pytest.raises(OSError, match=r"Bad file descriptor|Invalid handle|handle is invalid"):
        os.fstat(opened[0])


def test_short_writes_are_completed(path, monkeypatch):
    rng = random.Random(0)
    writev = system.writev

    def short(fd, views):
        size = rng.randrange(1, 5000)
        return writev(fd, [memoryview(b"".join(views))[:size]])

    monkeypatch.setattr(system, "writev", short)
    tfw.write_records(path, MIXED)
    assert file_of(MIXED) == path.read_bytes()


@pytest.mark.parametrize("fault", range(12))
def test_the_nth_write_that_fails_leaves_a_valid_prefix_and_is_reported(path, monkeypatch, fault):
    """By write, flush or close, and by every call after it, with the name of the file."""
    calls = {"left": fault}
    writev = system.writev

    def failing(fd, views):
        if calls["left"] == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        calls["left"] -= 1
        return writev(fd, [memoryview(b"".join(views))[:50_000]])

    monkeypatch.setattr(system, "writev", failing)
    records = [bytes([i]) * 3000 for i in range(100)] + MIXED
    writer = tfw.TFRecordWriter(path)
    failures = []
    for record in records:
        try:
            writer.write(record)
        except OSError as error:
            failures.append(error)
    for call in (writer.flush, writer.close):
        with pytest.raises(OSError, match="No space left") as caught:
            call()
        failures.append(caught.value)
    writer.close()
    assert {(errno.ENOSPC, str(path))} == {(e.errno, e.filename) for e in failures}
    data = path.read_bytes()
    outcome = read(data)
    assert None is outcome.damage
    assert records[: len(outcome.records)] == outcome.records


@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_full_device_is_reported(compression):
    with pytest.raises(OSError, match="No space left") as caught:
        tfw.write_records("/dev/full", [b"record"], compression)
    assert "/dev/full" == caught.value.filename
    writer = tfw.TFRecordWriter("/dev/full", compression)
    writer.write(b"record")
    for call in (writer.flush, writer.close):
        with pytest.raises(OSError, match="No space left"):
            call()


def depth(error):
    return len(traceback.extract_tb(error.__traceback__))


class Broken(Exception):
    """An exception that cannot be copied."""

    def __init__(self, first, second):
        super().__init__(second)


@pytest.mark.parametrize("made", [OSError, Broken])
@pytest.mark.parametrize("kind", ["plain", "sharded", "threads"])
def test_a_failed_writer_fails_again_in_a_short_traceback(tmp_path, monkeypatch, kind, made):
    error = made(5, "broken")  # with the traceback of this test alone

    def fail(*_):
        raise error

    if kind == "plain":
        writer = tfw.TFRecordWriter(tmp_path / "data")
    else:
        writer = tfw.ShardedWriter(
            tmp_path / "{shard}", num_shards=2, num_threads=2 if kind == "threads" else 1
        )
    monkeypatch.setattr("tfwire._records.files.byte_sinks.write_all", fail)
    depths = []
    for _ in range(200):
        try:
            writer.write_many([b"x" * 300_000] * 2)
        except (OSError, Broken) as failure:
            depths.append(depth(failure))
    assert len(depths) > 100
    assert len(set(depths[20:])) <= 3
    assert max(depths) < 30
    with pytest.raises((OSError, Broken), match="broken"):
        writer.close()


def test_a_failed_writer_keeps_nothing_that_it_was_given(path, monkeypatch):
    def fail(*_):
        raise OSError(5, "broken")

    writer = tfw.TFRecordWriter(path)
    monkeypatch.setattr("tfwire._records.files.byte_sinks.write_all", fail)
    for _ in range(100):
        with contextlib.suppress(OSError):
            writer.write(bytes(300_000))
    assert [] == writer._pending
    assert None is writer._failure.__traceback__
    writer._discard()


def test_an_interrupt_keeps_the_whole_records_that_were_written(path, monkeypatch):
    writev = system.writev

    def interrupted(fd, views):
        writev(fd, [b"".join(views)[:100]])
        raise KeyboardInterrupt

    writer = tfw.TFRecordWriter(path)
    writer.write(b"1")
    writer.flush()
    monkeypatch.setattr(system, "writev", interrupted)
    with pytest.raises(KeyboardInterrupt):
        writer.write_many(MIXED)
    with pytest.raises(RuntimeError, match="interrupted"):
        writer.close()
    assert file_of([b"1", b"", b"short"]) == path.read_bytes()


# ---- Forks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("atomic", [False, True])
def test_a_fork_does_not_write_what_the_parent_will_write(path, compression, atomic):
    def write_and_drop():
        with pytest.raises(RuntimeError):
            writers[0].write(b"from the child")
        writers[0].close()
        drop(writers)
        return True

    with tfw.TFRecordWriter(path, compression, atomic=atomic) as writer:
        writer.write(b"pending")
        writers = [writer]
        assert forked(write_and_drop)()
        writer.write(b"more")
    assert [b"pending", b"more"] == list(tfw.read_records(path))


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_fork_does_not_keep_the_file_open(path, compression):
    def descriptors():
        for number in range(256):
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(number), os.stat(path)):
                    yield number

    with tfw.TFRecordWriter(path, compression) as writer:
        writer.write(b"pending")
        writer.flush()
        assert list(descriptors())
        assert forked(lambda: not list(descriptors()))()


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_where_the_end_cannot_be_written_nothing_is_left(path, compression, monkeypatch):
    writer = tfw.TFRecordWriter(path, compression, atomic=True)
    writer.write(b"record")
    writer.flush()
    monkeypatch.setattr(byte_sinks.DeflatedSink, "_write_compressed", refuse)
    with pytest.raises(OSError, match="No space"):
        writer.close()
    assert [] == os.listdir(path.parent)


def refuse(sink, parts):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
