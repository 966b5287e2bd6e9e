"""Public classes, as users see them."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["public"]

T = TypeVar("T")


def public(cls: type[T]) -> type[T]:
    """Says that a class is of ``tfwire``, whatever module holds it: pickles, reprs and tracebacks
    survive a move."""
    cls.__module__ = "tfwire"
    return cls
