"""Records in memory of their own: one thread finds them by their headers, another verifies them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import data_loss, ffi, lib, new_error
from tfwire._records.batch import number_of, runs_of
from tfwire._records.regions import RecordPosition
from tfwire._records.sources import Path

__all__ = ["Block", "Window"]

# What is read, and what is verified and parsed, in one go. Every call gives the GIL away and queues
# for it again: a few large lots are faster than small ones that stay in the cache.
_MOST_READ = 1 << 22
_BYTES = 1 << 21
_SPANS = 1 << 15

# The bytes of a record before any is known.
_FIRST_MEAN = 1 << 10

# Kernels like to read so far behind a record.
_PADDING = 256


class Window(NamedTuple):
    """Records in a row of one file.

    Attributes:
        data, data_len: The memory they lie in.
        spans: ``tfw_span *``.
        num_records: How many spans there are.
        path: The file.
        first_record: Number of the first record in the file.
        numbers: ``uint64_t *`` of them all, where something was left out between them.
    """

    data: Any
    data_len: int
    spans: Any
    num_records: int
    path: Path | None
    first_record: int
    numbers: Any = None

    def number_of(self, index: int) -> int:
        """The number in the file of one of the records."""
        return int(self.numbers[index] if self.numbers else self.first_record + index)


class Run(NamedTuple):
    """Records that follow each other in one file and in a block.

    Attributes:
        begin, end: Where in the block.
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
    """Framed records of one or more files. For one thread at a time.

    Attributes:
        num_records: How many there are.
        num_bytes: What they take.
    """

    def __init__(self) -> None:
        self._data = np.empty(0, np.uint8)
        self._spans = ffi.new("tfw_span[]", _SPANS)
        self._count, self._consumed = ffi.new("size_t *"), ffi.new("size_t *")
        self._error = new_error()
        self._mean = _FIRST_MEAN  # bytes of a record, as far as is known
        self.clear()

    @property
    def capacity(self) -> int:
        """Bytes of memory that it holds."""
        return len(self._data)

    def clear(self) -> None:
        """Forgets the records and keeps the memory."""
        self._runs: list[Run] = []
        self.num_records = self.num_bytes = 0

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
            max_records: At most so many.
            max_record_size: As for tfw_scan.

        Returns:
            Where to go on: at a record that is not there as a whole, or not in order, or too long
            to be read here; or just so.
        """
        wanted = min(max_records * (self._mean + self._mean // 64 + 1), _MOST_READ)
        begin = self._reserve(wanted)
        try:
            got = os.preadv(fd, [self._data.data[begin : begin + wanted]], start.offset)
        except OSError:  # the reader will tell
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
        """Notes records that were put behind the others."""
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
        """Makes room behind the records; returns where that is."""
        at, capacity = self.num_bytes, len(self._data)
        if at + size + _PADDING > capacity:
            larger = np.empty(max(at + size + _PADDING, capacity + capacity // 2), np.uint8)
            larger[:at] = self._data[:at]
            self._data = larger
        return at

    def scan(self, flags: int) -> Iterator[Window]:
        """The records, some at a time; each lot is valid until the next.

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
