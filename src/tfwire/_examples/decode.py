"""Serialized Examples to dicts of values, without a specification."""

from __future__ import annotations

import gc
import pickle
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from tfwire._base.aliases import BytesLike, DecodedValues, SupportsSerialize
from tfwire._base.errors import ParseError
from tfwire._base.native import adopt, check, ffi, lib, new_error, text
from tfwire._base.strings import as_message, message_slices
from tfwire._examples.column_types import Messages
from tfwire._examples.values import BYTES, FLOAT, INT64, Array


def decode_example(serialized: BytesLike | SupportsSerialize) -> dict[str, DecodedValues]:
    """Decodes one serialized ``tf.train.Example`` without a specification.

    Args:
        serialized: A bytes-like object, or an object whose ``numpy()`` is one.

    Returns:
        Feature names to values: an int64 or float32 array of rank 1, or a list of bytes. ``[]`` is
        a Feature without a kind, an empty array of dtype object an empty bytes_list, so that
        encode_example gives the same values back. Names that are not UTF-8 hold their bytes as
        surrogateescape does.

    Raises:
        ParseError: Not a well-formed message.
        TypeError: ``serialized`` is not bytes-like.

    Example:
        >>> decode_example(tfw.encode_example({"label": 3, "name": "goat"}))
        {'label': array([3]), 'name': [b'goat']}
    """
    decoded: dict[str, DecodedValues] = _decode_one(serialized, 0)
    return decoded


def decode_examples(serialized: Messages) -> list[dict[str, DecodedValues]]:
    """Decodes many serialized Examples. Arrays of several messages may share memory.

    Args:
        serialized: A list or array of bytes-like objects, or a BytesColumn.

    Returns:
        One dict per message, as decode_example gives it.

    Raises:
        ParseError: A message is not well-formed; ``record_index`` says which.
        TypeError: An item is not bytes-like.
    """
    call, decoded = _Call(), []
    with _collecting_later():
        for s in message_slices(serialized)[1]:
            decoded += _decode(call, s.data, s.data_len, s.spans, s.num_spans, s.flags, s.first)
    return decoded


def decode_sequence_example(
    serialized: BytesLike | SupportsSerialize,
) -> tuple[dict[str, DecodedValues], dict[str, list[DecodedValues]]]:
    """Decodes one serialized ``tf.train.SequenceExample`` without a specification.

    Args:
        serialized: A bytes-like object, an object with ``numpy()``, or a message.

    Returns:
        The context, as decode_example gives it, and the feature lists: names to lists with the
        values of each step.

    Raises:
        ParseError: Not a well-formed message.
        TypeError: ``serialized`` is not bytes-like.

    Example:
        >>> message = tfw.encode_sequence_example({"n": 2}, {"word": ["a", "b"]})
        >>> decode_sequence_example(message)
        ({'n': array([2])}, {'word': [[b'a'], [b'b']]})
    """
    decoded: tuple[dict[str, DecodedValues], dict[str, list[DecodedValues]]]
    decoded = _decode_one(serialized, lib.TFW_SEQUENCE)
    return decoded


def decode_sequence_examples(
    serialized: list[bytes],
) -> list[tuple[dict[str, DecodedValues], dict[str, list[DecodedValues]]]]:
    """Decodes many messages, each as decode_sequence_example; arrays may share memory."""
    call, decoded = _Call(), []
    with _collecting_later():
        for s in message_slices(serialized)[1]:
            flags = s.flags | lib.TFW_SEQUENCE
            decoded += _decode(call, s.data, s.data_len, s.spans, s.num_spans, flags, s.first)
    return decoded


# ---- C writes a pickle of the dicts, whose buffers are the arrays -------------------------------

# A copy of at most this many values is cheaper than memory with its own owner.
_SMALL = 1 << 10
# With at least this many arrays, it is faster to make those with a single value together.
_MANY_ARRAYS = 32
_ROW = struct.Struct("3q")  # of the table of arrays
# Empty lists are slices of these.
_NO_STRINGS, _NO_FLOATS = np.empty(0, object), np.empty(0, np.float32)
_NO_INTS = np.empty(0, np.int64)
# What arrays are slices of, by the kind of a feature: none, bytes, float, int64.
_Values: TypeAlias = tuple[Any, Array, Array, Array]
assert (BYTES, FLOAT, INT64) == (1, 2, 3)
# After a message longer than this, the memory is not kept for the next one.
_KEPT_BYTES = 1 << 16


