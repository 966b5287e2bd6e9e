"""Makes the arrays and tensors of a specification from the columns of C, with numpy.

Strings stay a BytesColumn until the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from tfwire._base.native import objects
from tfwire._base.strings import bytes_array
from tfwire._base.text import show_key
from tfwire._examples.column_types import BytesColumn, RaggedTensor, SparseTensor
from tfwire._parsing.failure import ParseFailure
from tfwire._parsing.padding import check_padding_size, longest, pad_rows

Array = np.ndarray[Any, Any]
_NUMPY = import_module(f"numpy.{'_core' if hasattr(np, '_core') else 'core'}._multiarray_umath")
objects.tfw_set_array_types(_NUMPY._ARRAY_API, np.dtype(np.int64), BytesColumn)


class Column(NamedTuple):
    """A column from C. A row is what one record holds; in feature lists, what one step holds.

    Attributes:
        values: The values of all rows, of rank 1.
        splits: int64: row i is ``values[splits[i]:splits[i + 1]]``; None if rows are dense.
        steps: int64: record i has the rows ``[steps[i], steps[i + 1])``; only in feature lists.
    """

    values: Any
    splits: Any = None
    steps: Any = None

    def between(self, first: int, count: int) -> Column:
        """The rows of count records from the first on, as a column of their own."""
        begin, end, steps = first, first + count, None
        if self.steps is not None:
            steps = self.steps[first : end + 1]
            begin, end = steps[0], steps[-1]
            steps = steps - begin
        if self.splits is None:
            size = len(self.values) // max(1, self.steps[-1])
            return self._replace(values=between(self.values, begin * size, end * size), steps=steps)
        splits = self.splits[begin : end + 1]
        values = between(self.values, splits[0], splits[-1])
        return self._replace(values=values, splits=splits - splits[0], steps=steps)


class Field(Protocol):
    """Makes the result of one feature from one or more columns.

    Attributes:
        checked: True if making a result raises ParseFailure for columns that do not fit each other.
    """

    @property
    def checked(self) -> bool: ...

    def batch(self, columns: Sequence[Column], count: int) -> Any:
        """The result of a batch of count records."""

    def single(self, columns: Sequence[Column]) -> Any:
        """The result of one record, without the dimension of the batch."""


def between(values: Any, begin: int, end: int) -> Any:
    """Part of the values of rank 1, as views; a BytesColumn gets new offsets, from 0."""
    if isinstance(values, np.ndarray):
        return values[begin:end]
    offsets = values.offsets[begin : end + 1]
    data = values.data[offsets[0] : offsets[-1]]
    return BytesColumn._trusted(data, offsets - offsets[0], (len(offsets) - 1,))


def ranges(lengths: Array) -> Array:
    """range(length) for every length, concatenated."""
    total = int(lengths.sum(dtype=np.int64))
    begins: Array = np.repeat(np.cumsum(lengths, dtype=np.int64) - lengths, lengths)
    return np.subtract(np.arange(total, dtype=np.int64), begins, out=begins)


def with_shape(values: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(values, np.ndarray):
        return values if values.shape == shape else values.reshape(shape)
    return BytesColumn._trusted(values.data, values.offsets, shape)


def with_objects(value: Any) -> Any:
    """A result with its strings as bytes objects."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, BytesColumn):
        return bytes_array(value.data, value.offsets, value.shape)
    if isinstance(value, SparseTensor) and isinstance(value.values, BytesColumn):
        return value._replace(values=with_objects(value.values))
    if isinstance(value, RaggedTensor):
        return RaggedTensor(with_objects(value.values), value.row_splits)
    return value


# ---- Features of an Example, or of a context ---------------------------------------------------
@dataclass(eq=False, repr=False, slots=True)
class Dense:
    """FixedLenFeature."""

    column: int
    shape: tuple[int, ...]
    checked: ClassVar[bool] = False

    def batch(self, columns: Sequence[Column], count: int) -> Any:
        return with_shape(columns[self.column].values, (count, *self.shape))

    def single(self, columns: Sequence[Column]) -> Any:
        values = columns[self.column].values
        return with_shape(values, self.shape) if self.shape else values[0]


