"""Records in memory: batches of the native reader, and long records read into bytes objects."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base import system
from tfwire._base.native import ffi, lib
from tfwire._records.files.byte_sources import read_at
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


def drop_first(batch: Any, count: int) -> None:
    """Drops this many records from the beginning."""
    batch.payload_bytes -= int(span_table(batch)[:count, 1].sum(dtype=np.int64))
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
