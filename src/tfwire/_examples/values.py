"""The values of one feature: their kind, and the flat arrays or strings that hold them.

bool and ints are int64, floats (and ints among floats) float32, str and bytes bytes. Any other
value is a TypeError that names the feature.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import countOf
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arrays import aligned, to_splits
from tfwire._base.native import lib
from tfwire._base.strings import bytes_array, strings_of_objects
from tfwire._base.text import quoted
from tfwire._examples.arrow_import import LISTS_IN_LISTS, arrow_column, is_arrow
from tfwire._examples.missing import array_of_pandas, is_missing

Array = np.ndarray[Any, Any]
Name = str | bytes | None  # the feature that an error message names, if any
NONE: int = lib.TFW_NONE
BYTES: int = lib.TFW_BYTES
FLOAT: int = lib.TFW_FLOAT
INT64: int = lib.TFW_INT64


def show(name: Name) -> str:
    """The feature at fault, as error messages show it."""
    return "value" if name is None else f"feature {quoted(name)}"


def key_bytes(name: Any) -> bytes:
    """The bytes of a feature's key. In a str, bytes that are not UTF-8 are surrogateescapes."""
    if isinstance(name, str):
        return str.encode(name, "utf-8", "surrogateescape")
    if isinstance(name, bytes):
        return _exactly_bytes(name)
    raise TypeError(f"keys of features must be str or bytes, found {type(name).__name__}")


# ---- Kinds ------------------------------------------------------------------------------------

_KIND_BY_CLASS: dict[type, int] = {
    bool: INT64,
    int: INT64,
    float: FLOAT,
    bytes: BYTES,
    str: BYTES,
    bytearray: BYTES,
    memoryview: BYTES,
}


def scalar_kind(cls: type) -> int | None:
    """The kind of scalars of a class; None if they are not scalars, or cannot be encoded."""
    kind = _KIND_BY_CLASS.get(cls)
    if kind is not None:
        return kind
    if issubclass(cls, np.timedelta64):  # which numpy counts among its integers
        return None
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
    """The kind of an array's elements; None for objects, and for what cannot be encoded."""
    if dtype.kind in "biu":
        return INT64
    if dtype.kind == "f":
        return FLOAT
    if dtype.kind in "SU":
        return BYTES
    if dtype.type.__module__.startswith("ml_dtypes"):  # bfloat16, int4, ...: numpy calls them void
        return FLOAT if "float" in dtype.name else INT64
    return None


def scalar_kinds(types: Iterable[type]) -> set[int] | None:
    """The kinds of scalars of some types; None if one of them is not a type of scalars."""
    kinds = set()
    for cls in types:
        kind = scalar_kind(cls)
        if kind is None:
            return None
        kinds.add(kind)
    return kinds


def joint_kind(kinds: Iterable[int], name: Name) -> int:
    """The kind of values of several kinds: FLOAT for ints and floats, TypeError with strings."""
    found = set(kinds) - {NONE}
    if len(found) <= 1:
        return found.pop() if found else NONE
    if found == {INT64, FLOAT}:
        return FLOAT
    raise TypeError(f"{show(name)}: numbers and strings cannot be mixed in one list")


def distinct_types(values: Sequence[Any]) -> set[type]:
    """The types of values. Counting is the fastest way for a single type, the usual case."""
    if len(values) > 1 and countOf(map(type, values), type(values[0])) == len(values):
        return {type(values[0])}
    return set(map(type, values))


# ---- Flat values ------------------------------------------------------------------------------


class Flat(NamedTuple):
    """The values of one feature in one record, flattened row by row.

    Attributes:
        kind: BYTES, FLOAT or INT64; NONE for an empty list, which does not say its kind.
        values: A tuple of Python or numpy scalars, or a plain array of rank 1.
        shape: Their shape before.
    """

    kind: int
    values: Any
    shape: tuple[int, ...]


