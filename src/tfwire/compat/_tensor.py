"""Tensors and their shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tfwire import string
from tfwire._interface.messages import as_index
from tfwire.compat._constants import (
    OPERATORS,
    SIGNED,
    Array,
    Held,
    check_kind,
    is_tensor,
    numpy_dtype,
    of_numpy,
    real_for,
    to_array,
    to_numpy,
)
from tfwire.compat._errors import DtypeError, Explained, as_argument_error, refusing_arguments
from tfwire.typing import DType

# ---- Operators ----------------------------------------------------------------------------------
# Kinds of dtype for which the ufuncs of the operators never warn, so that errstate is not needed.
_SILENT = "biuO"


def like(value: Any, array: Array) -> Array:
    """A value in the dtype of an array.

    Raises:
        DtypeError: The value is a tensor of another dtype, or does not fit.
    """
    try:
        return to_array(value, array.dtype)
    except TypeError as error:
        raise DtypeError(str(error)) from None


def binary(function: Callable[[Any, Any], Any], kinds: str, x: Array, y: Array) -> Tensor:
    """A function of two arrays of one dtype, broadcast against each other.

    Raises:
        InvalidArgumentError: The kind of dtype is not one of ``kinds``, or the shapes do not fit.
    """
    check_kind(x, kinds)
    try:
        if type(function) is np.ufunc and x.dtype.kind in _SILENT:
            return Tensor._of(function(x, y))
        with np.errstate(all="ignore"):
            return Tensor._of(function(x, y))
    except (ValueError, IndexError, TypeError) as error:
        raise as_argument_error(error) from error


def _operand(tensor: Tensor) -> Any:
    """The value of a tensor for a ufunc: an array, or a numpy scalar, which costs less to make."""
    return to_array(tensor) if type(tensor._value) is bytes else tensor._value


_Binary = Callable[["Tensor", Any], "Tensor"]
_Unary = Callable[["Tensor"], "Tensor"]


def _operator(name: str, reflected: bool = False) -> _Binary:
    function, kinds = OPERATORS[name]

    def forward(self: Tensor, other: Any) -> Tensor:
        mine = _operand(self)
        return binary(function, kinds, mine, like(other, mine))

    def backward(self: Tensor, other: Any) -> Tensor:
        mine = _operand(self)
        return binary(function, kinds, like(other, mine), mine)

    return backward if reflected else forward


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[[Tensor, Any], Any]:
    different = function is np.not_equal

    def compare(self: Tensor, other: Any) -> Any:
        if other is None:
            return different
        mine = to_array(self)
        theirs = like(other, mine)
        try:
            np.broadcast_shapes(mine.shape, theirs.shape)
        except ValueError:
            return Tensor(different)
        return Tensor._of(function(mine, theirs))

    return compare


def _unary(function: Callable[[Any], Any], kinds: str) -> _Unary:
    def compute(self: Tensor) -> Tensor:
        array = to_array(self)
        check_kind(array, kinds)
        return Tensor._of(function(array))

    return compute


# ---- Tensor --------------------------------------------------------------------------------------
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
        """A tensor of a result of numpy or tfwire, which is neither converted nor copied."""
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
            ValueError: The tensor has another shape.
        """
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"a tensor of shape {self.shape} does not have shape {shape}")

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, as ``numpy()``: for code that is written for a graph."""
        return self.numpy()

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
        array = to_array(self)
        return array if dtype is None else real_for(dtype, array).astype(dtype)

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
        return format(self._value, spec)  # as of the numpy value, also in TensorFlow

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
            return Tensor._of(to_array(self)[tuple(map(_index, keys))])

    # ---- Operators
    __eq__: ClassVar[Callable[[Tensor, object], Any]] = _comparison(np.equal)
    __ne__: ClassVar[Callable[[Tensor, object], Any]] = _comparison(np.not_equal)
    __add__: ClassVar[_Binary] = _operator("add")
    __radd__: ClassVar[_Binary] = _operator("add", reflected=True)
    __sub__: ClassVar[_Binary] = _operator("sub")
    __rsub__: ClassVar[_Binary] = _operator("sub", reflected=True)
    __mul__: ClassVar[_Binary] = _operator("mul")
    __rmul__: ClassVar[_Binary] = _operator("mul", reflected=True)
    __truediv__: ClassVar[_Binary] = _operator("truediv")
    __rtruediv__: ClassVar[_Binary] = _operator("truediv", reflected=True)
    __floordiv__: ClassVar[_Binary] = _operator("floordiv")
    __rfloordiv__: ClassVar[_Binary] = _operator("floordiv", reflected=True)
    __mod__: ClassVar[_Binary] = _operator("mod")
    __rmod__: ClassVar[_Binary] = _operator("mod", reflected=True)
    __pow__: ClassVar[_Binary] = _operator("pow")
    __rpow__: ClassVar[_Binary] = _operator("pow", reflected=True)
    __and__: ClassVar[_Binary] = _operator("and")
    __rand__: ClassVar[_Binary] = _operator("and", reflected=True)
    __or__: ClassVar[_Binary] = _operator("or")
    __ror__: ClassVar[_Binary] = _operator("or", reflected=True)
    __xor__: ClassVar[_Binary] = _operator("xor")
    __rxor__: ClassVar[_Binary] = _operator("xor", reflected=True)
    __matmul__: ClassVar[_Binary] = _operator("matmul")
    __rmatmul__: ClassVar[_Binary] = _operator("matmul", reflected=True)
    __lt__: ClassVar[_Binary] = _operator("lt")
    __le__: ClassVar[_Binary] = _operator("le")
    __gt__: ClassVar[_Binary] = _operator("gt")
    __ge__: ClassVar[_Binary] = _operator("ge")
    __neg__: ClassVar[_Unary] = _unary(np.negative, SIGNED)
    __abs__: ClassVar[_Unary] = _unary(np.abs, SIGNED)
    __invert__: ClassVar[_Unary] = _unary(np.invert, "biu")

    def __hash__(self) -> int:
        raise TypeError("a tensor is not hashable; use its numpy() value")

    def __bool__(self) -> bool:
        value = self._value
        return bool(value) if isinstance(value, bytes) or value.size else False

    def __int__(self) -> int:
        return int(self._real())

    def __index__(self) -> int:
        return as_index(self._value)

    def __float__(self) -> float:
        return float(self._real())

    def _real(self) -> Any:
        """The value; of a complex number the real part, as in TensorFlow."""
        value = self._value
        return value if isinstance(value, bytes) else real_for(np.float64, value)

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
        array = to_array(key)
        if array.dtype == bool and array.ndim:
            return array
    return _number(key)


def _number(key: Any) -> int:
    array = to_array(key) if is_tensor(key) else np.asarray(key)
    if array.ndim or array.dtype.kind not in "iu":
        raise DtypeError(
            "an index must be an integer, a slice, an Ellipsis, None or a scalar integer tensor, "
            f"found {type(key).__name__}"
        )
    return int(array)


# ---- TensorShape --------------------------------------------------------------------------------

Sizes = tuple[int | None, ...]


class Dimension(NamedTuple):
    """One size, as ``TensorShape.dims`` gives it."""

    value: int | None


class TensorShape(Explained):
    """A shape: a sequence of sizes, None for those that are not known.

    Args:
        dims: The sizes; an int means rank 1; None: not even the rank is known.

    Raises:
        TypeError: A size is not an integer.
        ValueError: A size is negative.
    """

    _tf_name = "TensorShape"
    __slots__ = ("_dims",)

    def __init__(self, dims: Any = None) -> None:
        if isinstance(dims, TensorShape):
            dims = dims.dims
        if hasattr(dims, "__index__") and not hasattr(dims, "__len__"):
            dims = (dims,)
        if hasattr(dims, "numpy"):
            dims = dims.numpy().tolist()
        self._dims: Sizes | None = None if dims is None else tuple(map(_size, dims))

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as objects with a ``value``."""
        return None if self._dims is None else [Dimension(size) for size in self._dims]

    def as_list(self) -> list[int | None]:
        """The sizes as a list.

        Raises:
            ValueError: The rank is not known.
        """
        return list(self._known())

    def _known(self) -> Sizes:
        if self._dims is None:
            raise ValueError("the rank of this TensorShape is not known")
        return self._dims

    def num_elements(self) -> int | None:
        """The product of the sizes, None where one is not known."""
        product = 1
        for size in self._dims or (None,) * (self._dims is None):
            if size is None:
                return None
            product *= size
        return product

    def is_fully_defined(self) -> bool:
        """True if every size is known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """True if some array could have both shapes."""
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return True
        pairs = zip(self._dims, theirs, strict=False)
        return len(self._dims) == len(theirs) and all(
            a is None or b is None or a == b for a, b in pairs
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless :meth:`is_compatible_with`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {TensorShape(other)} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless :meth:`is_fully_defined`."""
        if not self.is_fully_defined():
            raise ValueError(f"shape {self} is not fully defined")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError if the shape has another rank."""
        self.with_rank(rank)

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, whose rank must be ``rank``.

        Raises:
            ValueError: It has another rank.
        """
        if self._dims is None:
            return TensorShape([None] * rank)
        if len(self._dims) != rank:
            raise ValueError(f"shape {self} must have rank {rank}")
        return self

    def merge_with(self, other: Any) -> TensorShape:
        """The sizes that either shape knows.

        Raises:
            ValueError: They are incompatible.
        """
        self.assert_is_compatible_with(other)
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return self if theirs is None else TensorShape(theirs)
        pairs = zip(self._dims, theirs, strict=True)
        return TensorShape([b if a is None else a for a, b in pairs])

    def concatenate(self, other: Any) -> TensorShape:
        """This shape's sizes, then the other's."""
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return TensorShape(None)
        return TensorShape(self._dims + theirs)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __len__(self) -> int:
        return len(self._known())

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        found = self._dims[key]
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == TensorShape(other)._dims
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)


def _size(value: Any) -> int | None:
    if isinstance(value, Dimension):
        return value.value
    if value is None:
        return None
    try:
        size = as_index(value)
    except TypeError:
        raise TypeError(
            f"a size must be an integer or None, found {type(value).__name__}"
        ) from None
    if size < 0:
        raise ValueError(f"a size must not be negative, found {size}")
    return size
