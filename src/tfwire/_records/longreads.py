"""Long records of plain files, read straight into their bytes objects.

The native reader reads into its window, from which a record is copied once more. For records that
take longer to copy than a system call does, that is the larger part of the work. They are read one
at a time: the memory of one that was dropped serves the next while it is still in the cache, where
a list of them makes malloc give memory back to the system and ask for it again.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from tfwire._core import lib
from tfwire._records.reads import read_at
from tfwire._records.regions import RecordPosition

__all__ = ["LONG", "LongReader", "LongRecord"]

# From this mean length on it pays. While it is done, single records may be shorter: going back to
# the native reader costs the reading of a window.
LONG = 1 << 15
_SHORTER = 8

_HEADER, _FOOTER = lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE
_LENGTH = 8  # of the header are the length itself


class LongRecord(NamedTuple):
    """A record of a file.

    Attributes:
        payload: Its bytes.
        footer: The masked CRC-32C that the file holds of them.
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
    """Reads one long record after the other; stops before one that is short, damaged, or cut.

    Args:
        fd: A regular file.
        position: Number of a record, and where it begins.
        longest: Leave longer records alone.
        verify: Check the payloads too.

    Attributes:
        position: Where it stands.
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
        # No memory is asked for that the file could not fill.
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
    """Whether that many bytes of data have the masked checksum that is stored."""
    masked: int = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, length))
    return masked == int.from_bytes(stored, "little")
