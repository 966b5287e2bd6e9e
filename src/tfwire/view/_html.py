"""HTML, and values as HTML. Whatever becomes a part of an element goes through here, and is escaped
unless it is ``Html``, which only this module makes of text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tfwire import BytesColumn, RaggedTensor
from tfwire._interface.messages import plural, printable, shorten
from tfwire.view._budget import Budget
from tfwire.view._media import Media, data_uri, find_media, readable_text
from tfwire.view._records import FeatureName, Record

_TEXT_CHARACTERS = 160  # characters
_MOST_VALUES = 8
_VALUES_OF_ROW = 4  # within a cell
_PREVIEW_BYTES = 24
_THUMBNAIL = 128  # pixels
_TINY = 64  # pixels: shown enlarged
_JOINER = "\u200d"
_AROUND_PICTURE = 160  # characters of HTML


_SPECIAL = re.compile("[&<>\"']")
_WITHOUT_END = {"br", "img", "input", "link", "meta"}  # elements that have no end


class Html(str):
    """Text of HTML, in which all that needs it is escaped already."""

    __slots__ = ()


NOTHING = Html()


def join(*parts: object) -> Html:
    """Parts one after the other: HTML as it is, lists part by part, all else as text."""
    return Html("".join(map(_as_html, parts)))


def _as_html(part: object) -> str:
    if type(part) is Html:
        return part
    return "".join(map(_as_html, part)) if type(part) is list else _escaped(printable(str(part)))


def _escaped(text: str) -> str:
    return html.escape(text) if _SPECIAL.search(text) else text  # which takes five passes


def element(name: str, /, *content: object, **attributes: object) -> Html:
    """An element.

    Args:
        name: Of the element.
        content: Parts, as for join.
        attributes: With _ for -, and one after a word of Python: class_. One that is True has no
            value; one that is False or None is left out.
    """
    start = name
    for key, value in attributes.items():
        if value is not None and value is not False:
            start += _attribute(key)
            start += "" if value is True else f'="{_as_html(value)}"'
    if name in _WITHOUT_END:
        return Html(f"<{start}>")
    return Html(f"<{start}>{''.join(map(_as_html, content))}</{name}>")


@cache
def _attribute(key: str) -> str:
    return f" {key.rstrip('_').replace('_', '-')}"


def small(*content: object, class_: str | None = None) -> Html:
    """What is said beside the values."""
    return element("small", *content, class_=class_)


def facts(text: str) -> Html:
    """A line about what is shown; nothing if there is nothing to say."""
    return element("p", text, class_="facts") if text else NOTHING


def shown_text(text: str, longest: int = _TEXT_CHARACTERS) -> Html:
    """Text, shortened; control and bidirectional characters as Python writes them. Joiners are left
    to the font: families and flags have them."""
    parts = (printable(part) for part in text[: 4 * longest].split(_JOINER))
    return Html(_escaped(shorten(_JOINER.join(parts), longest)))


def title(name: FeatureName, longest: int) -> Html:
    """The name of a feature, which may be empty; [] marks a feature list."""
    return join(shown_text(name.text, longest) or '""', "[]" * name.is_list)


def number(value: Any) -> str:
    """An integer as it is; a float with the digits that float32 has."""
    return str(value) if isinstance(value, (int, np.integer)) else f"{value:.7g}"


def bytes_text(contents: bytes, longest: int = _TEXT_CHARACTERS) -> Html:
    """A byte string: as text if it is, else its first bytes in hexadecimal."""
    text = readable_text(contents, 4 * longest)
    if text is not None:
        return _value("s", shown_text(text, longest))
    more = " ..." if len(contents) > _PREVIEW_BYTES else ""
    first = element("span", contents[:_PREVIEW_BYTES].hex(" "), more, class_="b")
    return join(first, " ", small(plural(len(contents), "byte")))


def _value(kind: str, text: Html) -> Html:
    """As element, for what a page has thousands of."""
    return Html(f'<span class="{kind}">{text}</span>')


def values_text(values: Any, most: int = _MOST_VALUES) -> Html:
    """The first values of a feature, of an array or of a row of a column, without pictures."""
    first: Any
    if isinstance(values, np.ndarray):
        count, first = values.size, values.flat[:most]
    else:
        count = len(values)
        first = [_first_values(values[i]) for i in range(min(count, most))]
    if not count:
        return small("no values")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        text = _value("n", Html(", ".join(map(number, first))))
    else:
        longest = _TEXT_CHARACTERS if count == 1 else _TEXT_CHARACTERS // 4
        text = Html(", ".join(_value_text(value, longest) for value in first))
    return join(text, " ... ", small(f"{count:,} values")) if count > most else text


def _first_values(value: Any) -> Any:
    """A value; of a row of values, the first ones."""
    if isinstance(value, np.ndarray):
        first = value.flat[:_VALUES_OF_ROW].tolist()
        return first if value.size <= _VALUES_OF_ROW else [*first, "..."]
    if not isinstance(value, (list, BytesColumn, RaggedTensor)):
        return value
    found = [_first_values(value[i]) for i in range(min(len(value), _VALUES_OF_ROW))]
    return found if len(value) <= _VALUES_OF_ROW else [*found, "..."]


def not_read(record: Record, name: FeatureName) -> Html:
    """What is to be said of values that were left out before the record was decoded."""
    cut = record.cuts.get(name)
    if cut is None:
        return NOTHING
    counts = ((cut.steps, "more step"), (cut.values, "more value"))
    more = ", ".join(plural(count, noun) for count, noun in counts if count)
    return join(" ", small(f"and {more}, not read"))


def too_long(record: Record) -> str:
    """A record that is valid, as far as its header says, and not read."""
    return f"{plural(record.size, 'byte')}: too long to show"


def _value_text(value: Any, longest: int) -> Html:
    """A value that need not be of an Example: a column may be any array of numpy's."""
    if isinstance(value, bytes):
        return bytes_text(value, longest)
    if isinstance(value, str):
        return _value("s", shown_text(value, longest))
    return shown_text(str(value), longest)


