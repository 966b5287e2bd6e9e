"""Functions of numbers: element by element, and over axes; and ``tf.debugging``, their checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfwire import int64
from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import (
    NUMBERS,
    OPERATORS,
    SIGNED,
    Array,
    as_dtype,
    check_kind,
    is_tensor,
    numpy_dtype,
    to_array,
)
from tfwire.compat._errors import Namespace, refusing_arguments
from tfwire.compat._ops import convert_to_tensor, normalized_axes
from tfwire.compat._tensor import Tensor, binary, like

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


def _mean(array: Array, axes: Any, keepdims: bool) -> Any:
    """The mean; of integers, cut towards zero."""
    if array.dtype.kind in "fc":
        return array.mean(axes, keepdims=keepdims)
    wide = np.uint64 if array.dtype.kind == "u" else np.int64
    total = array.sum(axes, wide, keepdims=keepdims)
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
        "sum": (lambda array, axes, keep: array.sum(axes, array.dtype, keepdims=keep), NUMBERS),
        "prod": (lambda array, axes, keep: array.prod(axes, array.dtype, keepdims=keep), NUMBERS),
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


def Assert(condition: Any, data: Any, summarize: Any = None, name: Any = None) -> None:
    """Raises InvalidArgumentError, with ``data`` in its message, unless a condition is true."""
    if not bool(to_array(condition)):
        raise InvalidArgumentError(f"assertion failed: {data!r}")


def _comparison(name: str, function: Callable[..., Any]) -> Callable[..., None]:
    def check(x: Any, y: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        if not to_array(function(x, y)).all():
            raise InvalidArgumentError(f"{message or ''} expected x {words} y, element by element")

    words = name.replace("_", " ")
    check.__name__ = check.__qualname__ = f"assert_{name}"
    check.__doc__ = f"Raises InvalidArgumentError unless x is {words} y in every element."
    return check


def _sign(name: str, function: Callable[[Any], Any]) -> Callable[..., None]:
    def check(x: Any, message: Any = None, summarize: Any = None, name: Any = None) -> None:
        if not function(to_array(x)).all():
            raise InvalidArgumentError(f"{message or ''} expected every element to be {words}")

    words = name.replace("_", "-")
    check.__name__ = check.__qualname__ = f"assert_{name}"
    check.__doc__ = f"Raises InvalidArgumentError unless every element is {words}."
    return check


def assert_rank(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raises ValueError unless a tensor has a rank."""
    assert_rank_in(x, [rank], message)


def assert_rank_in(x: Any, ranks: Any, message: Any = None, name: Any = None) -> None:
    """Raises ValueError unless a tensor has one of some ranks."""
    wanted = [int(rank) for rank in ranks]
    if (found := convert_to_tensor(x).ndim) not in wanted:
        raise ValueError(f"{message or ''} expected a tensor of rank {wanted}, found rank {found}")


def assert_rank_at_least(x: Any, rank: Any, message: Any = None, name: Any = None) -> None:
    """Raises ValueError unless a tensor has a rank, or a higher one."""
    if (found := convert_to_tensor(x).ndim) < int(rank):
        raise ValueError(f"{message or ''} expected rank {int(rank)} or higher, found rank {found}")


def assert_scalar(tensor: Any, message: Any = None, name: Any = None) -> None:
    """Raises ValueError unless a tensor is a scalar."""
    found = convert_to_tensor(tensor)
    if found.ndim:
        raise ValueError(f"{message or ''} expected a scalar, found shape {found.shape}")


def assert_type(tensor: Any, tf_type: Any, message: Any = None, name: Any = None) -> None:
    """Raises TypeError unless a tensor has a dtype."""
    if (found := convert_to_tensor(tensor).dtype) != as_dtype(tf_type):
        raise TypeError(
            f"{message or ''} expected a tensor of {as_dtype(tf_type)!r}, found {found!r}"
        )


def assert_shapes(
    shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: Any = None
) -> None:
    """Checks the shapes of tensors against each other.

    Args:
        shapes: A dict or pairs of a tensor and its shape: a size, a letter for a size that is the
            same everywhere, or None for any size.

    Raises:
        ValueError: A shape is another one.
    """
    sizes: dict[Any, Any] = {}
    for tensor, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        shape = convert_to_tensor(tensor).shape.as_list()
        symbols = [wanted] if isinstance(wanted, (str, int)) else list(wanted)
        if shape == [] and symbols == [1]:
            continue
        if symbols[:1] == ["*"] or symbols[:1] == [...]:
            symbols = symbols[1:]
            shape = shape[max(len(shape) - len(symbols), 0) :]
        if len(shape) != len(symbols):
            raise ValueError(f"{message or ''} expected rank {len(symbols)}, found {len(shape)}")
        for symbol, size in zip(symbols, shape, strict=True):
            fixed = symbol if isinstance(symbol, int) else sizes.setdefault(symbol, size)
            if symbol not in (None, ".") and fixed != size:
                raise ValueError(
                    f"{message or ''} expected size {fixed} for {symbol}, found {size}"
                )


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: Any = None,
    summarize: Any = None,
    name: Any = None,
) -> None:
    """Raises InvalidArgumentError unless x and y differ by less than ``atol + rtol * abs(y)``."""
    one, other = convert_to_tensor(x), convert_to_tensor(y)
    epsilon = 10 * np.finfo(one.numpy().dtype).eps
    a, b = to_array(one), to_array(other)
    allowed = (epsilon if atol is None else to_array(atol)) + (
        epsilon if rtol is None else to_array(rtol)
    ) * np.abs(b)
    if not (np.abs(a - b) < allowed).all():
        raise InvalidArgumentError(f"{message or ''} expected x and y to be nearly equal")


def check_numerics(tensor: Any, message: str, name: Any = None) -> Tensor:
    """The tensor; raises InvalidArgumentError if it holds a NaN or an infinite value."""
    found = convert_to_tensor(tensor)
    check_kind(to_array(found), "f")
    if not np.isfinite(to_array(found)).all():
        raise InvalidArgumentError(f"{message} : expected finite values, found NaN or Inf")
    return found


CHECKS: dict[str, Any] = {
    **{
        f"assert_{name}": _comparison(name, BINARY[name])
        for name in ("equal", "greater", "greater_equal", "less", "less_equal")
    },
    "assert_none_equal": _comparison("none_equal", BINARY["not_equal"]),
    "assert_negative": _sign("negative", lambda x: x < 0),
    "assert_positive": _sign("positive", lambda x: x > 0),
    "assert_non_negative": _sign("non_negative", lambda x: x >= 0),
    "assert_non_positive": _sign("non_positive", lambda x: x <= 0),
    **{
        function.__name__: function
        for function in (
            *(Assert, assert_near, assert_rank, assert_rank_at_least, assert_rank_in),
            *(assert_scalar, assert_shapes, assert_type, check_numerics),
        )
    },
}
debugging: Namespace = Namespace("debugging", **CHECKS)
