"""Python functions called as TensorFlow calls them."""

from __future__ import annotations

from typing import Any

from tfwire.compat._ops import convert_to_tensor
from tfwire.compat._tensor import Tensor, numpy_dtype

__all__ = ["py_function"]


def py_function(
    func: Any = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Calls ``func`` with tensors; everything here runs as ordinary Python anyway.

    Without ``func`` it is a decorator: ``@tf.py_function(Tout=tf.string)``.
    """

    def call(*arguments: Any) -> Any:
        result = func(*[convert_to_tensor(argument) for argument in arguments])
        if isinstance(Tout, (list, tuple)):
            return tuple(Tensor(r, numpy_dtype(t)) for r, t in zip(result, Tout, strict=True))
        return Tensor(result, numpy_dtype(Tout))

    if func is None:
        return lambda function: py_function(function, inp, Tout)
    return call if inp is None else call(*inp)
