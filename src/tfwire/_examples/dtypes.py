"""TensorFlow's data types (types.proto) as numpy dtypes."""

from __future__ import annotations

import reprlib
from functools import lru_cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Dtype = np.dtype[Any]

STRING = np.dtype(object)

# DataType numbers, and the names of these types in numpy or ml_dtypes. Types without an array form
# are left out: quantized, resource and variant types, and integers of 4 and 2 bits.
_DATA_TYPES = {
    1: "float32",
    2: "float64",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    14: "bfloat16",
    17: "uint16",
    18: "complex128",
    19: "float16",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
    26: "float8_e4m3fnuz",
    27: "float8_e4m3b11fnuz",
    28: "float8_e5m2fnuz",
}
_DATA_TYPE_NUMBERS = {name: number for number, name in _DATA_TYPES.items()}
# TensorFlow's names that differ.
_ALIASES = {"float": "float32", "double": "float64", "half": "float16"}
_MESSAGE_NAMES = {name: alias for alias, name in _ALIASES.items()}
_EXTENDED = {name for name in _DATA_TYPE_NUMBERS if name.startswith(("bfloat", "float8"))}


def to_numpy_dtype(out_type: Any) -> Dtype:
    """The numpy dtype of a type in any form; object for strings.

    Args:
        out_type: A numpy dtype or scalar type, a name (``"float32"``, ``"string"``,
            ``"bfloat16"``; also TensorFlow's ``"float"``, ``"double"``, ``"half"``), Python's
            ``float`` (float32, as in TensorFlow), ``bool`` or ``object``, or any object with an
            ``as_numpy_dtype`` (tfwire's and TensorFlow's dtypes).

    Raises:
        TypeError: Not a type, or a type that TensorFlow does not have.
        ImportError: bfloat16 or a float8 is given by name, and ml_dtypes is not installed.
    """
    if hasattr(out_type, "as_numpy_dtype"):
        out_type = out_type.as_numpy_dtype
    if out_type is float:
        out_type = "float32"
    if isinstance(out_type, str):
        out_type = _ALIASES.get(out_type, out_type)
        if out_type == "string":
            return STRING
        if out_type in _EXTENDED:
            return _extended(out_type)
    try:
        if out_type is None:  # to numpy it is float64
            raise TypeError
        dtype: Dtype = np.dtype(out_type)
    except (TypeError, ValueError, SyntaxError):  # numpy parses some names as Python
        found = reprlib.repr(out_type) if isinstance(out_type, str) else type(out_type).__name__
        raise TypeError(f"out_type must be a dtype or the name of one, found {found}") from None
    data_type_number(dtype)
    native: Dtype = dtype.newbyteorder("=")
    return STRING if is_string(dtype) else native


def is_string(dtype: Dtype) -> bool:
    """True if arrays of the dtype are tensors of strings."""
    return dtype.kind in "OSUT"


@lru_cache
def data_type_number(dtype: Dtype) -> int:
    """The DataType number of a numpy dtype.

    Raises:
        TypeError: TensorFlow has no such type.
    """
    name = "string" if is_string(dtype) else dtype.name
    if name not in _DATA_TYPE_NUMBERS:
        raise TypeError(f"TensorFlow has no data type for numpy's {name}")
    return _DATA_TYPE_NUMBERS[name]


@lru_cache
def type_name(dtype: Dtype) -> str:
    """TensorFlow's name of a type in messages: float for float32."""
    name = _DATA_TYPES[data_type_number(dtype)]
    return _MESSAGE_NAMES.get(name, name)


def dtype_from_number(number: int) -> Dtype | None:
    """The numpy dtype of a DataType number, None if there is none."""
    name = _DATA_TYPES.get(number)
    return None if name is None else to_numpy_dtype(name)


@lru_cache
def wire_dtype(dtype: Dtype) -> Dtype:
    """The little-endian dtype in which numbers of a dtype are stored."""
    if dtype.name in _EXTENDED:
        dtype = np.dtype(f"<u{dtype.itemsize}")
    wire: Dtype = dtype.newbyteorder("<")
    return wire


def to_wire(array: Array) -> Array:
    """Numbers in row-major order and little-endian; a copy only if they are not so already."""
    array = np.ascontiguousarray(array)
    wire = wire_dtype(array.dtype)
    if array.dtype.name in _EXTENDED:
        array = array.view(wire.newbyteorder("="))
    return array.astype(wire, copy=False)


def from_wire(stored: Array, dtype: Dtype) -> Array:
    """The inverse of to_wire, for either byte order; a copy only if it must be."""
    if dtype.name in _EXTENDED:
        return stored.astype(stored.dtype.newbyteorder("="), copy=False).view(dtype)
    return stored.astype(dtype, copy=False)


def _extended(name: str) -> Dtype:
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError(f"{name} needs the package ml_dtypes") from None
    dtype: Dtype = np.dtype(getattr(ml_dtypes, name))
    return dtype
