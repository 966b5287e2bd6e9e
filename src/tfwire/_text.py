"""Names in messages. Keys of features and names of files come from elsewhere and may hold anything:
what a terminal would obey, or not show, is escaped here."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

__all__ = ["escape", "printable", "quoted", "shorten", "show_key", "show_path"]

_LONGEST_NAME = 60  # characters


def escape(character: str) -> str:
    r"""A character as Python writes it in a string, like ``\x1b`` or ``\u202e``."""
    return ascii(character)[1:-1]


def printable(text: str, escape: Callable[[str], str] = escape) -> str:
    """Text whose control, bidirectional and invisible characters are escaped.

    Args:
        text: Any text; line ends are escaped too.
        escape: How to write one of these characters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else escape(c) for c in text)


def shorten(text: str, longest: int = _LONGEST_NAME) -> str:
    """Text of at most so many characters, without its middle where it is longer."""
    if len(text) <= longest:
        return text
    kept = longest - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def show_key(key: Any) -> str:
    """A key of a feature, printable and not longer than need be."""
    if isinstance(key, bytes):
        key = key.decode("utf-8", "surrogateescape")
    key = str(key)
    if len(key) > 4 * _LONGEST_NAME:  # escapes are longer than what they stand for
        key = shorten(key, 4 * _LONGEST_NAME)
    return shorten(printable(key))


def quoted(key: Any) -> str:
    """A key as Python writes it, not longer than need be."""
    return shorten(repr(key))


def show_path(path: str | bytes | os.PathLike[Any]) -> str:
    """The name of a file, printable."""
    return printable(os.fsdecode(path))
