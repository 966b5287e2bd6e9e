"""Arguments that users of a Dataset give."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["check_callable", "integer", "shard_of"]


def check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be callable, found {type(value).__name__}")


def integer(name: str, value: Any, least: int | None = None) -> int:
    """An argument that is an integer, numpy's too, within 64 bits.

    Raises:
        TypeError: It is none; a bool is none either.
        ValueError: It is below ``least``, or too large.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, found {type(value).__name__}")
    number = operator.index(value)
    if least is not None and number < least:
        raise ValueError(f"{name} must be at least {least}, found {number}")
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(f"{name} must fit into 64 bits, found {number}")
    return number


def shard_of(num_shards: Any, index: Any) -> tuple[int, int]:
    """How many shards, and which of them."""
    shards, number = integer("num_shards", num_shards, 1), integer("index", index)
    if not 0 <= number < shards:
        raise ValueError(f"shard index must be within [0, {shards}), found {number}")
    return shards, number
