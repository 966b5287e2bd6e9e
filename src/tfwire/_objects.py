"""Strings as object arrays of bytes."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire._core import ffi, lib

__all__ = ["as_array", "as_bytes", "bytes_array", "first_leaf"]

# From this mean length on a slice per string costs no more than its copy through a pickle stream.
_LONG = 2048


def bytes_array(
    data: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """The strings ``data[offsets[i]:offsets[i + 1]]`` as bytes objects.

    Args:
        data: uint8 of rank 1.
        offsets: int64 of rank 1, from C or checked: not decreasing, within data. No other thread
            may change them meanwhile.
        shape: The shape of the result, as many elements as there are strings.

    Returns:
        A writable array of dtype object.
    """
    count = len(offsets) - 1
    strings = _strings(data, offsets, count)
    return np.fromiter(strings, object, count).reshape(shape)


def _strings(
    data: np.ndarray[Any, Any], offsets: np.ndarray[Any, Any], count: int
) -> Sequence[bytes]:
    num_bytes = int(offsets[count] - offsets[0])
    if num_bytes >= _LONG * count:
        view = data.data
        ends = offsets.tolist()
        return [bytes(view[ends[i] : ends[i + 1]]) for i in range(count)]
    stream = np.empty(lib.tfw_pickle_bound(count, num_bytes), np.uint8)
    size = ffi.new("size_t *")
    status = lib.tfw_pickle_offsets(
        ffi.from_buffer("uint8_t[]", data),
        len(data),
        ffi.from_buffer("int64_t[]", offsets),
        count,
        ffi.from_buffer("uint8_t[]", stream),
        len(stream),
        size,
    )
    if status != lib.TFW_OK:
        raise MemoryError(f"no room for the pickle of {count} strings")
    strings: Sequence[bytes] = pickle.loads(stream.data[: size[0]])
    return strings


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """A value as an array; strings as objects of bytes, whole.

    numpy's own string types drop trailing zeros, and make every string as long as the longest.
    """
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OSU":
        return np.asarray(value)
    strings = isinstance(first_leaf(value), (str, bytes))
    array = np.asarray(value, object if strings else None)
    if array.dtype.kind not in "OSU":
        return array
    objects = array if array.dtype.kind == "O" else np.asarray(value, object)
    return np.fromiter(map(as_bytes, objects.flat), object, array.size).reshape(array.shape)


def first_leaf(value: Any) -> Any:
    """The first value of nested lists."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value


def as_bytes(item: Any) -> Any:
    """A str as its UTF-8; anything else as it is."""
    return item.encode() if isinstance(item, str) else item
