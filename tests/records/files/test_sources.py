"""Where bytes come from: file objects that misbehave, waits that another thread ends, and what is
still open when the interpreter ends."""

from __future__ import annotations

import gc
import gzip
import io
import os
import subprocess
import sys
import threading
from contextlib import suppress

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT
from helpers.data.iterators_with_threads import within_limit
from helpers.reading import Bytes, open_files
from helpers.reference import file_of
from helpers.threads import Consumer, wait_for
from tfwire._records.files.byte_sources import SectionSource

RECORDS = [b"record %d" % i * (i % 50) for i in range(200)]
DATA = file_of(RECORDS)


# ---- File objects that keep what they were given -----------------------------------------------


class Keeping(Bytes):
    """Keeps every view, and writes to all of them whenever it is asked for more."""

    def __init__(self, data, at_once=None):
        super().__init__(data, at_once)
        self.kept = []

    def readinto(self, buffer):
        for view in self.kept:
            view[:] = bytes(len(view))
        size = super().readinto(buffer)
        self.kept.append(memoryview(buffer)[:size])
        return size


class KeepingRaw(io.RawIOBase):
    """The same through Python's own buffer."""

    def __init__(self, data):
        self.inner = Keeping(data)

    def readable(self):
        return True

    def readinto(self, buffer):
        return self.inner.readinto(buffer)


class Growing(Keeping):
    """Makes an array of the view, which holds the memory in another way."""

    def readinto(self, buffer):
        size = Bytes.readinto(self, buffer)
        self.kept.append(np.frombuffer(buffer, np.uint8))
        return size


@pytest.mark.parametrize("make", [Keeping, Growing, KeepingRaw])
def test_views_that_a_file_object_keeps_show_no_memory_of_the_reader(make):
    """Neither while it is used nor when it is gone: under ASan this is a use after free."""
    file = make(DATA)
    records = tfw.read_records(file, buffer_size=1000)
    assert RECORDS == list(records)
    del records
    gc.collect()
    kept = getattr(file, "inner", file).kept
    for view in kept:
        np.asarray(view)[:] = 0
        assert not np.asarray(view).any()


def test_a_method_put_on_a_file_gets_no_memory_of_the_reader(tmp_path):
    (tmp_path / "data").write_bytes(DATA)
    for early in (True, False):
        with open(tmp_path / "data", "rb") as file:
            kept = []

            def keep(buffer, readinto=file.readinto, kept=kept):
                kept.append(memoryview(buffer))
                return readinto(buffer)

            if early:
                file.readinto = keep
            records = tfw.read_records(file, buffer_size=100)
            first = next(records)
            file.readinto = keep
            assert RECORDS == [first, *records]
            assert all(isinstance(view.obj, bytearray) for view in kept)
            assert early == bool(kept)


def test_a_file_object_may_fill_its_view_afterwards():
    """Between two reads: while one is copied, the object spoils its own data."""
    file, found = Keeping(DATA, 777), []
    for record in tfw.read_records(file, buffer_size=1000):
        found.append(record)
        for view in file.kept:
            view[:] = b"\xff" * len(view)
    assert RECORDS == found
    assert file.kept


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_every_reader_of_objects_lends_and_does_not_give(compress):
    """verify_file and repair_file read file objects, too."""
    file = Keeping(compress(DATA))
    assert len(RECORDS) == tfw.verify_file(file).num_records
    assert all(isinstance(view.obj, bytearray) for view in file.kept)


# ---- File objects that raise, or answer nonsense -----------------------------------------------


