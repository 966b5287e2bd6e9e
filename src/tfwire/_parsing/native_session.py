"""Calls into C that parse: sessions with their columns, and schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array, Out
from tfwire._base.native import SEED, adopt, borrow, check, ffi, lib, new_error
from tfwire._base.text import quoted
from tfwire._examples.column_types import BytesColumn
from tfwire._parsing.failure import ParseFailure, raise_failure
from tfwire._parsing.features import string
from tfwire._parsing.fields import Column
from tfwire._parsing.memory_pool import LARGE, Spare
from tfwire._parsing.spec import KINDS, Plan, Request
from tfwire._records.reading.native_batches import Stretch, Window

# What C reports of a record that does not fit, and of memory.
_FAILURES = {
    lib.TFW_E_WIRE,
    lib.TFW_E_MISSING,
    lib.TFW_E_KIND,
    lib.TFW_E_COUNT,
    lib.TFW_E_SCHEMA,
    lib.TFW_E_MEMORY,
    lib.TFW_E_ARGUMENT,
}


class Session:
    """The columns of an Example, or of a SequenceExample's two parts; for one thread at a time.

    Methods call C themselves, for both parts: few Python frames lie between a user's call and C.
    """

    def __init__(self, schemas: tuple[Schema | None, ...], flags: int) -> None:
        columns = [None if schema is None else Columns(schema) for schema in schemas]
        self.columns = columns
        self.parts = [part for part in columns if part is not None]
        self.handles = [ffi.NULL if part is None else part.handle for part in columns]
        self.flags = flags
        sequence = len(schemas) == 2
        self.parse_function = lib.tfw_parse_sequence if sequence else lib.tfw_parse
        self._unit = ffi.new("tfw_part[2]")
        for native, part in zip(self._unit, columns, strict=False):
            if part is not None:
                part.fill_in(native)
        self._read_flags = flags | (lib.TFW_SEQUENCE if sequence else 0)
        self._goal = 0  # records of the unit, after which its columns are finished
        self._is_begun = self._is_finished = False
        self.checked = any(part.checked for part in self.parts)
        self.done = ffi.new("size_t *")
        self.span = ffi.new("tfw_span *")
        self.window: Window | None = None  # that append takes records of
        self.error = new_error()

    def begin(self, capacity: int, out: Out | None = None) -> None:
        """Forgets all records and makes room for others.

        Args:
            capacity: A number of records.
            out: Arrays to write to; of an Example, or of a SequenceExample's context.
        """
        context = self.columns[0]
        arrays: dict[Any, Array] = {}
        if out is not None:
            arrays = arrays_of(out, None if context is None else context.schema, capacity)
        for part in self.parts:
            part.prepare(capacity, arrays if part is context else {})
            part.begin(capacity)
        self._is_begun, self._is_finished = True, False

    def begin_unit(self, capacity: int, goal: int) -> None:
        """As begin, but leaves the work to the first ``read``, so that a unit takes one call into
        C: each call releases the GIL and waits for it again.

        Args:
            capacity: A number of records.
            goal: A number of records of which the columns are finished when they are read.
        """
        for part in self.parts:
            part.prepare(capacity, {})
        for native in self._unit:
            native.capacity = capacity
        self._goal = 0 if self.checked else goal
        self._is_begun = self._is_finished = False

    def _begin(self) -> None:
        """Begins, if that was not done."""
        if not self._is_begun:
            self._is_begun = True
            for part in self.parts:
                part.begin(self._unit[0].capacity)

    def settle(self) -> None:
        """Takes memory back that C does not need, after the last ``read`` of a unit."""
        if not self._is_begun:
            self._is_begun = True
            for part in self.parts:
                part.settle()

    def grow(self, capacity: int, count: int) -> None:
        """Makes room for more records; the first count of them stay."""
        self._begin()
        for part in self.parts:
            part.grow(capacity, count)

    def parse(self, data: Any, data_len: int, spans: Any, count: int, flags: int = 0) -> None:
        """Appends the records of a batch.

        Raises:
            ParseFailure: A record does not fit; the self.done[0] records before it were appended.
            MemoryError: Out of memory.
        """
        status: int = self.parse_function(
            *self.handles, data, data_len, spans, count, self.flags | flags, self.done, self.error
        )
        if status != lib.TFW_OK:
            self._fail(status)

    def append(self, data: Any, data_len: int, spans: Any, count: int, first: int) -> None:
        """As parse, for columns that hold first records already and will take more. Columns that do
        not fit each other are found now.

        Raises:
            ParseFailure, MemoryError: As parse.
        """
        self._begin()
        status = self.parse_function(
            *self.handles, data, data_len, spans, count, self.flags, self.done, self.error
        )
        self._verify(first)
        if status != lib.TFW_OK:
            self._fail(status)

    def read(self, stretch: Stretch, count: int, first: int) -> int:
        """Appends at most count records straight from a file, as ``append``; self.done[0] of them.

        Returns:
            TFW_OK: all of them; else why the next record was not read.

        Raises:
            ParseFailure, MemoryError: As parse.
        """
        flags = self._read_flags | (0 if self._is_begun else lib.TFW_BEGIN)
        if first + count == self._goal:
            flags |= lib.TFW_FINISH
        status: int = lib.tfw_read_unit(
            self._unit,
            self._unit + 1,
            stretch.native,
            count,
            flags,
            stretch.tally,
            self.done,
            self.error,
        )
        self.settle()
        self._is_finished = status == lib.TFW_OK and bool(flags & lib.TFW_FINISH)
        self._verify(first)
        if status in _FAILURES:
            self._fail(status)
        return status

    def _verify(self, first: int) -> None:
        """Checks that the columns of the self.done[0] records after the first ones fit each other.

        Raises:
            ParseFailure: They do not; only the self.done[0] records before it stay.
        """
        if not self.checked:
            return
        found: ParseFailure | None = None
        # One check looks at all records before the next does: an earlier record may fail a later
        # check, or that of another feature. So the records before a failure are checked again.
        while (failure := self._check_columns(first)) is not None:
            found, self.done[0] = failure, failure.record
            self.truncate(first + self.done[0])
        try:
            if found is not None:
                raise found
        finally:
            del found, failure  # as raise_failure

    def _check_columns(self, first: int) -> ParseFailure | None:
        """The failure of one of the self.done[0] records after the first ones, if there is any."""
        try:
            for part in self.parts:
                part.verify(first, self.done[0])
        except ParseFailure as failure:
            return failure
        return None

    def truncate(self, count: int) -> None:
        """Forgets all records but the first count."""
        for part in self.parts:
            lib.tfw_columns_truncate(part.handle, count)

    def parse_one(self, message: Any) -> None:
        """Appends one record, by TensorFlow's rules for a single one.

        Raises:
            ParseFailure, MemoryError: As parse.
        """
        data = ffi.from_buffer("uint8_t[]", message)
        self.span.length = len(data)
        self.parse(data, len(data), self.span, 1, lib.TFW_SINGLE)

    def _fail(self, status: int) -> None:
        part = self.columns[-1 if self.error.list == 1 else 0]
        raise_failure(status, self.error, [] if part is None else part.plan.requests)
        check(status, self.error)

    def take(self, count: int) -> list[list[Column]]:
        """The columns of the count records held, for every part. They belong to the caller from
        here on, except numbers to be padded, which are valid until the next call."""
        parts: list[list[Column]] = []
        for part in self.columns:
            taken: list[Column] = []
            parts.append(taken)
            if part is None:
                continue
            arrays, part.arrays = part.arrays, {}
            grown = part.finished
            if not self._is_finished:
                status = lib.tfw_columns_finish(part.handle, part.lent, grown, self.error)
                check(status, self.error)
            for i, request in enumerate(part.plan.requests):
                if i in arrays:
                    array = arrays[i]  # itself, if it has no more entries
                    taken.append(Column(array if len(array) == count else array[:count]))
                    continue
                spare, column = part.spares[i], grown[i]
                if i in part.schema.lent:
                    borrowed = arrays_over(column, request, borrow, borrow, count)
                    taken.append(borrowed._replace(empty=spare.empty))
                else:
                    adopt_values = partial(spare.adopt, capacity=column.capacity)
                    taken.append(arrays_over(column, request, adopt_values, adopt, count))
        return parts


class Columns:
    """The tfw_columns of a plan and the arrays bound to them; for one thread at a time."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.plan = schema.plan
        self.error = new_error()
        self.handle = create_columns(schema)
        self.arrays: dict[int, Array] = {}
        self.pointers = ffi.new("void *[]", len(self.plan.requests))
        self.sizes = ffi.new("size_t[]", len(self.plan.requests))
        self.lent = ffi.new("uint8_t[]", len(self.plan.requests))
        for i in schema.lent:
            self.lent[i] = 1
        self.column = ffi.new("tfw_column *")
        self.finished = ffi.new("tfw_column[]", len(self.plan.requests))
        self.spares = schema.spares
        self.row_sizes = [r.num_values * r.dtype.dtype.itemsize for r in self.plan.requests]
        self.checked = [field for field in self.plan.fields.values() if field.checked]

    def fill_in(self, native: Any) -> None:
        """Fills in a ``tfw_part``."""
        native.size = ffi.sizeof("tfw_part")
        native.columns, native.memory, native.sizes = self.handle, self.pointers, self.sizes
        native.lent, native.finished = self.lent, self.finished

    def prepare(self, capacity: int, out: dict[Any, Array]) -> None:
        """Finds room for records: in the arrays of out and, for other features, in new arrays or
        memory that was given back."""
        arrays, pointers, sizes = self.arrays, self.pointers, self.row_sizes
        for i, name, shape, dtype in self.schema.bound:
            if out and name in out:
                self._set(i, out[name], capacity)
                continue
            if capacity * sizes[i] < LARGE:
                array = np.empty((capacity, *shape), dtype)
            else:
                array = self.spares[i].empty((capacity, *shape), dtype)
            arrays[i], pointers[i] = array, ffi.from_buffer(array)
        for i in self.schema.grown:
            self.pointers[i], self.sizes[i] = self.spares[i].grown_block()

    def begin(self, capacity: int) -> None:
        """Forgets all records and makes room for others, after ``prepare``."""
        status = lib.tfw_columns_begin(self.handle, self.pointers, self.sizes, capacity, self.error)
        self.settle()
        check(status, self.error)

    def settle(self) -> None:
        """Takes memory back for which columns had no use."""
        for i in self.schema.grown:
            if self.pointers[i]:
                self.spares[i].give_back(self.pointers[i], self.sizes[i])
                self.pointers[i] = ffi.NULL

    def grow(self, capacity: int, count: int) -> None:
        """Makes room for more records; the first count of them stay."""
        for i, _, shape, dtype in self.schema.bound:
            old = self.arrays[i]
            array = self.spares[i].empty((capacity, *shape), dtype)
            array[:count] = old[:count]
            self._set(i, array, capacity)
        if self.arrays:
            status = lib.tfw_columns_bind_all(self.handle, self.pointers, capacity, self.error)
            check(status, self.error)

    def _set(self, i: int, array: Array, capacity: int) -> None:
        """Has C write a column into an array."""
        memory = ffi.from_buffer(array)
        # Another thread may have resized an array that the user gave.
        if len(memory) < capacity * self.row_sizes[i]:
            raise ValueError("an array of out was resized while it was in use")
        self.arrays[i], self.pointers[i] = array, memory

    def trim(self, count: int) -> None:
        """Gives back room that count records do not need, if it is most of it."""
        for i, array in self.arrays.items():
            if 2 * count < len(array):
                self.arrays[i] = array[:count].copy()

    def verify(self, first: int, count: int) -> None:
        """Checks that the columns of count records, from the first on, fit each other.

        Raises:
            ParseFailure: They do not; its record is counted from the first.
        """
        if self.checked and count:
            columns = [
                self._peek(i, request, first, count) if request.variable else Column(None)
                for i, request in enumerate(self.plan.requests)
            ]
            for field in self.checked:
                field.batch(columns, count)

    def _peek(self, i: int, request: Request, first: int, count: int) -> Column:
        """The values of some records, where C has them: valid until the next call."""
        check(lib.tfw_columns_peek(self.handle, i, self.column, self.error), self.error)
        column = arrays_over(self.column, request, borrow, borrow, first + count)
        return column.between(first, count)


