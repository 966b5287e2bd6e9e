"""The values that the constructors of BytesList, FloatList and Int64List take."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

__all__ = ["byte_strings", "floats", "int64s"]


def int64s(value: Any) -> list[int]:
    """Integers of any type as ints; int64's range is left to protobuf."""
    values = _list_of(value)
    if set(map(type, values)) <= {int}:
        return values
    return [_int64(item) for item in values]


def _int64(value: Any) -> int:
    """An integer of any type as an int; __index__ is what floats do not have."""
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.bool_):  # numpy gives bool_ no __index__
        return int(value)
    try:
        return int(operator.index(value))
    except TypeError:
        raise TypeError(f"expected integers, found {_type_name(value)}") from None


def floats(value: Any) -> list[float]:
    """Real numbers of any type as numbers that protobuf takes."""
    values = _list_of(value)
    if set(map(type, values)) <= {float, int}:
        return values
    return [_float(item) for item in values]


def _float(value: Any) -> float:
    """A real number; text is refused although float() would read it."""
    if not isinstance(value, (str, bytes, bytearray, complex, np.complexfloating)):
        try:
            return float(value)
        except TypeError:
            pass
    raise TypeError(f"expected real numbers, found {_type_name(value)}")


def byte_strings(value: Any) -> list[bytes]:
    """Text, buffers and arrays as bytes."""
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"expected a list of byte strings, found {_type_name(value)}")
    values = _list_of(value)
    if set(map(type, values)) <= {bytes}:
        return values
    return [_byte_string(item) for item in values]


def _byte_string(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if hasattr(value, "numpy"):
        return _byte_string(value.numpy())
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "OSU":
            return value.tobytes()
        if value.ndim == 0:
            return _byte_string(value.item())
    raise TypeError(f"expected byte strings, found {_type_name(value)}")


def _list_of(value: Any) -> list[Any]:
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            raise TypeError(f"expected values of rank 1, found an array of rank {value.ndim}")
        # A timedelta's tolist() would pass for integers.
        return list(value) if value.dtype.kind in "mM" else value.tolist()
    return list(value)


def _type_name(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} and shape {list(value.shape)}"
    return type(value).__name__
