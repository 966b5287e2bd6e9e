"""TensorFlow's dtypes, and values as arrays: the conversions of ``tf.constant``, and arithmetic.

The dtypes are :class:`tfwire.typing.DType`; ``tf.bool`` is ``boolean`` here, since this
module needs Python's. Strings are object arrays of bytes: numpy's own string types drop trailing
zero bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tfwire._interface.messages import InvalidArgumentError
from tfwire._interface.pipelines import to_dtype
from tfwire.compat._errors import DtypeError
from tfwire.typing import DType


def as_dtype(type_value: Any) -> DType:
    """The dtype that a value names.

    Args:
        type_value: A dtype, a dtype or scalar type of numpy, or a name such as "float32".

    Raises:
        TypeError: TensorFlow has no such type.
    """
    try:
        dtype = to_dtype(type_value)
        dtype.as_datatype_enum  # noqa: B018  # raises
    except (TypeError, ValueError):
        raise TypeError(f"{type_value!r} does not name a TensorFlow dtype") from None
    return dtype


@lru_cache
def of_numpy(dtype: np.dtype[Any]) -> DType:
    """The dtype of an array that is a tensor's."""
    return to_dtype(dtype)


def dtype_of(value: Any) -> DType:
    """The dtype of bytes, or of what has one."""
    return as_dtype(object if isinstance(value, bytes) else value.dtype)


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


int8: DType = to_dtype("int8")
int16: DType = to_dtype("int16")
int32: DType = to_dtype("int32")
uint8: DType = to_dtype("uint8")
uint16: DType = to_dtype("uint16")
uint32: DType = to_dtype("uint32")
uint64: DType = to_dtype("uint64")
float16: DType = to_dtype("float16")
float64: DType = to_dtype("float64")
complex64: DType = to_dtype("complex64")
complex128: DType = to_dtype("complex128")
half: DType = float16
double: DType = float64
bfloat16: DType | None = _bfloat16()
boolean: DType = to_dtype("bool")

Array = np.ndarray[Any, Any]
STRING = np.dtype(object)
_BYTES_ONLY = {bytes}
_NUMBER_KINDS = "biufc"
# Python's and numpy's scalars by the kind of dtype they make. bool comes before int.
_CLASSES_BY_KIND: dict[str, tuple[type, ...]] = {
    "b": (bool, np.bool_),
    "i": (int, np.integer),
    "f": (float, np.floating),
    "c": (complex, np.complexfloating),
    "O": (str, bytes),
}
_SCALAR_KINDS = {bool: "b", int: "i", float: "f"}
# The kinds of Python values that each kind of dtype takes.
_ACCEPTED = {"b": "b", "i": "i", "u": "i", "f": "if", "c": "ifc", "O": "O", "V": "if"}
# TensorFlow converts Python values, bools too, directly to these; to others by the inferred dtype.
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
    """As :func:`to_array`, a scalar as bytes or a numpy scalar."""
    if dtype is None:
        if isinstance(value, Held):
            return value._value
        if type(value) is bytes:
            return value
    return to_array(value, dtype)[()]


def to_array(value: Any, dtype: Any = None) -> Array:
    """A value as an array, of rank 0 for a scalar.

    Args:
        value: A number, str or bytes, nested lists of them, an array, or a tensor.
        dtype: A numpy dtype, object for strings. None: what TensorFlow infers.

    Raises:
        TypeError: The value does not fit the dtype: 1.5 for int32, "1" for int32, 1 for string.
        ValueError: The value cannot be a tensor: lists that are not rectangular, None, numbers
            beside strings, an integer beyond 64 bits.
    """
    if (
        dtype is not None
        and type(value) in _SCALAR_KINDS
        and _takes(dtype, _SCALAR_KINDS[type(value)])
    ):
        try:
            with np.errstate(all="ignore"):  # beyond the range of float32 it is infinite
                return np.array(value, dtype)
        except OverflowError:  # wraps around below
            pass
    if isinstance(value, Held):
        return _of_dtype(_of_numpy(value._value), dtype)
    if is_tensor(value):
        return _of_dtype(_of_array(_of_numpy(value.numpy()), None), dtype)
    if isinstance(value, (str, bytes)):
        return _of_leaves(np.array([value], object).reshape(()), value, dtype)
    if hasattr(value, "__array__"):
        return _of_array(np.asarray(value), dtype)
    if isinstance(value, (list, tuple)) and any(map(_is_array, value)):
        return _of_arrays(value, dtype)
    if isinstance(value, Sequence) or _kind(type(value)):
        return _of_leaves(np.array(value, object), value, dtype)
    if hasattr(value, "__len__") and hasattr(value, "__getitem__") and not isinstance(value, dict):
        return to_array(list(value), dtype)
    raise ValueError(f"a value of type {type(value).__name__} cannot be converted to a tensor")


def is_string_array(array: Any) -> bool:
    """True for an array or scalar of numpy whose elements are all bytes."""
    return array.dtype == STRING and set(map(type, array.ravel().tolist())) <= _BYTES_ONLY


