"""Records as a table that fits the terminal, or one under the other."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfwire._interface.messages import plural, show_key
from tfwire.cli._printing.cells import Cell, Form, form_of
from tfwire.cli._printing.terminal import (
    columns_of,
    cut,
    cut_middle,
    marks,
    padded,
    table_width,
    terminal_text,
)
from tfwire.cli._streams import colored

Key = tuple[int, str]
"""Of a feature: whether it is a feature list, and its name."""

_WIDEST = 60  # columns that a feature takes before others are left out or cut
_WIDEST_NAME = 24
_NARROWEST = 18  # columns to which values are cut before a feature is left out
_NARROWEST_NAME = 10
_MOST_HIDDEN = 10_000  # names of features that are counted
OTHER: Key = (-1, "")
"""In place of a feature: a record that is not an Example."""


class _Column(NamedTuple):
    """A feature in a table.

    Attributes:
        name: Of the feature.
        form: Of its values.
        width: Of the cells.
        least: The width that it is cut to before others are left out.
        right: Whether values end at the right.
    """

    name: str
    form: Form
    width: int
    least: int
    right: bool


def title_of(key: Key) -> str:
    """The name of a feature as tables have it; that of a feature list ends in []."""
    if key == OTHER:
        return "(record)"
    return (terminal_text(show_key(key[1])) or '""') + "[]" * key[0]


class Table:
    """Prints records as rows of a table.

    Args:
        first: How many records decide the columns and their widths. They are kept until then.
        names: The features that were asked for, in their order; none: all, by name.
    """

    def __init__(self, first: int, names: Sequence[str] = ()) -> None:
        self._first, self._order = first, {name: i for i, name in enumerate(names)}
        self._waiting: list[tuple[int, Mapping[Key, Cell]]] = []
        self._marks, self._width = marks(), table_width()
        self._columns: dict[Key, _Column] | None = None
        self._hidden: dict[Key, None] = {}
        self._unnamed = 0  # features of one record that have no cells
        self._number_width = 0

    def add(self, number: int, cells: Mapping[Key, Cell], left_out: int = 0) -> None:
        """Prints a record, unless it waits for others. ``left_out`` features have no cells."""
        self._unnamed = max(self._unnamed, left_out)
        if self._columns is not None:
            self._print_record(number, cells)
            return
        self._waiting.append((number, cells))
        if len(self._waiting) >= self._first:
            self._begin()

    def end(self) -> None:
        """Prints what waits, the last line, and which features were left out."""
        if self._columns is None and self._waiting:
            self._begin()
        if self._columns is None:
            return
        self._print_line(self._marks.bottom)
        if self._hidden:
            count = len(self._hidden) + self._unnamed
            names = ", ".join(title_of(key) for key in list(self._hidden)[: self._width])
            at_least = "at least " * (len(self._hidden) == _MOST_HIDDEN or self._unnamed > 0)
            text = f"and {at_least}{plural(count, 'more feature')}: {names}"
            print(cut(text, self._width, self._marks.more))
            print(cut("--records shows all features, --features A,B some", self._width, ""))

    # ---- The columns ----------------------------------------------------------------------------

    def _begin(self) -> None:
        """Chooses the columns, and prints the head and the records that waited."""
        found: dict[Key, list[Cell]] = {}
        for _, cells in self._waiting:
            for key, cell in cells.items():
                found.setdefault(key, []).append(cell)
        self._number_width = max(len(str(self._waiting[-1][0])), 3)
        room = self._width - self._number_width - 4
        self._columns, room = self._chosen(found, room)
        self._note_hidden(found)
        self._columns = _fitted(self._columns, room)
        self._print_line(self._marks.top)
        columns = self._columns.values()
        names = [
            (cut_middle(column.name, column.width, self._marks.more), column.right, "bold")
            for column in columns
        ]
        types = [(column.form.type, column.right, "dim") for column in columns]
        self._print_cells([("#", True, "bold"), *names])
        self._print_cells([("", True, ""), *types])
        self._print_line(self._marks.middle)
        for number, cells in self._waiting:
            self._print_record(number, cells)
        self._waiting.clear()

    def _chosen(self, found: Mapping[Key, list[Cell]], room: int) -> tuple[dict[Key, _Column], int]:
        """The first columns that fit if all are as narrow as they can be; and the room for them."""
        chosen: dict[Key, _Column] = {}
        used = 0
        for key in sorted(found, key=lambda key: (self._order.get(key[1], 0), key)):
            column = self._column(key, found[key])
            used += column.least + 3
            if chosen and used > room:
                break
            chosen[key] = column
        return chosen, max(1, room - 3 * len(chosen))

    def _column(self, key: Key, cells: list[Cell]) -> _Column:
        name, form = title_of(key), form_of(cells)
        texts = [cell.text(_WIDEST, self._marks.more, form) for cell in cells]
        width = max(map(columns_of, [form.type, *texts]))
        is_number = form.type in ("int64", "float32")
        least = max(
            width if is_number else min(width, _NARROWEST), min(columns_of(name), _NARROWEST_NAME)
        )
        width = max(width, min(columns_of(name), _WIDEST_NAME))
        return _Column(name, form, width, least, is_number and key[0] <= 0)

    def _note_hidden(self, keys: Mapping[Key, object]) -> None:
        columns = self._columns or {}
        for key in keys:
            if key not in columns and len(self._hidden) < _MOST_HIDDEN:
                self._hidden[key] = None

    # ---- Printing -------------------------------------------------------------------------------

    def _print_record(self, number: int, cells: Mapping[Key, Cell]) -> None:
        more, shown = self._marks.more, [(str(number), True, "dim")]
        for key, column in (self._columns or {}).items():
            if key in cells:
                text = cells[key].text(column.width, more, column.form)
                shown.append((text, column.right, ""))
            else:
                shown.append((self._marks.absent, column.right, "dim"))
        self._print_cells(shown)
        self._note_hidden(cells)

    def _print_cells(self, cells: Sequence[tuple[str, bool, str]]) -> None:
        """Prints cells: text, whether it ends at the right, and its color."""
        shown = []
        for (text, right, color), width in zip(cells, self._widths(), strict=True):
            text = padded(cut(text, width, self._marks.more), width, right)
            shown.append(colored(text, color, sys.stdout) if color else text)
        bar = self._marks.bar
        print(f"{bar} {f' {bar} '.join(shown)} {bar}")

    def _print_line(self, corners: str) -> None:
        parts = (self._marks.line * (width + 2) for width in self._widths())
        print(corners[0] + corners[1].join(parts) + corners[2])

    def _widths(self) -> list[int]:
        return [self._number_width, *(c.width for c in (self._columns or {}).values())]


def _fitted(columns: Mapping[Key, _Column], room: int) -> dict[Key, _Column]:
    """Columns that have ``room`` together: the widest are cut to one width."""
    widest = _WIDEST
    while widest > 1 and sum(_width(column, widest, room) for column in columns.values()) > room:
        widest -= 1
    return {
        key: column._replace(width=_width(column, widest, room)) for key, column in columns.items()
    }


def _width(column: _Column, widest: int, room: int) -> int:
    return min(column.width, max(widest, column.least), room)


# ---- One record under the other -----------------------------------------------------------------


def record_lines(cells: Mapping[Key, Cell], width: int) -> list[str]:
    """A line for each feature: its name, type and values."""
    more = marks().more
    rows = [(title_of(key), form_of([cell]), cell) for key, cell in sorted(cells.items())]
    names = min(max((columns_of(name) for name, *_ in rows), default=0), width // 3)
    types = min(max((columns_of(form.type) for _, form, _ in rows), default=0), width // 3)
    return [
        f"  {padded(cut_middle(name, names, more), names)}  "
        f"{padded(cut(form.type, types, more), types)}  "
        f"{cell.text(max(8, width - names - types - 6), more, form)}".rstrip()
        for name, form, cell in rows
    ]