class _Call:
    """Arguments of tfw_decode, used for one message after the other, and views of its results: to
    make one takes as long as decoding a feature."""

    def __init__(self) -> None:
        self.dicts = ffi.gc(ffi.new("tfw_dicts *"), lib.tfw_dicts_free)
        self.done = ffi.new("size_t *")
        self.error = new_error()
        self.small = small = ffi.new("tfw_small_dict *")
        self.table = ffi.buffer(small.buffers)
        self.int64s = np.frombuffer(ffi.buffer(small.int64s), np.int64)
        self.floats = np.frombuffer(ffi.buffer(small.floats), np.float32)
        self.pickle = ffi.buffer(small.pickle)


# Calls that no thread is using. A list's pop and append are atomic.
_idle: list[_Call] = []
_decode_small = lib.tfw_decode_small


def _decode_one(serialized: Any, flags: int) -> Any:
    message = serialized if type(serialized) is bytes else as_message(serialized)
    try:
        call = _idle.pop()
    except IndexError:
        call = _Call()
    try:
        small = call.small
        status = _decode_small(message, len(message), flags, call.dicts, small, call.error)
        if status:
            return _of_status(call, status, None)[0]
        count = small.buffer_count
        if count == 0:
            return pickle.loads(call.pickle)[0]
        ints, floats = _NO_INTS, _NO_FLOATS
        if number := small.int64_count:
            ints = call.int64s[:number].copy()
        if number := small.float_count:
            floats = call.floats[:number].copy()
        arrays = _slices(call.table[: _ROW.size * count], (None, _NO_STRINGS, floats, ints))
        return pickle.loads(call.pickle, buffers=arrays)[0]
    finally:
        if len(message) > _KEPT_BYTES:
            lib.tfw_dicts_free(call.dicts)
        _idle.append(call)


def _decode(
    call: _Call, data: Any, data_len: int, spans: Any, num_spans: int, flags: int, first: int = 0
) -> list[Any]:
    dicts, error = call.dicts, call.error
    status = lib.tfw_decode(data, data_len, spans, num_spans, flags, dicts, call.done, error)
    return _of_status(call, status, first)


def _of_status(call: _Call, status: int, first: int | None) -> list[Any]:
    """The messages in call.dicts, from the number first on (None: a single one); raises if decoding
    failed."""
    dicts = call.dicts
    if status == lib.TFW_E_WIRE:
        record = None if first is None else first + call.error.record
        which = "the message" if record is None else f"message {record}"
        raise ParseError(
            f"{which} is malformed at byte {call.error.offset}: {text(call.error.text)}",
            record_index=record,
            reason="malformed",
        )
    check(status, call.error)
    ints = _own(dicts, "int64s", dicts.int64_count, np.int64)
    floats = _own(dicts, "floats", dicts.float_count, np.float32)
    table = ffi.buffer(dicts.buffers, _ROW.size * dicts.buffer_count)
    arrays = _arrays if dicts.buffer_count >= _MANY_ARRAYS else _slices
    decoded: list[Any] = pickle.loads(
        ffi.buffer(dicts.pickle, dicts.pickle_len),
        buffers=arrays(table, (None, _NO_STRINGS, floats, ints)),
    )
    return decoded


@contextmanager
def _collecting_later() -> Iterator[None]:
    """Turns the garbage collector off.

    The list of dicts grows and holds no garbage. Before Python 3.12 the collector would search it
    repeatedly, for half of the total time. Since 3.12 it runs only after the call.
    """
    pause = sys.version_info < (3, 12) and gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()


def _own(dicts: Any, name: str, count: int, dtype: Any) -> Array:
    """The values that C decoded: a copy, or an array over C's memory."""
    memory = getattr(dicts, name)
    if count > _SMALL:
        setattr(dicts, name, ffi.NULL)
        return adopt(memory, count, dtype)
    array = np.empty(count, dtype)
    ffi.memmove(array, memory, array.nbytes)
    return array


def _slices(table: Any, values: _Values) -> Iterable[Array]:
    """One array per row (kind, begin, end) of the table."""
    return [values[kind][begin:end] for kind, begin, end in _ROW.iter_unpack(table)]


def _arrays(table: Any, values: _Values) -> Iterable[Array]:
    """The same for many rows. Most lists hold one value, and iterating over an array of such lists
    is three times as fast as slicing."""
    rows = np.frombuffer(table, np.int64).reshape(-1, 3)
    count = len(rows)
    arrays = np.empty(count, object)
    lengths = rows[:, 2] - rows[:, 1]
    for kind in (INT64, FLOAT):
        source = values[kind]
        singles = np.flatnonzero((lengths == 1) & (rows[:, 0] == kind))
        parts = source[rows[singles, 1]].reshape(-1, 1)
        arrays[singles] = np.fromiter(parts, object, len(parts))
    for i in np.flatnonzero(lengths != 1).tolist():
        kind, begin, end = rows[i].tolist()
        arrays[i] = values[kind][begin:end]
    result: list[Array] = arrays.tolist()
    return result
