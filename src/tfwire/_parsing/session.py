"""Plans at work: columns under construction, and calls into C."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tfwire._core import adopt, check, ffi, lib, new_error
from tfwire._parsing.assemble import Cells
from tfwire._parsing.failure import Misfit, raise_misfit
from tfwire._parsing.recycle import Spare
from tfwire._parsing.schema import Out, Schema, arrays_of, create_columns
from tfwire._parsing.spec import Request
from tfwire.columns import BytesColumn
from tfwire.features import string

__all__ = ["Session", "borrow"]

Array = np.ndarray[Any, Any]


class Columns:
    """The tfw_columns of a plan and the arrays bound to them; for one thread at a time."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.plan = schema.plan
        self.error = new_error()
        self.handle = create_columns(schema)
        self.arrays: dict[int, Array] = {}
        self.pointers = ffi.new("void *[]", len(self.plan.requests))
        self.column = ffi.new("tfw_column *")
        self.spares = [Spare() for _ in self.plan.requests]
        self.row_sizes = [r.num_values * r.dtype.dtype.itemsize for r in self.plan.requests]
        self.checked = [field for field in self.plan.fields.values() if field.checked]

    def begin(self, capacity: int, out: dict[Any, Array] | None = None) -> None:
        """Forgets all records and makes room for so many, in the arrays of out where given."""
        lib.tfw_columns_clear(self.handle)
        for i, name, shape, dtype in self.schema.bound:
            if out is not None and name in out:
                self.arrays[i] = out[name]
            else:
                self.arrays[i] = self.spares[i].empty((capacity, *shape), dtype)
        self._bind(capacity)
        for i in self.schema.grown:
            self.spares[i].donate(self.handle, i)

    def grow(self, capacity: int, count: int) -> None:
        """Makes room for more records; the first count of them stay."""
        for i, _, shape, dtype in self.schema.bound:
            old = self.arrays[i]
            new = self.spares[i].empty((capacity, *shape), dtype)
            new[:count] = old[:count]
            self.arrays[i] = new
        self._bind(capacity)

    def _bind(self, capacity: int) -> None:
        """Tells C of all arrays in one call: each gives the GIL away and asks for it again."""
        for i, array in self.arrays.items():
            memory = ffi.from_buffer(array)
            # Of an array that the user gave, another thread can have changed the size since.
            if len(memory) < capacity * self.row_sizes[i]:
                raise ValueError("an array of out was resized while it was in use")
            self.pointers[i] = memory
        if self.arrays:
            check(
                lib.tfw_columns_bind_all(self.handle, self.pointers, capacity, self.error),
                self.error,
            )

    def trim(self, count: int) -> None:
        """Gives back room that count records do not need, where it is most of it."""
        for i, array in self.arrays.items():
            if 2 * count < len(array):
                self.arrays[i] = array[:count].copy()

    def verify(self, first: int, count: int) -> None:
        """Whether the columns of count records, from the first on, fit each other.

        Raises:
            Misfit: They do not; its record is counted from the first.
        """
        if self.checked and count:
            cells = [
                self._peek(i, request, first, count) if request.variable else Cells(None)
                for i, request in enumerate(self.plan.requests)
            ]
            for field in self.checked:
                field.batch(cells, count)

    def _peek(self, i: int, request: Request, first: int, count: int) -> Cells:
        """The cells of some records, where C has them: valid until the next call."""
        column = self.column
        check(lib.tfw_columns_peek(self.handle, i, column, self.error), self.error)
        return _cells(column, request, borrow, borrow, first + count).between(first, count)

    def take(self, count: int) -> list[Cells]:
        """The columns of the count records held. They belong to the caller from here on, but for
        numbers to be padded, which are valid until the next call."""
        bound, self.arrays = self.arrays, {}
        return [
            Cells(_head(bound[i], count)) if i in bound else self._take(i, request, count)
            for i, request in enumerate(self.plan.requests)
        ]

    def _take(self, i: int, request: Request, count: int) -> Cells:
        if i in self.schema.lent:
            check(lib.tfw_columns_peek(self.handle, i, self.column, self.error), self.error)
            return _cells(self.column, request, borrow, borrow, count)._replace(
                empty=self.spares[i].empty
            )
        check(lib.tfw_columns_take(self.handle, i, self.column, self.error), self.error)
        adopt_values = partial(self.spares[i].adopt, capacity=self.column.capacity)
        return _cells(self.column, request, adopt_values, adopt, count)


def _head(array: Array, count: int) -> Array:
    """The first entries; the array itself, where it has no more."""
    return array if len(array) == count else array[:count]


