"""Text of keys, values and paths for messages; and what notebooks show.

Feature keys and file names may hold any character. Those that a terminal would obey, or would not
show, are escaped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

_SHOWN_CHARACTERS = 60


def escape(character: str) -> str:
    r"""A character as Python writes it in a string, like ``\x1b`` or ``\u202e``."""
    return ascii(character)[1:-1]


def printable(text: str, escape: Callable[[str], str] = escape) -> str:
    """Text with control, bidirectional and invisible characters escaped.

    Args:
        text: Any text; line ends are escaped too.
        escape: Returns the text for one of these characters.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else escape(c) for c in text)


def shorten(text: str, longest: int = _SHOWN_CHARACTERS) -> str:
    """Text of at most ``longest`` characters; longer text loses its middle."""
    if len(text) <= longest:
        return text
    kept = longest - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def show_key(key: Any) -> str:
    """A key of a feature, printable and shortened."""
    if isinstance(key, bytes):
        key = key.decode("utf-8", "surrogateescape")
    key = str(key)
    if len(key) > 4 * _SHOWN_CHARACTERS:  # before escaping, which makes text longer
        key = shorten(key, 4 * _SHOWN_CHARACTERS)
    return shorten(printable(key))


def column_name(key: str | bytes) -> str:
    """The name of a column: its key, as text without null characters."""
    name = key.decode("utf-8", "backslashreplace") if isinstance(key, bytes) else key
    name = name.encode("utf-8", "backslashreplace").decode()
    return name.replace("\0", "\\x00")


def plural(count: int, noun: str) -> str:
    """A number and its noun: "1 byte", "2,000 bytes"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def show_size(num_bytes: int) -> str:
    """A number of bytes for people: "999 B", "1.2 kB", "21 kB"."""
    size, unit = float(num_bytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.5:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}" if unit != "B" and size < 9.95 else f"{size:.0f} {unit}"


def quoted(key: Any) -> str:
    """The repr of a key, shortened."""
    return shorten(repr(key))


def first_few(keys: Sequence[Any]) -> str:
    """Some keys, and how many others there are."""
    others = [plural(len(keys) - 3, "other")] if len(keys) > 3 else []
    return ", ".join([*map(quoted, keys[:3]), *others])


def show_path(path: str | bytes | os.PathLike[Any]) -> str:
    """The name of a file, printable."""
    return printable(os.fsdecode(path))


def html_of(value: object) -> str:
    """An object as HTML, which its _repr_html_ returns. It is imported when a notebook asks, and
    all that objects know of HTML."""
    from tfwire.view import as_html

    return as_html(value)
