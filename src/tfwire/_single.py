"""One Example at a time by FixedLenFeatures alone: the short way, for what is called per record."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import getitem
from typing import Any

from tfwire._assemble import Dense
from tfwire._core import ffi, lib, new_error
from tfwire._session import Columns, Schema
from tfwire._spec import Request
from tfwire.features import string

__all__ = ["SingleRecord", "is_short"]


def is_short(schema: Schema) -> bool:
    """Whether the short way serves a specification: numbers of any shape, and scalar strings."""
    plan = schema.plan
    return not plan.lists and all(
        isinstance(field, Dense)
        and (not field.shape or plan.requests[field.column].dtype != string)
        for field in plan.fields.values()
    )


class SingleRecord:
    """Memory that is bound once; every record is read from it. For one thread at a time."""

    def __init__(self, schema: Schema, flags: int) -> None:
        columns = Columns(schema)
        columns.begin(1)
        self._columns = columns
        self._handle = columns.handle
        self._flags = flags | lib.TFW_SINGLE
        self._span = ffi.new("tfw_span *")
        self._error = new_error()
        plan = schema.plan
        self._getters = [
            (key, self._getter(field.column, plan.requests[field.column]))
            for key, field in plan.fields.items()
            if isinstance(field, Dense)  # they all are
        ]

    def _getter(self, i: int, request: Request) -> Callable[[], Any]:
        """What gives the value of a column as its user's own."""
        if request.dtype == string:
            return partial(self._string, i, ffi.new("tfw_column *"))
        array = self._columns.arrays[i]
        return array[0].copy if request.shape else partial(getitem, array, 0)

    def _string(self, i: int, column: Any) -> bytes:
        lib.tfw_columns_peek(self._handle, i, column, ffi.NULL)
        value: bytes = ffi.buffer(column.values, column.byte_count)[:]
        return value

    def parse(self, message: bytes) -> dict[Any, Any] | None:
        """The result, or None when the message does not fit: the long way says why."""
        handle, length = self._handle, len(message)
        self._span.length = length
        lib.tfw_columns_clear(handle)
        status = lib.tfw_parse(
            handle, message, length, self._span, 1, self._flags, ffi.NULL, self._error
        )
        if status:
            return None
        return {key: get() for key, get in self._getters}
