"""Tensor: a numpy value that looks like TensorFlow's eager tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tfwire.compat._arithmetic import OPERATORS, SIGNED, check_kind
from tfwire.compat._convert import Array, Held, as_array, is_tensor, to_numpy
from tfwire.compat._dtypes import DType, numpy_dtype, of_numpy, string
from tfwire.compat._errors import DtypeError, as_argument_error, refusing_arguments
from tfwire.compat._missing import Explained
from tfwire.compat._shapes import TensorShape

__all__ = ["Tensor", "binary", "like"]


class Tensor(Explained, Held):
    """A value with ``numpy()``, ``shape`` and ``dtype``; arithmetic and indexing give tensors.

    Args:
        value: A number, str (as UTF-8) or bytes, nested lists of them, an array, or a tensor.
        dtype: A dtype to convert to.

    Raises:
        TypeError: The value does not fit the dtype.
        ValueError: The value cannot be a tensor.
    """

    _tf_name = "Tensor"
    __slots__ = ()
    __array_priority__ = 100

    def __init__(self, value: Any, dtype: Any = None) -> None:
        self._value = to_numpy(value, numpy_dtype(dtype))

    @classmethod
    def _of(cls, value: Any) -> Tensor:
        """A tensor of what numpy or tfwire computed: nothing is converted or copied."""
        tensor = cls.__new__(cls)
        tensor._value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        return tensor

    @property
    def shape(self) -> TensorShape:
        """The shape."""
        return TensorShape(() if isinstance(self._value, bytes) else self._value.shape)

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Checks the shape.

        Raises:
            ValueError: The tensor has another.
        """
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"a tensor of shape {self.shape} does not have shape {shape}")

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return 0 if isinstance(self._value, bytes) else int(self._value.ndim)

    @property
    def dtype(self) -> DType:
        """The dtype; it equals numpy's."""
        return string if isinstance(self._value, bytes) else of_numpy(self._value.dtype)

    @property
    def device(self) -> str:
        """The CPU, by TensorFlow's name."""
        return "/job:localhost/replica:0/task:0/device:CPU:0"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = as_array(self)
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        text = self._text(repr)
        line = "\n" if "\n" in text else ""
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={line}{text}>"

    def __str__(self) -> str:
        text = self._text(str)
        line = "\n" if "\n" in text else ""
        return f"tf.Tensor({line}{text}, shape={self.shape}, dtype={self.dtype.name})"

    def _text(self, form: Callable[[Any], str]) -> str:
        if form is repr and isinstance(self._value, np.generic):
            return format(self._value)  # 0.10000000149011612, where str has 0.1
        return form(self._value)

    def __format__(self, spec: str) -> str:
        return format(self._value, spec) if self.ndim == 0 else format(str(self), spec)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a scalar tensor has no len()")
        return len(self._value)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("a scalar tensor cannot be iterated")
        return map(Tensor._of, self._value)

    def __getitem__(self, key: Any) -> Tensor:
        keys = key if isinstance(key, tuple) else (key,)
        with refusing_arguments(IndexError):
            return Tensor._of(as_array(self)[tuple(map(_index, keys))])

    def __hash__(self) -> int:
        raise TypeError("a tensor is not hashable; use its numpy() value")

    def __bool__(self) -> bool:
        value = self._value
        return bool(value) if isinstance(value, bytes) or value.size else False

    def __int__(self) -> int:
        return int(self._value)

    def __index__(self) -> int:
        return operator.index(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __complex__(self) -> complex:
        return complex(self._value)


# ---- Indices ------------------------------------------------------------------------------------


def _index(key: Any) -> Any:
    """An index or slice as numpy takes it."""
    if isinstance(key, slice):
        return slice(*(None if k is None else _number(k) for k in (key.start, key.stop, key.step)))
    if key is None or key is Ellipsis:
        return key
    if is_tensor(key) or isinstance(key, np.ndarray):
        array = as_array(key)
        if array.dtype == bool and array.ndim:
            return array
    return _number(key)


def _number(key: Any) -> int:
    array = as_array(key) if is_tensor(key) else np.asarray(key)
    if array.ndim or array.dtype.kind not in "iu":
        raise DtypeError(
            "an index must be an integer, a slice, an Ellipsis, None or a scalar integer tensor, "
            f"got {type(key).__name__}"
        )
    return int(array)


# ---- Operators ----------------------------------------------------------------------------------


def like(value: Any, array: Array) -> Array:
    """A value in the dtype of an array.

    Raises:
        DtypeError: It is a tensor of another dtype, or does not fit.
    """
    try:
        return as_array(value, array.dtype)
    except TypeError as error:
        raise DtypeError(str(error)) from None


def binary(function: Callable[[Any, Any], Any], kinds: str, x: Array, y: Array) -> Tensor:
    """A function of two arrays of one dtype, broadcast against each other.

    Raises:
        InvalidArgumentError: The kind of dtype is not one of ``kinds``, or the shapes do not fit.
    """
    check_kind(x, kinds)
    try:  # no with statement: this is called for every element of many a map
        with np.errstate(all="ignore"):
            return Tensor._of(function(x, y))
    except (ValueError, IndexError, TypeError) as error:
        raise as_argument_error(error) from error


def _operator(name: str, reflected: bool) -> Callable[[Tensor, Any], Tensor]:
    function, kinds = OPERATORS[name]

    def forward(self: Tensor, other: Any) -> Tensor:
        mine = as_array(self)
        return binary(function, kinds, mine, like(other, mine))

    def backward(self: Tensor, other: Any) -> Tensor:
        mine = as_array(self)
        return binary(function, kinds, like(other, mine), mine)

    return backward if reflected else forward


for _name in OPERATORS:
    setattr(Tensor, f"__{_name}__", _operator(_name, False))
    if _name not in ("lt", "le", "gt", "ge"):
        setattr(Tensor, f"__r{_name}__", _operator(_name, True))


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    different = function is np.not_equal

    def compare(self: Tensor, other: Any) -> Any:
        if other is None:
            return different
        mine = as_array(self)
        theirs = like(other, mine)
        try:
            np.broadcast_shapes(mine.shape, theirs.shape)
        except ValueError:
            return Tensor(different)
        return Tensor._of(function(mine, theirs))

    return compare


def _unary(function: Callable[[Any], Any], kinds: str) -> Callable[[Tensor], Tensor]:
    def compute(self: Tensor) -> Tensor:
        array = as_array(self)
        check_kind(array, kinds)
        return Tensor._of(function(array))

    return compute


_SPECIAL = {
    "__eq__": _comparison(np.equal),
    "__ne__": _comparison(np.not_equal),
    "__neg__": _unary(np.negative, SIGNED),
    "__abs__": _unary(np.abs, SIGNED),
    "__invert__": _unary(np.invert, "biu"),
}
for _name, _method in _SPECIAL.items():
    setattr(Tensor, _name, _method)
