"""Messages without a specification: dicts that C writes as a pickle, joined with their arrays."""

from __future__ import annotations

import gc
import pickle
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfwire._core import adopt, check, ffi, lib, new_error, text
from tfwire._examples.normalize import BYTES, FLOAT, INT64, Array
from tfwire._spans import slices_of
from tfwire.errors import ParseError

__all__ = ["decode_message", "decode_messages"]

# Up to so many values a copy is cheaper than memory with an owner of its own.
_SMALL = 1 << 10

# From this many arrays on it pays to make them in groups.
_MANY = 32

# What slices for empty lists of strings are made of.
_NO_STRINGS = np.empty(0, object)

# What messages longer than this took is not kept for the next.
_LONG = 1 << 16


class _Call:
    """What a call of tfw_decode takes; its memory serves one message after the other."""

    def __init__(self) -> None:
        self.span = ffi.new("tfw_span *")
        self.dicts = ffi.gc(ffi.new("tfw_dicts *"), lib.tfw_dicts_free)
        self.done = ffi.new("size_t *")
        self.error = new_error()


# Those that no thread is using. A list's pop and append are atomic.
_idle: list[_Call] = []


def decode_message(serialized: bytes, flags: int) -> Any:
    """One message.

    Raises:
        ParseError: Not a well-formed message.
    """
    data = ffi.from_buffer("uint8_t[]", serialized)
    try:
        call = _idle.pop()
    except IndexError:
        call = _Call()
    try:
        call.span.length = length = len(data)
        return _decode(call, data, length, call.span, 1, flags)[0]
    finally:
        if length > _LONG:
            lib.tfw_dicts_free(call.dicts)
        _idle.append(call)


def decode_messages(serialized: Any, flags: int) -> list[Any]:
    """Many messages.

    Raises:
        ParseError: A message is not well-formed; ``record_index`` says which.
        TypeError: An item is not bytes-like.
    """
    call, decoded = _Call(), []
    with _collecting_later():
        for s in slices_of(serialized)[1]:
            decoded += _decode(
                call, s.data, s.data_len, s.spans, s.num_spans, flags | s.flags, s.first
            )
    return decoded


def _decode(
    call: _Call, data: Any, data_len: int, spans: Any, num_spans: int, flags: int, first: int = 0
) -> list[Any]:
    dicts = call.dicts
    status = lib.tfw_decode(data, data_len, spans, num_spans, flags, dicts, call.done, call.error)
    if status == lib.TFW_E_WIRE:
        raise _malformed(call.error, first + call.error.record)
    check(status, call.error)
    values = {
        INT64: _own(dicts, "int64s", dicts.int64_count, np.int64),
        FLOAT: _own(dicts, "floats", dicts.float_count, np.float32),
        BYTES: _NO_STRINGS,
    }
    arrays = _arrays if dicts.buffer_count >= _MANY else _slices
    decoded: list[Any] = pickle.loads(
        ffi.buffer(dicts.pickle, dicts.pickle_len),
        buffers=arrays(dicts.buffers, dicts.buffer_count, values),
    )
    return decoded


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Puts the collection of garbage off.

    Nothing in a list of dicts that grows is garbage; before Python 3.12 the collector would look
    through it all the same, again and again, for half of the time. From 3.12 on it waits for the
    end of a call by itself.
    """
    pause = sys.version_info < (3, 12) and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


def _malformed(error: Any, record: int) -> ParseError:
    return ParseError(
        f"message {record} is malformed at byte {error.offset}: {text(error.text)}",
        record_index=record,
        reason="malformed",
    )


def _own(dicts: Any, name: str, count: int, dtype: Any) -> Array:
    """An array of the values that C decoded, by copy or with their memory."""
    memory = getattr(dicts, name)
    if count > _SMALL:
        setattr(dicts, name, ffi.NULL)
        return adopt(memory, count, dtype)
    array = np.empty(count, dtype)
    ffi.memmove(array, memory, array.nbytes)
    return array


def _slices(table: Any, count: int, values: dict[int, Array]) -> Iterable[Array]:
    """An array for every row (kind, begin, end) of the table, in order."""
    numbers = iter(ffi.unpack(table, 3 * count))
    rows = zip(numbers, numbers, numbers, strict=True)
    return [values[kind][begin:end] for kind, begin, end in rows]


def _arrays(table: Any, count: int, values: dict[int, Array]) -> Iterable[Array]:
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
    result: list[Array] = arrays.tolist()
    return result
