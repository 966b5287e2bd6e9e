"""The encoder of columns for several files, each encoded by a thread of the caller's."""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterator
from typing import Any

import numpy as np

from tfwire._base.arrays import joined_ranges
from tfwire._base.native import call, create, ffi, lib, new_error, new_struct
from tfwire._examples.native_encoder import (
    FRAME_ROOM,
    EncodedBlock,
    NativeInputs,
    raise_encoding_error,
)
from tfwire._examples.parallel_encoder import block_of_chunk, chunk_info

# Bytes of a part, as far as _DEALT_BYTES allow for all files: opening a file to write takes as long
# as encoding some KiB.
_PART_BYTES, _SMALL_PART_BYTES, _LEAST_PART_BYTES = 1 << 20, 1 << 18, 1 << 14
_DEALT_BYTES = 1 << 26
# Records of each file that show how large they are.
_SAMPLE_PER_FILE = 16
# So few bytes are encoded by the caller alone.
_FEW_BYTES = 1 << 18

ForEach = Callable[[int, Callable[[int], None]], None]
"""Calls a function with all numbers below a count, perhaps side by side. When it returns or raises,
no call is running."""


class DealingEncoder:
    """Encodes records as Examples for several files, which get one each in turn. The records of a
    file, its part, are encoded and framed by one thread.

    Args:
        num_files: How many files.
        num_threads: How many of them are encoded at a time.
        for_each: Encodes the parts.
    """

    def __init__(self, num_files: int, num_threads: int, for_each: ForEach) -> None:
        options = new_struct("tfw_encoder_options")
        options.num_threads = 1  # it makes chunks and uses their memory again
        created = create(lib.tfw_encoder_create, "tfw_encoder", options)
        self._native: Any = ffi.gc(created, lib.tfw_encoder_free)
        self._num_files, self._for_each = num_files, for_each
        share = max(_PART_BYTES * num_threads // num_files, _SMALL_PART_BYTES)
        share = min(share, _PART_BYTES, _DEALT_BYTES // num_files)
        self._part_bytes = max(share, _LEAST_PART_BYTES)
        self._mean = 0  # bytes of a record, as far as known
        self._begin()

    def _begin(self) -> None:
        self._parts = [_Part(self._native) for _ in range(self._num_files)]
        self._dealt = 0  # records of all parts
        self._is_full = False

    def deal(
        self, batches: Iterator[tuple[NativeInputs, int]]
    ) -> Generator[list[EncodedBlock | None], None, None]:
        """The parts of all files, again and again: record i is of file i % num_files each time.

        Raises:
            ValueError: Splits or offsets do not fit their values. All records before came.
        """
        try:
            for features, num_records in batches:
                first = 0
                while first < num_records:
                    first = self._encode(features, num_records, first)
                    if self._is_full:
                        yield self._take()
        except Exception:
            if self._dealt:
                yield self._take()
            raise
        if self._dealt:
            yield self._take()

    def _take(self) -> list[EncodedBlock | None]:
        parts, counts = self._parts, [self._count(number) for number in range(self._num_files)]
        self._begin()
        return [part.block(count) for part, count in zip(parts, counts, strict=True)]

    def _count(self, number: int) -> int:
        """How many of the records that were dealt are of a file."""
        return (self._dealt - number + self._num_files - 1) // self._num_files

    def _encode(self, features: NativeInputs, num_records: int, first: int) -> int:
        """Adds records from a number on; returns that of the first one which is not there."""
        num_files, begin, size = self._num_files, self._dealt, self._part_bytes * self._num_files
        room = size - self._mean * begin
        rounds = room // (self._mean * num_files) if self._mean else _SAMPLE_PER_FILE
        end = min(num_records, first + max(1, rounds) * num_files)
        self._dealt += end - first
        ends: list[tuple[int, int, Any]] = [(end, 0, None)] * num_files

        def encode(number: int) -> None:
            part = self._parts[number]
            wanted, place = self._count(number) - part.count, first + (number - begin) % num_files
            if wanted:
                records = num_records, place, num_files, wanted, 2 * self._part_bytes
                status, error = part.add(features, records)
                left = self._count(number) - part.count
                if left:
                    ends[number] = place + (wanted - left) * num_files, status, error

        is_little = self._mean * (end - first) < _FEW_BYTES
        try:
            (_by_caller if is_little else self._for_each)(num_files, encode)
        except BaseException:
            self._dealt = begin
            raise
        stop, status, error = min(ends, key=operator.itemgetter(0))
        self._dealt -= end - stop
        total = sum(part.size for part in self._parts)
        self._mean = max(1, total // max(1, sum(part.count for part in self._parts)))
        self._is_full = stop < end or total >= size // 4 * 3
        if status < 0:
            raise_encoding_error(status, error, features)
        return stop


def dealt_block(block: EncodedBlock, num_files: int) -> list[EncodedBlock | None]:
    """The parts of all files, of a block that is records of a file."""
    parts: list[EncodedBlock | None] = []
    spans = block.spans.astype(np.int64)
    begins, sizes = spans[:, 0] - FRAME_ROOM[0], spans[:, 1] + sum(FRAME_ROOM)
    for number in range(num_files):
        where, splits = joined_ranges(begins[number::num_files], sizes[number::num_files])
        memory = block.memory[where]
        lengths = block.spans[number::num_files, 1]
        chosen = np.stack([splits[:-1].astype(np.uint64) + np.uint64(FRAME_ROOM[0]), lengths], 1)
        parts.append(EncodedBlock(memory, len(memory), chosen) if len(chosen) else None)
    return parts


def _by_caller(count: int, function: Callable[[int], None]) -> None:
    for number in range(count):
        function(number)


class _Part:
    """Records of one file.

    Attributes:
        count: How many.
        size: Their bytes.
    """

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._chunk: Any = None
        self.count = self.size = 0

    def add(self, features: NativeInputs, records: tuple[int, ...]) -> tuple[int, Any]:
        """Encodes records, which are said as ``tfw_encode_more`` takes them; returns its status and
        the error."""
        error = new_error()
        if self._chunk is None:
            out = ffi.new("tfw_chunk **")
            call(lib.tfw_encoder_take, self._encoder, out)
            self._chunk = ffi.gc(out[0], lib.tfw_chunk_release)
        columns = features.native, len(features.keys)
        status = lib.tfw_encode_more(self._chunk, *columns, *records, lib.TFW_ENCODE_FRAMED, error)
        info = chunk_info(self._chunk)
        self.count, self.size = info.records, info.data_len
        return status, error

    def block(self, count: int) -> EncodedBlock | None:
        """The first records; None: no record."""
        return block_of_chunk(self._chunk, count) if count else None
