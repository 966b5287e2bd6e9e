"""py_function and its relatives, and the wrappers of code that have no effect here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfwire._interface.messages import InvalidArgumentError
from tfwire.compat._constants import as_dtype, is_tensor
from tfwire.compat._ops import convert_to_tensor
from tfwire.compat._tensor import Tensor


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
