"""Columns of chunks of a pipeline: as arrays, put together, and checked against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.arrays import joined_splits
from tfwire._base.native import address, objects
from tfwire._examples.column_types import BytesColumn
from tfwire._parsing.failure import ParseFailure
from tfwire._parsing.fields import Column, Cuts, between, insert_others, whole_and_rest
from tfwire._parsing.native_session import Schema
from tfwire._parsing.spec import Plan
from tfwire._records.reading.pipeline import Chunk


class Rows(NamedTuple):
    """Some records as columns.

    Attributes:
        parts: The columns, for each specification.
        num_rows: How many records there are.
    """

    parts: list[list[Column]]
    num_rows: int

    def between(self, first: int, count: int) -> Rows:
        """Some of the records."""
        if count == self.num_rows:
            return self
        parts = [[self._between(each, first, count) for each in part] for part in self.parts]
        return Rows(parts, count)

    def _between(self, column: Column, first: int, count: int) -> Column:
        if column.splits is not None or column.steps is not None:
            return column.between(first, count)
        size = len(column.values) // max(1, self.num_rows)  # of a record
        values = between(column.values, first * size, (first + count) * size)
        return column._replace(values=values)


def rows_of_chunk(chunk: Chunk, schemas: Sequence[Schema | None]) -> Rows:
    """The records of a chunk. Values keep their memory as long as a view of them lives; each column
    has its own.

    Args:
        chunk: Has the records.
        schemas: What they were parsed by.
    """
    parts = [
        [] if schema is None else _columns(chunk, is_list, schema)
        for is_list, schema in enumerate(schemas)
    ]
    return Rows(parts, chunk.num_records)


def _columns(chunk: Chunk, is_list: int, schema: Schema) -> list[Column]:
    native = address(chunk.native)
    arrays, offsets = objects.tfw_hold_columns(native, is_list, schema.dtypes)
    columns = list(map(Column, arrays))
    for i, *each in offsets:
        columns[i] = _with_offsets(arrays[i], *each)
    return columns


def _with_offsets(
    values: Any, offsets: Array | None, splits: Array | None, steps: Array | None
) -> Column:
    if offsets is not None:
        values = BytesColumn._trusted(values, offsets, (len(offsets) - 1,))
    return Column(values, splits, steps)


def batches_of_chunk(
    chunk: Chunk,
    schema: Schema | None,
    cuts: Cuts,
    count: int,
    size: int,
    finish: Callable[[Any], Any],
) -> Iterator[dict[Any, Any]]:
    """The results of the first records of a chunk, in batches of a size. Threads may share what C
    gives, a ``Batches``: where there are dense columns alone, and no smaller batch at the end.

    Args:
        chunk: Has the records, of Examples.
        schema: What they were parsed by.
        cuts: Of the fields.
        count: Number of records.
        size: Records of a batch; the last may have fewer.
        finish: As for ``results_of_batches``.
    """
    native = address(chunk.native)
    rows = rows_of_chunk(chunk, (schema,)) if cuts.others else None
    found = []
    for first, number, batches in whole_and_rest(count, size):
        results = objects.tfw_cut_columns(native, first, number, batches, *cuts.dense)
        if rows is not None:
            [columns] = rows.between(first, number).parts
            insert_others(results, cuts, columns, number, batches, finish)
        found.append(objects.tfw_new_batches(cuts.like, cuts.keys, results, batches))
    return found[0] if len(found) == 1 and rows is None else chain.from_iterable(found)


# ---- Columns of several chunks ----


def joined(pieces: Sequence[Rows]) -> Rows:
    """Records one after another."""
    if len(pieces) == 1:
        return pieces[0]
    parts = [
        [_joined(columns) for columns in zip(*parts, strict=True)]
        for parts in zip(*(piece.parts for piece in pieces), strict=True)
    ]
    return Rows(parts, sum(piece.num_rows for piece in pieces))


def _joined(columns: Sequence[Column]) -> Column:
    values: Any = [column.values for column in columns]
    if isinstance(values[0], BytesColumn):
        data = np.concatenate([strings.data for strings in values])
        offsets = joined_splits(strings.offsets for strings in values)
        values = BytesColumn._trusted(data, offsets, (len(offsets) - 1,))
    else:
        values = np.concatenate(values)
    splits = steps = None
    if columns[0].splits is not None:
        splits = joined_splits(column.splits for column in columns)
    if columns[0].steps is not None:
        steps = joined_splits(column.steps for column in columns)
    return columns[0]._replace(values=values, splits=splits, steps=steps)


# ---- Columns that must fit each other ----


def is_checked(plans: Sequence[Plan | None]) -> bool:
    """Whether records may fit C and still not the specification: columns must fit each other."""
    return any(
        field.checked for plan in plans if plan is not None for field in plan.fields.values()
    )


def first_misfit(plans: Sequence[Plan | None], rows: Rows) -> ParseFailure | None:
    """The failure of the first record whose columns do not fit each other, if there is any."""
    found = None
    # One check looks at all records before the next does: an earlier record may fail a later
    # check, or that of another feature. So the records before a failure are checked again.
    while rows.num_rows and (failure := _check(plans, rows)) is not None:
        found, rows = failure, rows.between(0, failure.record or 0)
    return found


def _check(plans: Sequence[Plan | None], rows: Rows) -> ParseFailure | None:
    try:
        for plan, columns in zip(plans, rows.parts, strict=True):
            for field in () if plan is None else plan.fields.values():
                if field.checked:
                    field.batch(columns, rows.num_rows)
    except ParseFailure as failure:
        return failure.with_traceback(None)  # which would keep the columns
    return None
