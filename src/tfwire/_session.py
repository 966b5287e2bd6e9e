"""Plans at work: schemas, columns under construction, and calls into C."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfwire._assemble import Cells
from tfwire._core import adopt, check, ffi, lib, new_error
from tfwire._failure import Misfit, misfit_of
from tfwire._spec import KINDS, Plan, Request
from tfwire.columns import BytesColumn
from tfwire.features import string

__all__ = ["Schema", "Session", "borrow", "create_columns"]

Array = np.ndarray[Any, Any]
Out = Mapping[Any, Array]


class Schema:
    """The tfw_schema of a plan; immutable, for any number of threads."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        features = ffi.new("tfw_feature[]", len(plan.requests))
        pinned = [
            _describe(feature, request)
            for feature, request in zip(features, plan.requests, strict=True)
        ]
        out, error = ffi.new("tfw_schema **"), new_error()
        check(lib.tfw_schema_create(features, len(features), out, error), error)
        del pinned  # C has copied everything
        self.handle = ffi.gc(out[0], lib.tfw_schema_free)
        # What is copied when it is padded: it stays C's, whose memory serves batch after batch.
        self.lent = {
            i
            for i, request in enumerate(plan.requests)
            if request.dtype != string
            and (request.layout == lib.TFW_REPEATED or (plan.lists and not request.variable))
        }
        self.bound = [
            Bound(i, request.name, request.shape, request.dtype.dtype)
            for i, request in enumerate(plan.requests)
            if request.layout == lib.TFW_DENSE and request.dtype != string and not plan.lists
        ]


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


def check_out(out: Out, schema: Schema | None, count: int) -> None:
    """Whether C may write count records to these arrays.

    Raises:
        TypeError, ValueError: It may not.
    """
    columns = {} if schema is None else {column.name: column for column in schema.bound}
    if not isinstance(out, Mapping):
        raise TypeError(f"out must be a dict of arrays, found {type(out).__name__}")
    for key, array in out.items():
        if key not in columns:
            raise ValueError(f"out: {key!r} is no FixedLenFeature of numbers")
        _, _, shape, dtype = columns[key]
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise TypeError(f"out: {key!r} must be an array of {dtype}, found {found}")
        if array.ndim != len(shape) + 1 or array.shape[1:] != shape or len(array) < count:
            raise ValueError(
                f"out: {key!r} must be of shape {(count, *shape)}, found {array.shape}"
            )
        if not (array.flags.c_contiguous and array.flags.writeable):
            raise ValueError(f"out: {key!r} must be C-contiguous and writable")


def create_columns(schema: Schema) -> Any:
    """A ``tfw_columns *``; the schema must live as long as it is used."""
    out, error = ffi.new("tfw_columns **"), new_error()
    flags = lib.TFW_FEATURE_LISTS if schema.plan.lists else 0
    check(lib.tfw_columns_create(schema.handle, flags, out, error), error)
    return ffi.gc(out[0], lib.tfw_columns_free)


class Columns:
    """The tfw_columns of a plan and the arrays bound to them; for one thread at a time."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.plan = schema.plan
        self.error = new_error()
        self.handle = create_columns(schema)
        self.arrays: dict[int, Array] = {}
        self.column = ffi.new("tfw_column *")

    def begin(self, capacity: int, out: Out | None = None) -> None:
        """Forgets all records and makes room for so many."""
        lib.tfw_columns_clear(self.handle)
        for i, name, shape, dtype in self.schema.bound:
            array = None if out is None else out.get(name)
            if array is None:
                array = np.empty((capacity, *shape), dtype)
            self._bind(i, array)

    def grow(self, capacity: int, count: int) -> None:
        """Makes room for more records; the first count of them stay."""
        for i, _, shape, dtype in self.schema.bound:
            old = self.arrays[i]
            new = np.empty((capacity, *shape), dtype)
            new[:count] = old[:count]
            self._bind(i, new)

    def _bind(self, i: int, array: Array) -> None:
        pointer = ffi.from_buffer(array)
        status = lib.tfw_columns_bind(self.handle, i, pointer, len(array), self.error)
        if status != lib.TFW_OK:
            check(status, self.error)
        self.arrays[i] = array

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
        fields = [field for field in self.plan.fields.values() if field.checked]
        if fields and count:
            cells = [
                self._peek(i, request, first, count) if request.variable else Cells(None)
                for i, request in enumerate(self.plan.requests)
            ]
            for field in fields:
                field.batch(cells, count)

    def _peek(self, i: int, request: Request, first: int, count: int) -> Cells:
        """The cells of some records, where C has them: valid until the next call."""
        column = self.column
        check(lib.tfw_columns_peek(self.handle, i, column, self.error), self.error)
        cells = _cells(column, request, borrow, first + count)
        begin, end = first, first + count
        steps = None
        if cells.steps is not None:
            steps = cells.steps[first : end + 1]
            begin, end = steps[0], steps[-1]
            steps = steps - begin
        splits = cells.splits[begin : end + 1]
        return Cells(cells.values[splits[0] : splits[-1]], splits - splits[0], steps)

    def take(self, count: int) -> list[Cells]:
        """The columns of the count records held. They belong to the caller from here on, but for
        numbers to be padded, which are valid until the next call."""
        bound, self.arrays = self.arrays, {}
        return [
            Cells(bound[i][:count]) if i in bound else self._take(i, request, count)
            for i, request in enumerate(self.plan.requests)
        ]

    def _take(self, i: int, request: Request, count: int) -> Cells:
        lent = i in self.schema.lent
        hand_over = lib.tfw_columns_peek if lent else lib.tfw_columns_take
        check(hand_over(self.handle, i, self.column, self.error), self.error)
        return _cells(self.column, request, borrow if lent else adopt, count)


def _cells(column: Any, request: Request, array: Callable[..., Array], count: int) -> Cells:
    """A tfw_column of count records as arrays, made by adopt or borrow."""
    values: Any
    if request.dtype == string:
        data = array(column.values, column.byte_count, np.uint8)
        values = BytesColumn(data, array(column.offsets, column.value_count + 1, np.int64))
    else:
        values = array(column.values, column.value_count, request.dtype.as_numpy_dtype)
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
        if out:
            check_out(out, None if first is None else first.schema, capacity)
        if first is not None:
            first.begin(capacity, out)
        for columns in others:
            if columns is not None:
                columns.begin(capacity)

    def grow(self, capacity: int, count: int) -> None:
        for columns in self.columns:
            if columns is not None:
                columns.grow(capacity, count)

    def parse(self, data: Any, data_len: int, spans: Any, count: int, single: bool = False) -> None:
        """Appends the records of a batch.

        Raises:
            Misfit: A record does not fit; self.done[0] came before it and were appended.
            MemoryError: Out of memory.
        """
        flags = self.flags | lib.TFW_SINGLE if single else self.flags
        status: int = self.parse_function(
            *self.handles, data, data_len, spans, count, flags, self.done, self.error
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
        if found is not None:
            raise found

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
        self.parse(data, len(data), self.span, 1, single=True)

    def _fail(self, status: int) -> None:
        part = self.columns[-1 if self.error.list == 1 else 0]
        misfit = misfit_of(status, self.error, [] if part is None else part.plan.requests)
        if misfit is not None:
            raise misfit
        check(status, self.error)

    def trim(self, count: int) -> None:
        for columns in self.columns:
            if columns is not None:
                columns.trim(count)

    def take(self, count: int) -> list[list[Cells]]:
        """The columns of every part, as Columns.take gives them."""
        return [[] if columns is None else columns.take(count) for columns in self.columns]
