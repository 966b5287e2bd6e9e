"""Values as the arrays of tensors, with the dtypes and refusals of ``tf.constant``.

Strings are object arrays of bytes from the beginning: numpy's own string types drop trailing zero
bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tfwire.compat._dtypes import as_dtype
from tfwire.compat._errors import DtypeError, InvalidArgumentError

__all__ = [
    "Array",
    "Held",
    "as_array",
    "is_string_array",
    "is_tensor",
    "scalar_string",
    "string_array",
    "to_numpy",
]

Array = np.ndarray[Any, Any]

_STRING = np.dtype(object)
_BYTES = {bytes}
_NUMBERS = "biufc"
# Python's and numpy's scalars by the kind of dtype they make. bool comes before int.
_KINDS: dict[str, tuple[type, ...]] = {
    "b": (bool, np.bool_),
    "i": (int, np.integer),
    "f": (float, np.floating),
    "c": (complex, np.complexfloating),
    "O": (str, bytes),
}
_SCALARS = {bool: "b", int: "i", float: "f"}
# Which kinds of Python values a dtype takes.
_ACCEPTED = {"b": "b", "i": "i", "u": "i", "f": "if", "c": "ifc", "O": "O", "V": "if"}
# TensorFlow makes these of Python values, bools too; other dtypes it converts from what it infers.
_DIRECT = {"int32", "int64", "uint64", "float16", "float32", "float64", "complex128"}


class Held:
    """The value of a tensor: bytes, a numpy scalar, or an array of rank 1 or more."""

    __slots__ = ("_value",)
    _value: Any

    def numpy(self) -> Any:
        """The value: bytes for a scalar string, else a numpy scalar or array."""
        return self._value


def is_tensor(value: Any) -> bool:
    """True for tensors of this package, TensorFlow or PyTorch: what has a ``numpy()`` method."""
    return hasattr(value, "numpy")


def to_numpy(value: Any, dtype: Any = None) -> Any:
    """As :func:`as_array`, a scalar as bytes or a numpy scalar."""
    if dtype is None:
        if isinstance(value, Held):
            return value._value
        if type(value) is bytes:
            return value
    return as_array(value, dtype)[()]


def as_array(value: Any, dtype: Any = None) -> Array:
    """A value as an array, of rank 0 for a scalar.

    Args:
        value: A number, str or bytes, nested lists of them, an array, or a tensor.
        dtype: A numpy dtype, object for strings. None: what TensorFlow infers.

    Raises:
        TypeError: The value does not fit the dtype: 1.5 for int32, "1" for int32, 1 for string.
        ValueError: The value is no tensor: lists that are not rectangular, None, numbers beside
            strings, an integer beyond 64 bits.
    """
    if dtype is not None and type(value) in _SCALARS and _takes(dtype, _SCALARS[type(value)]):
        try:
            return np.array(value, dtype)
        except OverflowError:  # wraps around below
            pass
    if is_tensor(value):
        return _of_tensor(value, dtype)
    if isinstance(value, (str, bytes)):
        return _of_leaves(np.array([value], object).reshape(()), value, dtype)
    if hasattr(value, "__array__"):
        return _of_array(np.asarray(value), dtype)
    if isinstance(value, (list, tuple)) and any(map(_is_array, value)):
        return _of_arrays(value, dtype)
    if isinstance(value, Sequence) or _kind(type(value)):
        return _of_leaves(np.array(value, object), value, dtype)
    if hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, dict):
        return as_array(list(value), dtype)
    raise ValueError(f"a value of type {type(value).__name__} cannot be converted to a tensor")


def is_string_array(array: Array) -> bool:
    """Whether an array is one of strings already, as :func:`string_array` makes them."""
    return array.dtype == _STRING and set(map(type, array.ravel().tolist())) <= _BYTES


def string_array(items: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """str (as UTF-8) and bytes as an object array of bytes."""
    if set(map(type, items)) <= _BYTES:
        return np.fromiter(items, object, len(items)).reshape(shape)
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        if isinstance(item, str):
            array[i] = item.encode()
        elif isinstance(item, bytes):
            array[i] = bytes(item)
        else:
            raise ValueError(f"expected strings, found {type(item).__name__} among them")
    return array.reshape(shape)


def scalar_string(value: Any, name: str) -> bytes:
    """The one string of an argument.

    Raises:
        TypeError: Not a string.
        InvalidArgumentError: Not a scalar.
    """
    array = as_array(value, _STRING)
    if array.ndim:
        raise InvalidArgumentError(f"`{name}` must be a scalar, got shape {array.shape}")
    (string,) = array.ravel().tolist()
    assert isinstance(string, bytes)
    return string


# ---- Arrays and tensors -------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray)
        or is_tensor(value)
        or (isinstance(value, (list, tuple)) and any(map(_is_array, value)))
    )


def _of_tensor(tensor: Any, dtype: Any) -> Array:
    value = tensor.numpy()
    if type(value) is bytes:
        array = _scalar(value)
    else:
        array = np.asarray(value)
        if not isinstance(tensor, Held):
            array = _of_array(array, None)
    if dtype is not None and array.dtype != dtype:
        raise DtypeError(f"expected a tensor of {as_dtype(dtype)}, got {as_dtype(array.dtype)}")
    return array


def _scalar(value: bytes) -> Array:
    array = np.empty((), object)
    array[()] = value
    return array


def _of_array(array: Array, dtype: Any) -> Array:
    """An array as it is or, as numpy converts it, in another dtype."""
    if array.dtype.kind in "OSUT":
        if dtype is not None and dtype != _STRING:
            return array.astype(dtype)
        return string_array(array.ravel().tolist(), array.shape)
    if dtype == _STRING and array.size:
        raise ValueError(f"an array of {array.dtype} cannot be converted to strings")
    if dtype is not None:
        with np.errstate(all="ignore"):
            return array.astype(dtype, copy=False)
    if array.dtype.kind not in _NUMBERS and array.dtype.name != "bfloat16":
        raise ValueError(f"an array of {array.dtype} cannot be converted to a tensor")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _of_arrays(values: Sequence[Any], dtype: Any) -> Array:
    """Lists that hold arrays or tensors, stacked. The first tensor gives the dtype."""
    tensors = [value for value in values if is_tensor(value)]
    if dtype is None and tensors:
        dtype = _of_tensor(tensors[0], None).dtype
    arrays = [as_array(value, dtype) for value in values]
    stacked: Array = np.stack(arrays)
    if dtype is None and stacked.dtype.kind in "iu":
        return _smallest_integers(stacked)
    return stacked


# ---- Python values ------------------------------------------------------------------------------


def _kind(cls: type) -> str | None:
    return next((kind for kind, classes in _KINDS.items() if issubclass(cls, classes)), None)


def _of_leaves(leaves: Array, value: Any, dtype: Any) -> Array:
    """An object array of Python's or numpy's scalars as what TensorFlow makes of them."""
    kinds = _kinds_of(leaves)
    if dtype is None:
        return _infer(leaves, kinds)
    if not _accepts(dtype, kinds):
        _infer(leaves, kinds)  # a value that makes no tensor at all is a ValueError
        raise DtypeError(f"cannot convert {type(value).__name__} to a tensor of {as_dtype(dtype)}")
    if dtype.name in _DIRECT:
        return _of_numbers(leaves, dtype)
    with np.errstate(all="ignore"):
        return _infer(leaves, kinds).astype(dtype)


def _kinds_of(leaves: Array) -> set[str]:
    types = set(map(type, leaves.flat))
    kinds = {_kind(cls) for cls in types}
    if None not in kinds:
        return kinds  # type: ignore[return-value]
    if types & {list, tuple}:
        raise ValueError("nested lists of different lengths cannot be converted to a tensor")
    names = sorted(cls.__name__ for cls in types if _kind(cls) is None)
    raise ValueError(f"a value of type {', '.join(names)} cannot be converted to a tensor")


@lru_cache
def _takes(dtype: np.dtype[Any], kind: str) -> bool:
    """True if a dtype takes Python scalars of a kind as they are."""
    return dtype.name in _DIRECT and _accepts(dtype, {kind})


def _accepts(dtype: np.dtype[Any], kinds: set[str]) -> bool:
    accepted = set(_ACCEPTED[dtype.kind])
    if dtype.name in _DIRECT or (dtype.kind in "iufcV" and kinds != {"b"}):
        accepted.add("b")
    return kinds <= accepted


def _of_numbers(leaves: Array, dtype: np.dtype[Any]) -> Array:
    """Numbers in a dtype; integers that are too large wrap around, as in TensorFlow."""
    try:
        if dtype.kind in "iu" and (dtype != np.uint64 or min(leaves.flat, default=0) < 0):
            return leaves.astype(np.int64).astype(dtype)
        with np.errstate(all="ignore"):
            return leaves.astype(dtype)
    except OverflowError:
        if dtype.kind in "fc":  # an integer beyond the range of float64
            large: Array = np.vectorize(_float, otypes=[dtype])(leaves)
            return large
        raise ValueError("an integer beyond 64 bits cannot be converted to a tensor") from None


def _float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _infer(leaves: Array, kinds: set[str]) -> Array:
    """What the first value makes of all of them; floats among integers make all floats."""
    if not kinds:
        return np.empty(leaves.shape, np.float32)
    first = _kind(type(leaves.flat[0]))
    if first == "O" and kinds == {"O"}:
        return string_array(leaves.ravel().tolist(), leaves.shape)
    if first == "b" and kinds == {"b"}:
        return leaves.astype(np.bool_)
    if first == "i" and kinds <= {"b", "i"}:
        return _smallest_integers(_of_numbers(leaves, np.dtype(np.int64)))
    if first in ("i", "f") and kinds <= {"b", "i", "f"}:
        dtype = np.dtype(getattr(leaves.flat[0], "dtype", np.float32))
        return _of_numbers(leaves, dtype if dtype.kind == "f" else np.dtype(np.float32))
    if first == "c" and "O" not in kinds:
        return _of_numbers(leaves, np.dtype(np.complex128))
    raise ValueError("bools, numbers and strings cannot be mixed in a tensor")


def _smallest_integers(array: Array) -> Array:
    """int32 where it holds the values, else int64."""
    small = array.astype(np.int32)
    return small if np.array_equal(small, array) else array.astype(np.int64)
