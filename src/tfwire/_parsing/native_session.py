"""Calls into C that parse: sessions with their columns, and schemas."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array, Out
from tfwire._base.arrays import keep_heap
from tfwire._base.native import SEED, adopt, check, ffi, lib, new_error
from tfwire._base.text import quoted
from tfwire._examples.column_types import BytesColumn
from tfwire._parsing.failure import raise_failure
from tfwire._parsing.features import string
from tfwire._parsing.fields import Column
from tfwire._parsing.spec import KINDS, Plan, Request


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
        self.done = ffi.new("size_t *")
        self.span = ffi.new("tfw_span *")
        self.error = new_error()
        keep_heap()

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
        here on."""
        parts: list[list[Column]] = []
        for part in self.columns:
            taken: list[Column] = []
            parts.append(taken)
            if part is None:
                continue
            arrays, part.arrays = part.arrays, {}
            grown = part.finished
            check(lib.tfw_columns_finish(part.handle, ffi.NULL, grown, self.error), self.error)
            for i, request in enumerate(part.plan.requests):
                if i in arrays:
                    array = arrays[i]  # itself, if it has no more entries
                    taken.append(Column(array if len(array) == count else array[:count]))
                else:
                    taken.append(_adopted(grown[i], request, count))
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
        self.finished = ffi.new("tfw_column[]", len(self.plan.requests))
        self.row_sizes = [r.num_values * r.dtype.dtype.itemsize for r in self.plan.requests]

    def prepare(self, capacity: int, out: dict[Any, Array]) -> None:
        """Finds room for records: in the arrays of out and, for other features, in new arrays."""
        arrays, pointers = self.arrays, self.pointers
        for i, name, shape, dtype in self.schema.bound:
            if out and name in out:
                self._set(i, out[name], capacity)
                continue
            array = arrays[i] = np.empty((capacity, *shape), dtype)
            pointers[i] = ffi.from_buffer(array)

    def begin(self, capacity: int) -> None:
        """Forgets all records and makes room for others, after ``prepare``."""
        none = ffi.NULL  # of grown columns
        status = lib.tfw_columns_begin(self.handle, self.pointers, none, capacity, self.error)
        check(status, self.error)

    def _set(self, i: int, array: Array, capacity: int) -> None:
        """Has C write a column into an array."""
        memory = ffi.from_buffer(array)
        # Another thread may have resized an array that the user gave.
        if len(memory) < capacity * self.row_sizes[i]:
            raise ValueError("an array of out was resized while it was in use")
        self.arrays[i], self.pointers[i] = array, memory


def _adopted(column: Any, request: Request, count: int) -> Column:
    """A tfw_column of count records that C has handed over."""
    values: Any
    if column.offsets != ffi.NULL:
        data = adopt(column.values, column.byte_count, np.uint8)
        offsets = adopt(column.offsets, column.value_count + 1, np.int64)
        values = BytesColumn._trusted(data, offsets, (column.value_count,))
    else:
        values = adopt(column.values, column.value_count, request.dtype.as_numpy_dtype)
    splits = steps = None
    if column.splits != ffi.NULL:
        splits = adopt(column.splits, column.cell_count + 1, np.int64)
    if column.steps != ffi.NULL:
        steps = adopt(column.steps, count + 1, np.int64)
    return Column(values, splits, steps)


# ---- Schemas: plans as C knows them ----


class Schema:
    """The tfw_schema of a plan, which is immutable; for any number of threads.

    Attributes:
        dtypes: Of the values of each column; of strings, of their bytes.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.handle = _create_native(plan)
        self.columns_flags: int = lib.TFW_FEATURE_LISTS if plan.lists else 0
        self._for_files: Any = None
        self.bound = [
            Bound(i, request.name, request.shape, request.dtype.dtype)
            for i, request in enumerate(plan.requests)
            if request.layout == lib.TFW_DENSE and request.dtype != string and not plan.lists
        ]
        self.dtypes = [
            np.dtype(np.uint8) if request.dtype == string else request.dtype.dtype
            for request in plan.requests
        ]

    def for_files(self) -> Any:
        """A ``tfw_schema *`` of its own, where pipelines leave memory for those after them: it ends
        with the parser, while ``handle`` is kept for equal specifications."""
        if self._for_files is None:
            self._for_files = _create_native(self.plan)
        return self._for_files

    def with_own_memory(self) -> Schema:
        """The same schema for another parser: memory is kept as long as the parser."""
        other = copy(self)
        other._for_files = None
        return other


def _create_native(plan: Plan) -> Any:
    features = ffi.new("tfw_feature[]", len(plan.requests))
    pinned = [
        _describe(feature, request)
        for feature, request in zip(features, plan.requests, strict=True)
    ]
    out, error = ffi.new("tfw_schema **"), new_error()
    check(lib.tfw_schema_create(features, len(features), SEED, out, error), error)
    del pinned  # C has copied everything
    return ffi.gc(out[0], lib.tfw_schema_free)


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
