"""Calls before they are made: names of arguments in TensorFlow 1, and structures of results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

# ---- Arguments ----------------------------------------------------------------------------------
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
    **{f"reduce_{name}": _AXIS for name in _REDUCED},
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


# ---- Results ------------------------------------------------------------------------------------
_LEAF = None


def result_structure(name: str, args: Any, kwargs: Any) -> Any:
    """Dicts, tuples and lists with None for every tensor; None for one tensor, or unknown."""
    known = _KNOWN.get(name)
    return None if known is None else known(args, kwargs)


def parts(node: Any, structure: Any) -> Any:
    """A deferred tensor as the parts of its structure, ``node[key]`` and so on."""
    if isinstance(structure, dict):
        return {key: parts(node[key], inner) for key, inner in structure.items()}
    if isinstance(structure, (list, tuple)):
        made = [parts(node[i], inner) for i, inner in enumerate(structure)]
        if hasattr(structure, "_fields"):
            return type(structure)(*made)
        return made if isinstance(structure, list) else tuple(made)
    return node


def _argument(args: Any, kwargs: Any, position: int, *names: str) -> Any:
    for name in names:
        if name in kwargs:
            return kwargs[name]
    return args[position] if position < len(args) else None


def _of_features(features: Any) -> Any:
    return {_text(key): _LEAF for key in features or {}}


def _text(key: Any) -> Any:
    return key.decode() if isinstance(key, bytes) else key


def _example(args: Any, kwargs: Any) -> Any:
    return _of_features(_argument(args, kwargs, 1, "features"))


def _sequence(args: Any, kwargs: Any) -> Any:
    context = _of_features(_argument(args, kwargs, 1, "context_features"))
    return context, _of_features(_argument(args, kwargs, 2, "sequence_features"))


def _sequences(args: Any, kwargs: Any) -> Any:
    context, lists = _sequence(args, kwargs)
    return context, lists, lists


def _of_types(args: Any, kwargs: Any) -> Any:
    types = _argument(args, kwargs, 2, "Tout")
    return [_LEAF for _ in types] if isinstance(types, (list, tuple)) else None


def _split(args: Any, kwargs: Any) -> Any:
    sizes = _argument(args, kwargs, 1, "num_or_size_splits")
    if isinstance(sizes, int):
        return [_LEAF] * sizes
    return [_LEAF for _ in sizes] if isinstance(sizes, (list, tuple)) else None


def _unstack(args: Any, kwargs: Any) -> Any:
    count = _argument(args, kwargs, 1, "num")
    return None if count is None else [_LEAF] * count


_KNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "numpy_function": _of_types,
    "parse_example": _example,
    "parse_sequence_example": _sequences,
    "parse_single_example": _example,
    "parse_single_sequence_example": _sequence,
    "py_func": _of_types,
    "py_function": _of_types,
    "split": _split,
    "unstack": _unstack,
}
