"""What the translations of schema files share."""

from __future__ import annotations

from typing import Any

from tfwire._text import quoted

__all__ = ["no_counterpart", "refuse_default", "sizes_of"]


def no_counterpart(key: str, what: str) -> ValueError:
    return ValueError(f"feature {quoted(key)}: {what} has no counterpart")


def refuse_default(key: str, feature: Any) -> None:
    if feature.default_value is not None:
        raise no_counterpart(key, "a default value")


def sizes_of(shape: Any) -> list[int]:
    """A shape as a list: an int is a rank of 1."""
    try:
        return [int(size) for size in shape]
    except TypeError:
        return [int(shape)]
