"""Calls before they are made: names of arguments in TensorFlow 1, signatures of a table, and
structures of results; and calls of the user's own functions, by py_function and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from inspect import Parameter, Signature
from typing import Any

import numpy as np

from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import as_dtype, is_tensor
from tfwire.compat._ops import convert_to_tensor
from tfwire.compat._tensor import Tensor

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

    vars(call)["earlier_names"] = names  # for tfwire port
    return call


def signed(
    function: Callable[..., Any],
    name: str,
    parameters: tuple[str, str],
    summary: str,
    told: Mapping[str, Any],
) -> Callable[..., Any]:
    """A function of a table, which has TensorFlow's parameters.

    Args:
        function: Takes the name, and all arguments by name.
        name: Its name.
        parameters: The required ones, and the optional ones, which are None unless ``told``.
        summary: What it does.
        told: By parameter: a default, and what the docstring says.
    """
    defaults = {one: default for one, (default, _) in told.items()}
    required, optional = (
        [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in names.split()]
        for names in parameters
    )
    optional = [one.replace(default=defaults.get(one.name)) for one in optional]
    signature = Signature([*required, *optional])

    def call(*args: Any, **kwargs: Any) -> Any:
        for unknown in kwargs.keys() - signature.parameters.keys():
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        return function(name, bound.arguments)

    lines = [f"    {one}: {told[one][1]}" for one in signature.parameters if one in told]
    call.__name__ = call.__qualname__ = name
    call.__doc__ = "\n".join([summary, "", "Args:", *lines])
    call.__signature__ = signature  # type: ignore[attr-defined]  # which inspect reads
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


# ---- Functions of the user ----------------------------------------------------------------------
def py_function(
    func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Calls a function with tensors; everything here runs as ordinary Python anyway.

    Args:
        func: The function. Without it this is a decorator: ``@tf.py_function(Tout=tf.string)``.
        inp: Its arguments, a list of tensors.
        Tout: The dtype of its result, or a list of them for several results.
        name: Ignored.

    Returns:
        A tensor; for a list of dtypes a list of tensors.

    Raises:
        InvalidArgumentError: Another number of results than dtypes, or results of other dtypes.
    """

    def call(*arguments: Any) -> Any:
        return _results(func(*map(convert_to_tensor, arguments)), Tout)

    if func is None:
        return lambda function: py_function(function, inp, Tout)
    return call if inp is None else call(*inp)


def numpy_function(
    func: Any = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """As :func:`py_function`, for a function of numpy arrays and bytes.

    Arrays that the function returns must have the dtypes of ``Tout``.
    """

    def call(*arguments: Any) -> Any:
        arrays = [convert_to_tensor(argument).numpy() for argument in arguments]
        return _results(func(*arrays), Tout, exact=True)

    if func is None:
        return lambda function: numpy_function(function, inp, Tout)
    return call if inp is None else call(*inp)


py_func = numpy_function


def _results(result: Any, types: Any, exact: bool = False) -> Any:
    """The results of a function as tensors of the dtypes in Tout."""
    if not isinstance(types, (list, tuple)):
        if types is None:
            raise TypeError("Tout must be a dtype or a list of dtypes, found None")
        return _as_declared(result, types, exact)
    if len(types) == 0:
        return []
    many = isinstance(result, (list, tuple))
    results = result if many and (len(types) > 1 or len(result) == 1) else [result]
    if len(results) != len(types):
        raise InvalidArgumentError(
            f"the function returned {len(results)} values, Tout names {len(types)}"
        )
    return [_as_declared(value, dtype, exact) for value, dtype in zip(results, types, strict=True)]


def _as_declared(value: Any, dtype: Any, exact: bool) -> Tensor:
    expected = as_dtype(dtype)
    if value is None:
        raise InvalidArgumentError(f"the function returned None where Tout names {expected!r}")
    try:
        has_dtype = is_tensor(value) or (exact and isinstance(value, (np.ndarray, np.generic)))
        tensor = Tensor(value) if has_dtype else Tensor(value, expected)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(str(error)) from None
    if tensor.dtype != expected:
        raise InvalidArgumentError(
            f"the function returned {tensor.dtype!r}, Tout names {expected!r}"
        )
    return tensor


def function(func: Any = None, *args: Any, **kwargs: Any) -> Any:
    """The function itself: everything runs at once. Arguments of ``tf.function`` are ignored.

    Example:
        >>> @function(input_signature=None)
        ... def double(x):
        ...     return x * 2
        >>> double(4)
        8
    """
    return func if callable(func) else lambda decorated: decorated


def cond(
    pred: Any,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    name: str | None = None,
) -> Any:
    """The result of one of two functions."""
    return true_fn() if pred else false_fn()


@contextmanager
def name_scope(name: Any = None, *args: Any, **kwargs: Any) -> Iterator[Any]:
    """A ``with`` block without effect: names are for graphs."""
    yield name


@contextmanager
def device(device_name: Any = None) -> Iterator[None]:
    """A ``with`` block without effect: everything runs on the CPU."""
    yield


@contextmanager
def control_dependencies(control_inputs: Any = None) -> Iterator[None]:
    """A ``with`` block without effect: everything runs in the order of the code."""
    yield
