"""Blocks: the records of some batches, found by one thread and parsed by another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.native import ffi, lib, new_error
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.paths import Path
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import NO_STOP, Stretch, number_of, runs_of

# Bytes of records that are kept. Of what follows only the headers are looked at: it is read again
# by the thread that parses it, piece by piece, so that no block outgrows the caches.
_KEPT = 1 << 22
_PASSING = 1 << 20  # bytes of the memory through which that passes; a record must fit
# Mean bytes of a record from which on nothing is kept: reading the headers alone costs less.
_LONG = 1 << 14
_FRAME = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE
_MOST_HEADERS = 1 << 14  # headers found in one call, when payloads are not kept
_WALK = 1 << 17  # bytes read in one call to find headers


class Run(NamedTuple):
    """Consecutive records of a file, kept in the block or left in the file.

    Attributes:
        path: The file.
        start: Where the first one begins.
        num_records: How many there are.
        held: Their bytes in the block: where they begin and end.
        source: The file, if they are not kept; else None.
        stop: Where the last one ends in the file.
        verified: Whether their payloads were verified.
    """

    path: Path | None
    start: RecordPosition
    num_records: int
    held: tuple[int, int]
    source: FileSource | None = None
    stop: int = NO_STOP
    verified: bool = False


class Block:
    """Consecutive records of one or more files. Only one thread may use it at a time.

    Attributes:
        num_records: How many there are.
        num_bytes: Their size, with frames.
        passing: For records that are not kept.
        takes_unverified: Whether payloads may be verified when the records are parsed.
    """

    def __init__(self) -> None:
        self._data = np.empty(0, np.uint8)
        self._kept = Stretch(self._data)
        self.passing: Stretch = Stretch(np.empty(_PASSING, np.uint8))
        self._count, self._error = ffi.new("size_t *"), new_error()
        self._offset = ffi.new("uint64_t *")
        self._mean = 0  # bytes of a record
        self.takes_unverified = False
        self.clear()

    @property
    def capacity(self) -> int:
        """Bytes of its memory."""
        return len(self._data)

    def clear(self) -> None:
        """Drops the records and keeps the memory."""
        for run in getattr(self, "_runs", ()):
            if run.source is not None:
                run.source.close()
        self._runs: list[Run] = []
        self._end = 0  # of the bytes kept
        self._is_full = False  # True: the block has no room for what follows
        self.num_records: int = 0
        self.num_bytes: int = 0

    def add(self, batch: Any, path: Path | None) -> None:
        """Copies a ``tfw_batch``, which the reader has verified as it was asked to."""
        for first, end in runs_of(batch):
            last = batch.spans[end - 1]
            begin = batch.spans[first].offset - lib.TFW_HEADER_SIZE
            size = last.offset + last.length + lib.TFW_FOOTER_SIZE - begin
            to = self._reserve(size)
            source = ffi.buffer(batch.data + begin, size)
            self._data[to : to + size] = np.frombuffer(source, np.uint8)
            self._end += size
            start = RecordPosition(number_of(batch, first), batch.offset + begin)
            self._note(Run(path, start, end - first, (to, to + size), verified=True), size)

    def _reserve(self, size: int) -> int:
        """Makes room after the records kept; returns where it begins."""
        at, capacity = self._end, len(self._data)
        if at + size > capacity:
            larger = np.empty(max(at + size, capacity + capacity // 2, _KEPT), np.uint8)
            larger[:at] = self._data[:at]
            self._data = larger
            self._kept.use(larger)
        return at

    def read_ahead(
        self, source: FileSource, start: RecordPosition, max_records: int, max_record_size: int
    ) -> RecordPosition:
        """Finds records of a regular file by their headers, which are verified.

        Args:
            source: The file.
            start: Where to begin.
            max_records: At most this many.
            max_record_size: As for tfw_scan.

        Returns:
            Where to go on. If that is ``start``, the record there is incomplete, damaged, or too
            long to be read here.
        """
        end = start
        self._is_full = self._mean >= _LONG
        if not self._is_full:
            end = self._keep(source, start, max_records, max_record_size)
        missing = max_records - (end.record_index - start.record_index)
        if missing and self._is_full:
            begin, end = end, self._walk(source.fd, end, missing, max_record_size)
            if end != begin:
                count = end.record_index - begin.record_index
                run = Run(source.path, begin, count, (0, 0), source.duplicate(), end.offset)
                self._note(run, end.offset - begin.offset)
        return end

    def _keep(
        self, source: FileSource, start: RecordPosition, max_records: int, max_record_size: int
    ) -> RecordPosition:
        """As read_ahead, for records that are kept."""
        begin, native = self._reserve(_KEPT - self._end), self._kept.native
        held = begin, begin
        self._kept.begin(source.fd, source.path, start, 0, max_record_size, held)
        native.capacity = max(begin, _KEPT)
        status = lib.tfw_read_ahead(native, max_records, self._count, self._error)
        native.capacity = len(self._data)
        self._is_full = status == lib.TFW_NEED_SPACE
        size, count = native.end - begin, self._count[0]
        if count:
            self._end += size
            self._note(Run(source.path, start, count, (begin, begin + size)), size)
        return RecordPosition(start.record_index + count, start.offset + size)

    def _walk(
        self, fd: int, start: RecordPosition, max_records: int, max_record_size: int
    ) -> RecordPosition:
        """As read_ahead, for records that are not kept."""
        capacity = min(max_records, _MOST_HEADERS)
        offsets, scratch = np.empty(capacity + 1, np.int64), np.empty(_WALK, np.uint8)
        self._offset[0] = start.offset
        size = os.fstat(fd).st_size
        if start.offset >= size:
            return start
        lib.tfw_walk(
            fd,
            size,
            self._offset,
            ffi.from_buffer("uint8_t[]", scratch),
            len(scratch),
            ffi.from_buffer("int64_t[]", offsets),
            capacity,
            self._count,
            self._error,
        )
        count = self._count[0]
        offsets[count] = self._offset[0]
        sizes = np.diff(offsets[: count + 1])
        longest = min((max_record_size or NO_STOP) + _FRAME, _PASSING)
        too_long = np.flatnonzero(sizes > longest)
        count = int(too_long[0]) if len(too_long) else count
        return RecordPosition(start.record_index + count, int(offsets[count]))

    def _note(self, run: Run, size: int) -> None:
        self._runs.append(run)
        self.num_bytes += size
        self.num_records += run.num_records
        self._mean = self.num_bytes // self.num_records

    def stretches(self, flags: int) -> Iterator[tuple[Stretch, int]]:
        """The records, for C to read; each stretch is valid until the next, and how many it has.

        Args:
            flags: For tfw_scan, of records that were not verified.
        """
        for run in self._runs:
            stretch, fd = self._kept, -1
            if run.source is not None:
                stretch, fd = self.passing, run.source.fd
            crc = lib.TFW_NO_DATA_CRC if run.verified else flags
            stretch.begin(fd, run.path, run.start, crc, 0, run.held, run.stop)
            yield stretch, run.num_records
