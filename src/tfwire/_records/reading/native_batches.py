"""Records in memory: batches of the native reader, long records that are read straight into bytes
objects, and stretches of a file that C reads by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base import system
from tfwire._base.native import ffi, lib, new_struct
from tfwire._records.files.byte_sources import read_at
from tfwire._records.files.paths import Path
from tfwire._records.reading.damage import RecordPosition


def span_table(batch: Any) -> np.ndarray[Any, Any]:
    """Offset and length of every record: int64 of shape (n, 2), a view of the memory of C."""
    size = batch.count * ffi.sizeof("tfw_span")
    return np.frombuffer(ffi.buffer(batch.spans, size), np.int64).reshape(-1, 2)


def number_of(batch: Any, index: int) -> int:
    """The number of a record in its file."""
    return int(batch.numbers[index] if batch.numbers else batch.first_record + index)


def record_numbers(batch: Any) -> Sequence[int]:
    """The numbers of all records."""
    if not batch.numbers:
        return range(batch.first_record, batch.first_record + batch.count)
    numbers: list[int] = ffi.unpack(batch.numbers, batch.count)
    return numbers


def record_position(batch: Any, index: int) -> RecordPosition:
    """Where a record begins."""
    offset = batch.offset + batch.spans[index].offset - lib.TFW_HEADER_SIZE
    return RecordPosition(number_of(batch, index), offset)


def position_after(batch: Any) -> RecordPosition:
    """Where the last record ends."""
    number, begin = record_position(batch, batch.count - 1)
    length = batch.spans[batch.count - 1].length
    return RecordPosition(number + 1, begin + lib.TFW_HEADER_SIZE + length + lib.TFW_FOOTER_SIZE)


def runs_of(batch: Any) -> Iterator[tuple[int, int]]:
    """The runs of records that follow each other without a gap: first and end of each."""
    if not batch.numbers:
        return iter([(0, batch.count)])
    breaks = np.flatnonzero(np.diff(record_numbers(batch)) != 1) + 1
    ends = [*breaks.tolist(), batch.count]
    return iter(zip([0, *ends[:-1]], ends, strict=True))


def drop_first(batch: Any, count: int) -> None:
    """Drops this many records from the beginning."""
    batch.payload_bytes -= int(span_table(batch)[:count, 1].sum())
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


class Window(NamedTuple):
    """Consecutive records of one file.

    Attributes:
        data, data_len: The memory that holds them.
        spans: ``tfw_span *``, ``num_records`` of them.
        path: The file.
        first_record: Number of the first record in the file.
        numbers: ``uint64_t *``, the number of each if some between them were left out; else None.
        offset: Where the memory begins in the file.
    """

    data: Any
    data_len: int
    spans: Any
    num_records: int
    path: Path | None
    first_record: int
    numbers: Any = None
    offset: int = 0

    def number_of(self, index: int) -> int:
        """The number of a record in the file."""
        return int(self.numbers[index] if self.numbers else self.first_record + index)


def window_of(batch: Any, path: Path | None) -> Window:
    """All records of a batch."""
    return Window(
        batch.data,
        batch.data_len,
        batch.spans,
        batch.count,
        path,
        batch.first_record,
        batch.numbers,
        batch.offset,
    )


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
        self._header = system.pread(fd, _HEADER, position.offset)

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
        after = system.pread(self._fd, _FOOTER + _HEADER, begin + length)
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


Array = np.ndarray[Any, Any]
# No file is that long.
NO_STOP = 2**63 - 1


class Stretch:
    """Consecutive records of one file, and the memory that they pass through.

    C reads, verifies and parses them in one call. It stops before a record that is damaged, cut or
    longer than the memory; then the native reader goes on. For one thread at a time.

    Attributes:
        native: The ``tfw_stretch *``.
        path: The file.
        record: Number in the file of the next record.
        status: What C said last; other than TFW_OK: why it did not read the next record.
        tally: The ``tfw_tally *`` to which records are added, or NULL.
    """

    def __init__(self, memory: Array) -> None:
        self.native: Any = new_struct("tfw_stretch")
        self.use(memory)
        self.path: Path | None = None
        self.record: int = 0
        self.status: int = lib.TFW_OK
        self.tally: Any = ffi.NULL

    def use(self, memory: Array) -> None:
        """Has the records pass through other memory."""
        self._memory = ffi.from_buffer("uint8_t[]", memory)
        self.native.buffer, self.native.capacity = self._memory, len(memory)

    def begin(
        self,
        fd: int,
        path: Path | None,
        start: RecordPosition,
        flags: int = 0,
        max_record_size: int = 0,
        held: tuple[int, int] = (0, 0),
        stop: int = NO_STOP,
    ) -> None:
        """Begins with another file.

        Args:
            fd: The file; -1: the memory holds all records.
            path: Its name.
            start: Where to begin.
            flags, max_record_size: As for tfw_scan.
            held: Where the memory holds what the file has from there on.
            stop: Where to end.
        """
        native = self.native
        native.fd, native.flags, native.max_record_size = fd, flags, max_record_size
        native.begin, native.end = held
        native.offset, native.stop = start.offset, stop
        self.path, self.record, self.status = path, start.record_index, lib.TFW_OK

    def go_to(self, position: RecordPosition) -> None:
        """Goes on at another record of the file."""
        if self.native.offset != position.offset:
            self.native.offset, self.native.begin, self.native.end = position.offset, 0, 0
        self.record, self.status = position.record_index, lib.TFW_OK

    @property
    def position(self) -> RecordPosition:
        """Where the next record begins."""
        return RecordPosition(self.record, self.native.offset)

    @property
    def message(self) -> Any:
        """The next record, after C has found that it does not fit."""
        begin = self.native.buffer + self.native.begin
        return ffi.buffer(begin + lib.TFW_HEADER_SIZE, self._length)

    def leave_out(self) -> None:
        """Goes past that record."""
        native, size = self.native, lib.TFW_HEADER_SIZE + self._length + lib.TFW_FOOTER_SIZE
        if self.tally:
            data = native.buffer + native.begin
            lib.tfw_tally_block(self.tally, data, size, native.flags, ffi.NULL)
        native.begin += size
        native.offset += size
        self.record += 1

    @property
    def _length(self) -> int:
        header = ffi.buffer(self.native.buffer + self.native.begin, lib.TFW_HEADER_SIZE)
        return int.from_bytes(header[:8], "little")
