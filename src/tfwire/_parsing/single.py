"""Parsing one serialized message at a time, and the arguments of the parse functions.

Making an array costs about as much as parsing a small message. So there is one call per message:
numbers go to scratch memory that stays bound, and C makes the dict of what is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tfwire._base.native import address, borrow, check, ffi, lib, new_error, objects
from tfwire._base.strings import as_message
from tfwire._examples.column_types import BytesColumn
from tfwire._parsing.failure import raise_failure
from tfwire._parsing.features import DType, float32, int64, string
from tfwire._parsing.native_session import Schema, create_columns

_parse_single = objects.tfw_parse_single


class SingleSession:
    """Scratch memory for one record of FixedLenFeatures; for one thread at a time.

    Args:
        schema: A schema of FixedLenFeatures only.
        flags: For tfw_parse.
        as_column: Strings of rank 1 or more become a BytesColumn, not an object array.
    """

    def __init__(self, schema: Schema, flags: int, as_column: bool) -> None:
        self._requests = schema.plan.requests
        handle = create_columns(schema)
        self._error = new_error()
        self._error_address = address(self._error)
        items: dict[int, tuple[Any, int]] = {  # what a value is made of, as tfw_new_single takes it
            **dict(self._numbers(handle, int64)),
            **dict(self._numbers(handle, float32)),
        }
        for i, request in enumerate(self._requests):
            if request.dtype == string:
                several = partial(_strings, handle, request.shape, as_column, i)
                items[i] = (several, -1) if request.shape else (None, i)
        named = [(request.name, *items[i]) for i, request in enumerate(self._requests)]
        self._native = objects.tfw_new_single(address(handle), flags, handle, tuple(named))

    def _numbers(self, handle: Any, dtype: DType) -> Iterator[tuple[int, tuple[Any, int]]]:
        """Binds the columns of a type to parts of one array."""
        columns = [(i, r) for i, r in enumerate(self._requests) if r.dtype == dtype]
        memory = np.empty(sum(r.num_values for _, r in columns), dtype.as_numpy_dtype)
        begin = 0
        for i, request in columns:
            end = begin + request.num_values
            pointer = ffi.from_buffer(memory[begin:end])
            check(lib.tfw_columns_bind(handle, i, pointer, 1, self._error), self._error)
            if request.shape:
                yield i, (memory[begin:end].reshape(request.shape).copy, -1)
            else:
                yield i, (memory, begin)
            begin = end

    def parse(self, message: bytes) -> dict[Any, Any]:
        """The features of a message.

        Raises:
            ParseFailure: It does not fit.
            MemoryError: Out of memory.
        """
        found: Any = _parse_single(self._native, message, self._error_address)
        if type(found) is int:
            raise_failure(found, self._error, self._requests)
            check(found, self._error)
        features: dict[Any, Any] = found
        return features


def _strings(handle: Any, shape: tuple[int, ...], as_column: bool, i: int) -> Any:
    """The value of a feature of several strings, from the columns."""
    column, error = ffi.new("tfw_column *"), new_error()
    check(lib.tfw_columns_peek(handle, i, column, error), error)
    data = borrow(column.values, column.byte_count, np.uint8).copy()
    offsets = borrow(column.offsets, column.value_count + 1, np.int64).copy()
    strings = BytesColumn._trusted(data, offsets, shape)
    return strings if as_column else strings.to_numpy()


# ---- The arguments serialized and example_names ----------------------------------------------


def unwrap(serialized: Any) -> Any:
    """The value of an object with a ``numpy()`` method; a list as a tuple, which other threads
    cannot change."""
    if hasattr(serialized, "numpy"):
        serialized = serialized.numpy()
    return tuple(serialized) if isinstance(serialized, list) else serialized


def is_scalar(serialized: Any) -> bool:
    """True for one message (rank 0), False for a batch (rank 1).

    Raises:
        ValueError: The rank is higher.
        TypeError: An array of something else.
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
    """One message as a bytes object, which other threads cannot change.

    Raises:
        ValueError: This is a batch.
        TypeError: Not a byte string.
    """
    if type(serialized) is bytes:
        return serialized
    if isinstance(serialized, (list, tuple)) or _is_vector(serialized):
        raise ValueError("Input serialized must be a scalar")
    return as_message(serialized)


def batch_names(names: Any) -> tuple[str | bytes, ...]:
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
        TypeError: Neither of them.
    """
    name = unwrap(name)
    if isinstance(name, np.ndarray):
        name = name.tolist()
    if isinstance(name, (str, bytes)):
        return name
    names = batch_names(name)
    if len(names) != 1:
        raise TypeError(f"example_names must be one name, found {len(names)}")
    return names[0]


def _is_buffer(value: Any) -> bool:
    """True for a byte string as np.frombuffer returns it."""
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype == np.uint8


def _is_vector(value: Any) -> bool:
    """True for an array of byte strings."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and not _is_buffer(value)
