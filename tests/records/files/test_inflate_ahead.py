"""Compressed files that a thread inflates ahead of their reader: all is as without it."""

from __future__ import annotations

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
from helpers.processes.forks import forked
from helpers.reading import read_outcome, write_anew
from helpers.reference import frame
from helpers.threads import nothing_left, threads_of_tfwire
from tfwire._base import system
from tfwire._records.files import inflate_ahead
from tfwire._records.files.byte_sources import FileSource, ObjectSource

RECORDS = [random.Random(i).randbytes(i * 61 % 1500) + bytes(i % 700) for i in range(300)]
CONTENT = b"".join(map(frame, RECORDS))
COMPRESS = {"GZIP": gzip.compress, "ZLIB": zlib.compress}


@pytest.fixture(autouse=True)
def thread(monkeypatch):
    """A thread from the first kilobyte on, and none at the end."""
    monkeypatch.setattr(inflate_ahead, "_UNIT", 1000)
    monkeypatch.setattr(system, "num_cpus", lambda: 2)
    with nothing_left():
        yield


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
    assert 1 == len(threads_of_tfwire())
    assert RECORDS == head + list(reader)
    assert [] == threads_of_tfwire()
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
    assert 1 == len(threads_of_tfwire())
    if how == "close":
        reader.close()
        assert [] == threads_of_tfwire()


@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
def test_damage_is_met_as_without_a_thread(path, monkeypatch, policy):
    intact = path.read_bytes()
    for place in range(7, len(intact), len(intact) // 5):
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
def test_both_sides_of_a_fork_go_on(path):
    reader = small_reader(path)
    head = [next(reader) for _ in range(20)]
    assert 1 == len(threads_of_tfwire())
    ended = forked(lambda: head + list(reader) == RECORDS)
    assert RECORDS == head + list(reader)
    assert ended()


@FORKS_BESIDE_THREADS
@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_a_fork_goes_on_after_damage(tmp_path):
    members = [gzip.compress(b"".join(map(frame, RECORDS[i : i + 50]))) for i in range(0, 300, 50)]
    members[1] = members[1][:40] + bytes(200) + members[1][240:]
    (tmp_path / "data").write_bytes(b"".join(members))
    expected = list(small_reader(tmp_path / "data", on_corrupt="skip"))
    reader = small_reader(tmp_path / "data", on_corrupt="skip")
    head = [next(reader) for _ in range(150)]
    ended = forked(lambda: head + list(reader) == expected)
    assert expected == head + list(reader)
    assert ended()


@FORKS_BESIDE_THREADS
@pytest.mark.parametrize("left", [0, 5, 1000])
def test_a_file_that_became_shorter_before_a_forked_side_reads_on_is_damaged(path, left):
    """It inflates once more what was given, of which there is less now: it read forever."""
    reader = small_reader(path)
    assert RECORDS[:100] == [next(reader) for _ in range(100)]
    assert 1 == len(threads_of_tfwire())

    def read_on():
        os.truncate(path, left)
        with pytest.raises(tfw.DataLossError):
            list(reader)
        return True

    assert forked(read_on)()
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
            assert [] == threads_of_tfwire()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def test_file_objects_are_read_by_the_thread_that_asks(path):
    with open(path, "rb") as file:
        reader = small_reader(file)
        assert RECORDS[:20] == [next(reader) for _ in range(20)]
        assert [] == threads_of_tfwire()
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
