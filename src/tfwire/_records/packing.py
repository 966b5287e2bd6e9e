"""Payloads in memory to framed records."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from tfwire._core import ffi, lib
from tfwire._spans import BYTES_LAYOUT, addresses_of

__all__ = ["FRAME", "Packer", "frame_apart"]

FRAME = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE

# Larger blocks gain little, and every writer that is open keeps the memory of one.
_BLOCK = 3 << 16


class Packer:
    """Frames records into memory that it keeps from call to call."""

    def __init__(self) -> None:
        self._out = bytearray(_BLOCK)
        self._count, self._size = ffi.new("size_t *"), ffi.new("size_t *")

    def blocks(self, records: Sequence[Any]) -> Iterator[tuple[memoryview, int]]:
        """Frames records up to the first that is no bytes object. What they are and how long is
        looked at in C: each pass of Python over them would cost as much as all the rest.

        Yields:
            Framed records side by side, valid until the next ones, and how many they are.
        """
        if BYTES_LAYOUT is None:
            yield from _joined(records)
            return
        addresses, held = addresses_of(records)
        done = 0
        while done < len(held):
            out = ffi.from_buffer("uint8_t[]", self._out)
            status = lib.tfw_pack_objects(
                addresses + done,
                len(held) - done,
                BYTES_LAYOUT,
                out,
                len(out),
                self._count,
                self._size,
            )
            if self._count[0]:
                yield memoryview(self._out)[: self._size[0]], self._count[0]
                done += self._count[0]
            elif status == lib.TFW_NEED_SPACE:
                self._out = bytearray(len(held[done]) + FRAME)
            else:
                return


def _joined(records: Sequence[Any]) -> Iterator[tuple[memoryview, int]]:
    """As Packer.blocks, for interpreters whose objects C does not know."""
    pieces: list[bytes] = []
    for record in takewhile(lambda record: type(record) is bytes, records):
        header, footer, _ = frame_apart(record)
        pieces += header, record, footer
    yield memoryview(b"".join(pieces)), len(pieces) // 3


def frame_apart(record: bytes) -> tuple[bytes, bytes, int]:
    """Header and footer for a payload that stays where it is, and its CRC-32C."""
    crc = lib.tfw_crc32c(0, record, len(record))
    length = struct.pack("<Q", len(record))
    return length + _masked(lib.tfw_crc32c(0, length, len(length))), _masked(crc), crc


def _masked(crc: int) -> bytes:
    """A checksum as files store it."""
    return struct.pack("<I", lib.tfw_crc32c_mask(crc))
