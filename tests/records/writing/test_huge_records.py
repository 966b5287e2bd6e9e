"""Records and files beyond 2^31 and 2^32 bytes, written and continued in little memory."""

from __future__ import annotations

import gzip
import io
import os
import struct
import sys
import zlib

import pytest

import tfwire as tfw
from helpers.records.sparse import append_sparse, crc_of_zeros
from helpers.reference import file_of, frame, header
from tfwire._base import system
from tfwire._records.files import byte_sinks
from tfwire.checksum import combine_crc32c, crc32c, mask_crc

pytestmark = pytest.mark.unsanitized("records of gigabytes")

BELOW = [b"first", b"", b"x" * 1000]
MIB = 1 << 20
# By day one that is longer than all that may be in memory; the code is the same.
SIZES = [
    128 * MIB + 5,
    *(pytest.param(size, marks=pytest.mark.slow) for size in (2**31 + 5, 2**32 + 5)),
]


def peak():
    """The most memory that the process had, in bytes."""
    resource = pytest.importorskip("resource")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture(autouse=True)
def removed(path):
    yield
    path.unlink(missing_ok=True)  # some are large


def test_the_checksum_of_zeros():
    for size in (0, 1, 5, 1000, 70_000):
        assert crc32c(bytes(size)) == crc_of_zeros(size)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs sparse files")
@pytest.mark.parametrize("size", SIZES)
def test_a_file_whose_last_record_is_huge_is_continued(path, size):
    path.write_bytes(file_of(BELOW))
    append_sparse(path, size)
    before, end = peak(), path.stat().st_size
    with tfw.TFRecordWriter(path, append=True) as writer:
        writer.write(b"after")
    assert peak() < before + 64 * MIB
    with path.open("rb") as file:
        file.seek(end)
        assert frame(b"after") == file.read()
    zeros = combine_crc32c(
        combine_crc32c(crc32c(file_of(BELOW) + header(size)), crc_of_zeros(size), size),
        crc32c(tail := struct.pack("<I", mask_crc(crc_of_zeros(size))) + frame(b"after")),
        len(tail),
    )
    assert zeros == writer.file_crc32c
    index = tfw.RecordIndex.build(path)
    assert [*map(len, BELOW), size, 5] == index.lengths.tolist()


@pytest.mark.parametrize("size", SIZES)
def test_a_huge_record_that_is_torn_is_cut_off(path, size):
    path.write_bytes(file_of(BELOW))
    append_sparse(path, size)
    before = peak()
    os.truncate(path, path.stat().st_size - 3)
    with pytest.raises(tfw.DataLossError, match="repair_tail=True") as caught:
        tfw.TFRecordWriter(path, append=True)
    assert (3, "truncated") == (caught.value.record_index, caught.value.reason)
    cut = path.stat().st_size
    with path.open("r+b") as file:  # a payload that was not written as it should be
        file.seek(cut - 10)
        file.write(b"x")
        file.seek(cut - 1)
        file.write(b"abcd")
    with pytest.raises(tfw.DataLossError, match="repair_tail=True") as caught:
        tfw.TFRecordWriter(path, append=True)
    assert (3, "data crc") == (caught.value.record_index, caught.value.reason)
    assert peak() < before + 64 * MIB


class Counting(io.RawIOBase):
    """Counts what it is given, and keeps the first and the last bytes."""

    def __init__(self):
        self.crc, self.size, self.longest = 0, 0, 0
        self.first = self.last = b""

    def write(self, data):
        self.first = self.first or bytes(data[:100])
        self.last = (self.last + bytes(data[-100:]))[-100:]
        self.crc, self.size = crc32c(data, self.crc), self.size + len(data)
        self.longest = max(self.longest, len(data))
        return len(data)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2**31 + 5, 2**32 + 5])
@pytest.mark.parametrize("many", [False, True])
def test_huge_records_reach_a_file_object_in_pieces(size, many):
    """Zeros that were never touched take no memory, until somebody copies them."""
    target, zeros = Counting(), bytes(size)
    before = peak()
    with tfw.TFRecordWriter(target) as writer:
        if many:
            writer.write_many([b"small"] * 5000 + [zeros] + [b"small"] * 5000)
        else:
            writer.write(b"small")
            writer.write(zeros)
            writer.write(b"small")
    count = 5000 if many else 1
    assert size + 16 + count * 2 * 21 == target.size
    assert writer.file_crc32c == target.crc
    assert (2 * count + 1, size + 10 * count) == (
        writer.receipt.num_records,
        writer.receipt.payload_bytes,
    )
    assert target.longest <= 1 << 24
    assert frame(b"small") == target.last[-21:]
    assert peak() < before + 200 * MIB


