"""Protobuf's wire format read in plain Python, as the rules of the project say.

Slow and direct on purpose. Merging protobuf messages is concatenating their bytes, and most of
the rules for repeated fields follow from that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

KIND_NAMES = {1: "string", 2: "float32", 3: "int64"}


class Fault(Exception):
    """A message that does not fit: reason as in ParseError, and the key at fault."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        super().__init__(reason, key)
        self.reason = reason
        self.key = key


def read_varint(data: bytes, at: int, limit: int = 10) -> tuple[int, int]:
    value = 0
    for i in range(limit):
        if at + i >= len(data):
            break
        value |= (data[at + i] & 127) << (7 * i)
        if data[at + i] < 128:
            return value & (2**64 - 1), at + i + 1
    raise Fault("malformed")


def read_header(data: bytes, at: int) -> tuple[int, int]:
    """A tag or a length, which protobuf reads from at most five bytes."""
    return read_varint(data, at, limit=5)


def read_tag(data: bytes, at: int) -> tuple[int, int, int]:
    value, at = read_header(data, at)
    number, wire_type = value >> 3, value & 7
    if not 0 < number < 2**29:
        raise Fault("malformed")
    return number, wire_type, at


def read_field(data: bytes, at: int) -> tuple[int, int, Any, int]:
    """(number, wire type, int or bytes, position after); of a group only the position counts."""
    number, wire_type, at = read_tag(data, at)
    if wire_type == 0:
        value, at = read_varint(data, at)
        return number, wire_type, value, at
    if wire_type == 3:
        return number, wire_type, b"", skip_group(data, at, number)
    if wire_type == 2:
        size, at = read_header(data, at)
    elif wire_type in (1, 5):
        size = 8 if wire_type == 1 else 4
    else:
        raise Fault("malformed")
    if size > len(data) - at:
        raise Fault("malformed")
    return number, wire_type, data[at : at + size], at + size


def skip_group(data: bytes, at: int, number: int) -> int:
    while True:
        inner, wire_type, after = read_tag(data, at)
        if wire_type == 4:
            if inner != number:
                raise Fault("malformed")
            return after
        at = read_field(data, at)[3]


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    at = 0
    while at < len(data):
        number, wire_type, value, at = read_field(data, at)
        yield number, wire_type, value


def submessage(data: bytes, number: int) -> bytes:
    """All occurrences of a message field, merged; none may mend what is damaged in another."""
    return merged(parts(data, number))


def parts(data: bytes, number: int) -> list[bytes]:
    """The occurrences of a message field, not looked into."""
    return [v for n, wire_type, v in fields(data) if (n, wire_type) == (number, 2)]


def merged(messages: list[bytes]) -> bytes:
    for message in messages:
        list(fields(message))
    return b"".join(messages)


def map_entries(data: bytes) -> list[tuple[bytes, list[bytes]]]:
    """(key, parts of the value) of a map's entries; the values are not looked into."""
    found = []
    for number, wire_type, entry in fields(data):
        if (number, wire_type) == (1, 2):
            keys = [v for n, t, v in fields(entry) if (n, t) == (1, 2)]
            found.append((keys[-1] if keys else b"", parts(entry, 2)))
    return found


def list_values(data: bytes, kind: int) -> list[Any]:
    values: list[Any] = []
    for number, wire_type, value in fields(data):
        if number != 1:
            continue
        if kind == 1 and wire_type == 2:
            values.append(value)
        elif kind == 2 and wire_type in (2, 5):
            if len(value) % 4:
                raise Fault("malformed")
            values.extend(np.frombuffer(value, "<f4"))
        elif kind == 3 and wire_type == 0:
            values.append(value)
        elif kind == 3 and wire_type == 2:
            at = 0
            while at < len(value):
                number, at = read_varint(value, at)
                values.append(number)
    if kind == 3:
        values = [struct.unpack("<q", struct.pack("<Q", value))[0] for value in values]
    return values


def read_feature(data: bytes) -> tuple[str | None, list[Any]]:
    """Kind and values. The last kind of the oneof stays; lists of one kind in a row merge."""
    kind, values = 0, []
    for number, wire_type, content in fields(data):
        if number in KIND_NAMES and wire_type == 2:
            values = values if number == kind else []
            values += list_values(content, number)
            kind = number
    return KIND_NAMES.get(kind), values