def arrays_over(
    column: Any,
    request: Request,
    array_of_values: Callable[..., Array],
    array: Callable[..., Array],
    count: int,
) -> Column:
    """A tfw_column of count records as arrays, each made by one of the functions."""
    values: Any
    if request.dtype == string:
        data = array_of_values(column.values, column.byte_count, np.uint8)
        offsets = array(column.offsets, column.value_count + 1, np.int64)
        values = BytesColumn._trusted(data, offsets, (column.value_count,))
    else:
        dtype = request.dtype.as_numpy_dtype
        values = array_of_values(column.values, column.value_count, dtype)
    splits = steps = None
    if column.splits != ffi.NULL:
        splits = array(column.splits, column.cell_count + 1, np.int64)
    if column.steps != ffi.NULL:
        steps = array(column.steps, count + 1, np.int64)
    return Column(values, splits, steps)


# ---- Schemas: plans as C knows them ----


class Schema:
    """The tfw_schema of a plan, which is immutable, and memory for its columns; for any number of
    threads."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.spares = [Spare() for _ in plan.requests]
        features = ffi.new("tfw_feature[]", len(plan.requests))
        pinned = [
            _describe(feature, request)
            for feature, request in zip(features, plan.requests, strict=True)
        ]
        out, error = ffi.new("tfw_schema **"), new_error()
        check(lib.tfw_schema_create(features, len(features), SEED, out, error), error)
        del pinned  # C has copied everything
        self.handle = ffi.gc(out[0], lib.tfw_schema_free)
        self.columns_flags: int = lib.TFW_FEATURE_LISTS if plan.lists else 0
        # Padding copies these: they stay in C's memory, which serves batch after batch.
        self.lent = {
            i
            for i, request in enumerate(plan.requests)
            if request.dtype != string
            and (request.layout == lib.TFW_REPEATED or (plan.lists and not request.variable))
        }
        self.grown = [
            i
            for i, request in enumerate(plan.requests)
            if i not in self.lent and (request.dtype == string or request.variable)
        ]
        self.bound = [
            Bound(i, request.name, request.shape, request.dtype.dtype)
            for i, request in enumerate(plan.requests)
            if request.layout == lib.TFW_DENSE and request.dtype != string and not plan.lists
        ]

    def with_own_memory(self) -> Schema:
        """The same schema for another parser: memory is kept as long as the parser."""
        other = copy(self)
        other.spares = [Spare() for _ in self.plan.requests]
        return other


class Bound(NamedTuple):
    """A column that C writes into a numpy array: dense numbers of records.

    Attributes:
        column: Its index.
        name: The feature's key, as the user wrote it.
        shape: Of one record.
        dtype: int64 or float32.
    """

    column: int
    name: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _describe(feature: Any, request: Request) -> list[Any]:
    """Fills in a tfw_feature; returns what it points into."""
    pinned = [ffi.from_buffer("char[]", request.key)]
    feature.name, feature.name_len = pinned[0], len(request.key)
    feature.kind = KINDS[request.dtype]
    feature.layout = request.layout
    feature.count = request.num_values
    feature.has_default = request.optional
    if request.default is not None and request.optional:
        values, offsets = request.default if request.dtype == string else (request.default, None)
        pinned.append(ffi.from_buffer(values))
        feature.default_values = pinned[-1]
        if offsets is not None:
            pinned.append(ffi.from_buffer("int64_t[]", offsets))
            feature.default_offsets = pinned[-1]
    return pinned


def arrays_of(out: Any, schema: Schema | None, count: int) -> dict[Any, Array]:
    """The arrays that C may write count records to, as plain arrays.

    They are looked at once: a Mapping may give other arrays the next time, and a subclass of
    ndarray any shape.

    Raises:
        TypeError, ValueError: C may not write to an array.
    """
    columns = {} if schema is None else {column.name: column for column in schema.bound}
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a dict of arrays, found {type(out).__name__}")
    arrays = {}
    for key, given in list(out.items()):
        if key not in columns:
            raise ValueError(f"out: {quoted(key)} is not a FixedLenFeature of numbers")
        _, _, shape, dtype = columns[key]
        array = np.asarray(given) if issubclass(type(given), np.ndarray) else None
        if array is None or array.dtype != dtype:
            found = type(given).__name__ if array is None else array.dtype
            raise TypeError(f"out: {quoted(key)} must be an array of {dtype}, found {found}")
        if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) < count:
            raise ValueError(
                f"out: {quoted(key)} must be of shape {(count, *shape)}, found {array.shape}"
            )
        if not array.flags.carray:
            raise ValueError(f"out: {quoted(key)} must be C-contiguous, aligned and writable")
        arrays[key] = array
    return arrays


def create_columns(schema: Schema) -> Any:
    """A ``tfw_columns *``, which needs the schema as long as it is used."""
    out, error = ffi.new("tfw_columns **"), new_error()
    check(lib.tfw_columns_create(schema.handle, schema.columns_flags, out, error), error)
    return ffi.gc(out[0], lib.tfw_columns_free)
