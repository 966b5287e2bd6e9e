"""Stretches: records that lie without gaps in a file, which C parses into columns in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._base.native import ffi, lib
from tfwire._records.damage import RecordPosition
from tfwire._records.sources import Path

__all__ = ["NO_STOP", "Stretch"]

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
        self.native: Any = ffi.new("tfw_stretch *")
        self.native.size = ffi.sizeof("tfw_stretch")
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
