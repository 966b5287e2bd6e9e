"""What a record that is no Example may be: the messages that are found in record files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tfwire._base.strings import read_varint

_FIELDS_LOOKED_AT = 1000
_LARGEST_FIELD = 1000  # number; those of real messages are small
_SHOWN_FIELDS = 12
_EVENT_FIELDS = 10  # of tensorflow.Event, also those no longer written
_TENSOR_FIELDS = 17  # of tensorflow.TensorProto


class LikelyMessage(NamedTuple):
    """What a message may be, and what reads it."""

    name: str
    advice: str


_EVENT = LikelyMessage("an event of TensorBoard", "tfwire.tensorboard.scalars reads its file")
_TENSOR = LikelyMessage("a serialized tensor", "tfwire.parse_tensor reads it")
_SEQUENCE = LikelyMessage("a SequenceExample", "tfwire.decode_sequence_example reads it")


def likely_message(record: bytes) -> LikelyMessage | None:
    """What a record without features may be; None if it is no protocol buffer, as far as its
    first fields tell."""
    try:
        found = Counter(_fields(record))
    except ValueError:
        return None
    numbers = sorted({number for number, _ in found})
    if not numbers or not 0 < numbers[0] <= numbers[-1] <= _LARGEST_FIELD:  # by chance
        return None
    if (
        found[1, 1] == 1
        and numbers[-1] <= _EVENT_FIELDS
        and found.keys() - {(2, 0)}
        == {
            (1, 1),
            *((number, 2) for number in numbers if number > 2),
        }
    ):
        return _EVENT
    small_type = record[1:2] < b"\x80"  # the first field of a tensor, of one byte
    if found[1, 0] == found[2, 2] == 1 and small_type and numbers[-1] <= _TENSOR_FIELDS:
        return _TENSOR
    if found.keys() <= {(1, 2), (2, 2)} and found[2, 2]:
        return _SEQUENCE
    shown = ", ".join(map(str, numbers[:_SHOWN_FIELDS]))
    more = ", ..." if len(numbers) > _SHOWN_FIELDS else ""
    return LikelyMessage(
        f"another protocol buffer, with fields {shown}{more}", "its own class reads it"
    )


def not_an_example(record: bytes) -> str:
    """What is said of a well-formed message without features, which has other fields."""
    likely = likely_message(record)
    if likely is None:
        return "it has no features, but other fields"
    return f"it has no features; it may be {likely.name}: {likely.advice}"


# ---- The fields of a message, of protobuf's wire format -----------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, int]]:
    """Number and wire type of the first fields of a message of any type. protobuf's
    UnknownFieldSet makes objects of all fields: 100 bytes of memory for each byte.

    Raises:
        ValueError: The bytes read for them are not a message.
    """
    at = 0
    for _ in range(_FIELDS_LOOKED_AT):
        if at == len(data):
            break
        tag, at = read_varint(data, at)
        yield tag >> 3, tag & 7
        at = _after_value(data, at, tag & 7)


def _after_value(data: bytes, at: int, wire_type: int) -> int:
    """Where the value of a field ends."""
    if wire_type == 0:
        return read_varint(data, at)[1]
    if wire_type == 2:
        length, at = read_varint(data, at)
        at += length
    else:
        at += {1: 8, 5: 4}.get(wire_type, len(data) + 1)  # groups are long out of use
    if at > len(data):
        raise ValueError("a value without an end")
    return at
