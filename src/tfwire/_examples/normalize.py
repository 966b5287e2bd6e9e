"""Python values as the columns that C encodes: which kind they are, and their arrays.

bool and ints are int64, floats (and ints among floats) float32, str and bytes bytes. What is not
clearly one of them is a TypeError that names the feature.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import countOf
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import lib
from tfwire._spans import strings_of_objects
from tfwire._text import quoted

__all__ = [
    "Array",
    "Cell",
    "Name",
    "as_float32",
    "as_int64",
    "as_strings",
    "cell_of",
    "key_bytes",
    "pack_strings",
    "show",
    "string_bytes",
    "types_of",
]

Array = np.ndarray[Any, Any]

Name = str | bytes | None  # of the feature that a message is about; None: a value on its own

NONE: int = lib.TFW_NONE
BYTES: int = lib.TFW_BYTES
FLOAT: int = lib.TFW_FLOAT
INT64: int = lib.TFW_INT64

_SCALARS: dict[type, int] = {
    bool: INT64,
    int: INT64,
    float: FLOAT,
    bytes: BYTES,
    str: BYTES,
    bytearray: BYTES,
    memoryview: BYTES,
}


class Cell(NamedTuple):
    """The values of one feature in one record, flat.

    Attributes:
        kind: NONE (an empty list says nothing about its kind), BYTES, FLOAT or INT64.
        values: A sequence of Python or numpy scalars, or an array of rank 1.
        shape: The shape they had, for checking that nested lists are not ragged.
    """

    kind: int
    values: Any
    shape: tuple[int, ...]


def show(name: Name) -> str:
    """How messages show the feature at fault."""
    return "value" if name is None else f"feature {quoted(name)}"


def key_bytes(name: Any) -> bytes:
    """The bytes of a feature's key; bytes that are no UTF-8 travel in str as surrogateescape."""
    if isinstance(name, str):
        return str.encode(name, "utf-8", "surrogateescape")
    if isinstance(name, bytes):
        return _plain(name)
    raise TypeError(f"keys of features must be str or bytes, found {type(name).__name__}")


def scalar_kind(cls: type) -> int | None:
    """The kind of scalars of a class, None when they are no scalars that can be encoded."""
    kind = _SCALARS.get(cls)
    if kind is not None:
        return kind
    if issubclass(cls, (int, np.integer, np.bool_)):
        return INT64
    if issubclass(cls, (float, np.floating)):
        return FLOAT
    if issubclass(cls, (bytes, str, bytearray)):
        return BYTES
    if issubclass(cls, np.generic):
        return dtype_kind(np.dtype(cls))
    return None


def dtype_kind(dtype: np.dtype[Any]) -> int | None:
    """The kind of an array's elements; None for objects and for what cannot be encoded."""
    if dtype.kind in "biu":
        return INT64
    if dtype.kind == "f":
        return FLOAT
    if dtype.kind in "SU":
        return BYTES
    if dtype.type.__module__.startswith("ml_dtypes"):  # bfloat16, int4, ...: numpy calls them void
        return FLOAT if "float" in dtype.name else INT64
    return None


def types_of(values: Sequence[Any]) -> set[type]:
    """The types of values. Nearly always there is one, and counting it takes the least time."""
    if len(values) > 1 and countOf(map(type, values), type(values[0])) == len(values):
        return {type(values[0])}
    return set(map(type, values))


def joint_kind(kinds: Iterable[int], name: Name) -> int:
    """The kind of values of several kinds: floats where ints stand among them."""
    found = set(kinds) - {NONE}
    if len(found) <= 1:
        return found.pop() if found else NONE
    if found == {INT64, FLOAT}:
        return FLOAT
    raise TypeError(f"{show(name)}: numbers and strings cannot be mixed in one list")


def cell_of(value: Any, name: Name) -> Cell:
    """The values of one feature in one record.

    Raises:
        TypeError: A value that no feature can hold (None, complex, datetime, dict, ...), or
            numbers and strings mixed.
        ValueError: Nested lists of different lengths.
    """
    if isinstance(value, np.ndarray):
        return _array_cell(value, name)
    kind = scalar_kind(type(value))
    if kind is not None:
        return Cell(kind, (value,), ())
    if isinstance(value, np.generic):
        raise _refusal(value, name)
    if hasattr(value, "numpy"):
        return cell_of(value.numpy(), name)
    if hasattr(value, "WhichOneof"):
        return _message_cell(value)
    if isinstance(value, Sequence):
        return _list_cell(value, name)
    if hasattr(value, "__array__"):
        return _array_cell(np.asarray(value), name)
    raise _refusal(value, name)


def _refusal(value: Any, name: Name) -> TypeError:
    found = "None" if value is None else type(value).__name__
    advice = "; leave the key out where there is no value" if value is None else ""
    return TypeError(
        f"{show(name)}: expected numbers, strings, or lists or arrays of them, "
        f"found {found}{advice}"
    )


