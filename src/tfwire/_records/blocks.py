"""Batches of records in memory: those of the native reader, blocks that are read without it, and
long records that are read straight into their bytes objects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.native import data_loss, ffi, lib, new_error
from tfwire._records.damage import RecordPosition
from tfwire._records.sources import Path, read_at

__all__ = [
    "LONG",
    "Block",
    "LongReader",
    "LongRecord",
    "Window",
    "drop_first",
    "numbers_of",
    "position_after",
    "position_of",
    "split",
    "table_of",
]


def table_of(batch: Any) -> np.ndarray[Any, Any]:
    """Offset and length of every record: int64 of shape (n, 2), a view of the memory of C."""
    size = batch.count * ffi.sizeof("tfw_span")
    return np.frombuffer(ffi.buffer(batch.spans, size), np.int64).reshape(-1, 2)


def number_of(batch: Any, index: int) -> int:
    """The number of a record in its file."""
    return int(batch.numbers[index] if batch.numbers else batch.first_record + index)


def numbers_of(batch: Any) -> Sequence[int]:
    """The numbers of all records."""
    if not batch.numbers:
        return range(batch.first_record, batch.first_record + batch.count)
    return ffi.unpack(batch.numbers, batch.count)  # type: ignore[no-any-return]


def position_of(batch: Any, index: int) -> RecordPosition:
    """Where a record begins."""
    offset = batch.offset + batch.spans[index].offset - lib.TFW_HEADER_SIZE
    return RecordPosition(number_of(batch, index), offset)


def position_after(batch: Any) -> RecordPosition:
    """Where the last record ends."""
    number, begin = position_of(batch, batch.count - 1)
    length = batch.spans[batch.count - 1].length
    return RecordPosition(number + 1, begin + lib.TFW_HEADER_SIZE + length + lib.TFW_FOOTER_SIZE)


def runs_of(batch: Any) -> Iterator[tuple[int, int]]:
    """The runs of records that follow each other without a gap: first and end of each."""
    if not batch.numbers:
        return iter([(0, batch.count)])
    breaks = np.flatnonzero(np.diff(numbers_of(batch)) != 1) + 1
    ends = [*breaks.tolist(), batch.count]
    return iter(zip([0, *ends[:-1]], ends, strict=True))


def drop_first(batch: Any, count: int) -> None:
    """Drops this many records from the beginning."""
    batch.payload_bytes -= sum(batch.spans[i].length for i in range(count))
    batch.spans += count
    batch.count -= count
    batch.first_record += count
    if batch.numbers:
        batch.numbers += count
        batch.first_record = batch.numbers[0] if batch.count else batch.first_record


def split(batch: Any, count: int) -> Any:
    """Moves at most this many records from the beginning to a batch of their own."""
    taken = ffi.new("tfw_batch *", batch[0])
    taken.count = min(count, batch.count)
    drop_first(batch, taken.count)
    taken.payload_bytes -= batch.payload_bytes
    return taken


# ---- Blocks: records in memory of their own, which one thread reads and another one verifies ----

# The bytes read by one call, and the bytes and records verified and parsed by one call. Every call
# releases the GIL and waits for it again: a few large calls beat small ones that stay in the cache.
_MOST_READ = 1 << 22
_BYTES = 1 << 21
_SPANS = 1 << 15
_FIRST_MEAN = 1 << 10  # assumed bytes of a record, before any is known
_PADDING = 256  # bytes after a record that kernels may read


class Window(NamedTuple):
    """Consecutive records of one file.

    Attributes:
        data, data_len: The memory that holds them.
        spans: ``tfw_span *``, ``num_records`` of them.
        path: The file.
        first_record: Number of the first record in the file.
        numbers: ``uint64_t *``, the number of each if some between them were left out; else None.
    """

    data: Any
    data_len: int
    spans: Any
    num_records: int
    path: Path | None
    first_record: int
    numbers: Any = None

    def number_of(self, index: int) -> int:
        """The number of a record in the file."""
        return int(self.numbers[index] if self.numbers else self.first_record + index)


class Run(NamedTuple):
    """Records that follow each other both in a file and in a block.

    Attributes:
        begin, end: Their bytes in the block.
        path: The file.
        first_record, offset: Number of the first one, and where it begins in the file.
        num_records: How many there are.
    """

    begin: int
    end: int
    path: Path | None
    first_record: int
    offset: int
    num_records: int


class Block:
    """Framed records of one or more files. Only one thread may use it at a time.

    Attributes:
        num_records: How many there are.
        num_bytes: Their size, with frames.
    """

    def __init__(self) -> None:
        self._data = np.empty(0, np.uint8)
        self._spans = ffi.new("tfw_span[]", _SPANS)
        self._count, self._consumed = ffi.new("size_t *"), ffi.new("size_t *")
        self._error = new_error()
        self._mean = _FIRST_MEAN  # bytes of a record
        self.clear()

    @property
    def capacity(self) -> int:
        """Bytes of its memory."""
        return len(self._data)

    def clear(self) -> None:
        """Drops the records and keeps the memory."""
        self._runs: list[Run] = []
        self.num_records: int = 0
        self.num_bytes: int = 0

    def add(self, batch: Any, path: Path | None) -> None:
        """Copies a ``tfw_batch``."""
        for first, end in runs_of(batch):
            last = batch.spans[end - 1]
            begin = batch.spans[first].offset - lib.TFW_HEADER_SIZE
            size = last.offset + last.length + lib.TFW_FOOTER_SIZE - begin
            to = self._reserve(size)
            source = ffi.buffer(batch.data + begin, size)
            self._data[to : to + size] = np.frombuffer(source, np.uint8)
            self._note(path, number_of(batch, first), batch.offset + begin, size, end - first)

    def read(
        self,
        fd: int,
        path: Path | None,
        start: RecordPosition,
        max_records: int,
        max_record_size: int,
    ) -> RecordPosition:
        """Reads whole records straight from a regular file.

        Args:
            fd: The file.
            path: Its name.
            start: Where to begin.
            max_records: At most this many.
            max_record_size: As for tfw_scan.

        Returns:
            Where to go on. If that is ``start``, the record there is incomplete, damaged, or too
            long to be read here.
        """
        wanted = min(max_records * (self._mean + self._mean // 64 + 1), _MOST_READ)
        begin = self._reserve(wanted)
        try:
            got = os.preadv(fd, [self._data.data[begin : begin + wanted]], start.offset)
        except OSError:  # the native reader will report it
            got = 0
        size = num_records = 0
        while size < got and num_records < max_records:
            room = min(_SPANS, max_records - num_records)
            status = self._scan(
                begin + size, got - size, max_record_size, lib.TFW_NO_DATA_CRC, room
            )
            size += self._consumed[0]
            num_records += self._count[0]
            if status != lib.TFW_OK:
                break
        if num_records:
            self._note(path, *start, size, num_records)
        return RecordPosition(start.record_index + num_records, start.offset + size)

    def _note(
        self, path: Path | None, first_record: int, offset: int, size: int, num_records: int
    ) -> None:
        """Notes records that were copied or read to the end."""
        end = self.num_bytes + size
        self._runs.append(Run(self.num_bytes, end, path, first_record, offset, num_records))
        self.num_bytes = end
        self.num_records += num_records
        self._mean = self.num_bytes // self.num_records

    def _scan(
        self, begin: int, size: int, max_record_size: int, flags: int, max_records: int
    ) -> int:
        status: int = lib.tfw_scan(
            ffi.from_buffer("uint8_t[]", self._data) + begin,
            size,
            max_record_size,
            flags,
            self._spans,
            max_records,
            self._count,
            self._consumed,
            self._error,
        )
        return status

    def _reserve(self, size: int) -> int:
        """Makes room after the records; returns where it begins."""
        at, capacity = self.num_bytes, len(self._data)
        if at + size + _PADDING > capacity:
            larger = np.empty(max(at + size + _PADDING, capacity + capacity // 2), np.uint8)
            larger[:at] = self._data[:at]
            self._data = larger
        return at

    def scan(self, flags: int) -> Iterator[Window]:
        """The records in windows; each is valid until the next.

        Args:
            flags: For tfw_scan.

        Raises:
            DataLossError: The next record is damaged.
        """
        memory = ffi.from_buffer("uint8_t[]", self._data)
        for run in self._runs:
            at, number = run.begin, run.first_record
            size = _BYTES
            while at < run.end:
                status = self._scan(at, min(size, run.end - at), 0, flags, _SPANS)
                count = self._count[0]
                if count:
                    left = len(memory) - at
                    yield Window(memory + at, left, self._spans, count, run.path, number)
                if status < 0:
                    self._error.record += number
                    self._error.offset += run.offset + at - run.begin
                    raise data_loss(status, self._error, run.path)
                size = _BYTES if count else self._error.expected  # a long record
                at, number = at + self._consumed[0], number + count


# ---- Long records of plain files, read straight into their bytes objects ----
#
# The native reader reads into its window, and each record is copied from there. For records whose
# copy takes longer than a system call, that copy is most of the work. They are read one at a time:
# the memory of a dropped record serves the next while it is still in the cache, while a list of
# them makes malloc return memory to the system and ask for it again.

# The mean length from which this is faster. Once it is done, single records may be shorter by the
# factor _SHORTER: returning to the native reader costs reading a window.
LONG = 1 << 15
_SHORTER = 8
_HEADER, _FOOTER = lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE
_LENGTH = 8  # bytes of the length in a header


class LongRecord(NamedTuple):
    """A record of a file.

    Attributes:
        payload: Its bytes.
        footer: Their masked CRC-32C, as stored in the file.
        position: Its number, and where it begins.
    """

    payload: bytes
    footer: bytes
    position: RecordPosition

    @property
    def crc(self) -> int:
        """The CRC-32C of the payload."""
        return int(lib.tfw_crc32c_unmask(int.from_bytes(self.footer, "little")))


class LongReader:
    """Reads long records one by one; stops before one that is short, damaged or incomplete.

    Args:
        fd: A regular file.
        position: Where to begin.
        longest: Stop before longer records.
        verify: Verify payloads too.

    Attributes:
        position: Where the next record begins.
    """

    def __init__(self, fd: int, position: RecordPosition, longest: int, verify: bool) -> None:
        self.position = position
        self._fd = fd
        self._verify = verify
        self._shortest, self._longest = LONG // _SHORTER, longest
        self._size = os.fstat(fd).st_size
        self._header = os.pread(fd, _HEADER, position.offset)

    def next(self) -> LongRecord | None:
        """The next record, or None."""
        header, position = self._header, self.position
        if len(header) != _HEADER or not _agrees(header, _LENGTH, header[_LENGTH:]):
            return None
        length = int.from_bytes(header[:_LENGTH], "little")
        begin = position.offset + _HEADER
        end = begin + length + _FOOTER
        # No memory is allocated that the file could not fill.
        if not self._shortest <= length <= self._longest or end > self._size:
            return None
        payload = read_at(self._fd, length, begin)
        after = os.pread(self._fd, _FOOTER + _HEADER, begin + length)
        footer = after[:_FOOTER]
        if len(payload) != length or len(footer) != _FOOTER:
            return None
        if self._verify and not _agrees(payload, length, footer):
            return None
        self._header = after[_FOOTER:]
        self.position = RecordPosition(position.record_index + 1, end)
        return LongRecord(payload, footer, position)


def _agrees(data: bytes, length: int, stored: bytes) -> bool:
    """Whether the first ``length`` bytes have the masked checksum that is stored."""
    masked: int = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, length))
    return masked == int.from_bytes(stored, "little")
