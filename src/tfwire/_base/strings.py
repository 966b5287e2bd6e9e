"""Byte strings in and out of C: batches of messages as spans, and bytes objects made in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arguments import refuse_unordered
from tfwire._base.arrays import contiguous_bytes, holds_objects, int64_array, is_constant, to_splits
from tfwire._base.native import address, ffi, lib, objects as native

# Messages per call into C: few enough that their beginnings stay in the second-level cache until
# they are parsed.
_SLICE = 4096
# Bytes of a column to copy at a time, for the same reason.
_COLUMN_BYTES = 1 << 19
_FEW = 64  # strings that tell how long the others are
Array = np.ndarray[Any, Any]


class Spans(NamedTuple):
    """Byte strings in one buffer: message i is ``data[spans[i].offset:][:spans[i].length]``.

    Attributes:
        owner: Keeps the memory of ``data`` and ``spans`` alive; hold it during the call into C.
        data: ``const uint8_t *``.
        data_len: Bytes at ``data``.
        spans: ``tfw_span *``, ``num_spans`` of them.
        num_spans: Number of messages.
        first: Index of the first one in the whole list.
        flags: TFW_ADDRESSES if offsets are addresses and ``data`` is NULL.
    """

    owner: Any
    data: Any
    data_len: int
    spans: Any
    num_spans: int
    first: int = 0
    flags: int = 0

    def message(self, i: int) -> Any:
        """The bytes of message i, not copied."""
        return ffi.buffer(self.data + self.spans[i].offset, self.spans[i].length)


class StringTable(Sequence[Any]):
    """Byte strings in memory, as a list of bytes objects but without the objects.

    Args:
        table: uint64 of shape (n, 2): the address and the length of each string.
        owner: Keeps the memory alive.
    """

    def __init__(self, table: Array, owner: Any) -> None:
        self.table = table
        self._owner = owner

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, index: Any) -> StringTable:
        """The strings of a slice."""
        return StringTable(self.table[index], self._owner)

    @staticmethod
    def joined(parts: Sequence[StringTable]) -> StringTable:
        """The strings of all parts, of which there is one at least."""
        return StringTable(
            np.concatenate([part.table for part in parts]), [part._owner for part in parts]
        )

    def spans(self, first: int, count: int) -> Spans:
        table = np.ascontiguousarray(self.table[first : first + count])
        spans = ffi.from_buffer("tfw_span[]", table)
        owner = (self._owner, spans)
        return Spans(owner, _NOWHERE, 0, spans, len(table), first, lib.TFW_ADDRESSES)


def mean_length(strings: Sequence[Any]) -> int:
    """The mean length of the first of some byte strings, of bytes objects or a StringTable."""
    some = strings[:_FEW]
    if isinstance(some, StringTable):
        return int(some.table[:, 1].sum(dtype=np.uint64)) // max(1, len(some))
    return sum(len(string) for string in some if isinstance(string, bytes)) // max(1, len(some))


def as_buffer(value: Any, what: str = "a serialized message") -> Any:
    """A value as an object with a contiguous buffer of bytes.

    Bytes-like objects are returned as they are or copied, 0-d object arrays and objects with a
    ``numpy()`` method are unwrapped, protobuf messages are serialized.

    Raises:
        TypeError: Not a bytes-like object. str is refused too, and memory that holds objects.
    """
    if type(value) is bytes:
        return value
    if isinstance(value, str):
        raise TypeError(f"{what} must be bytes-like, found str")
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 0:
        return as_buffer(value[()], what)
    if hasattr(value, "numpy"):
        return as_buffer(value.numpy(), what)
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    try:
        view = memoryview(value)
    except TypeError:
        raise TypeError(f"{what} must be bytes-like, found {type(value).__name__}") from None
    if holds_objects(value, view):
        raise TypeError(f"{what} must be bytes-like, found {type(value).__name__} of objects")
    return value if view.c_contiguous else view.tobytes()


def as_message(value: Any, what: str = "a serialized message") -> bytes:
    """As as_buffer, but a bytes object, which nobody can change while C reads it.

    Raises:
        TypeError: As as_buffer.
    """
    value = as_buffer(value, what)
    return value if type(value) is bytes else memoryview(value).tobytes()


def message_slices(serialized: Any) -> tuple[int, Iterator[Spans]]:
    """Many byte strings as Spans, with as little work per string as Python allows.

    Other threads may change the arguments meanwhile: the list is copied at once, and strings that
    are not bytes objects are copied before C sees them.

    Args:
        serialized: A sequence or iterable of bytes-like objects, a rank-1 object array of them,
            an object with a ``numpy()`` method that gives one, or a BytesColumn.

    Returns:
        The number of strings, and an iterator of Spans, each valid until the next.

    Raises:
        TypeError: ``serialized`` is a single byte string; from the iterator: an item is not a
            bytes-like object.
    """
    if isinstance(serialized, StringTable):
        count = len(serialized)
        return count, (serialized.spans(i, _SLICE) for i in range(0, count, _SLICE))
    if hasattr(serialized, "offsets") and hasattr(serialized, "data"):
        return _column_slices(serialized)
    messages = _as_tuple(serialized)
    return len(messages), _slices(messages)


def _slices(messages: tuple[Any, ...]) -> Iterator[Spans]:
    """The messages in place: copying them would cost as much as parsing them."""
    for first in range(0, len(messages), _SLICE):
        some = messages[first : first + _SLICE]
        table, count = spans_of_bytes(some)
        if count < len(some):
            some = tuple(_bytes_objects(some, first))
            table, count = spans_of_bytes(some)
        spans = ffi.from_buffer("tfw_span[]", table)
        yield Spans((some, table), _NOWHERE, 0, spans, count, first, lib.TFW_ADDRESSES)


def spans_of_bytes(objects: tuple[Any, ...]) -> tuple[Array, int]:
    """Where bytes objects have their bytes, as of a StringTable, and how many there are before the
    first object of another type. Hold the tuple as long as the addresses are used."""
    table = np.empty((len(objects), 2), np.uint64)
    return table, native.tfw_spans_of_bytes(objects, address(ffi.from_buffer(table)))


def strings_of_objects(objects: Sequence[Any]) -> tuple[Array, Array] | None:
    """Copies bytes objects into one buffer; None if one is of another type.

    Returns:
        The bytes as uint8, and int64 offsets, one more than there are strings.
    """
    held = tuple(objects)
    table, count = spans_of_bytes(held)
    if count < len(held):
        return None
    offsets = to_splits(table[:, 1].view(np.int64))
    return copy_strings(table, int(offsets[-1])), offsets


def copy_strings(table: Array, size: int) -> Array:
    """Copies byte strings into one uint8 array.

    Args:
        table: As of a StringTable; the addresses are replaced by the offsets of the copies.
        size: Their total size in bytes.
    """
    data, count = np.empty(size, np.uint8), ffi.new("size_t *")
    spans = ffi.from_buffer("tfw_span[]", table)
    status = lib.tfw_gather(spans, len(table), ffi.from_buffer("uint8_t[]", data), size, count)
    assert status == lib.TFW_OK
    return data


def _bytes_objects(messages: tuple[Any, ...], first: int) -> list[bytes]:
    """The messages as bytes objects; ``first`` is the index of the first, for errors."""
    return [
        as_message(message, f"serialized message {i}") for i, message in enumerate(messages, first)
    ]


def _as_tuple(serialized: Any) -> tuple[Any, ...]:
    """The messages as a tuple, which no other thread can change."""
    if hasattr(serialized, "numpy"):
        serialized = serialized.numpy()
    if isinstance(serialized, np.ndarray):
        if serialized.dtype.kind == "S":
            raise TypeError(
                "numpy 'S' arrays drop trailing NUL bytes, so they cannot hold serialized "
                "messages; use dtype=object"
            )
        if serialized.ndim != 1:
            raise TypeError(f"expected messages of rank 1, found rank {serialized.ndim}")
        return tuple(serialized)
    if isinstance(serialized, (bytes, bytearray, memoryview, str)):
        raise TypeError(
            f"expected a list of serialized messages, found {type(serialized).__name__}"
        )
    refuse_unordered("serialized messages", serialized)
    if isinstance(serialized, Iterable):
        return tuple(serialized)
    raise TypeError(f"expected a list of serialized messages, found {type(serialized).__name__}")


def _column_slices(column: Any) -> tuple[int, Iterator[Spans]]:
    """The strings of a BytesColumn: in place if their memory is a bytes object, else copied some at
    a time, as other threads may change it."""
    data, offsets = checked_column(column)
    table = np.empty((len(offsets) - 1, 2), np.uint64)
    places, lengths = table.view(np.int64).T
    np.subtract(offsets[1:], offsets[:-1], out=lengths)
    if is_constant(data):
        places[:] = offsets[:-1]
        return len(table), (
            _spans(data, table[i : i + _SLICE], i) for i in range(0, len(table), _SLICE)
        )
    return len(table), _copies(data, offsets, table)


def checked_column(column: Any) -> tuple[Array, Array]:
    """The bytes of a BytesColumn, and a copy of its offsets, which no other thread can change.

    Raises:
        TypeError: They are not bytes and integers.
        ValueError: The offsets decrease, or reach beyond the data.
    """
    data = contiguous_bytes("data", column.data)
    offsets = int64_array("offsets", column.offsets).copy()
    if offsets.ndim != 1 or len(offsets) == 0:
        raise ValueError("offsets must be of rank 1 and hold one entry more than there are strings")
    check_splits("offsets", offsets, f"{len(data)} bytes", len(data))
    return data, offsets


def check_splits(name: str, splits: Array, what: str, count: int) -> None:
    """Checks that positions, one or more, between the parts of ``count`` things are in order.

    Raises:
        ValueError: They decrease, or reach beyond the things.
    """
    ordered = bool((splits[1:] >= splits[:-1]).all())  # a difference may overflow
    if not ordered or splits[0] < 0 or splits[-1] > count:
        raise ValueError(f"{name} must not decrease and stay within the {what}")


def _copies(data: Array, offsets: Array, table: Array) -> Iterator[Spans]:
    """Copies of the strings, about _COLUMN_BYTES at a time, valid until the next.

    Args:
        data: Of the column.
        offsets: Of the column, checked.
        table: Of the spans; its lengths are filled in already.
    """
    places, lengths = table.view(np.int64).T
    longest = int(lengths.max(initial=0))
    room = np.empty(min(max(_COLUMN_BYTES, longest), len(data)), np.uint8)
    first, count = 0, len(table)
    while first < count:
        begin = int(offsets[first])
        last = int(np.searchsorted(offsets, begin + len(room), "right")) - 1
        np.subtract(offsets[first:last], begin, out=places[first:last])
        size = int(offsets[last]) - begin
        room[:size] = data[begin : begin + size]
        yield _spans(room, table[first:last], first)
        first = last


def _spans(buffer: Any, table: Array, first: int = 0) -> Spans:
    data = ffi.from_buffer("uint8_t[]", buffer)
    spans = ffi.from_buffer("tfw_span[]", table)
    return Spans((data, spans), data, len(data), spans, len(table), first)


def strings_from_spans(buffer: Array, spans: Array) -> list[bytes]:
    """The strings of a buffer given by spans (rows of offset and length), as bytes objects."""
    data, table = ffi.from_buffer(buffer), ffi.from_buffer(spans)
    strings: list[bytes] = native.tfw_bytes_of_spans(
        address(data), len(data), address(table), len(spans)
    )
    return strings


_NOWHERE = ffi.cast("uint8_t *", 0)


def read_varint(data: Any, at: int) -> tuple[int, int]:
    """A varint of protobuf in bytes, and where it ends.

    Raises:
        ValueError: It has no end.
    """
    value = 0
    for i, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, at + i + 1
    raise ValueError("a varint without an end")


# ---- Object arrays of bytes ----


def bytes_array(
    data: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """The strings ``data[offsets[i]:offsets[i + 1]]`` as bytes objects.

    Args:
        data: uint8 of rank 1.
        offsets: int64 of rank 1, checked: not decreasing, within data. No other thread may change
            them meanwhile.
        shape: The shape of the result, with one element per string.

    Returns:
        A writable array of dtype object.
    """
    count = len(offsets) - 1
    memory, ends = ffi.from_buffer(data), ffi.from_buffer(offsets)
    strings = native.tfw_bytes_of_offsets(address(memory), len(memory), address(ends), count)
    return np.fromiter(strings, object, count).reshape(shape)


_MOST_DIMENSIONS = 64  # of numpy 2; 32 of numpy 1


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """A value as an array; strings become objects of bytes.

    numpy's own string types drop trailing zeros, and pad every string to the longest.
    """
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OSU":
        return np.asarray(value)
    leaf = first_leaf(value)
    strings = isinstance(leaf, (str, bytes))
    array = np.asarray(value, object if strings else None)
    if type(leaf) is int and array.dtype.kind == "i":  # int32 by numpy 1 on Windows
        array = array.astype(np.int64, copy=False)
    if array.dtype.kind not in "OSU":
        return array
    objects = array if array.dtype.kind == "O" else np.asarray(value, object)
    return np.fromiter(map(encoded_text, objects.flat), object, array.size).reshape(array.shape)


def first_leaf(value: Any) -> Any:
    """The first value of nested lists, or what lies deeper than numpy's arrays, as in a list that
    contains itself."""
    for _ in range(_MOST_DIMENSIONS):
        if not isinstance(value, (list, tuple)) or not value:
            break
        value = value[0]
    return value


def encoded_text(item: Any) -> Any:
    """A str as UTF-8; anything else unchanged."""
    return item.encode() if isinstance(item, str) else item
