"""Parsing one serialized message at a time, and the arguments of the parse functions.

A call to C costs about as much as parsing a small message, and so does making an array. So there is
one call per message. Numbers go to scratch memory that stays bound, the strings of all features to
one buffer. An expression made for the specification cuts the result out of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from tfwire._base.native import borrow, check, ffi, lib, new_error
from tfwire._base.strings import as_message
from tfwire._examples.column_types import BytesColumn
from tfwire._parsing.failure import raise_failure
from tfwire._parsing.features import DType, float32, int64, string
from tfwire._parsing.native_session import Schema, create_columns
from tfwire._parsing.spec import Request

# Longer strings are copied one by one.
_STRINGS_SIZE = 4096


class SingleSession:
    """Scratch memory for one record of FixedLenFeatures; for one thread at a time.

    Args:
        schema: A schema of FixedLenFeatures only.
        flags: For tfw_parse_one.
        as_column: Strings of rank 1 or more become a BytesColumn, not an object array.
    """

    def __init__(self, schema: Schema, flags: int, as_column: bool) -> None:
        self._requests = schema.plan.requests
        self._handle = create_columns(schema)
        self._error = new_error()
        num_strings = sum(r.num_values for r in self._requests if r.dtype == string)
        self._strings = ffi.new("uint8_t[]", _STRINGS_SIZE)
        self._ends = ffi.new("int64_t[]", num_strings)
        self._names: dict[str, Any] = {
            "text": ffi.buffer(self._strings),
            "ends": self._ends,
            "string": partial(_string, self._handle, self._requests, as_column),
            "parse_one": lib.tfw_parse_one,
            "columns": self._handle,
            "strings": self._strings,
            "error": self._error,
            **{f"key{i}": request.name for i, request in enumerate(self._requests)},
        }
        self._bind(int64)
        self._bind(float32)
        if flags not in schema.programs:
            schema.programs[flags] = _programs(self._requests, flags)
        long, short = schema.programs[flags]
        # A separate dict: one shared with long would be a reference cycle.
        other = partial(_other, eval(long, self._names), self._error, self._requests)
        # Takes a message and returns its features; raises ParseFailure or MemoryError. All in one
        # function: another call costs 40 ns.
        self.parse: Callable[[bytes], dict[Any, Any]]
        self.parse = eval(short, {**self._names, "other": other})

    def _bind(self, dtype: DType) -> None:
        """Binds the columns of a type to parts of one array."""
        columns = [(i, r) for i, r in enumerate(self._requests) if r.dtype == dtype]
        memory = np.empty(sum(r.num_values for _, r in columns), dtype.as_numpy_dtype)
        self._names[dtype.name] = memory
        begin = 0
        for i, request in columns:
            end = begin + request.num_values
            pointer = ffi.from_buffer(memory[begin:end])
            check(lib.tfw_columns_bind(self._handle, i, pointer, 1, self._error), self._error)
            if request.shape:
                self._names[f"array{i}"] = memory[begin:end].reshape(request.shape)
            begin = end


def _programs(requests: Sequence[Request], flags: int) -> tuple[CodeType, CodeType]:
    """The code of two functions, compiled once for a schema.

    The second parses a message and makes the result, the first makes it of strings that do not fit
    into the buffer. A dict display is faster than any loop. Keys are in it as literals; everything
    else has a name.
    """
    return (
        compile(f"lambda: {_result(requests, short=False)}", "<result>", "eval"),
        compile(
            f"lambda message: {_result(requests, short=True)} if not (status := parse_one("
            f"columns, message, len(message), {flags}, strings, {_STRINGS_SIZE}, ends, error)) "
            "else other(status)",
            "<parse>",
            "eval",
        ),
    )


def _result(requests: Sequence[Request], short: bool) -> str:
    """The source of the result."""
    items, begin, end = [], "", 0
    places = {int64: 0, float32: 0}
    for i, request in enumerate(requests):
        if request.dtype == string:
            end += request.num_values
            expression = f"string({i})"
            if short and not request.shape:
                expression = f"text[{begin}:ends[{end - 1}]]"
            begin = f"ends[{end - 1}]" if end else ""
        else:
            place = places[request.dtype]
            places[request.dtype] += request.num_values
            expression = f"array{i}.copy()" if request.shape else f"{request.dtype.name}[{place}]"
        key = repr(request.name) if type(request.name) is str else f"key{i}"
        items.append(f"{key}: {expression}")
    return f"{{{', '.join(items)}}}"


def _other(
    long: Callable[[], dict[Any, Any]], error: Any, requests: Sequence[Request], status: int
) -> dict[Any, Any]:
    """The result if the strings do not fit into the buffer; raises if parsing failed."""
    if status < 0:
        raise_failure(status, error, requests)
        check(status, error)
    return long()


def _string(handle: Any, requests: Sequence[Request], as_column: bool, i: int) -> Any:
    """The value of a feature of strings, from the columns."""
    column, error = ffi.new("tfw_column *"), new_error()
    check(lib.tfw_columns_peek(handle, i, column, error), error)
    shape = requests[i].shape
    if not shape:
        return ffi.buffer(column.values, column.byte_count)[:]
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
