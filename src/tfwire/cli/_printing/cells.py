"""The values of a record as people and programs read them: cells of a table, rows of JSON."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tfwire._interface.messages import show_size
from tfwire.cli._printing.terminal import columns_of, cut, terminal_text
from tfwire.view import _media

_CELL_ITEMS = 20  # of a list
_CELL_STEPS = 10
_CELL_BYTES = 200  # of a string
_ITEM_COLUMNS = 24  # of a string in a list, at most; a third of a wide one
_MISTAKEN = ("-", "—")  # strings that stand for something else in a cell
_NAMES_IN_JSON = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class Values(NamedTuple):
    """The values of a feature, or of a step of a feature list.

    Attributes:
        kind: "int64", "float32" or "string"; empty if nothing is set.
        texts: Of the first ones, or of all.
        total: How many there are.
    """

    kind: str
    texts: list[str]
    total: int


class Cell(NamedTuple):
    """A feature of a record, which may be a feature list.

    Attributes:
        steps: The values of each step, or of the first ones; of a feature, a single one.
        total: How many steps there are.
        is_list: Whether this is a feature list.
    """

    steps: list[Values]
    total: int
    is_list: bool

    def text(self, width: int, more: str, form: Form) -> str:
        """What fits into so many columns; ``more`` stands for what does not."""
        if not self.is_list:
            values = self.steps[0]
            if values.total == 1 and not form.as_list:
                return cut(_unquoted(values.texts[0]), width, more)
            return _list_text(values, width, more, form.counted)
        if not form.as_list and all(step.total == 1 for step in self.steps):
            texts = [step.texts[0] for step in self.steps]
        else:
            inner = _item_columns(width)
            texts = [_list_text(step, inner, more, form.counted) for step in self.steps]
        return _list_text(Values("steps", texts, self.total), width, more, True)


class Form(NamedTuple):
    """How the values of a feature are written in all cells.

    Attributes:
        type: Like int64 or float32[3].
        as_list: Single values have brackets, too.
        counted: Lists that are not shown whole say how many values they have.
    """

    type: str
    as_list: bool
    counted: bool


def form_of(cells: Sequence[Cell]) -> Form:
    """The form of the values of a feature in some records."""
    steps = [step for cell in cells for step in cell.steps]
    kinds = sorted({step.kind for step in steps} - {""}) or ["empty"]
    totals = {step.total for step in steps}
    most, fixed = max(totals, default=0), len(totals) == 1
    as_list = totals != {1} if any(cell.is_list for cell in cells) else most > 1
    size = "" if most < 2 else f"[{most:,}]" if fixed else "[]"
    return Form("/".join(kinds) + size, as_list, not fixed)


def cell_of(values: Any, is_list: bool, whole: bool = False) -> Cell:
    """The cell of a feature, or of the steps of a feature list.

    Args:
        values: As decode_sequence_example gives them.
        is_list: Whether these are steps.
        whole: Keep all that there is; else the first values.
    """
    steps = values if is_list else [values]
    shown = steps if whole else steps[:_CELL_STEPS]
    return Cell([_values(step, whole) for step in shown], len(steps), is_list)


def cell_of_record(record: bytes, whole: bool) -> Cell:
    """The cell of a record that is not an Example: what it may be, or its first bytes."""
    content = None if _media.find_media(record) else _media.likely_content(record)
    if content is None:
        return cell_of([record], False, whole)
    return Cell([Values("string", [f"{show_size(len(record))}: maybe {content}"], 1)], 1, False)


def kind_of(values: Any) -> str:
    """The kind of decoded values: "int64", "float32" or "string"; none if nothing is set."""
    if isinstance(values, np.ndarray):
        return "string" if values.dtype == object else values.dtype.name
    return "string" if values else ""


def _values(values: Any, whole: bool) -> Values:
    kind = kind_of(values)
    shown = values if whole else values[:_CELL_ITEMS]
    if kind == "float32":
        exact = whole or len(values) == 1
        texts = shown.astype(str).tolist() if exact else [f"{value:.6g}" for value in shown]
    elif kind == "int64":
        texts = list(map(str, shown.tolist()))
    else:
        texts = [string_text(value, whole) for value in shown]
    return Values(kind, texts, len(values))


def string_text(value: bytes, whole: bool) -> str:
    """Text in quotes; what an image is, and its size; the size of other bytes and the first."""
    media = _media.find_media(value)
    if media is not None:
        return f"{media.title.replace(' x ', 'x')} {show_size(len(value))}"
    most = len(value) if whole else _CELL_BYTES
    text = _media.readable_text(value, most)
    more = "..." if len(value) > most else ""
    if text is None:
        return f"{show_size(len(value))}: {value[:most].hex(' ')}{more}"
    quoted = terminal_text(text).replace('"', '\\"')
    return f'"{quoted}{more}"'


def _unquoted(text: str) -> str:
    """A string that is alone in its cell, in quotes only where it would be mistaken."""
    inner = text[1:-1].replace('\\"', '"')
    if not text.startswith('"') or not inner or inner.strip() != inner or inner in _MISTAKEN:
        return text
    return text if inner[0] in '["' else inner


def _item_columns(width: int) -> int:
    return max(_ITEM_COLUMNS, width // 3)


def _list_text(values: Values, width: int, more: str, counted: bool) -> str:
    """A list, after its length if some values are left out: ``(210) [0.5, 1.5, ...]``."""
    texts = [cut(text, _item_columns(width), more) for text in values.texts]
    whole = f"[{', '.join(texts)}]"
    if len(texts) == values.total and (len(texts) == 1 or columns_of(whole) <= width):
        return cut(whole, width, more)
    count, ends = f"({values.total:,}) " * counted, list(accumulate(map(columns_of, texts)))
    shown = next((i for i, end in enumerate(ends) if end + 2 * i > width), len(texts))
    for kept in range(shown, -1, -1):
        text = f"{count}[{', '.join([*texts[:kept], more])}]"
        if columns_of(text) <= width:
            return text
    return cut(f"{count}[{more}]", width, more)


# ---- As JSON ----------------------------------------------------------------------------------


def json_row(features: dict[str, Any], lists: dict[str, Any]) -> dict[str, Any]:
    """An Example as its values by name; of a SequenceExample, the context and the steps. A feature
    of one value is that value."""
    row = {name: _json_values(values) for name, values in features.items()}
    for name, value in row.items():
        if isinstance(value, list) and len(value) == 1:
            row[name] = value[0]
    if not lists:
        return row
    return {
        "context": row,
        "feature_lists": {name: list(map(_json_values, steps)) for name, steps in lists.items()},
    }


def _json_values(values: Any) -> list[Any]:
    kind = kind_of(values)
    if kind == "int64":
        return list(values.tolist())
    if kind == "float32":
        return [_NAMES_IN_JSON.get(text) or float(text) for text in values.astype(str).tolist()]
    return list(map(json_string, values))


def json_string(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": b2a_base64(value, newline=False).decode()}
