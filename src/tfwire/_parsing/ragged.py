"""RaggedFeature: nested rows from columns of values and partitions.

TensorFlow joins the partitions of a batch without checking that each covers the values of its own
record: one wrong record moves the values of all later ones. Here every record is checked, and the
first that does not fit is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arrays import to_splits
from tfwire._base.text import show_key
from tfwire._examples.column_types import RaggedTensor
from tfwire._parsing.failure import ParseFailure
from tfwire._parsing.fields import Array, Column, with_shape

# Rows without values take no bytes in a message: one row id could ask for any number of them.
_MAX_EMPTY_ROWS = 2**24


class Partition(NamedTuple):
    """One level of rows.

    Attributes:
        kind: The name of the class in RaggedFeature.
        column: Index of the column of its numbers; -1 for UniformRowLength.
        length: The length of every row, for UniformRowLength.
    """

    kind: str
    column: int
    length: int


class Level(NamedTuple):
    """The rows of one level.

    Attributes:
        lengths: The length of every row.
        counts: The number of rows of every record.
    """

    lengths: Array
    counts: Array


class PartitionNumbers(NamedTuple):
    """The numbers of a partition, and the counts that they must match.

    Attributes:
        values: The numbers of all records.
        sizes: How many numbers each record has.
        counts: How many inner rows each record has.
    """

    values: Array
    sizes: Array
    counts: Array

    def per_value(self, per_record: Array) -> Array:
        """Turns an array with a number per record into one with a number per value."""
        return np.repeat(per_record, self.sizes)

    def firsts(self) -> Array:
        """The position of the first value in every record with values."""
        first: Array = (np.cumsum(self.sizes, dtype=np.int64) - self.sizes)[self.sizes != 0]
        return first

    def lasts(self) -> Array:
        """The position of the last value in every record with values."""
        last: Array = np.cumsum(self.sizes, dtype=np.int64)[self.sizes != 0] - 1
        return last


def _row_lengths(numbers: PartitionNumbers) -> Level:
    return Level(numbers.values, numbers.sizes)


def _row_splits(numbers: PartitionNumbers) -> Level:
    """A row lies between two neighbouring splits of a record."""
    lengths = np.diff(numbers.values, append=0)
    return Level(np.delete(lengths, numbers.lasts()), np.maximum(numbers.sizes - 1, 0))


def _row_limits(numbers: PartitionNumbers) -> Level:
    """A row ends at its limit and begins at the limit before, the first at 0."""
    lengths = np.diff(numbers.values, prepend=0)
    firsts = numbers.firsts()
    lengths[firsts] = numbers.values[firsts]
    return Level(lengths, numbers.sizes)


def _row_starts(numbers: PartitionNumbers) -> Level:
    """A row begins at its start and ends at the next start, the last at the end of the values."""
    lengths = np.diff(numbers.values, append=0)
    lasts = numbers.lasts()
    ends = numbers.counts[numbers.sizes != 0]
    lengths[lasts] = ends - numbers.values[lasts]
    return Level(lengths, numbers.sizes)


def _value_row_ids(numbers: PartitionNumbers) -> Level:
    """The last id plus one is the number of rows."""
    counts = np.zeros(len(numbers.sizes), np.int64)
    counts[numbers.sizes != 0] = numbers.values[numbers.lasts()] + 1
    first = np.cumsum(counts, dtype=np.int64) - counts
    rows = numbers.values + numbers.per_value(first)
    return Level(np.bincount(rows, minlength=int(counts.sum(dtype=np.int64))), counts)


_LEVELS: dict[str, Callable[[PartitionNumbers], Level]] = {
    "RowSplits": _row_splits,
    "RowLengths": _row_lengths,
    "RowStarts": _row_starts,
    "RowLimits": _row_limits,
    "ValueRowIds": _value_row_ids,
}


@dataclass(eq=False, repr=False, slots=True)
class Ragged:
    """RaggedFeature. In feature lists, steps take the place of records.

    Attributes:
        key: The feature's key.
        column: The column of values.
        partitions: Outermost first.
        splits_dtype: int32 or int64.
        lists: This is a feature of feature lists.
    """

    key: str | bytes
    column: int
    partitions: tuple[Partition, ...]
    splits_dtype: np.dtype[Any]
    lists: bool

    @property
    def checked(self) -> bool:
        return bool(self.partitions)

    def batch(self, columns: Sequence[Column], count: int) -> Any:
        values, levels, rows = self._levels(columns)
        outer = [columns[self.column].steps] if self.lists else []
        return self._tensor(values, [*outer, to_splits(rows), *levels])

    def single(self, columns: Sequence[Column]) -> Any:
        values, levels, rows = self._levels(columns)
        return self._tensor(values, [to_splits(rows), *levels] if self.lists else levels)

    def _tensor(self, values: Any, levels: list[Array]) -> Any:
        """Values with levels of row splits around them, outermost first."""
        for splits in reversed(levels):
            if splits[-1] > np.iinfo(self.splits_dtype).max:
                raise _failure(
                    self.key, None, f"Row splits up to {splits[-1]} need row_splits_dtype=int64"
                )
            values = RaggedTensor._trusted(values, splits.astype(self.splits_dtype))
        return values

    def _levels(self, columns: Sequence[Column]) -> tuple[Any, list[Array], Array]:
        """Values, row splits of every partition, and the number of outermost rows per record."""
        column = columns[self.column]
        check = _Check(self.key, column)
        values, counts = column.values, np.diff(column.splits)
        partitions = list(self.partitions)
        inner: list[int] = []
        while partitions and partitions[-1].kind == "UniformRowLength":
            inner.insert(0, partitions.pop().length)
        if inner:
            size = math.prod(inner)
            counts = check.divide(counts, size)
            values = with_shape(values, (len(values) // size, *inner))
        levels: list[Array] = []
        for partition in reversed(partitions):
            lengths, counts = _level(columns, partition, counts, check)
            levels.insert(0, to_splits(lengths))
        return values, levels, counts


def _level(columns: Sequence[Column], partition: Partition, counts: Array, check: _Check) -> Level:
    """The rows that a partition makes of the inner rows; counts is their number per record."""
    if partition.kind == "UniformRowLength":
        rows = check.divide(counts, partition.length)
        return Level(np.full(rows.sum(dtype=np.int64), partition.length, np.int64), rows)
    column = columns[partition.column]
    check.same_steps(column)
    numbers = PartitionNumbers(column.values, np.diff(column.splits), counts)
    check.numbers(partition.kind, numbers)
    level = _LEVELS[partition.kind](numbers)
    check.cover(partition.kind, level, counts)
    return level


def _failure(key: str | bytes, record: int | None, text: str) -> ParseFailure:
    return ParseFailure("partition", key, record, f"Key: {show_key(key)}.  {text}")


class _Check:
    """Checks of the partitions of a feature. A failure names the first record that is wrong."""

    def __init__(self, key: str | bytes, column: Column) -> None:
        self.key = key
        self.steps = column.steps

    def expect(self, good: Array, sizes: Array | None, text: str) -> None:
        """Fails unless all of good is true. Every record has sizes of its items; None: one each."""
        if good.all():
            return
        record = int(good.argmin())
        if sizes is not None:
            record = int(np.searchsorted(np.cumsum(sizes, dtype=np.int64), record, "right"))
        if self.steps is not None:  # the index is that of a step
            record = int(np.searchsorted(self.steps, record, "right")) - 1
        raise _failure(self.key, record, text)

    def divide(self, counts: Array, length: int) -> Array:
        """The number of rows of this length in each record."""
        self.expect(counts % length == 0, None, f"The values do not fill rows of {length}")
        rows: Array = counts // length
        return rows

    def same_steps(self, column: Column) -> None:
        if self.steps is not None:
            same = np.diff(column.steps) == np.diff(self.steps)
            if not same.all():
                text = "Values and partitions have different numbers of steps"
                raise _failure(self.key, int(same.argmin()), text)

    def numbers(self, kind: str, numbers: PartitionNumbers) -> None:
        """Checks that numbers are in range, so that sums and differences cannot overflow."""
        values, sizes, counts = numbers
        if kind == "ValueRowIds":
            self.expect(sizes == counts, None, "There is not one row id for every value")
            rows = np.zeros(len(sizes), np.float64)  # a sum of integers could overflow
            rows[sizes != 0] = values[numbers.lasts()]
            few = np.cumsum(rows, dtype=np.float64) <= _MAX_EMPTY_ROWS + len(values)
            self.expect(few, None, "The row ids are too large")
            steps = np.diff(values, prepend=0)
            firsts = numbers.firsts()
            steps[firsts] = values[firsts]
            self.expect(steps >= 0, sizes, "The row ids decrease or are negative")
            return
        most = numbers.per_value(counts)
        self.expect((values >= 0) & (values <= most), sizes, f"{kind} beyond the values")
        if kind in ("RowSplits", "RowStarts"):
            self.expect(values[numbers.firsts()] == 0, None, f"{kind} do not begin at 0")

    def cover(self, kind: str, level: Level, counts: Array) -> None:
        self.expect(level.lengths >= 0, level.counts, f"{kind} decrease")
        splits, ends = to_splits(level.lengths), np.cumsum(level.counts, dtype=np.int64)
        covered = splits[ends] - splits[ends - level.counts]
        self.expect(covered == counts, None, f"{kind} do not cover the values")
