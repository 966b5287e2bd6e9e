"""What the translations of schema files share."""

from __future__ import annotations

from typing import Any

from tfwire._arguments import integer
from tfwire._text import quoted

__all__ = ["no_counterpart", "refuse_default", "sizes_of"]


def no_counterpart(key: str, what: str) -> ValueError:
    return ValueError(f"feature {quoted(key)}: {what} has no counterpart")


def refuse_default(key: str, feature: Any) -> None:
    if feature.default_value is not None:
        raise no_counterpart(key, "a default value")


def sizes_of(key: str, shape: Any) -> list[int]:
    """A shape as a list: an int is a rank of 1.

    Raises:
        TypeError: Not an int or integers.
        ValueError: A negative one.
    """
    sizes = [shape] if hasattr(shape, "__index__") else shape
    if isinstance(sizes, (str, bytes)) or not hasattr(sizes, "__iter__"):
        found = type(shape).__name__
        raise TypeError(f"shape of feature {key!r} must be integers, found {found}")
    return [integer(f"shape of feature {key!r}", size, 0) for size in sizes]
