"""The registered function that shows objects as HTML. ``tfwire`` registers it.

It is imported when a notebook asks.
"""

from __future__ import annotations

from collections.abc import Callable

_load: Callable[[], Callable[[object], str]] | None = None


def register_display(load: Callable[[], Callable[[object], str]]) -> None:
    """Sets the function that imports it."""
    global _load
    _load = load


def html_of(value: object) -> str | None:
    """An object as HTML: what its _repr_html_ returns. None has a notebook show the repr."""
    return None if _load is None else _load()(value)
