"""Text on a terminal: its width, columns of characters, and the marks that a table is drawn with.

Importing this imports nothing that --help would have to wait for.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from tfwire._interface.messages import printable

# Variations and joiners: terminals differ in how wide they make these.
_VARIATIONS = str.maketrans("", "", "\ufe0e\ufe0f\u200d")
_NARROWEST_TERMINAL = 20


def terminal_width() -> int:
    """The columns of the terminal: those that COLUMNS says, else its own, else 80."""
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def table_width() -> int:
    """The width of what is fitted to the terminal."""
    return max(_NARROWEST_TERMINAL, terminal_width())


class Marks(NamedTuple):
    """What a table is drawn with.

    Attributes:
        line: Horizontal.
        bar: Vertical.
        top, middle, bottom: Left, inner and right corners of the lines.
        more: What stands for what was cut.
        absent: What stands for a value that is not there.
    """

    line: str
    bar: str
    top: str
    middle: str
    bottom: str
    more: str
    absent: str


_BOX_MARKS = Marks("─", "│", "┌┬┐", "├┼┤", "└┴┘", "…", "—")
_ASCII_MARKS = Marks("-", "|", "+++", "+++", "+++", "...", "-")


def output_encoding() -> str:
    return sys.stdout.encoding or "ascii"  # io.StringIO has none


def marks() -> Marks:
    """Those that the encoding of the output has."""
    try:
        "".join(_BOX_MARKS).encode(output_encoding())
    except (UnicodeEncodeError, LookupError):
        return _ASCII_MARKS
    return _BOX_MARKS


def terminal_text(text: str) -> str:
    """Text without what would control a terminal, or what its encoding does not have."""
    if text.isascii() and text.isprintable():
        return text
    shown = printable(text.translate(_VARIATIONS)).encode(output_encoding(), "backslashreplace")
    return shown.decode(output_encoding())


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    """Two for East Asian characters and emoji, none for what combines with the one before."""
    import unicodedata  # which ASCII does not need

    if unicodedata.category(character) in ("Mn", "Me") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def cut(text: str, width: int, more: str) -> str:
    """Text that takes at most so many columns; ``more`` ends one that was cut."""
    if len(text) <= 4 * width and columns_of(text) <= width:  # no heap of combining marks
        return text
    room, end = width - len(more), 0
    for character in text[: 4 * width]:
        room -= 1 if character.isascii() else _columns(character)
        if room < 0:
            break
        end += 1
    return text[:end] + more[:width]


def cut_middle(text: str, width: int, more: str) -> str:
    """A name that takes at most so many columns. Names of features differ in their ends."""
    if columns_of(text) <= width or not text.isascii() or width < 6:
        return cut(text, width, more)
    begin = (width - len(more)) // 3
    return text[:begin] + more + text[begin + len(more) - width :]


def padded(text: str, width: int, right: bool = False) -> str:
    """Text with spaces that fill a column, to the right of it or to its left."""
    space = " " * (width - columns_of(text))
    return space + text if right else text + space
