"""Rows of a column that an index chooses, and where their values are."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._base.aliases import Array, IntegerArray
from tfwire._base.arguments import as_index, refuse_unordered, slice_indices, wrong_type
from tfwire._base.arrays import int64_array
from tfwire._base.strings import to_splits


def chosen_rows(index: Any, count: int) -> int | slice | Array:
    """What an index chooses: the number of a row, a slice of rows next to each other, or the
    numbers of rows."""
    if isinstance(index, slice):
        begin, end, step = slice_indices(index, count)
        if step == 1:
            return slice(begin, max(begin, end))
    if isinstance(index, slice) or (isinstance(index, (list, np.ndarray)) and np.ndim(index) == 1):
        rows: Array = np.arange(count, dtype=np.int64)
        try:
            return rows[index]
        except IndexError as error:
            kind = f"an array of {index.dtype}" if isinstance(index, np.ndarray) else "a list"
            expected = f"expected numbers of {count} rows, or a mask of them"
            raise IndexError(f"{expected}, found {kind}: {error}") from None
    try:
        number = as_index(index)
    except TypeError:
        found = type(index).__name__
        expected = "a row number, a slice, or row numbers in a list or an array of rank 1"
        raise TypeError(f"expected {expected}, found {found}") from None
    if not -count <= number < count:
        raise IndexError(f"row {number} of {count} rows")
    return number % count


def joined_ranges(begins: Array, sizes: Array) -> tuple[Array, Array]:
    """The numbers of ranges one after the other, and where each range begins and ends in them."""
    splits = to_splits(sizes)
    numbers = np.repeat(begins - splits[:-1], sizes)
    numbers += np.arange(len(numbers), dtype=np.int64)
    return numbers, splits


def as_shape(shape: Any) -> tuple[int, ...]:
    """A shape as Python's integers: those of numpy overflow."""
    refuse_unordered("shape", shape)
    try:
        return tuple(map(as_index, shape))
    except TypeError:
        raise wrong_type("shape", shape, "a tuple of integers") from None


def as_row_splits(row_splits: Any) -> IntegerArray:
    """Row splits as an array of integers; tensors of other libraries stay what they are."""
    if isinstance(row_splits, np.ndarray):
        convert = row_splits.dtype.kind not in "iu"
    else:
        convert = not hasattr(row_splits, "shape")
    splits: IntegerArray = int64_array("row_splits", row_splits) if convert else row_splits
    return splits
