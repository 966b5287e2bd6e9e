"""Messages without a specification: dicts that C writes as a pickle, joined with their arrays."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfwire._core import adopt, check, ffi, lib, new_error, text
from tfwire._examples.normalize import FLOAT, INT64, Array
from tfwire._spans import slices_of
from tfwire.errors import ParseError

__all__ = ["decode_message", "decode_messages"]

# Up to so many values a copy is cheaper than memory with an owner of its own.
_SMALL = 1 << 10

# From this many arrays on it pays to make them in groups.
_MANY = 32


class _Call:
    """What a call of tfw_decode takes."""

    def __init__(self) -> None:
        self.span = ffi.new("tfw_span *")
        self.dicts = ffi.new("tfw_dicts *")
        self.done = ffi.new("size_t *")
        self.error = new_error()


# Those that no thread is using. A list's pop and append are atomic.
_idle: list[_Call] = []


def decode_message(serialized: Any, flags: int) -> Any:
    """One message, given as an object with a buffer of bytes.

    Raises:
        ParseError: Not a well-formed message.
    """
    try:
        call = _idle.pop()
    except IndexError:
        call = _Call()
    try:
        data = ffi.from_buffer("uint8_t[]", serialized)
        call.span.length = len(data)
        return _decode(call, data, len(data), call.span, 1, flags)[0]
    finally:
        _idle.append(call)


def decode_messages(serialized: Any, flags: int) -> list[Any]:
    """Many messages.

    Raises:
        ParseError: A message is not well-formed; ``record_index`` says which.
        TypeError: An item is not bytes-like.
    """
    call, decoded = _Call(), []
    for s in slices_of(serialized)[1]:
        decoded += _decode(call, s.data, s.data_len, s.spans, s.num_spans, flags | s.flags, s.first)
    return decoded


def _decode(
    call: _Call, data: Any, data_len: int, spans: Any, num_spans: int, flags: int, first: int = 0
) -> list[Any]:
    dicts = call.dicts
    status = lib.tfw_decode(data, data_len, spans, num_spans, flags, dicts, call.done, call.error)
    if status == lib.TFW_E_MEMORY or status == lib.TFW_E_ARGUMENT:
        check(status, call.error)
    stream = ffi.gc(dicts.pickle, lib.tfw_free)
    values = {
        INT64: _own(dicts.int64s, dicts.int64_count, np.int64),
        FLOAT: _own(dicts.floats, dicts.float_count, np.float32),
    }
    table = ffi.gc(dicts.buffers, lib.tfw_free)
    if status != lib.TFW_OK:
        raise _malformed(call.error, first + call.error.record)
    arrays = _arrays if dicts.buffer_count >= _MANY else _slices
    return _unpickle(
        ffi.buffer(stream, dicts.pickle_len), arrays(table, dicts.buffer_count, values)
    )


def _unpickle(stream: Any, arrays: Iterator[Array]) -> list[Any]:
    """The list that a stream describes.

    Nothing in it is garbage; before Python 3.12 the collector would look through it all the same,
    again and again while it grows, for half of the time of a large list. From 3.12 on it waits
    for the end of the call by itself.
    """
    pause = sys.version_info < (3, 12) and gc.isenabled()
    if pause:
        gc.disable()
    try:
        decoded: list[Any] = pickle.loads(stream, buffers=arrays)
        return decoded
    finally:
        if pause:
            gc.enable()


def _malformed(error: Any, record: int) -> ParseError:
    return ParseError(
        f"message {record} is malformed at byte {error.offset}: {text(error.text)}",
        record_index=record,
        reason="malformed",
    )


def _own(memory: Any, count: int, dtype: Any) -> Array:
    """An array of what C handed over, by copy or with the memory."""
    if count > _SMALL:
        return adopt(memory, count, dtype)
    array = np.empty(count, dtype)
    ffi.memmove(array, memory, array.nbytes)
    lib.tfw_free(memory)
    return array


def _slices(table: Any, count: int, values: dict[int, Array]) -> Iterator[Array]:
    """An array for every row (kind, begin, end) of the table, in order."""
    numbers = ffi.unpack(table, 3 * count)
    rows = zip(numbers[0::3], numbers[1::3], numbers[2::3], strict=True)
    return (values[kind][begin:end] for kind, begin, end in rows)


def _arrays(table: Any, count: int, values: dict[int, Array]) -> Iterator[Array]:
    """The same for many rows. Most lists hold one value, and rows of an array come out of it
    three times as fast as slices."""
    rows = np.frombuffer(ffi.buffer(table, 24 * count), np.int64).reshape(-1, 3)
    arrays = np.empty(count, object)
    lengths = rows[:, 2] - rows[:, 1]
    for kind, source in values.items():
        singles = np.flatnonzero((lengths == 1) & (rows[:, 0] == kind))
        parts = source[rows[singles, 1]].reshape(-1, 1)
        arrays[singles] = np.fromiter(parts, object, len(parts))
    for i in np.flatnonzero(lengths != 1).tolist():
        kind, begin, end = rows[i].tolist()
        arrays[i] = values[kind][begin:end]
    return iter(arrays.tolist())
