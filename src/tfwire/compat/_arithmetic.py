"""Arithmetic of arrays of one dtype, as TensorFlow defines it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfwire.compat._convert import Array
from tfwire.compat._dtypes import as_dtype
from tfwire.compat._errors import DtypeError, InvalidArgumentError

__all__ = ["NUMBERS", "OPERATORS", "SIGNED", "check_kind", "divide", "floor_divide", "modulo"]

NUMBERS = "iufc"
SIGNED = "ifc"


def check_kind(array: Array, kinds: str) -> None:
    """Raises DtypeError unless the kind of dtype is one of those."""
    if array.dtype.kind not in kinds + "V":
        raise DtypeError(f"this operation has no form for {as_dtype(array.dtype)}")


def divide(x: Array, y: Array) -> Array:
    """The true quotient; of integers of up to 16 bits in float32, of others in float64."""
    if x.dtype.kind in "iu":
        dtype = np.float32 if x.dtype.itemsize <= 2 else np.float64
        x, y = x.astype(dtype), y.astype(dtype)
    return np.asarray(x / y)


def floor_divide(x: Array, y: Array) -> Array:
    """The quotient rounded down."""
    if x.dtype.kind != "f":
        return np.asarray(x // _without_zeros(y))
    return np.asarray(np.floor(x / y))


def modulo(x: Array, y: Array) -> Array:
    """The rest, with the sign of the divisor."""
    return np.asarray(x % (y if y.dtype.kind == "f" else _without_zeros(y)))


def _without_zeros(array: Array) -> Array:
    if array.dtype.kind in "iu" and not array.all():
        raise InvalidArgumentError("integer division by zero")
    return array


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind in "iu" and (y < 0).any():
        raise InvalidArgumentError("an integer to a negative power")
    return np.asarray(x**y)


def _matrix_product(x: Array, y: Array) -> Array:
    if x.ndim < 2 or y.ndim < 2:
        raise InvalidArgumentError(f"a matrix product needs rank 2, got {x.ndim} and {y.ndim}")
    return np.asarray(x @ y)


# The function of every binary operator, and the kinds of dtype that it takes.
OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": (np.add, NUMBERS + "O"),
    "sub": (np.subtract, NUMBERS),
    "mul": (np.multiply, NUMBERS + "b"),
    "truediv": (divide, NUMBERS),
    "floordiv": (floor_divide, "iuf"),
    "mod": (modulo, "iuf"),
    "pow": (_power, NUMBERS),
    "and": (np.bitwise_and, "biu"),
    "or": (np.bitwise_or, "biu"),
    "xor": (np.bitwise_xor, "biu"),
    "matmul": (_matrix_product, NUMBERS),
    "lt": (np.less, "iuf"),
    "le": (np.less_equal, "iuf"),
    "gt": (np.greater, "iuf"),
    "ge": (np.greater_equal, "iuf"),
}
