"""Names that arguments had in TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

_AXIS = {"reduction_indices": "axis", "keep_dims": "keepdims"}
_LIKE = {"tensor": "input", "optimize": None, "layout": None}
_LAYOUT = {"layout": None}
_MORE = {"data": None, "summarize": None}
_CHECKED = (
    *("equal", "greater", "greater_equal", "less", "less_equal", "near", "none_equal"),
    *("negative", "non_negative", "non_positive", "positive"),
    *("rank", "rank_at_least", "rank_in"),
)
_REDUCED = ("all", "any", "join", "max", "mean", "min", "prod", "sum")

# By the name of a function: earlier names and those of today, None for what has no effect.
EARLIER: Mapping[str, Mapping[str, str | None]] = {
    **{
        f"reduce_{name}": _AXIS
        for name in ("all", "any", "join", "max", "mean", "min", "prod", "sum")
    },
    **{f"assert_{name}": _MORE for name in _CHECKED},
    "argmax": {"dimension": "axis"},
    "argmin": {"dimension": "axis"},
    "cond": {"fn1": "true_fn", "fn2": "false_fn", "strict": None},
    "constant": {"verify_shape": None},
    "convert_to_tensor": {"preferred_dtype": "dtype_hint"},
    "expand_dims": {"dim": "axis"},
    "fill": _LAYOUT,
    "ones": _LAYOUT,
    "ones_like": _LIKE,
    "squeeze": {"squeeze_dims": "axis"},
    "to_number": {"string_tensor": "input"},
    "zeros": _LAYOUT,
    "zeros_like": _LIKE,
}


def renamed(names: Mapping[str, str | None], arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments by the names of today.

    Raises:
        ValueError: One is given by both names.
    """
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        today = names.get(name, name)
        if today is None or (name in names and value is None):
            continue
        if today in found:
            earlier = next(old for old, new in names.items() if new == today)
            raise ValueError(f"give either {today} or {earlier}, its name in TensorFlow 1")
        found[today] = value
    return found


def accepting(function: Callable[..., Any], **names: str | None) -> Callable[..., Any]:
    """The function, which takes arguments by earlier names too."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **renamed(names, kwargs))

    return call
