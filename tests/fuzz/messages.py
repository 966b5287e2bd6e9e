"""The pieces of an Example on the wire."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def field(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def ints(*values: int) -> bytes:
    packed = b"".join(varint(value & (1 << 64) - 1) for value in values)
    return field(3, field(1, packed) if values else b"")


def unpacked_ints(*values: int) -> bytes:
    return field(3, b"".join(b"\x08" + varint(value) for value in values))


def floats(*values: float) -> bytes:
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)) if values else b"")


def unpacked_floats(*values: float) -> bytes:
    return field(2, b"".join(b"\x0d" + struct.pack("<f", value) for value in values))


def strings(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, value) for value in values))


def entry(key: bytes, value: bytes) -> bytes:
    return field(1, field(1, key) + field(2, value))


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))
