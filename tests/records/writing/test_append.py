"""Continuing files: writers that meet, calls that fail, records that reached the file."""

from __future__ import annotations

import contextlib
import errno
import gzip
import itertools
import mmap
import os
import random
import struct
import warnings
import zlib

import pytest

import tfwire as tfw
from helpers.processes import faults
from helpers.processes.forks import forked
from helpers.products import diagonals
from helpers.reading import read_outcome, write_anew
from helpers.records.writing import files_of_at_most
from helpers.reference import file_of, flip, frame, read
from tfwire._base import system

OLD = [b"old", b"", b"x" * 300]


# ---- Killed or failing at every call ----------------------------------------------------------

MORE = [[b"%d" % i * i for i in range(20)], [b"long" * 10_000, b"short"] * 3, [b"end"]]


def append_in_pieces(path, compression, flushed):
    with tfw.TFRecordWriter(path, compression, append=True, repair_tail=True) as writer:
        for piece in MORE:
            writer.write_many(piece)
            writer.flush()
            flushed[:8] = struct.pack("<Q", struct.unpack("<Q", flushed[:8])[0] + len(piece))


@pytest.mark.unsanitized("starts processes")
@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("file", "action", "forever"),
    diagonals(
        0,
        2,
        [("", b""), ("", frame(b"torn" * 50)[:40]), ("GZIP", b"")],
        [*faults.ACTIONS, faults.interrupt, faults.interrupt_after],
        [False, True],
    ),
)
def test_what_was_flushed_is_kept_whatever_fails(path, file, action, forever, stride):
    compression, tail = file
    data = file_of(OLD) if not compression else gzip.compress(file_of(OLD))
    wanted = [*OLD, *MORE[0], *MORE[1], *MORE[2]]
    flushed = mmap.mmap(-1, 8)
    for n in range(random.randint(1, stride), 1000, stride):
        write_anew(path, data + tail)
        flushed[:8] = bytes(8)
        status, reached = faults.run(
            lambda: append_in_pieces(path, compression, flushed), n, action, forever
        )
        found = read_outcome(path, "auto", on_corrupt="tail" if not compression else "stop")
        least = len(OLD) + struct.unpack("<Q", flushed[:8])[0]
        assert wanted[: len(found.records)] == found.records, n
        assert least <= len(found.records), n
        if not reached:
            assert (faults.DONE, wanted) == (status, found.records)
            break
        if not compression and not forever and status == faults.RAISED and not tail:
            assert None is read(path.read_bytes()).damage, n
        if not compression:
            with tfw.TFRecordWriter(path, append=True, repair_tail=True) as writer:
                writer.write(b"after")
            assert [*found.records, b"after"] == list(tfw.read_records(path))
    else:
        raise AssertionError("no end")


# ---- What a failing write leaves --------------------------------------------------------------


def write_within(limit, path, kind, records):
    """Writes in both ways, whatever fails; the writer, closed, and the errors."""
    errors = []
    with files_of_at_most(limit):
        writer = tfw.TFRecordWriter(path, kind)
        for i in range(0, 400, 40):
            try:
                if i % 80:
                    writer.write_many(records[i : i + 40])
                else:
                    for record in records[i : i + 40]:
                        writer.write(record)
                writer.flush()
            except OSError as error:
                errors.append(error.errno)
        with contextlib.suppress(OSError):
            writer.close()
    return writer, errors


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 6))]
)
@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_every_whole_record_of_a_failing_write_is_kept(path, kind, seed):
    """To the last byte that the limit allows; of a compressed file all bytes."""
    rng = random.Random(seed)
    records = [bytes([i % 256]) * rng.choice([0, 3, 50, 20_000]) for i in range(400)]
    limit = rng.randrange(100, 1_000_000 if not kind else 2000)
    writer, errors = write_within(limit, path, kind, records)
    data = path.read_bytes()
    assert {errno.EFBIG} == set(errors)
    assert tfw.crc32c(data) == writer.file_crc32c
    if kind:
        assert limit == len(data)
        found = read(zlib.decompressobj(47).decompress(data), "tail").records
        assert records[: len(found)] == found
        return
    ends = itertools.accumulate(len(record) + 16 for record in records)
    kept = records[: sum(end <= limit for end in ends)]
    assert file_of(kept) == data
    assert tfw.Receipt.of(kept) == writer.receipt


