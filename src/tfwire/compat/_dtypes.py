"""The dtypes under TensorFlow's names; all are :class:`tfwire._parsing.features.DType`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tfwire._examples.dtypes import data_type_number
from tfwire._parsing.features import DType, float32, int32, int64, string, to_dtype

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "numpy_dtype",
    "of_numpy",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


def as_dtype(type_value: Any) -> DType:
    """The dtype that a value names.

    Args:
        type_value: A dtype, a dtype or scalar type of numpy, or a name such as "float32".

    Raises:
        TypeError: TensorFlow has no such type.
    """
    try:
        dtype = to_dtype(type_value)
        data_type_number(dtype.dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{type_value!r} does not name a TensorFlow dtype") from None
    return dtype


@lru_cache
def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The dtype of an array that is a tensor's."""
    return to_dtype(dtype)


def numpy_dtype(dtype: Any) -> Any:
    """The numpy dtype of a dtype in any form, object for strings; None stays None."""
    return None if dtype is None else as_dtype(dtype).dtype


def _bfloat16() -> DType | None:
    """bfloat16 where ml_dtypes is installed."""
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        return None
    return to_dtype(np.dtype(bfloat16))


int8: DType
int16: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
float16: DType
float64: DType
complex64: DType
complex128: DType
half: DType
double: DType
int8, int16 = to_dtype("int8"), to_dtype("int16")
uint8, uint16, uint32, uint64 = (to_dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, float64 = to_dtype("float16"), to_dtype("float64")
complex64, complex128 = to_dtype("complex64"), to_dtype("complex128")
bfloat16: DType | None = _bfloat16()
bool: DType = to_dtype("bool")
half, double = float16, float64
