"""Arguments that users of a Dataset give."""

from __future__ import annotations

from typing import Any

from tfwire._arguments import integer

__all__ = ["check_callable", "shard_of"]


def check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise TypeError(f"{name} must be callable, found {type(value).__name__}")


def shard_of(num_shards: Any, index: Any) -> tuple[int, int]:
    """How many shards, and which of them."""
    shards, number = integer("num_shards", num_shards, 1), integer("index", index)
    if not 0 <= number < shards:
        raise ValueError(f"shard index must be within [0, {shards}), found {number}")
    return shards, number
