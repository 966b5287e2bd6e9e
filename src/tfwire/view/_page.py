"""Pages about records as HTML: the document, the table of records, one record, the features."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

from tfwire._base.text import plural
from tfwire._parsing.infer import InferredSchema
from tfwire.view._html import bytes_text, escaped, table, title, values_text
from tfwire.view._media import likely_content
from tfwire.view._pictures import (
    Source,
    boxes,
    film,
    first_picture,
    picture_of_payload,
    shown,
)
from tfwire.view._records import FeatureName, Record
from tfwire.view._summary import FeatureSummary
from tfwire.view._wire import MOST_COUNTED

__all__ = [
    "Look",
    "as_field",
    "csp",
    "document",
    "feature_summary",
    "hidden",
    "name_of_field",
    "options",
    "record_table",
    "record_view",
]

_COLUMNS_OF_PAGE = 16
_FEATURES_OF_RECORD = 300  # of a record that is shown whole
_WHOLE_VALUES = 100
_DUMP_BYTES = 256
_MOST_COLUMNS = 10_000
_NUMBERS_OF_CELL = 4
_DAMAGE = {
    "length crc": "the checksum of the length is wrong",
    "data crc": "the checksum of the payload is wrong",
    "truncated": "the record is cut off",
    "too large": "the record is cut off",
    "compressed stream": "the compressed data is damaged",
}
_LINES_OF_CODE = 500


class Look(NamedTuple):
    """How records are shown.

    Attributes:
        source: Where the pages load pictures.
        link: The address of the page of a record.
        corners: Names of the features that hold left, top, right and bottom of boxes.
    """

    source: Source
    link: Callable[[Record], str]
    corners: tuple[str, ...] = ()


# ---- The document -------------------------------------------------------------------------------


def _asset(name: str) -> str:
    return (files("tfwire.view") / name).read_text(encoding="utf-8")


def document(
    name: str, header: str, body: str, *, policy: bool = False, then: str | None = None
) -> str:
    """A whole page.

    Args:
        name: Text for the title of the window.
        header, body: HTML.
        policy: Whether the page says itself what it may load: only what is part of it.
        then: Where the browser goes on at once.
    """
    meta = f'<meta http-equiv="Content-Security-Policy" content="{csp("data:")}">' if policy else ""
    if then is not None:
        meta += f'<meta http-equiv="refresh" content="0;url={html.escape(then)}">'
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{meta}<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(name)}</title><style>{_asset('page.css')}</style></head>"
        f"<body><header>{header}</header><main>{body}</main>"
        f"<script>{_asset('page.js')}</script></body></html>\n"
    )


def csp(pictures: str) -> str:
    """The Content-Security-Policy: nothing but our style, our script, and pictures from there."""
    style, script = (_hash(_asset(name)) for name in ("page.css", "page.js"))
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; "
        f"img-src {pictures}; media-src {pictures}; form-action 'self'; base-uri 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


# ---- Records ------------------------------------------------------------------------------------


def record_table(records: Sequence[Record], look: Look) -> str:
    """A row for each record, a column for each feature; damage as red rows."""
    names = _columns(records)
    shown_names = names[:_COLUMNS_OF_PAGE]
    titles = ["#", "bytes", *(title(name, 40) for name in shown_names)]
    left_out = len(names) - len(shown_names) + max((r.left_out for r in records), default=0)
    if left_out:
        titles.append(f"<small>{_more_features(left_out)}</small>")
    if any(record.kind == "other" for record in records):
        titles.append("content")
    rows = [_row(record, shown_names, len(titles), look) for record in records]
    head = "".join(f"<th>{each}</th>" for each in titles)
    return (
        f'<div class="scroll"><table class="records"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _columns(records: Sequence[Record]) -> list[FeatureName]:
    """The names of features, those with pictures first."""
    first: dict[FeatureName, bool] = {}
    for record in records:
        for name in record.names:
            if len(first) < _MOST_COLUMNS and not first.get(name):
                first[name] = first_picture(record, name) is not None
    return sorted(first, key=lambda name: (not first[name], name))


def _row(record: Record, names: Sequence[FeatureName], width: int, look: Look) -> str:
    begin = f'<td title="byte {record.offset:,}">'
    place = f"{begin}{record.number:,}</td><td>{record.size:,}</td>"
    rest = f'<td colspan="{width - 2}">'
    if record.kind == "damage":
        what = f"{_in_words(record.reason)} at byte {record.offset:,}: not shown"
        return f'<tr class="bad">{place}{rest}{what}</td></tr>'
    if record.kind == "long":
        return f'<tr class="other">{place}{rest}{too_long(record)}</td></tr>'
    link = f'<a href="{html.escape(look.link(record))}">{record.number:,}</a>'
    place = place.replace(f">{record.number:,}<", f">{link}<", 1)
    if record.kind == "other":
        note = f"not an Example{_hint(record)}: {_content(record, look)}"
        return f'<tr class="other">{place}{rest}{note}</td></tr>'
    cells = [_cell(record, name, look) for name in names]
    cells += [""] * (width - 2 - len(cells))
    return f"<tr>{place}{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def too_long(record: Record) -> str:
    """A record that is valid, as far as its header says, and not read."""
    return f"{plural(record.size, 'byte')}: too long to show"


def _in_words(reason: str) -> str:
    return _DAMAGE.get(reason, escaped(reason))


def _hint(record: Record) -> str:
    content = likely_content(record.payload)
    return f", maybe {escaped(content)}" if content is not None else ""


def _content(record: Record, look: Look) -> str:
    """A record that is not an Example: as the picture that it is, or its first bytes."""
    picture = picture_of_payload(record)
    return bytes_text(record.payload) if picture is None else shown(picture, look.source)


def _cell(record: Record, name: FeatureName, look: Look) -> str:
    """What a row has room for: one picture, or the first values."""
    steps = record.steps(name)
    if steps is None:
        return ""
    picture = first_picture(record, name)
    if picture is not None:
        count = len(steps if name.is_list else steps[0])
        more = f" <small>1 of {count:,}</small>" if count > 1 else ""
        return shown(picture, look.source, boxes(record, picture, look.corners)) + more
    if not name.is_list:
        return values_text(steps[0], _NUMBERS_OF_CELL)
    first = values_text(steps[0], _NUMBERS_OF_CELL) if steps else ""
    return f"<small>{plural(len(steps), 'step')}</small> {first}"


def record_view(record: Record, look: Look) -> str:
    """All of a record: every feature, pictures whole, films with a slider."""
    facts = f"{record.kind}, {plural(record.size, 'byte')} at byte {record.offset:,} of the file"
    if record.kind == "damage":
        return f'<p class="facts">{facts}</p><p class="bad">{_in_words(record.reason)}</p>'
    if record.kind == "long":
        return f"<p>{too_long(record)}; at byte {record.offset:,} of the file</p>"
    if record.kind == "other":
        hint = f"Not an Example{_hint(record)}. Records may hold other messages, or any bytes."
        picture = picture_of_payload(record)
        image = f"<p>{shown(picture, look.source)}</p>" if picture is not None else ""
        return f'<p class="facts">{facts}</p>{image}<p>{hint}</p>{_dump(record.payload)}'
    names = _columns([record])
    shown_names = names[:_FEATURES_OF_RECORD]
    rows = [[f"<b>{title(name, 80)}</b>", *_whole(record, name, look)] for name in shown_names]
    left_out = len(names) - len(shown_names) + record.left_out
    if left_out:
        rows.append([f"<small>{_more_features(left_out)}</small>", "", ""])
    values = table(["feature", "", "values"], rows)
    return f'<p class="facts">{facts}</p><div class="scroll record">{values}</div>'


def _more_features(count: int) -> str:
    more = plural(count, "more feature")
    return f"more than {MOST_COUNTED:,} more features" if count > MOST_COUNTED else more


def _whole(record: Record, name: FeatureName, look: Look) -> list[str]:
    """The cells of a feature: how many values, and all of them, within reason."""
    steps = record.steps(name) or []
    noun = "step" if name.is_list else "value"
    count = plural(len(steps if name.is_list else steps[0]), noun)
    if first_picture(record, name) is not None:
        return [count, film(record, name, look.source, look.corners)]
    if not name.is_list:
        return [count, values_text(steps[0], _WHOLE_VALUES)]
    shown_steps = steps[:_WHOLE_VALUES]
    items = "".join(f"<li>{values_text(values, 40)}</li>" for values in shown_steps)
    left = len(steps) - len(shown_steps)
    more = f"<small>and {plural(left, 'more step')}</small>" if left else ""
    return [count, f'<ol start="0">{items}</ol>{more}']


def _dump(payload: bytes) -> str:
    """The first bytes in hexadecimal and as text."""
    lines = []
    for at in range(0, min(len(payload), _DUMP_BYTES), 16):
        part = payload[at : at + 16]
        text = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in part)
        lines.append(f"{at:06x}  {part.hex(' '):47}  {html.escape(text)}")
    more = "\n..." if len(payload) > _DUMP_BYTES else ""
    return f"<pre>{chr(10).join(lines)}{more}</pre>"


def feature_summary(summary: FeatureSummary) -> str:
    """What the records of a sample hold, where the bytes are, and the specification that parses
    them, if one does."""
    titles = ["feature", "kind", "present", "values", "", "bytes"]
    more = f'<p class="facts">{_more_features(summary.left_out)}</p>' if summary.left_out else ""
    found = f'<div class="scroll features">{table(titles, summary.rows())}</div>{more}'
    specification = summary.specification
    return found if specification is None else found + _code(specification)


def _code(specification: InferredSchema) -> str:
    """A specification as Python code to copy."""
    lines = repr(specification).splitlines()
    shown_lines = [escaped(line, 300) for line in lines[:_LINES_OF_CODE]]
    if len(lines) > _LINES_OF_CODE:
        shown_lines.append(f"# and {plural(len(lines) - _LINES_OF_CODE, 'more line')}")
    return f"<h2>Specification</h2><pre>{chr(10).join(shown_lines)}</pre>"


def as_field(name: FeatureName) -> str:
    """The name of a feature, which may hold any bytes, as a field of an address."""
    return name.text.encode("utf-8", "surrogateescape").hex() + "[]" * name.is_list


def name_of_field(field: str) -> FeatureName:
    """The opposite of as_field.

    Raises:
        ValueError: It has not written this.
    """
    text = bytes.fromhex(field.removesuffix("[]")).decode("utf-8", "surrogateescape")
    return FeatureName(text, field.endswith("[]"))


def options(names: Sequence[FeatureName], chosen: FeatureName | None) -> str:
    """The choices of a list."""

    def option(name: FeatureName) -> str:
        mark = " selected" if name == chosen else ""
        return f'<option value="{as_field(name)}"{mark}>{title(name, 60)}</option>'

    return "".join(map(option, names))


def hidden(fields: dict[str, Any]) -> str:
    """Fields of a form that nobody changes."""
    return "".join(
        f'<input type="hidden" name="{name}" value="{html.escape(str(value))}">'
        for name, value in fields.items()
    )