# ---- Writers that meet ------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_second_writer_of_a_file_is_refused_and_harms_nothing(path, compression):
    tfw.write_records(path, OLD, compression)
    with tfw.TFRecordWriter(path, compression, append=True) as writer:
        writer.write(b"1")
        writer.flush()
        for kind in ({"append": True}, {"append": True, "repair_tail": True}, {}):
            with pytest.raises(BlockingIOError, match="another writer has the file open") as caught:
                tfw.TFRecordWriter(path, compression, **kind)
            assert str(path) == caught.value.filename
        writer.write(b"2")
    assert [*OLD, b"1", b"2"] == list(tfw.read_records(path))
    with tfw.TFRecordWriter(path, compression, append=True) as writer:
        writer.write(b"3")
    assert [*OLD, b"1", b"2", b"3"] == list(tfw.read_records(path))


def test_a_file_that_is_being_written_is_not_appended_to(path):
    with tfw.TFRecordWriter(path) as writer:
        writer.write(b"1")
        writer.flush()
        with pytest.raises(BlockingIOError, match="another writer"):
            tfw.TFRecordWriter(path, append=True)
    assert [b"1"] == list(tfw.read_records(path))


def test_a_forked_process_does_not_keep_the_lock(path):
    writer = tfw.TFRecordWriter(path, append=True)
    gate, opener = os.pipe()
    ended = forked(lambda: os.close(opener) or os.read(gate, 1) == b"")
    writer.close()
    tfw.TFRecordWriter(path, append=True).close()
    os.close(opener)
    assert ended()
    os.close(gate)


@pytest.mark.posix("it fails there, which is not explained")
@pytest.mark.parametrize("kind", [{}, {"append": True}])
def test_without_locks_the_size_of_the_file_tells_of_another_writer(path, monkeypatch, kind):
    """Of a file system that has none, or a program that takes none."""

    def unsupported(fd, shared=False):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(system, "try_lock", unsupported)
    tfw.write_records(path, OLD)
    first = tfw.TFRecordWriter(path, **kind)
    first.write(b"1")
    first.flush()
    before = list(tfw.read_records(path))
    with tfw.TFRecordWriter(path, append=True) as second:
        second.write(b"from the second")
    first.write(b"lost, and said so")
    for call in (first.flush, first.flush, first.close):
        with pytest.raises(OSError, match="changed by another writer: expected") as caught:
            call()
        assert (errno.ESTALE, str(path)) == (caught.value.errno, caught.value.filename)
    assert [*before, b"from the second"] == list(tfw.read_records(path))


@pytest.mark.posix("a file that is open is not replaced")
def test_a_file_that_is_replaced_while_it_is_checked_is_not_continued(path, monkeypatch):
    tfw.write_records(path, OLD)
    pread = system.pread

    def replace_first(fd, size, offset):
        if path.with_name("other").exists():
            os.replace(path.with_name("other"), path)
        return pread(fd, size, offset)

    tfw.write_records(path.with_name("other"), [b"other"])
    monkeypatch.setattr(system, "pread", replace_first)
    with pytest.raises(OSError, match="replaced"):
        tfw.TFRecordWriter(path, append=True)
    assert [b"other"] == list(tfw.read_records(path))


def test_a_writer_that_was_left_open_does_not_spoil_the_one_after_it(path):
    """As when a cell of a notebook is run twice."""
    first = tfw.TFRecordWriter(path)
    first.write(b"first" * 100)
    first.flush()
    first.write(b"pending")
    second = tfw.TFRecordWriter(path)
    with pytest.raises(OSError, match="changed by another writer"):
        first.close()
    second.write(b"second")
    second.close()
    assert [b"second"] == list(tfw.read_records(path))


