"""Serialized Examples to dicts of values, without a specification."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfwire._base.aliases import BytesLike, DecodedValues, SupportsSerialize
from tfwire._base.errors import ParseError
from tfwire._base.native import SEED, address, check, ffi, lib, new_error, objects, text
from tfwire._base.strings import Spans, as_message, message_slices
from tfwire._examples.column_types import Messages
from tfwire._examples.other_messages import not_an_example


def decode_example(serialized: BytesLike | SupportsSerialize) -> dict[str, DecodedValues]:
    """Decodes one serialized ``tf.train.Example`` without a specification.

    Args:
        serialized: A bytes-like object, or an object whose ``numpy()`` is one.

    Returns:
        Feature names to values: an int64 or float32 array of rank 1, or a list of bytes. ``[]`` is
        a Feature without a kind, an empty array of dtype object an empty bytes_list, so that
        encode_example gives the same values back. Names that are not UTF-8 hold their bytes as
        surrogateescape does. Small arrays of several messages may share memory, up to 4 KiB.

    Raises:
        ParseError: Not a well-formed message, or one without features that has other fields: an
            event of TensorBoard, a serialized tensor. The error says what it may be. An empty
            message is an Example without features.
        TypeError: ``serialized`` is not bytes-like.

    Example:
        >>> decode_example(tfw.encode_example({"label": 3, "name": "goat"}))
        {'label': array([3]), 'name': [b'goat']}
    """
    decoded: dict[str, DecodedValues] = _decode_one(serialized, False)
    return decoded


def decode_examples(serialized: Messages) -> list[dict[str, DecodedValues]]:
    """Decodes many serialized Examples. Arrays of all of them may share memory.

    Args:
        serialized: A list or array of bytes-like objects, or a BytesColumn.

    Returns:
        One dict per message, as decode_example gives it.

    Raises:
        ParseError: A message is not well-formed; ``record_index`` says which.
        TypeError: An item is not bytes-like.
    """
    return _decode_many(serialized, False)


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
    decoded = _decode_one(serialized, True)
    return decoded


def decode_sequence_examples(
    serialized: list[bytes],
) -> list[tuple[dict[str, DecodedValues], dict[str, list[DecodedValues]]]]:
    """Decodes many messages, each as decode_sequence_example; arrays may share memory."""
    return _decode_many(serialized, True)


# ---- C makes the dicts --------------------------------------------------------------------------


def _new_decoder() -> Any:
    """A decoder in C, which remembers keys. Empty lists are slices of the arrays."""
    none = np.empty(0, object), np.empty(0, np.float32), np.empty(0, np.int64)
    return objects.tfw_new_decoder(SEED, np.frombuffer, *none)


# What C says of a well-formed message of another type.
NO_FEATURES = "no features, but other fields"
# Decoders that no thread is using. A list's pop and append are atomic.
_idle: list[Any] = []
_decode_dict = objects.tfw_decode_dict


def _decode_one(serialized: Any, sequence: bool) -> Any:
    message = serialized if type(serialized) is bytes else as_message(serialized)
    try:
        decoder = _idle.pop()
    except IndexError:
        decoder = _new_decoder()
    try:
        decoded = _decode_dict(decoder, message, sequence)
    finally:
        _idle.append(decoder)
    if decoded is None:
        _decode_many([message], sequence, alone=True)  # raises
    return decoded


def _decode_many(serialized: Any, sequence: bool, alone: bool = False) -> list[Any]:
    decoder, error, decoded = _new_decoder(), new_error(), []
    with _collecting_later():
        for s in message_slices(serialized)[1]:
            flags = s.flags | (lib.TFW_SEQUENCE if sequence else 0)
            data, spans = address(s.data), address(s.spans)
            found = objects.tfw_decode_dicts(
                *(decoder, data, s.data_len, spans, s.num_spans, flags, address(error))
            )
            if type(found) is int:
                _fail(found, error, None if alone else s.first, s)
            decoded += found
    return decoded


def _fail(status: int, error: Any, first: int | None, messages: Spans) -> None:
    """Raises the error of a message of those from the number first on (None: a single one)."""
    if status == lib.TFW_E_WIRE:
        record = None if first is None else first + error.record
        which = "the message" if record is None else f"message {record}"
        what = f"is malformed at byte {error.offset}: {text(error.text)}"
        if text(error.text) == NO_FEATURES:
            what = f"is not an Example: {not_an_example(_message_at(messages, error.record))}"
        raise ParseError(f"{which} {what}", record_index=record, reason="malformed")
    check(status, error)


def _message_at(messages: Spans, i: int) -> bytes:
    span = messages.spans[i]
    base = 0 if messages.flags & lib.TFW_ADDRESSES else address(messages.data)
    return bytes(ffi.buffer(ffi.cast("uint8_t *", base + span.offset), span.length))


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
