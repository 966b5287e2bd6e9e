"""``tf.debugging``: checks of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfwire._base.errors import InvalidArgumentError
from tfwire.compat._convert import check_kind, to_array
from tfwire.compat._dtypes import as_dtype
from tfwire.compat._math import BINARY
from tfwire.compat._missing import Namespace
from tfwire.compat._ops import convert_to_tensor
from tfwire.compat._tensor import Tensor

__all__ = ["debugging"]


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
        raise TypeError(f"{message or ''} expected a tensor of {as_dtype(tf_type)}, found {found}")


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
        for function in (Assert, assert_near, assert_rank, assert_rank_at_least, assert_rank_in)
    },
    "assert_scalar": assert_scalar,
    "assert_shapes": assert_shapes,
    "assert_type": assert_type,
    "check_numerics": check_numerics,
}
debugging: Namespace = Namespace("debugging", **CHECKS)
