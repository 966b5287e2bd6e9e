"""A caller's arrays and buffers as C may read them, and the rows of a column that an index chooses.

Subclasses of ndarray may say anything about their shape, dtype and base. What is asked here are
numpy's own attributes.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from tfwire._base.aliases import Array, IntegerArray
from tfwire._base.arguments import as_index, refuse_unordered, slice_indices, wrong_type

_INT64 = np.dtype(np.int64)
_LARGEST_INT64 = 2**63 - 1


def aligned(values: Any, dtype: Any) -> Array:
    """Values as a plain contiguous array, at an address that is a multiple of their size. Copied
    only if they are not so already."""
    array: Array = np.ascontiguousarray(values, dtype)
    return array if array.flags.aligned else array.copy()


def int64_array(name: str, values: Any) -> Array:
    """Integers as a plain, contiguous and aligned int64 array. Copied only if need be.

    Raises:
        TypeError: They are not integers. Floats are refused too.
        ValueError: An integer outside of int64.
    """
    if type(values) is np.ndarray and values.dtype is _INT64 and values.flags.carray:
        return values
    array = np.asarray(values)
    if array.dtype.kind == "i":
        return aligned(array, np.int64)
    if array.dtype.kind == "u":
        if array.size and array.max() > _LARGEST_INT64:
            raise ValueError(f"{name} must be within int64, found {array.max()}")
        return aligned(array, np.int64)
    objects = np.asarray(values, object)  # numpy makes floats of some lists of large integers
    try:
        numbers = np.fromiter(map(operator.index, objects.flat), np.int64, objects.size)
    except TypeError:
        found = "an array" if isinstance(values, np.ndarray) else f"a {type(values).__name__}"
        found += "" if array.dtype.kind == "O" else f" of {array.dtype}"
        raise TypeError(f"{name} must be integers, found {found}") from None
    except OverflowError:
        raise ValueError(f"{name} must be within int64") from None
    return numbers.reshape(objects.shape)


def filled(name: str, shape: Any, dtype: Any, value: Any) -> Array:
    """An array full of one value. Floats are rounded to the dtype, beyond its range to infinity.

    Raises:
        TypeError: A complex number for real ones.
        ValueError: A number that integers of the dtype cannot hold.
    """
    array: Array = np.empty(shape, dtype)
    if array.dtype.kind in "biuf" and np.asarray(value).dtype.kind == "c":
        raise TypeError(f"{name} must be a real number, found a complex one")
    try:
        with np.errstate(all="ignore"):
            array.fill(value)  # np.full would cut trailing zeros off strings
    except OverflowError:
        raise ValueError(f"{name} does not fit elements of {array.dtype}") from None
    return array


def holds_objects(value: Any, view: memoryview) -> bool:
    """Whether the memory of an object holds references to others, which nobody may read as bytes.

    Args:
        value: The object.
        view: Its memory.
    """
    if view.format == "B":
        return False
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).dtype.hasobject
    return view.format[-1:] == "O"


def byte_array(name: str, data: Any) -> Array:
    """The memory of anything with a contiguous buffer, as uint8 of rank 1. Not copied.

    Raises:
        TypeError: Not bytes-like, or its memory holds Python objects.
        ValueError: It has gaps.
    """
    if type(data) is bytes or (type(data) is np.ndarray and data.dtype.char == "B"):
        return np.frombuffer(data, np.uint8)
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name} must be bytes-like, found {type(data).__name__}") from None
    if holds_objects(data, view):
        raise TypeError(f"{name} must be bytes-like, found {type(data).__name__} of objects")
    return np.frombuffer(data, np.uint8)


def contiguous_bytes(name: str, data: Any) -> Array:
    """As byte_array, but a copy of an array with gaps."""
    return byte_array(name, np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data)


def is_constant(array: Array) -> bool:
    """Whether the memory of an array belongs to a bytes object."""
    owner: Any = array
    while issubclass(type(owner), np.ndarray):
        owner = np.ndarray.base.__get__(owner)
    return type(owner) is bytes


def to_splits(lengths: Array) -> Array:
    """Where parts of these lengths begin and end: int64, one more than there are lengths."""
    splits = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, dtype=np.int64, out=splits[1:])
    return splits


def joined_splits(parts: Iterable[Any]) -> Array:
    """The splits of columns one after the other, of which these are the splits."""
    return to_splits(np.concatenate([np.diff(part) for part in parts]))


# ---- Rows of a column that an index chooses, and where their values are ------------------------


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


# glibc returns free memory at the end of its heap to the system, by default from 128 KiB on.
_KEPT_BY_HEAP = 1 << 24


@cache
def keep_heap() -> None:
    """For who makes many bytes objects again and again: each list of them would take its memory
    page fault by page fault. After a block with a mapping of its own has been freed, glibc keeps up
    to twice the size of that block. Once for the process."""
    np.empty(_KEPT_BY_HEAP // 2, np.uint8)  # freed at once
