"""Values as HTML. All text that comes from files is escaped here."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire import BytesColumn, RaggedTensor
from tfwire._interface.messages import plural, printable, shorten
from tfwire.view._budget import Budget
from tfwire.view._media import Media, data_uri, find_media
from tfwire.view._records import FeatureName, Record

_TEXT_CHARACTERS = 160  # characters
_MOST_VALUES = 8
_VALUES_OF_ROW = 4  # within a cell
_PREVIEW_BYTES = 24
_THUMBNAIL = 128  # pixels
_AROUND_PICTURE = 160  # characters of HTML


def escaped(text: str, longest: int = _TEXT_CHARACTERS) -> str:
    """Text for HTML: control and bidirectional characters as Python writes them, and shortened."""
    return html.escape(shorten(printable(text[: 4 * longest]), longest))


def title(name: FeatureName, longest: int) -> str:
    """The name of a feature; [] marks a feature list."""
    return escaped(name.text, longest) + "[]" * name.is_list


def number(value: Any) -> str:
    """An integer as it is; a float with the digits that float32 has."""
    return str(value) if isinstance(value, (int, np.integer)) else f"{value:.7g}"


def bytes_text(contents: bytes, longest: int = _TEXT_CHARACTERS) -> str:
    """A byte string: as text if it is, else its first bytes in hexadecimal."""
    text = readable_text(contents, 4 * longest)
    if text is not None:
        return f'<span class="s">{escaped(text, longest)}</span>'
    shown = contents[:_PREVIEW_BYTES].hex(" ")
    more = " ..." if len(contents) > _PREVIEW_BYTES else ""
    return f'<span class="b">{shown}{more}</span> <small>{plural(len(contents), "byte")}</small>'


def readable_text(contents: bytes, most: int = 4 * _TEXT_CHARACTERS) -> str | None:
    """The first ``most`` bytes as UTF-8; None unless they are, with few control characters."""
    try:
        text = contents[:most].decode()
    except UnicodeDecodeError as error:
        if len(contents) <= most or error.start < most - 3:  # else a character that was cut
            return None
        text = contents[: error.start].decode()
    controls = sum(not c.isprintable() and c not in "\t\r\n" for c in text)
    return text if controls * 8 <= len(text) else None


def values_text(values: Any, most: int = _MOST_VALUES) -> str:
    """The first values of a feature, of an array or of a row of a column, without pictures."""
    first: Any
    if isinstance(values, np.ndarray):
        count, first = values.size, values.flat[:most]
    else:
        count = len(values)
        first = [_first_values(values[i]) for i in range(min(count, most))]
    if not count:
        return "<small>no values</small>"
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        text = f'<span class="n">{", ".join(map(number, first))}</span>'
    else:
        longest = _TEXT_CHARACTERS if count == 1 else _TEXT_CHARACTERS // 4
        text = ", ".join(_value_text(value, longest) for value in first)
    return f"{text} ... <small>{count:,} values</small>" if count > most else text


def _first_values(value: Any) -> Any:
    """A value; of a row of values, the first ones."""
    if isinstance(value, np.ndarray):
        first = value.flat[:_VALUES_OF_ROW].tolist()
        return first if value.size <= _VALUES_OF_ROW else [*first, "..."]
    if not isinstance(value, (list, BytesColumn, RaggedTensor)):
        return value
    found = [_first_values(value[i]) for i in range(min(len(value), _VALUES_OF_ROW))]
    return found if len(value) <= _VALUES_OF_ROW else [*found, "..."]


def not_read(record: Record, name: FeatureName) -> str:
    """What is to be said of values that were left out before the record was decoded."""
    cut = record.cuts.get(name)
    if cut is None:
        return ""
    counts = ((cut.steps, "more step"), (cut.values, "more value"))
    more = ", ".join(plural(count, noun) for count, noun in counts if count)
    return f" <small>and {more}, not read</small>"


def too_long(record: Record) -> str:
    """A record that is valid, as far as its header says, and not read."""
    return f"{plural(record.size, 'byte')}: too long to show"


def _value_text(value: Any, longest: int) -> str:
    """A value that need not be of an Example: a column may be any array of numpy's."""
    if isinstance(value, bytes):
        return bytes_text(value, longest)
    if isinstance(value, str):
        return f'<span class="s">{escaped(value, longest)}</span>'
    return escaped(str(value), longest)


def image(media: Media, source: str, boxes: str = "", most: int = 0) -> str:
    """A picture or a sound.

    Args:
        media: What it is.
        source: The attributes of HTML that say where the page loads it.
        boxes: HTML to lay over it.
        most: Its largest width and height in pixels; 0: as it is, or as the page's style says.
    """
    if media.is_sound:
        return f'<audio controls preload="none" {source}></audio>'
    scale = min(1, most / max(media.width, media.height)) if most else 1
    width, height = (max(1, round(side * scale)) for side in (media.width, media.height))
    size = f'width="{width}" height="{height}"'
    picture = f'<img loading="lazy" alt="{media.title}" {size} {source}>'
    return f'<span class="p">{picture}{boxes}</span>'


def cell(value: Any, budget: Budget) -> str:
    """One entry of a column, within a page of its own: pictures are part of it."""
    if isinstance(value, bytes):
        return _bytes_cell(value, budget)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return cell(value[()], budget)
        shape = " x ".join(map(str, value.shape)) if value.ndim > 1 else ""
        note = f" <small>{shape}</small>" if shape else ""
        return values_text(value) + note
    if isinstance(value, (int, float, np.integer, np.floating)):
        return number(value)
    if isinstance(value, (list, BytesColumn, RaggedTensor)):
        return values_text(value)
    return _value_text(value, _TEXT_CHARACTERS)


def _bytes_cell(value: bytes, budget: Budget) -> str:
    media = find_media(value)
    if media is None:
        return bytes_text(value)
    num_characters = 4 * len(value) // 3 + _AROUND_PICTURE
    if media.is_shown(budget.pixels) and budget.html.take(num_characters):
        return image(media, f'src="{data_uri(media, value)}"', most=_THUMBNAIL)
    return f"{media.title} <small>{plural(len(value), 'byte')}, not shown</small>"


def html_table(titles: Sequence[str], rows: Sequence[str], caption: str = "") -> str:
    """A table of rows that are HTML already."""
    head = "".join(f"<th>{title}</th>" for title in titles)
    note = f"<caption>{caption}</caption>" if caption else ""
    return f"<table>{note}<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def row_of_cells(cells: Sequence[str]) -> str:
    """A row of cells that are HTML already."""
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
