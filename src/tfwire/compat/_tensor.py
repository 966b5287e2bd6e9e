"""Tensor: a numpy value that looks like TensorFlow's eager tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["Tensor", "TensorShape", "numpy_dtype", "to_numpy"]


def to_numpy(value: Any, dtype: Any = None) -> Any:
    """A value as TensorFlow would convert it: bytes for strings, else a numpy scalar or array.

    Python numbers become int32 (int64 where they do not fit) and float32, as in tf.constant.
    """
    if isinstance(value, Tensor) or hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            array = array.astype(np.float32)
        elif array.dtype == np.int64 and np.array_equal(array, array.astype(np.int32)):
            array = array.astype(np.int32)
    else:
        array = np.asarray(value, dtype)
    if array.dtype.kind in "US":
        column = np.empty(array.shape, object)
        column[...] = np.char.encode(array) if array.dtype.kind == "U" else array.astype(object)
        array = column
    return array[()]


def numpy_dtype(dtype: Any) -> Any:
    """None for strings, which numpy would cut to a fixed width."""
    dtype = getattr(dtype, "as_numpy_dtype", dtype)
    return None if dtype is None or np.dtype(dtype) == object else np.dtype(dtype)


class TensorShape(tuple[int, ...]):
    """A shape: a tuple with the methods that ported code calls."""

    __slots__ = ()

    def as_list(self) -> list[int]:
        """The sizes as a list."""
        return list(self)

    @property
    def rank(self) -> int:
        return len(self)


class Tensor:
    """A value with ``numpy()``, ``shape`` and ``dtype``; arithmetic and indexing give tensors.

    Args:
        value: Anything numpy takes, str (as UTF-8), bytes, or another tensor.
        dtype: A numpy dtype or tfwire dtype to convert to.
    """

    __slots__ = ("_value",)
    __array_priority__ = 100

    def __init__(self, value: Any, dtype: Any = None) -> None:
        self._value = to_numpy(value, getattr(dtype, "as_numpy_dtype", dtype))

    def numpy(self) -> Any:
        """The value: bytes for a scalar string, else a numpy scalar or array."""
        return self._value

    @property
    def shape(self) -> TensorShape:
        return TensorShape(() if isinstance(self._value, bytes) else np.shape(self._value))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(object) if isinstance(self._value, bytes) else self._value.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.asarray(self._value, dtype)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={self._dtype_name()}, numpy={self._text()}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self._text(str)}, shape={self.shape}, dtype={self._dtype_name()})"

    def _dtype_name(self) -> str:
        return "string" if self.dtype == object else self.dtype.name

    def _text(self, form: Callable[[Any], str] = repr) -> str:
        value = self._value
        return str(value) if isinstance(value, np.generic) else form(value)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar tensor has no len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("a scalar tensor cannot be iterated")
        return map(Tensor, self._value)

    def __getitem__(self, key: Any) -> Tensor:
        return Tensor(self._value[key])

    def __hash__(self) -> int:
        raise TypeError("a tensor is not hashable; use its numpy() value")

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._value)

    def __index__(self) -> int:
        return operator.index(self._value)

    def __float__(self) -> float:
        return float(self._value)


def _delegate(name: str, reflected: bool) -> Callable[[Tensor, Any], Tensor]:
    function = getattr(operator, f"__{name}__")

    def forward(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(self._value, _operand(other)))

    def backward(self: Tensor, other: Any) -> Tensor:
        return Tensor(function(_operand(other), self._value))

    return backward if reflected else forward


def _operand(value: Any) -> Any:
    """A Python number stays one, so that numpy keeps the tensor's own dtype."""
    return value if isinstance(value, (int, float)) else to_numpy(value)


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or"):
    setattr(Tensor, f"__{_name}__", _delegate(_name, False))
    setattr(Tensor, f"__r{_name}__", _delegate(_name, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Tensor, f"__{_name}__", _delegate(_name, False))
