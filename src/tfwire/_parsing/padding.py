"""Rows of different lengths padded to that of the longest, and the limit of what that may take."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._base.arrays import to_splits
from tfwire._base.native import call, ffi, lib
from tfwire._base.text import show_key
from tfwire._examples.column_types import BytesColumn

Array = np.ndarray[Any, Any]
# Padding is refused if it takes more than both limits: bytes, and a multiple of the values.
_MAX_PADDING = 1 << 30
_PADDING_OF_VALUES = 16


def longest(lengths: Array) -> int:
    return int(lengths.max(initial=0))


def pad_rows(values: Any, splits: Array, default: Any) -> Any:
    """Rows padded at their ends to the length of the longest, flat. Numbers are always copied."""
    rows, width = len(splits) - 1, longest(np.diff(splits))
    if isinstance(values, BytesColumn):
        return values if len(values) == rows * width else pad_strings(values, splits, default)
    padded, padding = np.empty(rows * width, values.dtype), np.array([default], values.dtype)
    call(
        lib.tfw_pad,
        ffi.from_buffer(values),
        len(values),
        ffi.from_buffer("int64_t[]", splits),
        rows,
        width,
        values.itemsize,
        ffi.from_buffer(padding),
        ffi.from_buffer(padded),
    )
    return padded


def check_padding_size(key: str | bytes, values: Any, splits: Array, default: Any) -> None:
    """Refuses excessive padding: one long row makes all others of its batch as long.

    Raises:
        ValueError: It takes more than 1 GiB and more than 16 times the bytes of the values.
    """
    count = (len(splits) - 1) * longest(np.diff(splits)) - len(values)
    if isinstance(values, BytesColumn):  # a string takes an offset too
        size, present = 8 + len(default), 8 * len(values) + len(values.data)
    else:
        size, present = values.itemsize, values.nbytes
    if count * size > max(_MAX_PADDING, _PADDING_OF_VALUES * present):
        raise ValueError(
            f"Key: {show_key(key)}.  A batch would hold {count * size} bytes of padding for "
            f"{present} bytes of values, expected at most {_MAX_PADDING}, or {_PADDING_OF_VALUES} "
            f"times the values; use a RaggedFeature, a VarLenFeature or smaller batches"
        )


def pad_strings(strings: BytesColumn, splits: Array, default: bytes) -> BytesColumn:
    if not default:  # empty strings need only offsets
        padded = pad_rows(np.diff(strings.offsets), splits, 0)
        return BytesColumn._trusted(strings.data, to_splits(padded), (len(padded),))
    data = np.concatenate([strings.data, np.frombuffer(default, np.uint8)])
    offsets = np.append(strings.offsets, len(data))
    with_default = BytesColumn._trusted(data, offsets, (len(strings) + 1,))
    numbers = np.arange(len(strings), dtype=np.int64)
    return with_default.take(pad_rows(numbers, splits, len(strings)))
