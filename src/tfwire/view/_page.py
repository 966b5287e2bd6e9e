"""Pages about records as HTML: the document, the table of records, one record, the features."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from tfwire import InferredSchema
from tfwire._interface.messages import plural
from tfwire.view._budget import Allowance
from tfwire.view._html import (
    bytes_text,
    escaped,
    html_table,
    not_read,
    row_of_cells,
    title,
    too_long,
    values_text,
)
from tfwire.view._media import likely_content
from tfwire.view._pictures import (
    Look,
    film,
    first_picture,
    picture_of_payload,
    shown,
)
from tfwire.view._records import FeatureName, Record
from tfwire.view._summary import FeatureSummary

_COLUMNS_OF_PAGE = 16
_WHOLE_VALUES = 100
_DUMP_BYTES = 256
_NUMBERS_OF_CELL = 4
_DAMAGE = {
    "length crc": "the checksum of the length is wrong",
    "data crc": "the checksum of the payload is wrong",
    "truncated": "the record is cut off",
    "too large": "the record is cut off",
    "compressed stream": "the compressed data is damaged",
}
_LINES_OF_CODE = 500
_LONGEST_FIELD = 1000  # characters


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


def record_table(records: Sequence[Record], look: Look) -> tuple[str, int]:
    """A row for each record, a column for each feature; damage as red rows.

    Returns:
        HTML, and how many records there was room for, one at least.
    """
    names = _columns(records)
    shown_names = names[:_COLUMNS_OF_PAGE]
    titles = ["#", "bytes", *(title(name, 40) for name in shown_names)]
    left_out = len(names) - len(shown_names) + max((r.left_out for r in records), default=0)
    if left_out:
        titles.append(f"<small>{plural(left_out, 'more feature')}</small>")
    if any(record.kind == "other" for record in records):
        titles.append("content")
    room = look.budget.html
    rows: list[str] = []
    for record in records:
        if rows and room.is_spent:
            break
        rows.append(room.write(partial(_row, record, shown_names, len(titles), look)))
    head = "".join(f"<th>{each}</th>" for each in titles)
    table = (
        f'<div class="scroll"><table class="records"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )
    return table, len(rows)


def _columns(records: Sequence[Record]) -> list[FeatureName]:
    """The names of features, those with pictures first."""
    first: dict[FeatureName, bool] = {}
    for record in records:
        for name in record.names:
            if not first.get(name):
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
    address = look.link(record)
    if address:
        link = f'<a href="{html.escape(address)}">{record.number:,}</a>'
        place = place.replace(f">{record.number:,}<", f">{link}<", 1)
    if record.kind == "other":
        note = f"not an Example{_hint(record)}: {_content(record, look)}"
        return f'<tr class="other">{place}{rest}{note}</td></tr>'
    cells = [_cell(record, name, look) for name in names]
    cells += [""] * (width - 2 - len(cells))
    return f"<tr>{place}{''.join(f'<td>{each}</td>' for each in cells)}</tr>"


def _in_words(reason: str) -> str:
    return _DAMAGE.get(reason, escaped(reason))


def _hint(record: Record) -> str:
    content = likely_content(record.payload)
    return f", maybe {escaped(content)}" if content is not None else ""


def _content(record: Record, look: Look) -> str:
    """A record that is not an Example: as the picture that it is, or its first bytes."""
    picture = picture_of_payload(record)
    return bytes_text(record.payload) if picture is None else shown(picture, look)


def _cell(record: Record, name: FeatureName, look: Look) -> str:
    """What a row has room for: one picture, or the first values."""
    steps = record.steps(name)
    if steps is None:
        return ""
    picture, unread = first_picture(record, name), not_read(record, name)
    if picture is not None:
        count = len(steps if name.is_list else steps[0])
        more = f" <small>1 of {count:,}</small>" if count > 1 else ""
        return shown(picture, look, record) + more + unread
    if not name.is_list:
        return values_text(steps[0], _NUMBERS_OF_CELL) + unread
    first = values_text(steps[0], _NUMBERS_OF_CELL) if steps else ""
    return f"<small>{plural(len(steps), 'step')}</small> {first}{unread}"


def record_view(record: Record, look: Look) -> str:
    """All of a record: every feature, pictures whole, films with a slider."""
    facts = f"{record.kind}, {plural(record.size, 'byte')} at byte {record.offset:,}"
    if record.kind == "damage":
        return f'<p class="facts">{facts}</p><p class="bad">{_in_words(record.reason)}</p>'
    if record.kind == "long":
        return f"<p>{too_long(record)}; at byte {record.offset:,}</p>"
    if record.kind == "other":
        hint = f"Not an Example{_hint(record)}. Records may hold other messages, or any bytes."
        picture = picture_of_payload(record)
        image = f"<p>{shown(picture, look)}</p>" if picture is not None else ""
        return f'<p class="facts">{facts}</p>{image}<p>{hint}</p>{_dump(record.payload)}'
    names, room = _columns([record]), look.budget.html
    rows: list[str] = []
    for name in names:
        if rows and room.is_spent:
            break
        rows.append(room.write(partial(_feature_row, record, name, look)))
    left_out = len(names) - len(rows) + record.left_out
    if left_out:
        rows.append(row_of_cells([f"<small>{plural(left_out, 'more feature')}</small>", "", ""]))
    values = html_table(["feature", "", "values"], rows)
    return f'<p class="facts">{facts}</p><div class="scroll record">{values}</div>'


def _feature_row(record: Record, name: FeatureName, look: Look) -> str:
    """The row of a feature: how many values, and all of them, within reason."""
    steps = record.steps(name) or []
    noun = "step" if name.is_list else "value"
    count = plural(len(steps if name.is_list else steps[0]), noun) + not_read(record, name)
    if first_picture(record, name) is not None:
        values = film(record, name, look)
    elif name.is_list:
        values = _steps(steps, look.budget.html.detail)
    else:
        values = values_text(steps[0], _WHOLE_VALUES)
    return row_of_cells([f"<b>{title(name, 80)}</b>", count, values])


def _steps(steps: Sequence[Any], room: int) -> str:
    items: list[str] = []
    for values in steps[:_WHOLE_VALUES]:
        if items and room < 0:
            break
        items.append(f"<li>{values_text(values, 40)}</li>")
        room -= len(items[-1])
    left = len(steps) - len(items)
    more = f"<small>and {plural(left, 'more step')}</small>" if left else ""
    return f'<ol start="0">{"".join(items)}</ol>{more}'


def _dump(payload: bytes) -> str:
    """The first bytes in hexadecimal and as text."""
    lines = []
    for at in range(0, min(len(payload), _DUMP_BYTES), 16):
        part = payload[at : at + 16]
        text = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in part)
        lines.append(f"{at:06x}  {part.hex(' '):47}  {html.escape(text)}")
    more = "\n..." if len(payload) > _DUMP_BYTES else ""
    return f"<pre>{chr(10).join(lines)}{more}</pre>"


def feature_summary(summary: FeatureSummary, room: Allowance) -> str:
    """What the records of a sample hold, where the bytes are, and the specification that parses
    them, if one does."""
    titles = ["feature", "kind", "present", "values", "", "bytes"]
    rows: list[str] = []
    for cells in summary.rows():
        if rows and room.is_spent:
            break
        rows.append(row_of_cells(cells))
        room.spend(len(rows[-1]))
    notes = []
    if summary.num_features > len(rows):
        notes.append(plural(summary.num_features - len(rows), "more feature"))
    if summary.num_partly:
        notes.append(f"of {plural(summary.num_partly, 'record')}, only the first values are read")
    note = f'<p class="facts">{"; ".join(notes)}</p>' if notes else ""
    found = f'<div class="scroll features">{html_table(titles, rows)}</div>{note}'
    specification = summary.specification
    return found if specification is None else found + _code(specification, room)


def _code(specification: InferredSchema, room: Allowance) -> str:
    """A specification as Python code to copy."""
    lines = repr(specification).splitlines()
    shown_lines: list[str] = []
    for line in lines[:_LINES_OF_CODE]:
        if shown_lines and room.is_spent:
            break
        shown_lines.append(escaped(line, 300))
        room.spend(len(shown_lines[-1]))
    if len(lines) > len(shown_lines):
        shown_lines.append(f"# and {plural(len(lines) - len(shown_lines), 'more line')}")
    return f"<h2>Specification</h2><pre>{chr(10).join(shown_lines)}</pre>"


def has_field(name: FeatureName) -> bool:
    """Whether an address may have the name of a feature: it is not too long."""
    return len(name.text) <= _LONGEST_FIELD


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


def options(names: Sequence[FeatureName], chosen: FeatureName | None, room: Allowance) -> str:
    """The choices of a list."""
    found: list[str] = []
    size = room.detail
    for name in names:
        mark = " selected" if name == chosen else ""
        option = f'<option value="{as_field(name)}"{mark}>{title(name, 60)}</option>'
        size -= len(option)
        if size < 0:
            found.append(f"<option disabled>and {len(names) - len(found):,} more</option>")
            break
        found.append(option)
    return "".join(found)


def hidden(fields: dict[str, Any]) -> str:
    """Fields of a form that nobody changes."""
    return "".join(
        f'<input type="hidden" name="{name}" value="{html.escape(str(value))}">'
        for name, value in fields.items()
    )