@pytest.mark.slow
def test_huge_records_are_written_to_a_file(path):
    size = 2**32 + 5
    zeros = bytes(size)
    before = peak()
    with tfw.TFRecordWriter(path) as writer:
        writer.write(b"small")
        writer.write(zeros)
        writer.write_many([b"a", zeros[: 1 << 20], b"b"])
    assert peak() < before + 200 * MIB
    assert [5, size, 1, 1 << 20, 1] == tfw.RecordIndex.build(path).lengths.tolist()
    with tfw.TFRecordWriter(path, append=True) as writer:
        writer.write(b"more")
    assert [5, size, 1, 1 << 20, 1, 4] == tfw.RecordIndex.build(path).lengths.tolist()
    with tfw.TFRecordFile(path) as records:
        assert [b"a", b"more"] == records[[2, 5]]
    with path.open("rb") as file:
        file.seek(21 + 12 + size)
        assert struct.pack("<I", mask_crc(crc_of_zeros(size))) == file.read(4)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("GZIP", 2**32 + 5), ("ZLIB", 2**31 + 5)])
def test_huge_records_are_compressed(path, kind, size):
    with tfw.TFRecordWriter(path, kind) as writer:
        writer.write(b"small")
        writer.write(bytes(size))
        writer.write(b"end")
    assert writer.file_crc32c == crc32c(path.read_bytes())
    inflater, crc, total = zlib.decompressobj(47), 0, 0
    with path.open("rb") as file:
        while block := file.read(1 << 16):
            data = inflater.decompress(block)
            crc, total = crc32c(data, crc), total + len(data)
    assert inflater.eof
    expected = crc32c(frame(b"small") + header(size))
    expected = combine_crc32c(expected, crc_of_zeros(size), size)
    tail = struct.pack("<I", mask_crc(crc_of_zeros(size))) + frame(b"end")
    assert (crc32c(tail, expected), 21 + size + 16 + 19) == (crc, total)


# ---- The same code with small numbers ---------------------------------------------------------


@pytest.mark.parametrize("at_most", [1, 7, 1000])
def test_writes_that_are_too_long_for_writev_are_short_and_go_on(path, monkeypatch, at_most):
    monkeypatch.setattr(byte_sinks, "_LARGEST_WRITEV", 500)
    monkeypatch.setattr(system, "writev", None)
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:at_most])))
    records = [b"a", b"b" * 20_000, b"", b"c" * 17_000]
    tfw.write_records(path, records)
    assert file_of(records) == path.read_bytes()


def test_a_file_object_gets_long_records_in_pieces(monkeypatch):
    monkeypatch.setattr(byte_sinks, "_PIECE", 1000)
    for most in (999, 1000, 10**9):

        class Short(Counting):
            def write(self, data, most=most):
                return super().write(data[:most])

        target, records = Short(), [b"x" * 100_000, b"", b"y" * 20_000]
        tfw.write_records(target, records)
        assert (crc32c(file_of(records)), 1000 >= target.longest) == (target.crc, True)


def test_the_last_record_is_checked_by_reads_that_are_short(path, monkeypatch):
    path.write_bytes(file_of([b"a", b"x" * 100_000]))
    read = system.pread_into
    monkeypatch.setattr(
        system, "pread_into", lambda fd, view, at: read(fd, memoryview(view)[:4096], at)
    )
    with tfw.TFRecordWriter(path, append=True) as writer:
        writer.write(b"b")
    assert [b"a", b"x" * 100_000, b"b"] == list(tfw.read_records(path))


def test_a_gzip_file_is_continued_after_a_long_record(path):
    path.write_bytes(gzip.compress(file_of([b"z" * MIB])))
    with tfw.TFRecordWriter(path, "GZIP", append=True) as writer:
        writer.write(b"after")
    assert [MIB, 5] == [len(record) for record in tfw.read_records(path)]