@dataclass(eq=False, repr=False, slots=True)
class VarLen:
    """VarLenFeature."""

    column: int
    checked: ClassVar[bool] = False

    def batch(self, columns: Sequence[Column], count: int) -> SparseTensor:
        column = columns[self.column]
        lengths = np.diff(column.splits)
        indices = np.empty((len(column.values), 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(count, dtype=np.int64), lengths)
        indices[:, 1] = ranges(lengths)
        shape = np.array([count, longest(lengths)], np.int64)
        return SparseTensor(indices, column.values, shape)

    def single(self, columns: Sequence[Column]) -> SparseTensor:
        values = columns[self.column].values
        return SparseTensor(
            np.arange(len(values), dtype=np.int64).reshape(-1, 1),
            values,
            np.array([len(values)], np.int64),
        )


@dataclass(eq=False, repr=False, slots=True)
class Padded:
    """FixedLenSequenceFeature."""

    key: str | bytes
    column: int
    shape: tuple[int, ...]
    default: Any
    checked: ClassVar[bool] = False

    def batch(self, columns: Sequence[Column], count: int) -> Any:
        column = columns[self.column]
        check_padding_size(self.key, column.values, column.splits, self.default)
        values = pad_rows(column.values, column.splits, self.default)
        return with_shape(values, (count, *self._elements(values, count), *self.shape))

    def single(self, columns: Sequence[Column]) -> Any:
        values = columns[self.column].values
        return with_shape(values, (*self._elements(values, 1), *self.shape))

    def _elements(self, values: Any, count: int) -> tuple[int]:
        """The number of elements in every row; 0 if elements have no values."""
        size = count * math.prod(self.shape)
        return (len(values) // size if size else 0,)


@dataclass(eq=False, repr=False, slots=True)
class Sparse:
    """SparseFeature."""

    key: str | bytes
    index_columns: tuple[int, ...]
    column: int
    sizes: tuple[int, ...]
    already_sorted: bool
    checked: ClassVar[bool] = True

    def batch(self, columns: Sequence[Column], count: int) -> SparseTensor:
        lengths = np.diff(columns[self.column].splits)
        records = np.repeat(np.arange(count, dtype=np.int64), lengths)
        return self._tensor(columns, [records], (count, *self.sizes))

    def single(self, columns: Sequence[Column]) -> SparseTensor:
        return self._tensor(columns, [], self.sizes)

    def _tensor(
        self, columns: Sequence[Column], indices: list[Array], shape: tuple[int, ...]
    ) -> SparseTensor:
        column = columns[self.column]
        for i in self.index_columns:
            self._check_lengths(columns[i].splits, column.splits)
            indices.append(columns[i].values)
        values = column.values
        if not self.already_sorted:
            order = np.lexsort(indices[::-1])
            values = values.take(order)
            indices = [index[order] for index in indices]
        return SparseTensor(np.stack(indices, axis=1), values, np.array(shape, np.int64))

    def _check_lengths(self, index_splits: Array, splits: Array) -> None:
        if np.array_equal(index_splits, splits):
            return
        found, expected = np.diff(index_splits), np.diff(splits)
        record = int((found != expected).argmax())
        raise ParseFailure(
            "count",
            self.key,
            record,
            f"Key: {show_key(self.key)}.  {found[record]} indices for {expected[record]} values",
            expected=int(expected[record]),
            found=int(found[record]),
        )


# ---- Feature lists -----------------------------------------------------------------------------
@dataclass(eq=False, repr=False, slots=True)
class Steps:
    """FixedLenSequenceFeature of feature lists."""

    key: str | bytes
    column: int
    shape: tuple[int, ...]
    default: Any
    checked: ClassVar[bool] = False

    def batch(self, columns: Sequence[Column], count: int) -> Any:
        column = columns[self.column]
        lengths = self.lengths(columns)
        size = math.prod(self.shape)
        splits = column.steps * size
        check_padding_size(self.key, column.values, splits, self.default)
        values = pad_rows(column.values, splits, self.default)
        return with_shape(values, (count, longest(lengths), *self.shape))

    def single(self, columns: Sequence[Column]) -> Any:
        column = columns[self.column]
        return with_shape(column.values, (int(column.steps[1]), *self.shape))

    def lengths(self, columns: Sequence[Column]) -> Array:
        """The number of steps of every record, int64."""
        return np.diff(columns[self.column].steps)


@dataclass(eq=False, repr=False, slots=True)
class StepValues:
    """VarLenFeature of feature lists."""

    column: int
    checked: ClassVar[bool] = False

    def batch(self, columns: Sequence[Column], count: int) -> SparseTensor:
        column = columns[self.column]
        num_steps = np.diff(column.steps)
        tensor = self.single(columns)
        # Rows are steps, numbered through the batch. They become record and step in the record.
        row = tensor.indices[:, 0]
        indices = np.empty((len(row), 3), np.int64)
        indices[:, 0] = np.repeat(np.arange(count, dtype=np.int64), num_steps)[row]
        indices[:, 1] = ranges(num_steps)[row]
        indices[:, 2] = tensor.indices[:, 1]
        shape = [count, longest(num_steps), int(tensor.dense_shape[1])]
        return SparseTensor(indices, tensor.values, np.array(shape, np.int64))

    def single(self, columns: Sequence[Column]) -> SparseTensor:
        """The steps as a batch: its first dimension is their number."""
        return VarLen(self.column).batch(columns, int(columns[self.column].steps[-1]))


# ---- Columns of many batches, cut into the results of each -------------------------------------
# Parsing many batches at once shares the cost per batch and column: memory, and calls to C. A
# result is made when it is asked for, and shares no entry with another.


class Cuts(NamedTuple):
    """How the columns of many batches are cut.

    Attributes:
        like: A dict with the keys.
        keys: Of all fields, in order.
        dense: Of the columns of FixedLenFeatures that C cuts: their numbers, their dtypes (None of
            strings) and the shapes of a row.
        others: The other fields, with their places among all.
    """

    like: Mapping[Any, Any]
    keys: list[Any]
    dense: tuple[list[int], list[Any], list[tuple[int, ...]]]
    others: list[tuple[int, Field]]

    @classmethod
    def of(cls, fields: Mapping[Any, Field], dtypes: Mapping[int, Any]) -> Cuts:
        """Those of fields, of which C cuts columns that have a dtype here."""
        cuts = cls(fields, list(fields), ([], [], []), [])
        for place, field in enumerate(fields.values()):
            if isinstance(field, Dense) and field.column in dtypes:
                columns, of_columns, shapes = cuts.dense
                columns.append(field.column)
                of_columns.append(dtypes[field.column])
                shapes.append(field.shape)
            else:
                cuts.others.append((place, field))
        return cuts


def whole_and_rest(count: int, size: int) -> list[tuple[int, int, int]]:
    """Rows in batches of a size: those of all whole batches, then the rest. Of each the first row,
    the number of rows and that of batches."""
    whole = count - count % size
    found = [(0, whole, whole // size)] if whole else []
    return found if whole == count else [*found, (whole, count - whole, 1)]


def results_of_batches(
    cuts: Cuts, columns: Sequence[Column], count: int, batches: int, finish: Callable[[Any], Any]
) -> list[Any]:
    """The results of each field, batch by batch: sequences, or iterators.

    Args:
        cuts: Of the fields.
        columns: Of all records.
        count: Number of records.
        batches: Number of batches, of equal size.
        finish: Applied last to every result, of one batch or of many; but not to numbers.
    """
    numbers, _, shapes = cuts.dense
    results: list[Any] = [
        columns[i].values.reshape(batches, count // batches, *shape)
        for i, shape in zip(numbers, shapes, strict=True)
    ]
    insert_others(results, cuts, columns, count, batches, finish)
    return results


def insert_others(
    results: list[Any],
    cuts: Cuts,
    columns: Sequence[Column],
    count: int,
    batches: int,
    finish: Callable[[Any], Any],
) -> None:
    """Adds those of the fields that C does not cut to those of the others."""
    for place, field in cuts.others:
        results.insert(place, _results(field, columns, count, batches, finish))


def _results(
    field: Field, columns: Sequence[Column], count: int, batches: int, finish: Callable[[Any], Any]
) -> Any:
    size = count // batches
    if not isinstance(field, Dense):
        return (finish(field.batch(part, size)) for part, _ in _parts(columns, count, size))
    values, shape = finish(field.batch(columns, count)), (size, *field.shape)
    if not isinstance(values, BytesColumn):
        return values.reshape(batches, *shape)
    step = math.prod(shape)
    return (with_shape(between(values, i, i + step), shape) for i in range(0, batches * step, step))


def lengths_of_batches(
    fields: Mapping[Any, Field], columns: Sequence[Column], count: int, size: int
) -> Iterator[dict[Any, Array]]:
    """The number of steps in every FixedLenSequenceFeature of every record, batch by batch."""
    steps = {key: field for key, field in fields.items() if isinstance(field, Steps)}
    for part, _ in _parts(columns, count, size):
        yield {key: field.lengths(part) for key, field in steps.items()}


class Part(Sequence[Column]):
    """The columns of some of the records."""

    def __init__(self, columns: Sequence[Column], first: int, count: int) -> None:
        self._columns = columns
        self._first = first
        self._count = count

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, i: Any) -> Any:
        return self._columns[i].between(self._first, self._count)


def _parts(
    columns: Sequence[Column], count: int, size: int
) -> Iterator[tuple[Sequence[Column], int]]:
    """The columns of every batch, and its number of records."""
    if count <= size:
        yield columns, count
        return
    for first in range(0, count, size):
        rows = min(size, count - first)
        yield Part(columns, first, rows), rows
