"""What the parse functions take as serialized messages: which rank it has, and single messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._spans import message_of
from tfwire.columns import BytesColumn

__all__ = ["is_scalar", "single_message", "unwrap"]


def unwrap(serialized: Any) -> Any:
    """The value of an object with a ``numpy()`` method; a list as a tuple, which no other thread
    can change."""
    if hasattr(serialized, "numpy"):
        serialized = serialized.numpy()
    return tuple(serialized) if isinstance(serialized, list) else serialized


def is_scalar(serialized: Any) -> bool:
    """Whether this is one message (rank 0) and not a batch of them (rank 1).

    Raises:
        ValueError: It is of a higher rank.
        TypeError: It is an array of something else.
    """
    if isinstance(serialized, (bytes, bytearray, memoryview, str)) or _is_buffer(serialized):
        return True
    rank = 1
    if isinstance(serialized, np.ndarray):
        if serialized.dtype.kind not in "OS":
            raise TypeError(f"expected serialized messages, found an array of {serialized.dtype}")
        rank, shape = serialized.ndim, list(serialized.shape)
    elif isinstance(serialized, BytesColumn):
        rank, shape = len(serialized.shape), list(serialized.shape)
    elif isinstance(serialized, (list, tuple)) and serialized:
        first = serialized[0]
        if isinstance(first, (list, tuple)) or _is_vector(first):
            rank, shape = 2, [len(serialized), len(first)]
    if rank > 1:
        raise ValueError(f"Expected serialized to be a scalar or vector, got shape: {shape}")
    return rank == 0


def single_message(serialized: Any) -> bytes:
    """One message as a bytes object, which no other thread can change.

    Raises:
        ValueError: This is a batch.
        TypeError: This is no byte string.
    """
    if type(serialized) is bytes:
        return serialized
    if isinstance(serialized, (list, tuple)) or _is_vector(serialized):
        raise ValueError("Input serialized must be a scalar")
    return message_of(serialized)


def _is_buffer(value: Any) -> bool:
    """Whether this is a byte string as np.frombuffer shows it."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.uint8


def _is_vector(value: Any) -> bool:
    """Whether this is an array of byte strings."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and not _is_buffer(value)
