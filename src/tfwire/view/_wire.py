"""Protobuf's wire format, as far as the viewer reads it itself: the numbers of a message's fields,
and the first features of a record that has very many."""

from __future__ import annotations

__all__ = ["MOST_COUNTED", "field_numbers", "first_features"]

MOST_COUNTED = 1_000_000
"""Features that are left out are counted up to this number."""

_MAPS = (0x0A, 0x12)  # Example.features or SequenceExample.context, and its feature_lists
_ENTRY = 0x0A
_SHORTEST_ENTRY = 2  # bytes


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


def first_features(record: bytes, most: int) -> tuple[bytes, int]:
    """An Example or SequenceExample with its first features and feature lists only.

    Args:
        record: Any bytes. What is not well-formed is returned as it is.
        most: How many features are kept, and how many feature lists.

    Returns:
        The message, and how many entries were left out.
    """
    if len(record) < most * _SHORTEST_ENTRY:
        return record, 0
    view = memoryview(record)  # most records are not changed: nothing is copied for them
    parts: list[bytes | memoryview] = []
    left_out = at = 0
    room = dict.fromkeys(_MAPS, most)
    try:
        while at < len(record):
            begin = at
            tag, at = _varint(record, at)
            if tag not in _MAPS:
                at = _after_value(record, at, tag & 7)
                parts.append(view[begin:at])
                continue
            length, at = _varint(record, at)
            end = _inside(at + length, len(record))
            kept, kept_end, more = _entries(record, at, end, room[tag])
            room[tag] -= kept
            left_out += more
            parts += [bytes((tag,)), _as_varint(kept_end - at), view[at:kept_end]]
            at = end
    except (ValueError, IndexError):
        return record, 0
    return (b"".join(parts), left_out) if left_out else (record, 0)


def _entries(data: bytes, at: int, end: int, most: int) -> tuple[int, int, int]:
    """How many entries of a map are kept, where they end, and how many follow."""
    count, kept_end = 0, end
    while at < end and count < most + MOST_COUNTED:
        if count == most and kept_end == end:
            kept_end = at
        tag, length = data[at], data[at + 1]
        if tag == _ENTRY and length < 0x80:  # most are short
            at = _inside(at + 2 + length, end)
            count += 1
            continue
        number, at = _varint(data, at)
        at = _inside(_after_value(data, at, number & 7), end)
        count += number == _ENTRY
    return min(count, most), kept_end, max(0, count - most)


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


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


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
