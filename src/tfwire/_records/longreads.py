"""Long records of plain files, read straight into their bytes objects.

The native reader reads into its window, from which a record is copied once more. For records that
take longer to copy than a system call does, that is the larger part of the work.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tfwire._core import lib

__all__ = ["LONG", "LongRecords", "read_long_records"]

# From this length on it pays, and so much is read at a time.
LONG = 1 << 16
_AT_ONCE = 1 << 18


class LongRecords(NamedTuple):
    """Some records of a file.

    Attributes:
        first_record: Number of the first one.
        records: Their payloads.
        offsets: Where they begin in the file.
        crcs: The CRCs of their payloads.
        end: Where the last one ends.
    """

    first_record: int
    records: list[bytes]
    offsets: list[int]
    crcs: list[int]
    end: int


def read_long_records(
    fd: int, first_record: int, offset: int, longest: int, verify: bool
) -> LongRecords:
    """Reads long records from a place on; stops before one that is short, damaged, or cut.

    Args:
        fd: A regular file.
        first_record, offset: Number of a record, and where it begins.
        longest: Leave longer records alone.
        verify: Check the payloads too.
    """
    records: list[bytes] = []
    offsets: list[int] = []
    crcs: list[int] = []
    size = os.fstat(fd).st_size
    stop = offset + _AT_ONCE
    header = os.pread(fd, lib.TFW_HEADER_SIZE, offset)
    while offset < stop and len(header) == lib.TFW_HEADER_SIZE and _agrees(header[:8], header[8:]):
        length = int.from_bytes(header[:8], "little")
        begin = offset + lib.TFW_HEADER_SIZE
        # No memory is asked for that the file could not fill.
        if not LONG <= length <= min(longest, size - begin - lib.TFW_FOOTER_SIZE):
            break
        record = os.pread(fd, length, begin)
        behind = os.pread(fd, lib.TFW_FOOTER_SIZE + lib.TFW_HEADER_SIZE, begin + length)
        footer, header = behind[: lib.TFW_FOOTER_SIZE], behind[lib.TFW_FOOTER_SIZE :]
        if len(record) != length or len(footer) != lib.TFW_FOOTER_SIZE:
            break
        if verify and not _agrees(record, footer):
            break
        records.append(record)
        offsets.append(offset)
        crcs.append(lib.tfw_crc32c_unmask(int.from_bytes(footer, "little")))
        offset = begin + length + lib.TFW_FOOTER_SIZE
    return LongRecords(first_record, records, offsets, crcs, offset)


def _agrees(data: bytes, stored: bytes) -> bool:
    """Whether data have the masked checksum that is stored."""
    masked: int = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, len(data)))
    return masked == int.from_bytes(stored, "little")
