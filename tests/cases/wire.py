"""Protobuf messages written byte by byte, so that odd encodings can be had on purpose."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

BYTES, FLOAT, INT64 = 1, 2, 3  # field numbers of Feature's oneof
KINDS = {"string": BYTES, "float32": FLOAT, "int64": INT64}


def varint(value: int, size: int = 0) -> bytes:
    """value modulo 2**64, padded with empty continuation bytes up to size."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    while len(out) < size:
        out[-1] |= 128
        out.append(0)
    return bytes(out)


def tag(number: int, wire_type: int, size: int = 0) -> bytes:
    return varint(number << 3 | wire_type, size)


def field(number: int, payload: bytes, tag_size: int = 0, len_size: int = 0) -> bytes:
    """A length-delimited field."""
    return tag(number, 2, tag_size) + varint(len(payload), len_size) + payload


def packed(kind: int, values: Iterable[int | float]) -> bytes:
    """The content of an Int64List or FloatList as one packed block; no block for no values."""
    if kind == INT64:
        block = b"".join(varint(int(v)) for v in values)
    else:
        block = b"".join(struct.pack("<f", v) for v in values)
    return field(1, block) if block else b""


def unpacked(kind: int, values: Iterable[int | float | bytes]) -> bytes:
    """The content of a list with one field per value, as every BytesList has it."""
    if kind == BYTES:
        return b"".join(field(1, v) for v in values)
    if kind == INT64:
        return b"".join(tag(1, 0) + varint(int(v)) for v in values)
    return b"".join(tag(1, 5) + struct.pack("<f", v) for v in values)


def values_list(kind: int, values: Sequence[int | float | bytes]) -> bytes:
    """The content of a list in its usual encoding."""
    return unpacked(kind, values) if kind == BYTES else packed(kind, values)


def feature(kind: int, values: Sequence[int | float | bytes]) -> bytes:
    return field(kind, values_list(kind, values))


def entry(key: bytes, value: bytes) -> bytes:
    """A map entry with its frame: key is field 1, value field 2."""
    return field(1, field(1, key) + field(2, value))


def example(features: dict[bytes, bytes]) -> bytes:
    """An Example (or the context of a SequenceExample) from serialized Features."""
    return field(1, b"".join(entry(key, value) for key, value in features.items()))


def feature_lists(lists: dict[bytes, Sequence[bytes]]) -> bytes:
    """The feature lists of a SequenceExample from serialized Features, one per step."""
    return field(2, b"".join(entry(k, b"".join(field(1, s) for s in v)) for k, v in lists.items()))


def unknown_fields() -> dict[str, bytes]:
    """One field of every wire type under a number that no message here has."""
    return {
        "varint": tag(9, 0) + varint(300),
        "fixed64": tag(9, 1) + bytes(8),
        "bytes": field(9, b"unknown"),
        "group": tag(9, 3) + tag(1, 0) + varint(5) + tag(9, 4),
        "nested group": tag(9, 3) + tag(8, 3) + field(1, b"x") + tag(8, 4) + tag(9, 4),
        "fixed32": tag(9, 5) + bytes(4),
    }
