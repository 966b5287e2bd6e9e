"""Compressed files that a thread inflates ahead of their reader: all is as without it."""

from __future__ import annotations

import gc
import gzip
import os
import random
import signal
import threading
import time
import zlib

import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.reading import read_outcome, write_anew
from helpers.reference import frame
from tfwire._base import system
from tfwire._records.files import inflate_ahead
from tfwire._records.files.byte_sources import FileSource, ObjectSource

RECORDS = [random.Random(i).randbytes(i * 61 % 1500) + bytes(i % 700) for i in range(300)]
CONTENT = b"".join(map(frame, RECORDS))
COMPRESS = {"GZIP": gzip.compress, "ZLIB": zlib.compress}


def num_threads() -> int:
    """How many threads inflate."""
    return sum(thread.name.startswith("tfwire-") for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def thread(monkeypatch):
    """A thread from the first kilobyte on, and none at the end."""
    monkeypatch.setattr(inflate_ahead, "_UNIT", 1000)
    monkeypatch.setattr(system, "num_cpus", lambda: 2)
    before = num_threads()
    yield
    gc.collect()
    deadline = time.monotonic() + 10
    while num_threads() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert before == num_threads()


@pytest.fixture(params=["GZIP", "ZLIB"])
def path(request, tmp_path):
    (tmp_path / "data").write_bytes(COMPRESS[request.param](CONTENT))
    return tmp_path / "data"


def small_reader(path, **options):
    """A reader that has much to go when it has given one record."""
    return tfw.read_records(path, buffer_size=500, **options)


def check_against_no_thread(path, monkeypatch, policy):
    """Returns what is found, with the thread and without it."""
    found = read_outcome(path, on_corrupt=policy, buffer_size=500)
    monkeypatch.setattr(system, "num_cpus", lambda: 1)
    expected = read_outcome(path, on_corrupt=policy, buffer_size=500)
    monkeypatch.setattr(system, "num_cpus", lambda: 2)
    assert expected.records == found.records
    assert expected.damage == found.damage
    if policy == "stop":  # the region ends with what had been inflated, which is not the same
        assert [r.begin for r in expected.skipped] == [r.begin for r in found.skipped]
    else:
        assert expected.skipped == found.skipped
    return found


def test_the_records_are_the_same_in_the_same_order(path):
    reader = small_reader(path, receipt=True)
    head = [next(reader) for _ in range(20)]
    assert 1 == num_threads()
    assert RECORDS == head + list(reader)
    assert 0 == num_threads()
    assert tfw.crc32c(path.read_bytes()) == reader.file_crc32c


def test_much_damage_begins_few_threads(tmp_path, monkeypatch):
    """Each piece of damage ends the thread, which takes longer than a short member."""
    good, member = gzip.compress(CONTENT), gzip.compress(frame(b"x" * 50))
    (tmp_path / "data").write_bytes(good + member[:-1] * 500)
    begun = []
    begin = inflate_ahead.Workers
    monkeypatch.setattr(inflate_ahead, "_UNIT", len(CONTENT) // 2)
    monkeypatch.setattr(
        inflate_ahead, "Workers", lambda *args, **kwargs: begun.append(1) or begin(*args, **kwargs)
    )
    found = read_outcome(tmp_path / "data", on_corrupt="skip", buffer_size=500)
    assert [*RECORDS, *[b"x" * 50] * 500] == found.records
    assert 1 == len(begun)


@pytest.mark.parametrize("how", ["close", "drop"])
def test_an_iterator_that_is_left_takes_its_thread_along(path, how):
    reader = small_reader(path)
    for _ in range(20):
        next(reader)
    assert 1 == num_threads()
    if how == "close":
        reader.close()
        assert 0 == num_threads()


@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
def test_damage_is_met_as_without_a_thread(path, monkeypatch, policy):
    intact = path.read_bytes()
    for place in range(7, len(intact), len(intact) // 9):
        damaged = bytearray(intact)
        damaged[place] ^= 0x10
        write_anew(path, damaged)
        check_against_no_thread(path, monkeypatch, policy)
    path.write_bytes(intact[:-5])
    check_against_no_thread(path, monkeypatch, policy)


@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
def test_damaged_members_are_left_out_as_without_a_thread(tmp_path, monkeypatch, policy):
    members = [gzip.compress(b"".join(map(frame, RECORDS[i : i + 30]))) for i in range(0, 300, 30)]
    for number in (2, 5, 6):
        damaged = bytearray(members[number])
        damaged[len(damaged) // 2] ^= 0xFF
        members[number] = bytes(damaged)
    (tmp_path / "data").write_bytes(b"".join(members))
    found = check_against_no_thread(tmp_path / "data", monkeypatch, policy)
    if policy == "skip":
        assert RECORDS[-90:] == found.records[-90:]


def test_an_error_in_the_thread_comes_after_the_records_before_it(path, monkeypatch):
    pread = system.pread

    def fail_in_a_thread(fd, size, offset):
        if threading.current_thread() is not threading.main_thread():
            raise OSError(5, "no more")
        return pread(fd, size, offset)

    monkeypatch.setattr(system, "pread", fail_in_a_thread)
    found = []
    with pytest.raises(OSError, match="no more"):
        found.extend(small_reader(path))
    assert found
    assert RECORDS[: len(found)] == found


@FORKS_BESIDE_THREADS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_both_sides_of_a_fork_go_on(path):
    reader = small_reader(path)
    head = [next(reader) for _ in range(20)]
    assert 1 == num_threads()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if head + list(reader) == RECORDS else 2
        finally:
            os._exit(status)
    rest = list(reader)
    assert 0 == os.waitpid(child, 0)[1]
    assert RECORDS == head + rest


@FORKS_BESIDE_THREADS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_goes_on_after_damage(tmp_path):
    members = [gzip.compress(b"".join(map(frame, RECORDS[i : i + 50]))) for i in range(0, 300, 50)]
    members[1] = members[1][:40] + bytes(200) + members[1][240:]
    (tmp_path / "data").write_bytes(b"".join(members))
    with pytest.warns(UserWarning, match="left out"):
        expected = list(small_reader(tmp_path / "data", on_corrupt="skip"))
    reader = small_reader(tmp_path / "data", on_corrupt="skip")
    head = [next(reader) for _ in range(150)]
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with pytest.warns(UserWarning, match="left out"):
                rest = list(reader)
            os.write(write_end, b"same" if head + rest == expected else b"other")
        finally:
            os._exit(0)
    with pytest.warns(UserWarning, match="left out"):
        assert expected == head + list(reader)
    os.waitpid(child, 0)
    assert b"same" == os.read(read_end, 10)
    os.close(read_end)
    os.close(write_end)


@FORKS_BESIDE_THREADS
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("left", [0, 5, 1000])
def test_a_file_that_became_shorter_before_a_forked_side_reads_on_is_damaged(path, left):
    """It inflates once more what was given, of which there is less now."""
    reader = small_reader(path)
    assert RECORDS[:100] == [next(reader) for _ in range(100)]
    assert 1 == num_threads()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # it read forever
        try:
            os.truncate(path, left)
            list(reader)
        except tfw.DataLossError:
            os._exit(0)
        finally:
            os._exit(1)
    assert (child, 0) == os.waitpid(child, 0)
    reader.close()


def test_an_interrupt_at_any_moment_ends_the_reading_and_its_thread(path, monkeypatch):
    """Also in the waits for the thread, which takes its time here."""
    read = inflate_ahead._read

    def read_slowly(inflated, size):
        time.sleep(0.0005)
        return read(inflated, size)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    monkeypatch.setattr(inflate_ahead, "_read", read_slowly)
    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for number in range(0, 30, 3):
            reader = small_reader(path)
            found = [next(reader) for _ in range(20)]
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0003 * (number + 1))
                for record in reader:
                    found.append(record)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert RECORDS[: len(found)] == found
            reader.close()
            assert 0 == num_threads()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def test_file_objects_are_read_by_the_thread_that_asks(path):
    with open(path, "rb") as file:
        reader = small_reader(file)
        assert RECORDS[:20] == [next(reader) for _ in range(20)]
        assert 0 == num_threads()
        assert RECORDS[20:] == list(reader)


class Failing:
    """A file object whose reads fail from an offset on."""

    def __init__(self, data, end):
        self._data, self._at, self._end = data, 0, end

    def read(self, size):
        if self._at >= self._end:
            raise OSError("of the disk")
        piece = self._data[self._at : min(self._at + size, self._end)]
        self._at += len(piece)
        return piece


def read_all(source, size):
    """What a source gives, and the error that ends it or None."""
    found, buffer = b"", bytearray(size)
    try:
        while got := source.readinto(buffer):
            found += buffer[:got]
    except (OSError, KeyboardInterrupt) as error:
        return found, error
    return found, None


def test_what_was_inflated_before_an_error_of_the_source_comes_first():
    content = random.Random(1).randbytes(100_000)
    source = ObjectSource(Failing(gzip.compress(content), 70_000))
    inflated = inflate_ahead.ThreadedInflater(source, "GZIP")
    found, error = read_all(inflated, 1 << 20)
    assert "of the disk" in str(error)
    assert len(found) > 69_000
    assert content.startswith(found)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupt_loses_nothing_that_the_thread_has_inflated(path, error):
    name = "GZIP" if path.read_bytes()[0] == 0x1F else "ZLIB"
    inflated = inflate_ahead.ThreadedInflater(FileSource(path), name)
    found, buffer = b"", bytearray(700)
    while inflated._workers is None or len(found) < 20_000:
        found += buffer[: inflated.readinto(buffer)]
    take = inflated._workers.next

    def interrupted():
        take()
        raise error

    inflated._workers.next = interrupted
    before, met = read_all(inflated, 700)
    assert error is type(met)
    rest, met = read_all(inflated, 700)
    assert met is None
    assert CONTENT == found + before + rest
    inflated.close()