def flatten_value(value: Any, name: Name, nested: bool = False) -> Flat:
    """The values of one feature in one record.

    Args:
        value: The values; an array of any rank.
        name: Of the feature.
        nested: Lists in lists are taken, too, as an array of rank 2 or more.

    Raises:
        TypeError: A value that no feature can hold (None, complex, datetime, dict, ...), or
            numbers and strings mixed.
        ValueError: Lists in lists, whose lengths would be lost; if they are taken, lists of
            different shapes.
    """
    if isinstance(value, np.ndarray):
        return _flatten_array(value, name)
    kind = scalar_kind(type(value))
    if kind is not None:
        return Flat(kind, (value,), ())
    if isinstance(value, np.generic):
        raise _no_values(value, name)
    array = array_of_pandas(value)
    if array is not value:
        return flatten_value(array, name)
    if is_arrow(value):
        return _flatten_arrow(value, name)
    if hasattr(type(value), "as_py") and not is_missing(value):  # a scalar of Arrow
        return flatten_value(value.as_py(), name)
    if hasattr(value, "numpy"):
        return flatten_value(value.numpy(), name)
    if hasattr(value, "WhichOneof"):
        return _flatten_feature(value)
    if isinstance(value, Sequence):
        return _flatten_list(value, name, nested)
    if hasattr(value, "__array__"):
        return _flatten_array(np.asarray(value), name)
    if hasattr(value, "row_splits"):  # a RaggedTensor
        raise ValueError(f"{show(name)}: {LISTS_IN_LISTS}")
    raise _no_values(value, name)


def _no_values(value: Any, name: Name) -> TypeError:
    found = "None" if value is None else type(value).__name__
    return TypeError(
        f"{show(name)}: expected numbers, strings, or lists or arrays of them, found {found}"
    )


def missing_in_list(name: Name, number: int | None = None, what: str = "record") -> TypeError:
    """The error for a value that is missing, but is not all that a record has of the feature."""
    where = "" if number is None else f"{what} {number}: "
    return TypeError(f"{show(name)}: {where}a null inside a list; leave it out or fill it")


def _flatten_list(values: Sequence[Any], name: Name, nested: bool = False) -> Flat:
    values = tuple(values)  # another thread, or a method of an item, may change the list
    if len(values) == 0:
        return Flat(NONE, (), (0,))
    kinds = scalar_kinds(set(map(type, values)))
    if kinds is not None:
        return Flat(joint_kind(kinds, name), values, (len(values),))
    if any(map(is_missing, values)):
        raise missing_in_list(name)
    parts = [flatten_value(value, name, nested) for value in values]
    shape = parts[0].shape
    for part in parts:
        if part.shape and not nested:
            raise ValueError(f"{show(name)}: {LISTS_IN_LISTS}")
        if part.shape != shape:
            raise ValueError(
                f"{show(name)}: nested lists must agree in shape, found {shape} and {part.shape}"
            )
    kind = joint_kind((part.kind for part in parts), name)
    return Flat(kind, concatenate(kind, parts, name), (len(values), *shape))


def _flatten_array(array: Array, name: Name) -> Flat:
    if type(array) is not np.ndarray and isinstance(array, np.ma.MaskedArray):
        if np.ma.is_masked(array):
            raise missing_in_list(name)
        array = array.data
    array = np.asarray(array)  # a subclass may say anything about itself; a matrix stays flat
    kind = dtype_kind(array.dtype)
    if array.dtype.kind == "O" and array.size:
        flat = _flatten_list(array.ravel().tolist(), name)
        return Flat(flat.kind, flat.values, array.shape)
    if kind == BYTES or array.dtype.kind == "O":
        return Flat(BYTES, array.ravel().tolist(), array.shape)
    if kind is None:
        advice = "; cast them to int64 or to strings" if array.dtype.kind in "mM" else ""
        raise TypeError(f"{show(name)}: arrays of {array.dtype} have no encoding{advice}")
    return Flat(kind, array.ravel(), array.shape)


def _flatten_arrow(value: Any, name: Name) -> Flat:
    """The values of an array of Arrow, or of the chunks of one."""
    column, length = arrow_column(value, show(name))
    if length == 0:
        return _flatten_array(np.asarray(value), name)  # its dtype says the kind
    if column.presence is not None and (column.presence == lib.TFW_ABSENT).any():
        raise missing_in_list(name)
    if column.splits is not None:
        raise ValueError(f"{show(name)}: {LISTS_IN_LISTS}")
    shape = (length,) if column.per_record == 1 else (length, column.per_record)
    if column.offsets is not None:
        strings = bytes_array(column.values, column.offsets, (length * column.per_record,))
        return Flat(BYTES, strings.tolist(), shape)
    return Flat(column.kind, column.values, shape)


