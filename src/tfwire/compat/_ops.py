"""Functions of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire.compat._tensor import Tensor, to_numpy

__all__ = ["cast", "constant", "convert_to_tensor", "reshape", "stack"]


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str = "Const") -> Tensor:
    """A tensor of a value."""
    tensor = Tensor(value, dtype)
    return tensor if shape is None else reshape(tensor, shape)


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor of a value; tensors are taken as they are."""
    return value if isinstance(value, Tensor) and dtype is None else Tensor(value, dtype)


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same values in another shape; ``()`` gives a scalar."""
    target = [int(size) for size in np.asarray(to_numpy(shape)).ravel()]
    value = to_numpy(tensor)
    array = np.empty((), object) if isinstance(value, bytes) else np.asarray(value)
    if isinstance(value, bytes):
        array[()] = value
    return Tensor(array.reshape(target)[()])


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """The values in another dtype."""
    return Tensor(np.asarray(to_numpy(x)).astype(getattr(dtype, "as_numpy_dtype", dtype)))


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors along a new axis."""
    return Tensor(np.stack([np.asarray(to_numpy(value)) for value in values], axis))
