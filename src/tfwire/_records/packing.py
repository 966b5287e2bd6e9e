"""Payloads in memory to framed records."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from tfwire._core import ffi, lib
from tfwire._spans import BYTES_LAYOUT, addresses_of

__all__ = ["FRAME", "Packer", "ends_of_records", "frame_apart"]

FRAME = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE

# Larger blocks gain little, and every writer that is open keeps the memory of one.
_BLOCK = 3 << 16


class Packer:
    """Frames records into memory that it keeps from call to call."""

    def __init__(self) -> None:
        self._out = bytearray(_BLOCK)
        self._count, self._size = ffi.new("size_t *"), ffi.new("size_t *")

    def blocks(self, records: Sequence[Any]) -> Iterator[tuple[memoryview, int]]:
        """Frames records up to the first that is not a bytes object, or does not fit into a block.
        What they are and how long is looked at in C: each pass of Python over them would cost as
        much as all the rest.

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
            lib.tfw_pack_objects(
                addresses + done,
                len(held) - done,
                BYTES_LAYOUT,
                out,
                len(out),
                self._count,
                self._size,
            )
            if not self._count[0]:
                return
            yield memoryview(self._out)[: self._size[0]], self._count[0]
            done += self._count[0]


def _joined(records: Sequence[Any]) -> Iterator[tuple[memoryview, int]]:
    """As Packer.blocks, for interpreters whose objects C does not know."""
    pieces: list[bytes] = []
    fitting = takewhile(lambda record: type(record) is bytes and len(record) < _BLOCK, records)
    for record in fitting:
        header, footer, _ = frame_apart(record)
        pieces += header, record, footer
    yield memoryview(b"".join(pieces)), len(pieces) // 3


def frame_apart(record: bytes) -> tuple[bytes, bytes, int]:
    """Header and footer for a payload that stays where it is, and its CRC-32C."""
    crc = lib.tfw_crc32c(0, record, len(record))
    length = struct.pack("<Q", len(record))
    return length + _masked(lib.tfw_crc32c(0, length, len(length))), _masked(crc), crc


def ends_of_records(block: memoryview) -> list[int]:
    """Where the framed records in a block end, after 0."""
    ends = [0]
    while ends[-1] < len(block):
        ends.append(ends[-1] + struct.unpack_from("<Q", block, ends[-1])[0] + FRAME)
    return ends


def _masked(crc: int) -> bytes:
    """A checksum as files store it."""
    return struct.pack("<I", lib.tfw_crc32c_mask(crc))
