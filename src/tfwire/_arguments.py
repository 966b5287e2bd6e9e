"""Arguments that many functions take."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["integer", "seconds"]


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


def seconds(name: str, value: Any) -> float:
    """An argument that is a time in seconds.

    Raises:
        TypeError: It is no number.
        ValueError: It is negative or not a number.
    """
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, found {type(value).__name__}")
    number = float(value)
    if not number >= 0:
        raise ValueError(f"{name} must be a number of seconds, 0 or more, found {value!r}")
    return number
