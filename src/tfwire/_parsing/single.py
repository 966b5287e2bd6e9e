"""One Example at a time, for specifications of FixedLenFeatures: the way of least latency.

A call into C costs about as much as parsing a small message, and so does an array. Hence one call
per message, numbers into scratch memory that stays bound, and the strings of all features side by
side in one buffer. The result is cut out of them by an expression made for the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfwire._core import check, ffi, lib, new_error
from tfwire._parsing.failure import raise_misfit
from tfwire._parsing.schema import Schema, create_columns
from tfwire._parsing.session import borrow
from tfwire._parsing.spec import Request
from tfwire.columns import BytesColumn
from tfwire.features import DType, float32, int64, string

__all__ = ["SingleSession"]

# Longer strings are copied one by one.
_STRINGS_SIZE = 4096


class SingleSession:
    """Scratch memory for one record of FixedLenFeatures; for one thread at a time.

    Args:
        schema: A schema of FixedLenFeatures only.
        flags: For tfw_parse_one.
        as_column: Strings of rank 1 and above are a BytesColumn, not an object array.
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
        }
        self._expressions = [""] * len(self._requests)
        self._bind(int64)
        self._bind(float32)
        long = self._compile(f"lambda: {self._result(short=False)}")
        # Other names than those of long, which no reference cycle keeps alive.
        other = partial(_other, long, self._error, self._requests)
        self._names = {**self._names, "other": other}
        # From a message to its features; raises Misfit or MemoryError. One function: another
        # call costs some 40 ns.
        self.parse = self._compile(
            f"lambda message: {self._result(short=True)} if not (status := parse_one(columns, "
            f"message, len(message), {flags}, strings, {_STRINGS_SIZE}, ends, error)) "
            "else other(status)"
        )

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
            self._expressions[i] = f"{dtype.name}[{begin}]"
            if request.shape:
                self._names[f"array{i}"] = memory[begin:end].reshape(request.shape)
                self._expressions[i] = f"array{i}.copy()"
            begin = end

    def _result(self, short: bool) -> str:
        """The expression of the result: a dict display is faster than any loop.

        It holds names and numbers from here, and keys as literals.
        """
        items, begin, end = [], "", 0
        for i, request in enumerate(self._requests):
            expression = self._expressions[i]
            if request.dtype == string:
                end += request.num_values
                expression = f"string({i})"
                if short and not request.shape:
                    expression = f"text[{begin}:ends[{end - 1}]]"
                begin = f"ends[{end - 1}]" if end else ""
            items.append(f"{self._key(i, request.name)}: {expression}")
        return f"{{{', '.join(items)}}}"

    def _key(self, i: int, key: Any) -> str:
        if type(key) is str:
            return repr(key)
        self._names[f"key{i}"] = key
        return f"key{i}"

    def _compile(self, source: str) -> Callable[..., dict[Any, Any]]:
        function: Callable[..., dict[Any, Any]] = eval(source, self._names)
        return function


def _other(
    long: Callable[[], dict[Any, Any]], error: Any, requests: Sequence[Request], status: int
) -> dict[Any, Any]:
    """The result where the strings have no room in the buffer; raises where parsing failed."""
    if status < 0:
        raise_misfit(status, error, requests)
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
    strings = BytesColumn(data, offsets, shape)
    return strings if as_column else strings.to_numpy()
