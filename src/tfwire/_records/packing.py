"""Payloads in memory to framed records."""

from __future__ import annotations

import marshal
import struct
from collections.abc import Iterator, Sequence

import numpy as np

from tfwire._core import check, ffi, lib, new_error

__all__ = ["FRAME", "Packer", "frame_apart"]

FRAME = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE

# For more than about 128 KiB malloc asks the system for fresh memory every time.
_BLOCK = 3 << 15


class Packer:
    """Frames records into memory that it keeps from call to call."""

    def __init__(self) -> None:
        self._spans = np.empty((0, 2), np.uint64)
        self._out = bytearray()

    def blocks(self, records: Sequence[bytes], size: int) -> Iterator[memoryview]:
        """Records of about that many bytes in all, some at a time; each block as of ``pack``."""
        step = max(1, len(records) * _BLOCK // size)
        for first in range(0, len(records), step):
            yield self.pack(records[first : first + step])

    def pack(self, records: Sequence[bytes]) -> memoryview:
        """Records framed and joined; valid until the next call."""
        count, error = len(records), new_error()
        if len(self._spans) < count:
            self._spans = np.empty((2 * count, 2), np.uint64)
        stream = marshal.dumps(records, 2)  # type: ignore[arg-type]
        total = len(stream) + FRAME * count  # more than enough: marshal has headers, too
        if len(self._out) < total:
            self._out = bytearray(total + total // 4)
        data = ffi.from_buffer("uint8_t[]", stream)
        spans = ffi.from_buffer("tfw_span[]", self._spans)
        out = ffi.from_buffer("uint8_t[]", self._out)
        found, written = ffi.new("size_t *"), ffi.new("size_t *")
        check(lib.tfw_marshal_spans(data, len(stream), spans, count, found), error)
        check(lib.tfw_pack(data, len(stream), spans, count, out, total, written, error), error)
        return memoryview(self._out)[: written[0]]


def frame_apart(record: bytes) -> tuple[bytes, bytes, int]:
    """Header and footer for a payload that stays where it is, and its CRC-32C."""
    crc = lib.tfw_crc32c(0, record, len(record))
    length = struct.pack("<Q", len(record))
    return length + _masked(lib.tfw_crc32c(0, length, len(length))), _masked(crc), crc


def _masked(crc: int) -> bytes:
    """A checksum as files store it."""
    return struct.pack("<I", lib.tfw_crc32c_mask(crc))
