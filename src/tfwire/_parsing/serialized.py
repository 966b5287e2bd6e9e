"""What the parse functions take as serialized messages: which rank it has, and single messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._spans import message_of
from tfwire.columns import BytesColumn

__all__ = ["is_scalar", "names_of", "single_message", "single_name", "unwrap"]


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


def names_of(names: Any) -> tuple[str | bytes, ...]:
    """The argument ``example_names`` of a batch.

    Raises:
        TypeError: Not a list, tuple or array of str or bytes.
    """
    names = unwrap(names)
    if isinstance(names, np.ndarray):
        names = names.tolist()
    found = type(names).__name__
    if isinstance(names, (list, tuple)):
        held: tuple[Any, ...] = tuple(names)
        strange = [name for name in held if not isinstance(name, (str, bytes))]
        if not strange:
            return held
        found += f" with {type(strange[0]).__name__}"
    raise TypeError(f"example_names must be a list of str or bytes, found {found}")


def single_name(name: Any) -> str | bytes:
    """The argument ``example_names`` of one message: a name, or a list of one.

    Raises:
        TypeError: It is neither.
    """
    name = unwrap(name)
    if isinstance(name, np.ndarray):
        name = name.tolist()
    if isinstance(name, (str, bytes)):
        return name
    names = names_of(name)
    if len(names) != 1:
        raise TypeError(f"example_names must be one name, found {len(names)}")
    return names[0]


def _is_buffer(value: Any) -> bool:
    """Whether this is a byte string as np.frombuffer shows it."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.uint8


def _is_vector(value: Any) -> bool:
    """Whether this is an array of byte strings."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and not _is_buffer(value)