def _cells(
    column: Any,
    request: Request,
    large: Callable[..., Array],
    array: Callable[..., Array],
    count: int,
) -> Cells:
    """A tfw_column of count records as arrays: values by large, everything else by array."""
    values: Any
    if request.dtype == string:
        data = large(column.values, column.byte_count, np.uint8)
        values = BytesColumn(data, array(column.offsets, column.value_count + 1, np.int64))
    else:
        values = large(column.values, column.value_count, request.dtype.as_numpy_dtype)
    splits = steps = None
    if column.splits != ffi.NULL:
        splits = array(column.splits, column.cell_count + 1, np.int64)
    if column.steps != ffi.NULL:
        steps = array(column.steps, count + 1, np.int64)
    return Cells(values, splits, steps)


def borrow(memory: Any, count: int, dtype: Any) -> Array:
    """An array over memory that stays C's."""
    dtype = np.dtype(dtype)
    return np.frombuffer(ffi.buffer(memory, count * dtype.itemsize), dtype)


class Session:
    """The columns of an Example, or of a SequenceExample's two parts; for one thread at a time."""

    def __init__(self, schemas: tuple[Schema | None, ...], flags: int) -> None:
        self.columns = [None if schema is None else Columns(schema) for schema in schemas]
        self.handles = [ffi.NULL if c is None else c.handle for c in self.columns]
        self.parse_function = lib.tfw_parse if len(schemas) == 1 else lib.tfw_parse_sequence
        self.flags = flags
        self.done = ffi.new("size_t *")
        self.span = ffi.new("tfw_span *")
        self.error = new_error()

    def begin(self, capacity: int, out: Out | None = None) -> None:
        """Forgets all records and makes room for so many.

        Args:
            capacity: A number of records.
            out: Arrays to write to; of an Example, or of a SequenceExample's context.
        """
        first, *others = self.columns
        arrays = None
        if out is not None:
            arrays = arrays_of(out, None if first is None else first.schema, capacity)
        if first is not None:
            first.begin(capacity, arrays)
        for columns in others:
            if columns is not None:
                columns.begin(capacity)

    def keep(self, size: int) -> None:
        """Up to which size blocks of memory are kept for later results."""
        for columns in self.columns:
            if columns is not None:
                for spare in columns.spares:
                    spare.limit_to(size)

    def grow(self, capacity: int, count: int) -> None:
        """Makes room for more records; the first count of them stay."""
        for columns in self.columns:
            if columns is not None:
                columns.grow(capacity, count)

    def parse(self, data: Any, data_len: int, spans: Any, count: int, flags: int = 0) -> None:
        """Appends the records of a batch.

        Raises:
            Misfit: A record does not fit; self.done[0] came before it and were appended.
            MemoryError: Out of memory.
        """
        status: int = self.parse_function(
            *self.handles, data, data_len, spans, count, self.flags | flags, self.done, self.error
        )
        if status != lib.TFW_OK:
            self._fail(status)

    def append(self, data: Any, data_len: int, spans: Any, count: int, first: int) -> None:
        """As parse, for columns that hold first records already and will take more: what else
        could go wrong with these records is found out now.

        Raises:
            Misfit, MemoryError: As parse.
        """
        found: Misfit | None = None
        try:
            self.parse(data, data_len, spans, count)
        except Misfit as misfit:
            found = misfit
        for columns in self.columns:
            try:
                if columns is not None:
                    columns.verify(first, self.done[0])
            except Misfit as misfit:
                found, self.done[0] = misfit, misfit.record
                self.truncate(first + self.done[0])
        try:
            if found is not None:
                raise found
        finally:
            del found  # as raise_misfit

    def truncate(self, count: int) -> None:
        """Forgets all records but the first so many."""
        for columns in self.columns:
            if columns is not None:
                lib.tfw_columns_truncate(columns.handle, count)

    def parse_one(self, message: Any) -> None:
        """Appends one record, by TensorFlow's rules for a single one.

        Raises:
            Misfit, MemoryError: As parse.
        """
        data = ffi.from_buffer("uint8_t[]", message)
        self.span.length = len(data)
        self.parse(data, len(data), self.span, 1, lib.TFW_SINGLE)

    def _fail(self, status: int) -> None:
        part = self.columns[-1 if self.error.list == 1 else 0]
        raise_misfit(status, self.error, [] if part is None else part.plan.requests)
        check(status, self.error)

    def trim(self, count: int) -> None:
        for columns in self.columns:
            if columns is not None:
                columns.trim(count)

    def take(self, count: int) -> list[list[Cells]]:
        """The columns of every part, as Columns.take gives them."""
        return [[] if columns is None else columns.take(count) for columns in self.columns]
