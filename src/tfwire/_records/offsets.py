"""Where the records of a file begin, found by its headers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfwire._core import DAMAGE_REASONS, check, ffi, lib, new_error
from tfwire._records.damage import Reading
from tfwire._records.packing import FRAME
from tfwire._records.sources import FileSource
from tfwire._records.streams import BatchReader

__all__ = ["Walk", "offsets_in_file", "offsets_in_stream"]

Array = np.ndarray[Any, Any]

_BUFFER = 1 << 18
_AT_ONCE = 1 << 16  # records per call into C, between which a user may interrupt


class Steps(NamedTuple):
    """Some records that a walk found.

    Attributes:
        begins: Where they begin; valid until the next steps.
        end: Where the walk goes on.
        status: TFW_OK, TFW_END, or what is wrong with the record at the end; ``Walk.error`` has
            the details.
    """

    begins: Array
    end: int
    status: int


class Walk:
    """A walk over the headers of a plain file.

    Args:
        source: The file.
        size: Its bytes.
    """

    def __init__(self, source: FileSource, size: int) -> None:
        self._source = source
        self._size = size
        self._buffer, self._begins = np.empty(_BUFFER, np.uint8), np.empty(_AT_ONCE, np.int64)
        self._at, self._found = ffi.new("uint64_t *"), ffi.new("size_t *")
        self.error = new_error()

    def steps(self, begin: int) -> Steps:
        """The next records from an offset on.

        Raises:
            OSError: The file cannot be read.
        """
        self._at[0] = begin
        status = lib.tfw_walk(
            self._source.fd,
            self._size,
            self._at,
            ffi.from_buffer("uint8_t[]", self._buffer),
            len(self._buffer),
            ffi.from_buffer("int64_t[]", self._begins),
            len(self._begins),
            self._found,
            self.error,
        )
        if status not in DAMAGE_REASONS:
            check(status, self.error, self._source.path)
        return Steps(self._begins[: self._found[0]], int(self._at[0]), status)


def offsets_in_file(source: FileSource, size: int, reading: Reading) -> Array:
    """The offsets of a file's records and its end."""
    walk, offsets = Walk(source, size), np.empty(_AT_ONCE + 1, np.int64)
    count = at = 0
    status = lib.TFW_OK
    while status == lib.TFW_OK:
        begins, at, status = walk.steps(at)
        if count + len(begins) >= len(offsets):  # grows with what was found, not with the file
            offsets.resize(len(offsets) + max(_AT_ONCE, len(offsets) // 2), refcheck=False)
        offsets[count : count + len(begins)] = begins
        if status in DAMAGE_REASONS:
            walk.error.record += count
            raise reading.record_error(status, walk.error)
        count += len(begins)
    offsets[count] = size
    offsets.resize(count + 1, refcheck=False)
    return offsets


def offsets_in_stream(path: Any, compression: str) -> Array:
    """The offsets of a compressed file's records and their end, in its decompressed content."""
    chunks: list[Array] = []
    end = 0
    with BatchReader(path, compression, verify=False, max_record_size=None) as reader:
        while (batch := reader.next()) is not None:
            data = ffi.buffer(batch.spans, batch.count * ffi.sizeof("tfw_span"))
            table = np.frombuffer(data, np.int64).reshape(-1, 2)
            chunks.append(table[:, 0] + (batch.offset - lib.TFW_HEADER_SIZE))
            end = int(chunks[-1][-1] + table[-1, 1] + FRAME)
    return np.concatenate([*chunks, np.array([end])])