def _flatten_feature(feature: Any) -> Flat:
    """The values of a tf.train.Feature, ours or TensorFlow's."""
    which = feature.WhichOneof("kind")
    if which is None:
        return Flat(NONE, (), (0,))
    kind = {"bytes_list": BYTES, "float_list": FLOAT, "int64_list": INT64}[which]
    values = list(getattr(feature, which).value)
    if kind == BYTES:
        return Flat(BYTES, values, (len(values),))
    array = np.array(values, np.float32 if kind == FLOAT else np.int64)
    return Flat(kind, array, (len(values),))


def concatenate(kind: int, parts: Sequence[Flat], name: Name) -> Any:
    """The values of all parts in order, as a list or, of numbers, an array."""
    if len(parts) == 1:
        return parts[0].values
    convert = AS_ARRAY.get(kind)
    if convert is None or not any(isinstance(part.values, np.ndarray) for part in parts):
        return list(chain.from_iterable(part.values for part in parts))
    return np.concatenate([convert(part.values, name) for part in parts])


# ---- Arrays and strings -----------------------------------------------------------------------


def as_int64(values: Any, name: Name) -> Array:
    """Values as a contiguous int64 array of rank 1.

    Raises:
        ValueError: A value outside of int64.
    """
    try:
        if isinstance(values, np.ndarray):
            is_uint64 = values.dtype.kind == "u" and values.dtype.itemsize == 8  # of any byte order
            if is_uint64 and values.size and int(values.max()) >= 2**63:
                raise OverflowError
            return aligned(values, np.int64).ravel()
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        raise ValueError(f"{show(name)}: a value outside of int64 [-2**63, 2**63)") from None


def as_float32(values: Any, name: Name) -> Array:
    """Values as a contiguous float32 array of rank 1, rounded as in C: infinity beyond the range.

    Raises:
        ValueError: An integer beyond the range of floats.
    """
    is_array = isinstance(values, np.ndarray)
    if is_array and values.dtype == np.float32:  # errstate takes longer than a small array
        return aligned(values, np.float32).ravel()
    with np.errstate(all="ignore"):  # rounding is not an error, whatever the program has set
        try:
            numbers = values if is_array else np.array(values, np.float64)
        except OverflowError:
            raise ValueError(f"{show(name)}: an integer beyond the range of floats") from None
        return aligned(numbers, np.float32).ravel()


AS_ARRAY: dict[int, Callable[[Any, Name], Array]] = {INT64: as_int64, FLOAT: as_float32}


def as_strings(values: Sequence[Any], name: Name) -> tuple[Any, Array]:
    """Strings as one buffer, and int64 offsets, one more than strings; errors as string_bytes."""
    types = set(map(type, values))
    if types == {str}:
        text = "".join(values)
        if text.isascii():
            return text.encode(), _offsets(values)
    if types != {bytes}:
        values = [string_bytes(value, name) for value in values]
    return values[0] if len(values) == 1 else b"".join(values), _offsets(values)


def _offsets(values: Sequence[Any]) -> Array:
    return to_splits(np.fromiter(map(len, values), np.int64, len(values)))


def pack_strings(values: Sequence[Any], name: Name) -> tuple[Any, Array]:
    """As as_strings, and faster for bytes objects: C looks at their types."""
    if len(values) > 1 and type(values[0]) is bytes:
        strings = strings_of_objects(values)
        if strings is not None:
            return strings
    return as_strings(values, name)


def string_bytes(value: Any, name: Name) -> bytes:
    """A str or bytes-like scalar as bytes; ValueError for a str that has no UTF-8 form."""
    if isinstance(value, str):
        try:
            return str.encode(value)
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{show(name)}: str with a lone surrogate at index {error.start} has no UTF-8 form"
            ) from None
    return _exactly_bytes(bytes(value))


def _exactly_bytes(value: bytes) -> bytes:
    """A plain copy of an object of a subclass, whose methods may return anything."""
    return value if type(value) is bytes else bytes.__getitem__(value, slice(None))
