"""Features one by one: the helpers of the tutorials."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._examples.normalize import FLOAT, INT64, NONE, as_float32, as_int64, cell_of

__all__ = ["bytes_feature", "float_feature", "int64_feature"]


def bytes_feature(value: Any) -> Any:
    r"""A ``tf.train.Feature`` holding a bytes_list.

    Args:
        value: bytes, bytearray, memoryview, str (as UTF-8), an object whose ``numpy()`` is one of
            them, or a list or object array of them. An array of numbers becomes one string, its
            bytes in row-major order (``tobytes()``), as the tutorials store images.

    Returns:
        A Feature with one string, or with one per entry of a list.

    Raises:
        TypeError: A value that is no string.

    Example:
        >>> bytes_feature("cat").SerializeToString()
        b'\n\x05\n\x03cat'
    """
    from tfwire.train import BytesList, Feature

    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind not in "OSU":
        value = value.tobytes()
    cell = cell_of(value, None)
    if cell.kind in (INT64, FLOAT):
        helper = "int64_feature" if cell.kind == INT64 else "float_feature"
        raise TypeError(f"bytes_feature takes strings, found {_found(cell.values)}; use {helper}")
    strings = [v.encode() if isinstance(v, str) else bytes(v) for v in cell.values]
    return Feature(bytes_list=BytesList(value=strings))


def float_feature(value: Any) -> Any:
    r"""A ``tf.train.Feature`` holding a float_list.

    Args:
        value: A float or int of Python or numpy, or a list or array of them (flattened row by
            row); rounded to float32, beyond its range to infinity.

    Returns:
        A Feature with one number, or with all of a list or array.

    Raises:
        TypeError: A value that is no number.

    Example:
        >>> float_feature(2.0).SerializeToString()
        b'\x12\x06\n\x04\x00\x00\x00@'
    """
    from tfwire.train import Feature, FloatList

    cell = cell_of(value, None)
    if cell.kind not in (INT64, FLOAT, NONE):
        raise TypeError(
            f"float_feature takes numbers, found {_found(cell.values)}; use bytes_feature"
        )
    return Feature(float_list=FloatList(value=as_float32(cell.values, None).tolist()))


def int64_feature(value: Any) -> Any:
    r"""A ``tf.train.Feature`` holding an int64_list.

    Args:
        value: A bool or int of Python or numpy (an IntEnum too), or a list or array of them
            (flattened row by row).

    Returns:
        A Feature with one integer, or with all of a list or array.

    Raises:
        TypeError: A value that is no integer, as 1.0.
        ValueError: An integer outside of int64.

    Example:
        >>> int64_feature(True).SerializeToString()
        b'\x1a\x03\n\x01\x01'
    """
    from tfwire.train import Feature, Int64List

    cell = cell_of(value, None)
    if cell.kind not in (INT64, NONE):
        helper = "float_feature" if cell.kind == FLOAT else "bytes_feature"
        raise TypeError(f"int64_feature takes integers, found {_found(cell.values)}; use {helper}")
    return Feature(int64_list=Int64List(value=as_int64(cell.values, None).tolist()))


def _found(values: Any) -> str:
    return type(values[0]).__name__ if len(values) else f"an array of {values.dtype}"