class Answering:
    """Gives the first half, and then what the test says."""

    def __init__(self, name, answer):
        self._rest = io.BytesIO(DATA[: len(DATA) // 2])
        self._answer = answer
        setattr(self, name, getattr(self, "_" + name))

    def _readinto(self, buffer):
        return self._rest.readinto(buffer) or self._answer()

    def _read(self, size):
        return self._rest.read(size) or self._answer()


def stop_iteration():
    raise StopIteration


@pytest.mark.parametrize("name", ["read", "readinto"])
@pytest.mark.parametrize("reader", [tfw.read_records, lambda file: [tfw.verify_file(file)]])
def test_stop_iteration_of_a_file_object_is_no_end(name, reader):
    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        list(reader(Answering(name, stop_iteration)))
    assert isinstance(caught.value.__cause__, StopIteration)


@pytest.mark.parametrize("answer", [-1, 1 << 40, 1.5, "x", [1]])
def test_a_readinto_that_answers_nonsense_is_an_error(answer):
    with pytest.raises((OSError, TypeError)):
        list(tfw.read_records(Answering("readinto", lambda: answer)))


@pytest.mark.parametrize("answer", ["x", 7, [1, 2], np.zeros(0, "S4")[:0], None])
def test_a_read_that_answers_nonsense_is_an_error(answer):
    """An empty array is an end like empty bytes, here in the middle of a record."""
    with pytest.raises((OSError, TypeError, tfw.DataLossError)):
        list(tfw.read_records(Answering("read", lambda: answer)))


def test_a_file_object_may_answer_with_any_bytes_like_object():
    class Wide:
        def __init__(self):
            self._file = io.BytesIO(DATA)

        def read(self, size):
            return np.frombuffer(self._file.read(size // 4 * 4), np.uint8)

    assert RECORDS == list(tfw.read_records(Wide()))


def test_a_file_object_that_comes_back_to_its_reader_is_told():
    """From within a read there is no way into the reader; none of the records is lost silently. A
    signal handler is in the same place."""

    class Returning(Bytes):
        def readinto(self, buffer):
            with suppress(ValueError):
                call()
            return super().readinto(buffer)

    for name in ("close", "__next__"):
        records = tfw.read_records(Returning(DATA))
        call = getattr(records, name)
        with pytest.raises(ValueError, match="closed" if name == "close" else "executing"):
            list(records)


# ---- Waits -------------------------------------------------------------------------------------


def test_closing_does_not_wait_for_ever_for_a_read_of_a_file_object():
    reached, go = threading.Event(), threading.Event()

    class Stuck(Bytes):
        def readinto(self, buffer):
            reached.set()
            assert go.wait(30)
            return super().readinto(buffer)

    records = tfw.read_records(Stuck(DATA))
    consumer = Consumer(records)
    assert reached.wait(30)
    within_limit(records.close)
    go.set()
    consumer.join()
    assert "closed" in str(consumer.error)
    assert ([], (0, 0)) == (consumer.found, records.position)


def test_a_position_after_an_interrupt_passes_over_no_record():
    """The batch that was read, and has not come to the caller, is lost to the iterator alone."""
    records = tfw.read_records(Bytes(DATA))
    step = records._batches.step

    def interrupted():
        step()
        raise KeyboardInterrupt

    records._batches.step = interrupted
    with pytest.raises(KeyboardInterrupt):
        next(records)
    assert [] == list(records)
    assert (0, 0) == records.position
    records.close()
    assert (0, 0) == records.position


def test_closing_ends_the_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(writer, DATA)
    records = tfw.read_records(tmp_path / "pipe")
    consumer = Consumer(records)
    assert wait_for(lambda: RECORDS == consumer.found)
    within_limit(records.close)
    consumer.join()
    assert isinstance(consumer.error, ValueError)
    os.close(writer)


def test_a_pipe_that_is_not_waited_for_leaves_nothing_open(tmp_path):
    before = open_files()
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    for how in ("close", "drop", "end"):
        os.write(writer, DATA)
        records = tfw.read_records(tmp_path / "pipe")
        assert RECORDS == [next(records) for _ in RECORDS]
        if how == "close":
            records.close()
        if how == "end":
            os.close(writer)
            assert [] == list(records)
        del records
        gc.collect()
    assert set() == open_files() - before


# ---- The end of the interpreter ----------------------------------------------------------------

_HELD = """
import builtins, gzip, io, os, sys
import tfwire as tfw
from tfwire._records.files import inflate_ahead
inflate_ahead._UNIT, inflate_ahead.system.num_cpus = 100, lambda: 2
builtins.held = held = [
    tfw.read_records("plain"), tfw.read_records("gzip", buffer_size=100),
    tfw.read_records(io.BytesIO(open("plain", "rb").read())),
    iter(tfw.TFRecordFile("plain")), iter(tfw.TFRecordFile("gzip")),
    tfw.TFRecordFiles(["plain", "gzip"]), tfw.follow_records("plain"),
]
for each in held:
    each[0] if isinstance(each, tfw.TFRecordFiles) else next(each)
sys.modules["held"] = held
held.append(held)
"""


def test_what_is_held_at_exit_goes_without_a_word(tmp_path):
    tfw.write_records(tmp_path / "plain", RECORDS)
    tfw.write_records(tmp_path / "gzip", RECORDS, "GZIP")
    command = [sys.executable, "-X", "dev", "-W", "ignore::ResourceWarning", "-c", _HELD]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert (0, "") == (done.returncode, done.stderr)


# ---- Sections of file objects ------------------------------------------------------------------

OFFSETS = np.cumsum([0] + [len(record) + 16 for record in RECORDS]).tolist()


class BeamLike:
    """A compressed file of Beam: reads, seeks, and ``seekable`` is no method."""

    seekable = True

    def __init__(self, data):
        self._file = io.BytesIO(data)
        self.asked = []

    def read(self, size):
        self.asked.append((self._file.tell(), size))
        return self._file.read(size)

    def seek(self, offset):
        self._file.seek(offset)


def read_section(first, end, make=io.BytesIO, data=DATA, **options):
    section = SectionSource(make(data), "the file", OFFSETS[end])
    start = tfw.RecordPosition(first, OFFSETS[first])
    return list(tfw.read_records(section, "", start=start, **options))


@pytest.mark.parametrize("make", [io.BytesIO, BeamLike])
def test_a_section_is_read_from_its_first_record_to_its_last(make):
    for first, end in [(0, 200), (0, 1), (7, 9), (120, 200), (199, 200), (5, 5)]:
        assert read_section(first, end, make) == RECORDS[first:end]


def test_a_section_reads_nothing_before_or_after_it():
    file = BeamLike(DATA)
    section = SectionSource(file, "the file", OFFSETS[12])
    records = tfw.read_records(section, "", start=tfw.RecordPosition(10, OFFSETS[10]))
    assert list(records) == RECORDS[10:12]
    assert min(begin for begin, _ in file.asked) == OFFSETS[10]
    assert max(begin + size for begin, size in file.asked) == OFFSETS[12]


def test_damage_in_a_section_is_named_by_its_place_in_the_file():
    damaged = bytearray(DATA)
    damaged[OFFSETS[46] + 20] ^= 1
    with pytest.raises(tfw.DataLossError, match="the file: record 46 at byte") as caught:
        read_section(41, 60, data=damaged)
    assert (caught.value.record_index, caught.value.offset) == (46, OFFSETS[46])
    with pytest.warns(tfw.TfwireWarning, match="record 46"):
        found = read_section(41, 60, data=damaged, on_corrupt="skip")
    assert found == RECORDS[41:46] + RECORDS[47:60]


def test_a_section_that_cuts_a_record_is_damage():
    section = SectionSource(io.BytesIO(DATA), "the file", OFFSETS[45] - 1)
    start = tfw.RecordPosition(44, OFFSETS[44])
    with pytest.raises(tfw.DataLossError, match="record 44") as caught:
        list(tfw.read_records(section, "", start=start))
    assert caught.value.reason == "truncated"


def test_a_compressed_file_of_beam_is_read_as_any_file_object():
    assert list(tfw.read_records(BeamLike(DATA))) == RECORDS