def string_array(items: Sequence[Any], shape: tuple[int, ...]) -> Array:
    """str (as UTF-8) and bytes as an object array of bytes."""
    if set(map(type, items)) <= _BYTES_ONLY:
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
    array = to_array(value, STRING)
    if array.ndim:
        raise InvalidArgumentError(f"`{name}` must be a scalar, found shape {array.shape}")
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


def _of_numpy(value: Any) -> Array:
    """What the ``numpy()`` method of a tensor returns, as an array."""
    return np.asarray(value, object if type(value) is bytes else None)


def _of_dtype(array: Array, dtype: Any) -> Array:
    """The array of a tensor.

    Raises:
        DtypeError: It has another dtype.
    """
    if dtype is not None and array.dtype != dtype:
        raise DtypeError(
            f"expected a tensor of {as_dtype(dtype)!r}, found {as_dtype(array.dtype)!r}"
        )
    return array


def real_for(dtype: Any, array: Array) -> Array:
    """The real parts of complex numbers that become real ones: numpy does so with a warning."""
    complex_to_real = array.dtype.kind == "c" and np.dtype(dtype).kind in "iufV"
    return array.real if complex_to_real else array


def _of_array(array: Array, dtype: Any) -> Array:
    """An array as it is or, as numpy converts it, in another dtype."""
    if array.dtype.kind == "V" and dtype == STRING and array.dtype.name.startswith("void"):
        return string_array(array.ravel().tolist(), array.shape)
    if array.dtype.kind in "OSUT":
        if dtype is not None and dtype != STRING:
            return array.astype(dtype)
        return string_array(array.ravel().tolist(), array.shape)
    if dtype == STRING and array.size:
        raise ValueError(f"an array of {array.dtype} cannot be converted to strings")
    if dtype is not None:
        with np.errstate(all="ignore"):
            return real_for(dtype, array).astype(dtype, copy=False)
    if array.dtype.kind not in _NUMBER_KINDS and array.dtype.name != "bfloat16":
        raise ValueError(f"an array of {array.dtype} cannot be converted to a tensor")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _of_arrays(values: Sequence[Any], dtype: Any) -> Array:
    """Lists that hold arrays or tensors, stacked. The first tensor in them gives the dtype."""
    if dtype is None:
        tensor = _first_tensor(values)
        dtype = None if tensor is None else to_array(tensor).dtype
    arrays = [to_array(value, dtype) for value in values]
    stacked: Array = np.stack(arrays)
    if dtype is None and stacked.dtype.kind in "iu":
        return _smallest_integers(stacked)
    return stacked


def _first_tensor(values: Any) -> Any:
    """The first tensor of nested lists, or None."""
    if not isinstance(values, (list, tuple)):
        return values if is_tensor(values) else None
    found = map(_first_tensor, values)
    return next((tensor for tensor in found if tensor is not None), None)


# ---- Python values ------------------------------------------------------------------------------
def _kind(cls: type) -> str | None:
    return next(
        (kind for kind, classes in _CLASSES_BY_KIND.items() if issubclass(cls, classes)), None
    )


def _of_leaves(leaves: Array, value: Any, dtype: Any) -> Array:
    """The array that TensorFlow makes of an object array of Python's or numpy's scalars."""
    kinds = _leaf_kinds(leaves)
    if dtype is None:
        return _infer(leaves, kinds)
    if not _accepts(dtype, kinds):
        _infer(leaves, kinds)  # ValueError if it cannot be a tensor at all
        raise DtypeError(
            f"cannot convert {type(value).__name__} to a tensor of {as_dtype(dtype)!r}"
        )
    if dtype.name in _DIRECT:
        return _of_numbers(leaves, dtype)
    with np.errstate(all="ignore"):
        return _infer(leaves, kinds).astype(dtype)


def _leaf_kinds(leaves: Array) -> set[str]:
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
    """An array of the kind of the first value; integers among floats become floats."""
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


# ---- Text ----------------------------------------------------------------------------------------
def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text, encoded; bytes as they are.

    Raises:
        TypeError: Neither is given.
        LookupError: There is no such encoding.

    Example:
        >>> as_bytes("cat")
        b'cat'
    """
    codecs.lookup(encoding)
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    return _require_text(bytes_or_text).encode(encoding)


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Bytes, decoded; text as it is.

    Raises:
        TypeError: Neither is given.
        LookupError: There is no such encoding.
        UnicodeDecodeError: The bytes are not of this encoding.
    """
    codecs.lookup(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    return _require_text(bytes_or_text)


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Bytes, decoded; ``str`` of all else."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected bytes or str, found {type(value).__name__}")
    return value


# By the names after ``tf.compat.``
TEXT = {"as_bytes": as_bytes, "as_str": as_text, "as_str_any": as_str_any, "as_text": as_text}


# ---- Arithmetic of arrays of one dtype, as TensorFlow defines it --------------------------------

NUMBERS = "iufc"
SIGNED = "ifc"


def check_kind(array: Array, kinds: str) -> None:
    """Raises DtypeError unless the kind of dtype is one of those."""
    if array.dtype.kind not in kinds + "V":
        raise DtypeError(f"this operation has no form for {as_dtype(array.dtype)!r}")


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
    """The remainder, with the sign of the divisor."""
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
        raise InvalidArgumentError(f"a matrix product needs rank 2, found {x.ndim} and {y.ndim}")
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
