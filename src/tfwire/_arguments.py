"""Arguments that many functions take."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["boolean", "choice", "file_path", "integer", "seconds"]


def boolean(name: str, value: Any) -> bool:
    """An argument that is a bool, numpy's too.

    Raises:
        TypeError: It is not. A number or a string is refused too: "no" would count as true.
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a bool, found {type(value).__name__}")
    return bool(value)


def integer(name: str, value: Any, least: int | None = None) -> int:
    """An argument that is an integer, numpy's too, within 64 bits.

    Raises:
        TypeError: Not an integer. bool is refused too.
        ValueError: It is below ``least``, or too large.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, found {type(value).__name__}") from None
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


def choice(name: str, value: Any, words: Iterable[str]) -> str:
    """An argument that is one of some words.

    Raises:
        ValueError: It is not.
    """
    known = list(words)
    if not isinstance(value, str) or value not in known:
        shown = repr(value) if isinstance(value, (str, bytes)) else type(value).__name__
        expected = " or ".join(map(repr, known)) if len(known) == 2 else f"one of {known}"
        raise ValueError(f"{name} must be {expected}, found {shown}")
    return known[known.index(value)]


def file_path(name: str, value: Any) -> str:
    """An argument that is the path of a local file.

    Raises:
        TypeError: It is not.
        ValueError: It is empty, or holds a null character.
    """
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a str or os.PathLike, found {type(value).__name__}")
    path = os.fsdecode(value)
    if not path or "\0" in path:
        raise ValueError(f"{name} must not be empty or hold a null character")
    return path