def two_writers(path, compression=""):
    """Two writers of one file: the first has written before the second was opened."""
    first = tfw.TFRecordWriter(path, compression)
    first.write(b"of the first")
    first.flush()
    second = tfw.TFRecordWriter(path, compression)
    second.write(b"of 2nd other")
    second.flush()
    return first, second


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("more", [None, b"more", bytes(1 << 20)], ids=["none", "more", "long"])
def test_a_writer_notices_another_that_wrote_as_many_bytes(path, compression, more):
    first, second = two_writers(path, compression)

    def go_on():
        with first:
            first.write_many([more][: more is not None])

    with pytest.raises(OSError, match="changed by another writer: expected what") as caught:
        go_on()
    assert (errno.ESTALE, str(path)) == (caught.value.errno, caught.value.filename)
    second.write(b"more of the second")
    second.close()
    assert [b"of 2nd other", b"more of the second"] == list(tfw.read_records(path))


def test_a_writer_notices_at_its_end_that_another_wrote_after_it(path):
    writer = tfw.TFRecordWriter(path)
    writer.write(b"of the first")
    writer.flush()
    with path.open("ab") as file:  # a program that takes no locks
        file.write(b"more")
    with pytest.raises(OSError, match="expected 28 bytes, found 32"):
        writer.close()
    writer.close()


def test_a_dropped_writer_says_that_another_wrote_into_its_file(path):
    writers = [*two_writers(path)]
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        del writers[0]
    assert [RuntimeWarning, ResourceWarning] == [each.category for each in found]
    assert "changed by another writer" in str(found[0].message)
    writers[0].close()
    assert [b"of 2nd other"] == list(tfw.read_records(path))


def test_a_file_that_may_not_be_read_is_written(path, monkeypatch):
    """There only the size of the file is compared."""
    path.touch()
    monkeypatch.setattr(os, "access", lambda path, mode: mode & os.R_OK == 0)
    first, second = two_writers(path)
    assert not first._sink._readable
    second.write(b"more")
    second.close()
    with pytest.raises(OSError, match="expected 28 bytes, found 48"):
        first.close()
    assert [b"of 2nd other", b"more"] == list(tfw.read_records(path))


# ---- What is checked --------------------------------------------------------------------------


def test_many_damaged_records_at_the_end_are_cut_off_in_one_walk(path):
    """One walk for each would take minutes."""
    good, bad = [b"good"] * 3, flip(frame(b"bad"), 8 * 12)
    path.write_bytes(file_of(good) + bad * 500)
    with tfw.TFRecordWriter(path, append=True, repair_tail=True) as writer:
        writer.write(b"more")
    assert [*good, b"more"] == list(tfw.read_records(path))


def test_a_long_tail_of_zeros_is_seen_as_one(path):
    with path.open("wb") as file:
        file.write(file_of(OLD))
        file.truncate(1 << 26)
    with pytest.raises(tfw.DataLossError, match="repair_tail=True"):
        tfw.TFRecordWriter(path, append=True)


@pytest.mark.parametrize("what", ["fifo", "device"])
def test_what_is_not_a_regular_file_cannot_be_continued(tmp_path, what):
    path = tmp_path / "fifo" if what == "fifo" else "/dev/null"
    if what == "fifo":
        os.mkfifo(path)
    with pytest.raises(ValueError, match="append needs a regular file"):
        tfw.TFRecordWriter(path, append=True)


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_the_checksum_of_a_continued_file_is_that_of_all_its_bytes(path, compression):
    records = []
    for i in range(3):
        with tfw.TFRecordWriter(path, compression, append=True) as writer:
            writer.write_many([b"%d" % i, bytes(100_000)])
        records += [b"%d" % i, bytes(100_000)]
        assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c
        assert records == list(tfw.read_records(path))
    assert compression or file_of(records) == path.read_bytes()
