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
from tfwire.view._html import bytes_text, escaped, table, values_text
from tfwire.view._pictures import Picture, Source, boxes, film, find_picture, shown
from tfwire.view._records import Record
from tfwire.view._summary import FeatureSummary

__all__ = [
    "Look",
    "as_field",
    "csp",
    "document",
    "feature_summary",
    "hidden",
    "options",
    "record_table",
    "record_view",
]

_COLUMNS_OF_PAGE = 16
_FEATURES_OF_RECORD = 300  # of a record that is shown whole
_WHOLE_VALUES = 100
_DUMP_BYTES = 256
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


def document(title: str, header: str, body: str, *, policy: bool = False) -> str:
    """A whole page.

    Args:
        title: Text.
        header, body: HTML.
        policy: Whether the page says itself what it may load: only what is part of it.
    """
    meta = f'<meta http-equiv="Content-Security-Policy" content="{csp("data:")}">' if policy else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'{meta}<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escaped(title)}</title><style>{_asset('page.css')}</style></head>"
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
    titles = ["#", "bytes", *(escaped(name, 40) for name in shown_names)]
    if len(names) > len(shown_names):
        titles.append(f"<small>{plural(len(names) - len(shown_names), 'more feature')}</small>")
    if any(record.kind == "other" for record in records):
        titles.append("content")
    rows = [_row(record, shown_names, len(titles), look) for record in records]
    head = "".join(f"<th>{title}</th>" for title in titles)
    return (
        f'<div class="scroll"><table class="records"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _columns(records: Sequence[Record]) -> list[str]:
    """The names of features, those with pictures first."""
    first: dict[str, bool] = {}
    for record in records:
        for name in (*record.features, *record.lists):
            if len(first) < 10_000 and not first.get(name):
                first[name] = _has_picture(record, name)
    return sorted(first, key=lambda name: (not first[name], name))


def _has_picture(record: Record, name: str) -> bool:
    try:
        return find_picture(record, name, 0, 0) is not None
    except LookupError:
        return False


def _row(record: Record, names: Sequence[str], width: int, look: Look) -> str:
    place = f'<td title="byte {record.offset:,}">{record.number:,}</td><td>{record.size:,}</td>'
    if record.kind == "damage":
        what = f"{escaped(record.reason)} at byte {record.offset:,}: not shown"
        return f'<tr class="bad">{place}<td colspan="{width - 2}">{what}</td></tr>'
    link = html.escape(look.link(record))
    place = place.replace(f">{record.number:,}<", f'><a href="{link}">{record.number:,}</a><', 1)
    if record.kind == "other":
        note = f"no Example: {bytes_text(record.payload)}"
        return f'<tr class="other">{place}<td colspan="{width - 2}">{note}</td></tr>'
    cells = [_cell(record, name, look) for name in names]
    cells += [""] * (width - 2 - len(cells))
    return f"<tr>{place}{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def _cell(record: Record, name: str, look: Look) -> str:
    """What a row has room for: one picture, or the first values."""
    steps = record.lists.get(name)
    values = record.features.get(name) if steps is None else None
    if steps is None and values is None:
        return ""
    if _has_picture(record, name):
        picture = find_picture(record, name, 0, 0)
        count = len(steps) if steps is not None else len(values or ())
        more = f" <small>1 of {count:,}</small>" if count > 1 else ""
        return _thumbnail(record, picture, look) + more if picture is not None else ""
    if steps is None:
        return values_text(values if values is not None else [])
    first = values_text(steps[0]) if steps else ""
    return f"<small>{plural(len(steps), 'step')}</small> {first}"


def _thumbnail(record: Record, picture: Picture, look: Look) -> str:
    return shown(picture, look.source, boxes(record, picture, look.corners))


def record_view(record: Record, look: Look) -> str:
    """All of a record: every feature, pictures whole, films with a slider."""
    facts = f"{record.kind}, {plural(record.size, 'byte')} at byte {record.offset:,} of the file"
    body = f'<p class="facts">{facts}</p>'
    if record.kind == "damage":
        return body + f'<p class="bad">{escaped(record.reason)}</p>'
    if record.kind == "other":
        hint = "No Example. Records may hold other messages, or any bytes."
        return f"{body}<p>{hint}</p>{_dump(record.payload)}"
    names = _columns([record])
    rows = [
        [f"<b>{escaped(n, 80)}</b>", *_whole(record, n, look)] for n in names[:_FEATURES_OF_RECORD]
    ]
    if len(names) > _FEATURES_OF_RECORD:
        rows.append([f"<small>{plural(len(names) - len(rows), 'more feature')}</small>", "", ""])
    return body + f'<div class="scroll">{table(["feature", "", "values"], rows)}</div>'


def _whole(record: Record, name: str, look: Look) -> list[str]:
    """The cells of a feature: how many values, and all of them, within reason."""
    steps = record.lists.get(name)
    if _has_picture(record, name):
        count = len(steps) if steps is not None else len(record.features[name])
        noun = "step" if steps is not None else "value"
        return [plural(count, noun), film(record, name, look.source, look.corners)]
    if steps is None:
        values = record.features[name]
        return [plural(len(values), "value"), values_text(values, _WHOLE_VALUES)]
    shown_steps = steps[:_WHOLE_VALUES]
    items = "".join(f"<li>{values_text(values, 40)}</li>" for values in shown_steps)
    left = len(steps) - len(shown_steps)
    more = f"<small>and {plural(left, 'more step')}</small>" if left else ""
    return [plural(len(steps), "step"), f'<ol start="0">{items}</ol>{more}']


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
    found = f'<div class="scroll">{table(titles, summary.rows())}</div>'
    specification = summary.specification
    return found if specification is None else found + _code(specification)


def _code(specification: InferredSchema) -> str:
    """A specification as Python code to copy."""
    lines = repr(specification).splitlines()
    shown_lines = [escaped(line, 300) for line in lines[:_LINES_OF_CODE]]
    if len(lines) > _LINES_OF_CODE:
        shown_lines.append(f"# and {plural(len(lines) - _LINES_OF_CODE, 'more line')}")
    return f"<h2>Specification</h2><pre>{chr(10).join(shown_lines)}</pre>"


def as_field(name: str) -> str:
    """The name of a feature, which may hold any bytes, as a field of an address."""
    return name.encode("utf-8", "surrogateescape").hex()


def options(names: Sequence[str], chosen: str) -> str:
    """The choices of a list."""

    def option(name: str) -> str:
        mark = " selected" if name == chosen else ""
        return f'<option value="{as_field(name)}"{mark}>{escaped(name, 60)}</option>'

    return "".join(map(option, names))


def hidden(fields: dict[str, Any]) -> str:
    """Fields of a form that nobody changes."""
    return "".join(
        f'<input type="hidden" name="{name}" value="{html.escape(str(value))}">'
        for name, value in fields.items()
    )
