"""Protobuf's wire format, as far as the viewer reads it itself: the fields of a message."""

from __future__ import annotations


def field_numbers(data: bytes, most: int) -> list[int]:
    """The numbers of the first ``most`` fields of a message of any type, sorted; none if the bytes
    read for them are not a message. protobuf's UnknownFieldSet makes objects of all
    fields: 100 bytes of memory for each byte.
    """
    numbers, at = set(), 0
    try:
        for _ in range(most):
            if at == len(data):
                break
            tag, at = _varint(data, at)
            numbers.add(tag >> 3)
            at = _after_value(data, at, tag & 7)
    except ValueError:
        return []
    return sorted(numbers)


def _inside(at: int, end: int) -> int:
    if at > end:
        raise ValueError("a value without an end")
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise ValueError("a varint without an end")


def _after_value(data: bytes, at: int, wire_type: int) -> int:
    """Where the value of a field ends."""
    if wire_type == 0:
        return _varint(data, at)[1]
    if wire_type == 2:
        length, at = _varint(data, at)
        at += length
    else:
        at += {1: 8, 5: 4}.get(wire_type, len(data) + 1)  # groups are long out of use
    return _inside(at, len(data))