def image(media: Media, source: Mapping[str, str], boxes: object = "", most: int = 0) -> Html:
    """A picture or a sound.

    Args:
        media: What it is.
        source: The attributes that say where the page loads it.
        boxes: What lies over it.
        most: Its largest width and height in pixels; 0: as it is, or as the page's style says.
    """
    if media.is_sound:
        return element("audio", controls=True, preload="none", **source)
    scale = min(1, most / max(media.width, media.height)) if most else 1
    width, height = (max(1, round(side * scale)) for side in (media.width, media.height))
    size: dict[str, object] = {"width": width, "height": height}
    size |= {"class_": "tiny"} if max(media.width, media.height) <= _TINY else {}
    picture = element("img", loading="lazy", alt=media.title, **size, **source)
    return element("span", picture, boxes, class_="p")


def not_shown(media: Media, size: int) -> Html:
    """A picture in words."""
    return join(media.title, " ", small(f"{plural(size, 'byte')}, not shown"))


def cell(value: Any, budget: Budget) -> Html:
    """One entry of a column, within a page of its own: pictures are part of it."""
    if isinstance(value, bytes):
        return _bytes_cell(value, budget)
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return cell(value[()], budget)
        shape = " x ".join(map(str, value.shape)) if value.ndim > 1 else ""
        text = values_text(value)
        return join(text, " ", small(shape)) if shape else text
    if isinstance(value, (int, float, np.integer, np.floating)):
        return Html(number(value))
    if isinstance(value, (list, BytesColumn, RaggedTensor)):
        return values_text(value)
    return _value_text(value, _TEXT_CHARACTERS)


def _bytes_cell(value: bytes, budget: Budget) -> Html:
    media = find_media(value)
    if media is None:
        return bytes_text(value)
    num_characters = 4 * len(value) // 3 + _AROUND_PICTURE
    if media.is_shown(budget.pixels) and budget.html.take(num_characters):
        return image(media, {"src": data_uri(media, value)}, most=_THUMBNAIL)
    return not_shown(media, len(value))


def html_table(
    titles: Sequence[object], rows: Sequence[Html], caption: object = "", class_: str | None = None
) -> Html:
    """A table of rows."""
    head = element("thead", element("tr", [element("th", title, scope="col") for title in titles]))
    note = element("caption", caption) if caption else ""
    return element("table", note, head, element("tbody", Html("".join(rows))), class_=class_)


def row_of_cells(cells: Iterable[object]) -> Html:
    """A row of a table."""
    return element("tr", cells_of_row(cells))


def cells_of_row(cells: Iterable[object]) -> Html:
    return Html("".join([f"<td>{_as_html(cell)}</td>" for cell in cells]))
