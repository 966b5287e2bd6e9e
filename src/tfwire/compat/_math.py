"""Functions of numbers: element by element, and over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfwire._parsing.features import int64
from tfwire.compat._convert import (
    NUMBERS,
    OPERATORS,
    SIGNED,
    Array,
    check_kind,
    is_tensor,
    to_array,
)
from tfwire.compat._dtypes import numpy_dtype
from tfwire.compat._errors import refusing_arguments
from tfwire.compat._ops import normalized_axes
from tfwire.compat._tensor import Tensor, binary, like

__all__ = ["BINARY", "REDUCTIONS", "UNARY", "argmax", "argmin", "clip_by_value", "cumsum"]

# ---- Element by element -------------------------------------------------------------------------


def _make_binary(name: str, function: Callable[[Any, Any], Any], kinds: str) -> Any:
    def call(x: Any, y: Any, name: str | None = None) -> Tensor:
        first, second = _operands(x, y, np.dtype(bool) if kinds == "b" else None)
        return binary(function, kinds, first, second)

    return _named(call, name, "of two tensors of one dtype, element by element")


def _operands(x: Any, y: Any, dtype: Any) -> tuple[Array, Array]:
    """Both in one dtype: ``dtype``, that of a tensor among them, or else that of the first."""
    if is_tensor(y) and not is_tensor(x):
        second = to_array(y)
        return like(x, second), second
    first = to_array(x, dtype)
    return first, like(y, first)


def _make_unary(name: str, function: Callable[[Any], Any], kinds: str) -> Any:
    def call(x: Any, name: str | None = None) -> Tensor:
        array = to_array(x, np.dtype(bool) if kinds == "b" else None)
        check_kind(array, kinds)
        with np.errstate(all="ignore"):
            return Tensor._of(np.asarray(function(array)))

    return _named(call, name, "of a tensor, element by element")


def _named(call: Any, name: str, what: str) -> Any:
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name.replace('_', ' ').capitalize()} {what}."
    return call


def _of(operator: str) -> tuple[Callable[[Any, Any], Any], str]:
    return OPERATORS[operator]


_FLOATS = "fc"
_BINARY_FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": _of("add"),
    "subtract": _of("sub"),
    "multiply": _of("mul"),
    "divide": _of("truediv"),
    "truediv": _of("truediv"),
    "floordiv": _of("floordiv"),
    "mod": _of("mod"),
    "floormod": _of("mod"),
    "pow": _of("pow"),
    "less": _of("lt"),
    "less_equal": _of("le"),
    "greater": _of("gt"),
    "greater_equal": _of("ge"),
    "equal": (np.equal, "biufcO"),
    "not_equal": (np.not_equal, "biufcO"),
    "minimum": (np.minimum, "iuf"),
    "maximum": (np.maximum, "iuf"),
    "logical_and": (np.logical_and, "b"),
    "logical_or": (np.logical_or, "b"),
    "logical_xor": (np.logical_xor, "b"),
}
BINARY = {name: _make_binary(name, *of) for name, of in _BINARY_FUNCTIONS.items()}
_UNARY_FUNCTIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "abs": (np.abs, SIGNED),
    "negative": (np.negative, SIGNED),
    "sign": (np.sign, "if"),
    "square": (np.square, NUMBERS),
    "sqrt": (np.sqrt, _FLOATS),
    "exp": (np.exp, _FLOATS),
    "log": (np.log, _FLOATS),
    "sin": (np.sin, _FLOATS),
    "cos": (np.cos, _FLOATS),
    "tanh": (np.tanh, _FLOATS),
    "floor": (np.floor, "f"),
    "ceil": (np.ceil, "f"),
    "round": (np.round, NUMBERS),
    "is_nan": (np.isnan, "f"),
    "is_inf": (np.isinf, "f"),
    "is_finite": (np.isfinite, "f"),
    "logical_not": (np.logical_not, "b"),
}
UNARY = {name: _make_unary(name, *of) for name, of in _UNARY_FUNCTIONS.items()}


def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor:
    """The values, limited to a range."""
    array = to_array(t)
    lowest, highest = like(clip_value_min, array), like(clip_value_max, array)
    check_kind(array, "iuf")
    with refusing_arguments():
        return Tensor._of(np.asarray(np.maximum(np.minimum(array, highest), lowest)))


# ---- Over axes ----------------------------------------------------------------------------------


def _make_reduction(name: str, function: Callable[..., Any], kinds: str) -> Any:
    def call(
        input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        array = to_array(input_tensor, np.dtype(bool) if kinds == "b" else None)
        check_kind(array, kinds)
        axes = None if axis is None else normalized_axes(axis, array.ndim)
        with refusing_arguments(), np.errstate(all="ignore"):
            return Tensor._of(np.asarray(function(array, axes, keepdims), array.dtype))

    return _named(call, name, "over some axes, or all of them")


def _sum(array: Array, axes: Any, keepdims: bool) -> Any:
    return array.sum(axes, array.dtype, keepdims=keepdims)


def _prod(array: Array, axes: Any, keepdims: bool) -> Any:
    return array.prod(axes, array.dtype, keepdims=keepdims)


def _mean(array: Array, axes: Any, keepdims: bool) -> Any:
    """The mean; of integers, cut towards zero."""
    if array.dtype.kind in "fc":
        return array.mean(axes, keepdims=keepdims)
    total = np.asarray(array.sum(axes, keepdims=keepdims))
    count = max(array.size // max(total.size, 1), 1)
    return np.abs(total) // count * np.sign(total)


def _extreme(name: str) -> Callable[[Array, Any, bool], Any]:
    def reduce(array: Array, axes: Any, keepdims: bool) -> Any:
        if array.dtype.kind == "f":
            initial: Any = -np.inf if name == "max" else np.inf
        else:
            limits = np.iinfo(array.dtype)
            initial = limits.min if name == "max" else limits.max
        return getattr(array, name)(axes, keepdims=keepdims, initial=initial)

    return reduce


REDUCTIONS = {
    f"reduce_{name}": _make_reduction(f"reduce_{name}", function, kinds)
    for name, (function, kinds) in {
        "sum": (_sum, NUMBERS),
        "prod": (_prod, NUMBERS),
        "mean": (_mean, NUMBERS),
        "max": (_extreme("max"), "iuf"),
        "min": (_extreme("min"), "iuf"),
        "any": (lambda array, axes, keep: array.any(axes, keepdims=keep), "b"),
        "all": (lambda array, axes, keep: array.all(axes, keepdims=keep), "b"),
    }.items()
}


def argmax(
    input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None
) -> Tensor:
    """The index of the largest value along an axis, by default the first axis."""
    return _place(np.argmax, input, axis, output_type)


def argmin(
    input: Any, axis: Any = None, output_type: Any = int64, name: str | None = None
) -> Tensor:
    """The index of the smallest value along an axis, by default the first axis."""
    return _place(np.argmin, input, axis, output_type)


def _place(function: Any, input: Any, axis: Any, output_type: Any) -> Tensor:
    array = to_array(input)
    check_kind(array, "biuf")
    (along,) = normalized_axes(0 if axis is None else axis, array.ndim)
    with refusing_arguments():
        return Tensor._of(np.asarray(function(array, along)).astype(numpy_dtype(output_type)))


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Sums of the values up to each place along an axis."""
    array = to_array(x)
    check_kind(array, NUMBERS)
    (along,) = normalized_axes(axis, array.ndim)
    array = np.flip(array, along) if reverse else array
    sums = np.cumsum(array, along, array.dtype)
    sums = sums - array if exclusive else sums
    return Tensor._of(np.flip(sums, along) if reverse else sums)
