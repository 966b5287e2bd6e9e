"""Examples and SequenceExamples to Python values, without a specification."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._core import lib
from tfwire._examples.decoder import decode_message, decode_messages
from tfwire._spans import message_of

__all__ = ["decode_example", "decode_examples", "decode_sequence_example"]

# The values of a decoded feature: int64 or float32 of rank 1, or the strings of a bytes_list.
Values = np.ndarray[Any, Any] | list[bytes]


def decode_example(serialized: Any) -> dict[str, Values]:
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
    decoded: dict[str, Values] = decode_message(message_of(serialized), 0)
    return decoded


def decode_examples(serialized: Any) -> list[dict[str, Values]]:
    """Decodes many serialized Examples; their arrays are slices of arrays common to many.

    Args:
        serialized: A list or array of bytes-like objects, or a BytesColumn.

    Returns:
        One dict per message, as decode_example gives it.

    Raises:
        ParseError: A message is not well-formed; ``record_index`` says which.
        TypeError: An item is not bytes-like.
    """
    return decode_messages(serialized, 0)


def decode_sequence_example(
    serialized: Any,
) -> tuple[dict[str, Values], dict[str, list[Values]]]:
    """Decodes one serialized ``tf.train.SequenceExample`` without a specification.

    Args:
        serialized: A bytes-like object, an object with ``numpy()``, or a message.

    Returns:
        The context as decode_example gives it, and the feature lists: names to one entry of
        values per step.

    Raises:
        ParseError: Not a well-formed message.
        TypeError: ``serialized`` is not bytes-like.

    Example:
        >>> message = tfw.encode_sequence_example({"n": 2}, {"word": ["a", "b"]})
        >>> decode_sequence_example(message)
        ({'n': array([2])}, {'word': [[b'a'], [b'b']]})
    """
    decoded: tuple[dict[str, Values], dict[str, list[Values]]]
    decoded = decode_message(message_of(serialized), lib.TFW_SEQUENCE)
    return decoded
