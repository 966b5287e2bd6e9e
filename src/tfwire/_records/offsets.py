"""Where the records of a file begin, found by its headers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._core import DAMAGE_REASONS, check, ffi, lib, new_error
from tfwire._records.damage import Reading
from tfwire._records.packing import FRAME
from tfwire._records.sources import FileSource
from tfwire._records.streams import BatchReader

__all__ = ["offsets_in_file", "offsets_in_stream"]

Array = np.ndarray[Any, Any]

_BUFFER = 1 << 18
_AT_ONCE = 1 << 16  # records per call into C, between which a user may interrupt


def offsets_in_file(source: FileSource, size: int, reading: Reading) -> Array:
    """The offsets of a file's records and its end, by a walk over the headers."""
    buffer, offsets = np.empty(_BUFFER, np.uint8), np.empty(_AT_ONCE + 1, np.int64)
    at, found, error = ffi.new("uint64_t *"), ffi.new("size_t *"), new_error()
    count, status = 0, lib.TFW_OK
    while status == lib.TFW_OK:
        if count + _AT_ONCE >= len(offsets):  # make room for as many as there seem to be
            offsets.resize(count * size // max(at[0], 1) + _AT_ONCE + 1, refcheck=False)
        status = lib.tfw_walk(
            source.fd,
            size,
            at,
            ffi.from_buffer("uint8_t[]", buffer),
            len(buffer),
            ffi.from_buffer("int64_t[]", offsets[count:]),
            _AT_ONCE,
            found,
            error,
        )
        if status in DAMAGE_REASONS:
            error.record += count
            raise reading.record_error(status, error)
        count += found[0]
        check(status, error, source.path)
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