def _list_cell(values: Sequence[Any], name: Name) -> Cell:
    if len(values) == 0:
        return Cell(NONE, (), (0,))
    kinds = {scalar_kind(cls) for cls in set(map(type, values))}
    if None not in kinds:
        return Cell(joint_kind(kinds, name), values, (len(values),))  # type: ignore[arg-type]
    cells = [cell_of(value, name) for value in values]
    shape = cells[0].shape
    for cell in cells:
        if cell.shape != shape:
            raise ValueError(
                f"{show(name)}: nested lists must agree in shape, found {shape} and {cell.shape}"
            )
    kind = joint_kind((cell.kind for cell in cells), name)
    return Cell(kind, join_cells(kind, cells, name), (len(values), *shape))


def _array_cell(array: Array, name: Name) -> Cell:
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise TypeError(f"{show(name)}: a masked array with masked values has no encoding")
        array = array.data
    kind = dtype_kind(array.dtype)
    if array.dtype.kind == "O" and array.size:
        cell = _list_cell(array.ravel().tolist(), name)
        return Cell(cell.kind, cell.values, array.shape)
    if kind == BYTES or array.dtype.kind == "O":
        return Cell(BYTES, array.ravel().tolist(), array.shape)
    if kind is None:
        raise TypeError(f"{show(name)}: arrays of {array.dtype} have no encoding")
    return Cell(kind, array.ravel(), array.shape)


def _message_cell(feature: Any) -> Cell:
    """The values of a tf.train.Feature, ours or TensorFlow's."""
    which = feature.WhichOneof("kind")
    if which is None:
        return Cell(NONE, (), (0,))
    kind = {"bytes_list": BYTES, "float_list": FLOAT, "int64_list": INT64}[which]
    values = list(getattr(feature, which).value)
    if kind == BYTES:
        return Cell(BYTES, values, (len(values),))
    array = np.array(values, np.float32 if kind == FLOAT else np.int64)
    return Cell(kind, array, (len(values),))


def join_cells(kind: int, cells: Sequence[Cell], name: Name) -> Any:
    """The values of many cells, one after the other."""
    if len(cells) == 1:
        return cells[0].values
    if kind not in (FLOAT, INT64) or not any(isinstance(c.values, np.ndarray) for c in cells):
        return list(chain.from_iterable(cell.values for cell in cells))
    convert = as_float32 if kind == FLOAT else as_int64
    return np.concatenate([convert(cell.values, name) for cell in cells])


# ---- Arrays -----------------------------------------------------------------------------------


def as_int64(values: Any, name: Name) -> Array:
    """Values as a contiguous int64 array of rank 1.

    Raises:
        ValueError: A value outside of int64.
    """
    try:
        if isinstance(values, np.ndarray):
            if values.dtype.kind == "u" and values.dtype.itemsize == 8:
                _check_uint64(values)
            return np.ascontiguousarray(values, np.int64).ravel()
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        raise ValueError(f"{show(name)}: a value outside of int64 [-2**63, 2**63)") from None


def _check_uint64(values: Array) -> None:
    if values.size and int(values.max()) >= 2**63:
        raise OverflowError


def as_float32(values: Any, name: Name) -> Array:
    """Values as a contiguous float32 array of rank 1, rounded as C does: beyond the range inf."""
    if isinstance(values, np.ndarray):
        if values.dtype == np.float32:  # errstate takes longer than a small array
            return np.ascontiguousarray(values, np.float32).ravel()
        with np.errstate(over="ignore", invalid="ignore"):
            return np.ascontiguousarray(values, np.float32).ravel()
    try:
        doubles = np.array(values, np.float64)
    except OverflowError:
        raise ValueError(f"{show(name)}: an integer beyond the range of floats") from None
    with np.errstate(over="ignore", invalid="ignore"):
        return doubles.astype(np.float32)


def as_strings(values: Sequence[Any], name: Name) -> tuple[Any, Array]:
    """Strings as their bytes, one after the other, and int64 offsets, one more than strings."""
    types = set(map(type, values))
    if types == {str}:
        text = "".join(values)
        if text.isascii():
            return text.encode(), _offsets(values)
    if types != {bytes}:
        values = [string_bytes(value, name) for value in values]
    return values[0] if len(values) == 1 else b"".join(values), _offsets(values)


def pack_strings(values: Sequence[Any], name: Name) -> tuple[Any, Array]:
    """As as_strings, and faster for bytes objects: what they are, only C looks at."""
    if len(values) > 1 and type(values[0]) is bytes:
        strings = strings_of_objects(values)
        if strings is not None:
            return strings
    return as_strings(values, name)


def _offsets(values: Sequence[Any]) -> Array:
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return offsets


def string_bytes(value: Any, name: Name) -> bytes:
    if isinstance(value, str):
        try:
            return str.encode(value)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{show(name)}: str with a lone surrogate at index {error.start} has no UTF-8 form"
            ) from None
    return _plain(bytes(value))


def _plain(value: bytes) -> bytes:
    """Exactly of type bytes: a subclass may say anything of its length."""
    return value if type(value) is bytes else bytes.__getitem__(value, slice(None))
