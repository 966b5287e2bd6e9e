"""Arguments that users of a Dataset give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tfwire._arguments import integer
from tfwire._datasets.structure import leaves

__all__ = ["check_callable", "check_padding", "shard_of"]


def check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be callable, found {type(value).__name__}")


def check_padding(shapes: Any, values: Any) -> None:
    """Checks the shapes and values of ``padded_batch``, as far as the elements are not needed."""
    _check_shapes(shapes)
    for value in leaves(values):
        if value is not None and np.ndim(value) != 0:
            raise ValueError(f"padding_values must be scalars, found {type(value).__name__}")


def _check_shapes(shapes: Any) -> None:
    """A shape is an iterable of sizes, and None is any shape; tuples and dicts are structure."""
    if shapes is None:
        return
    if isinstance(shapes, (str, bytes)) or not isinstance(shapes, Iterable):
        raise TypeError(f"padded_shapes must be shapes, found {type(shapes).__name__}")
    for part in shapes.values() if isinstance(shapes, dict) else shapes:
        nested = isinstance(part, Iterable) and not isinstance(part, (str, bytes))
        if nested or isinstance(shapes, dict):
            _check_shapes(part)
        elif part is not None:
            integer("a size of padded_shapes", part, -1)


def shard_of(num_shards: Any, index: Any) -> tuple[int, int]:
    """How many shards, and which of them."""
    shards, number = integer("num_shards", num_shards, 1), integer("index", index)
    if not 0 <= number < shards:
        raise ValueError(f"shard index must be within [0, {shards}), found {number}")
    return shards, number
