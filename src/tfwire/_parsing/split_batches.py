"""Columns of many batches, cut into the results of each batch.

Parsing many batches at once shares the cost per batch and column: memory, and calls to C. A result
is made when it is asked for, and shares no entry with another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tfwire._examples.column_types import BytesColumn
from tfwire._parsing.fields import Column, Dense, Field, Steps
from tfwire._parsing.spec import Plan

Array = np.ndarray[Any, Any]


def results_of_batches(
    field: Field, columns: Sequence[Column], count: int, size: int, finish: Callable[[Any], Any]
) -> Iterator[Any]:
    """The results of a field, batch by batch.

    Args:
        field: Makes the results.
        columns: Of all records.
        count: Number of records.
        size: Records of a batch; the last may have fewer.
        finish: Applied last to every result, of one batch or of many.
    """
    if count > size and isinstance(field, Dense):
        values = columns[field.column].values
        if isinstance(values, np.ndarray):  # numbers, which have no last step
            return _rows(values, field.shape, count, size)
        values = finish(field.batch(columns, count))
        if isinstance(values, np.ndarray):
            return _rows(values, field.shape, count, size)
        return _strings(values, field.shape, count, size)
    return (finish(field.batch(part, rows)) for part, rows in _parts(columns, count, size))


def lengths_of_batches(
    lists: Plan | None, columns: Sequence[Column], count: int, size: int
) -> Iterator[dict[Any, Array]]:
    """The number of steps in every FixedLenSequenceFeature of every record, batch by batch."""
    fields = {} if lists is None else lists.fields
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


def _rows(values: Array, shape: tuple[int, ...], count: int, size: int) -> Iterator[Array]:
    """The batches of an array, which is reshaped so that iterating runs in C."""
    whole, rest = divmod(count, size)
    if not rest:
        return iter(values.reshape(whole, size, *shape))
    complete, last = values[: count - rest], values[count - rest :]
    return chain(complete.reshape(whole, size, *shape), [last.reshape(rest, *shape)])


def _strings(
    column: BytesColumn, shape: tuple[int, ...], count: int, size: int
) -> Iterator[BytesColumn]:
    """The batches of a BytesColumn: views of its bytes, with offsets from 0."""
    data, offsets = column.data, column.offsets
    strings = size * math.prod(shape)  # of a batch
    whole, rest = divmod(count, size)
    ends = offsets[::strings] if strings else np.zeros(whole + 1, np.int64)
    # The offsets of a batch begin with the end of the batch before.
    windows = np.lib.stride_tricks.sliding_window_view(offsets, strings + 1)[:: max(strings, 1)]
    own = iter(windows[:whole] - ends[:whole, np.newaxis])
    trusted, batch_shape = BytesColumn._trusted, (size, *shape)
    begin = 0
    for end, row in zip(ends[1 : whole + 1].tolist(), own, strict=True):
        yield trusted(data[begin:end], row, batch_shape)
        begin = end
    if rest:
        last = offsets[whole * strings :]
        yield trusted(data[begin : int(last[-1])], last - begin, (rest, *shape))
