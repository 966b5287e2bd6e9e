"""Pages about records as HTML: the document, the table of records, one record, the features."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from tfwire import InferredSchema
from tfwire._interface.messages import plural
from tfwire.view._budget import Allowance
from tfwire.view._cells import all_values, cell_of_feature, count_of
from tfwire.view._episode import episode, film
from tfwire.view._heads import column_head
from tfwire.view._html import (
    NOTHING,
    Html,
    bytes_text,
    cells_of_row,
    element,
    facts,
    html_table,
    join,
    not_read,
    row_of_cells,
    shown_text,
    small,
    title,
    too_long,
)
from tfwire.view._media import likely_content
from tfwire.view._pictures import (
    Look,
    first_picture,
    picture_of_payload,
    shown,
)
from tfwire.view._records import FeatureName, Record
from tfwire.view._summary import FeatureSummary

_COLUMNS_OF_PAGE = 48
_DUMP_BYTES = 256
_DAMAGE = {
    "length crc": "the checksum of the length is wrong",
    "data crc": "the checksum of the payload is wrong",
    "truncated": "the record is cut off",
    "too large": "the record is cut off",
    "compressed stream": "the compressed data is damaged",
}
_LINES_OF_CODE = 500
_LONGEST_FIELD = 1000  # characters
_ICON = element(
    "svg",
    element("rect", width=16, height=16, rx=3, fill="#3a7bbf"),
    element("path", d="M3 4h10v2H3zm0 3.5h6v2H3zM3 11h8v2H3z", fill="#fff"),
    xmlns="http://www.w3.org/2000/svg",
    viewBox="0 0 16 16",
)
_SECONDS_TO_RELOAD = 2


# ---- The document -------------------------------------------------------------------------------


def _asset(name: str) -> str:
    return (files("tfwire.view") / name).read_text(encoding="utf-8")


def document(
    name: str,
    header: Html,
    body: Html,
    *,
    policy: bool = False,
    then: str | None = None,
    is_growing: bool = False,
) -> Html:
    """A whole page.

    Args:
        name: Text for the title of the window.
        header, body: What is on it.
        policy: Whether the page says itself what it may load: only what is part of it.
        then: Where the browser goes on at once.
        is_growing: Whether the page has more to show later; the script asks for it by itself.
    """
    scale = "width=device-width, initial-scale=1"
    head = [element("meta", charset="utf-8")]
    if policy:
        head.append(element("meta", http_equiv="Content-Security-Policy", content=csp("data:")))
    if then is not None:
        head.append(element("meta", http_equiv="refresh", content=f"0;url={then}"))
    if is_growing:
        again = element("meta", http_equiv="refresh", content=_SECONDS_TO_RELOAD)
        head.append(element("noscript", again))
    head.append(element("meta", name="viewport", content=scale))
    head.append(element("title", shown_text(name)))
    head.append(element("link", rel="icon", href=f"data:image/svg+xml,{quote(_ICON)}"))
    head.append(element("style", Html(_asset("page.css"))))
    parts = [element("header", header), element("main", body)]
    parts.append(element("script", Html(_asset("page.js"))))
    return html_document(head, element("body", parts))


def html_document(head: list[Html], body: Html) -> Html:
    page = element("html", element("head", head), body, lang="en")
    return Html(f"<!DOCTYPE html>\n{page}\n")


def csp(pictures: str) -> str:
    """The Content-Security-Policy: nothing but our style, our script, and pictures from there. A
    page that is served may ask our server how far a search is."""
    style, script = (_hash(_asset(name)) for name in ("page.css", "page.js"))
    connect = "connect-src 'self'; " if "'self'" in pictures else ""
    return (
        f"default-src 'none'; style-src '{style}'; script-src '{script}'; {connect}"
        f"img-src {pictures}; media-src {pictures}; form-action 'self'; base-uri 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


# ---- Records ------------------------------------------------------------------------------------


class Frame(NamedTuple):
    """What a table of records has around the values.

    Attributes:
        labels: Of the files; none if there is one file.
        sort: What leads to the table sorted by a field, which goes into the head of its column; it
            is given the field, and its name for people.
    """

    labels: Sequence[str] = ()
    sort: Callable[[str, str], Html] = lambda field, name: NOTHING


_NO_FRAME = Frame()


def record_table(
    records: Sequence[Record], look: Look, frame: Frame = _NO_FRAME
) -> tuple[Html, int]:
    """A row for each record, a column for each feature; damage as red rows.

    Returns:
        HTML, and how many records there was room for, one at least.
    """
    names = _columns(records)
    shown_names = names[:_COLUMNS_OF_PAGE]
    titles: list[object] = [join("#", frame.sort("row", "number"))]
    titles += ["file"] * bool(frame.labels)
    titles.append(join("bytes", frame.sort("size", "bytes")))
    num_first = len(titles)
    titles += [NOTHING] * len(shown_names)
    left_out = len(names) - len(shown_names) + max((r.left_out for r in records), default=0)
    if left_out:
        titles.append(small(plural(left_out, "more feature")))
    if any(record.kind == "other" for record in records):
        titles.append("content")
    rows = look.budget.html.fill(
        partial(_row, record, shown_names, len(titles), look, frame) for record in records
    )
    of_these = records[: len(rows)]
    for i, name in enumerate(shown_names, num_first):
        head = look.budget.html.write(partial(column_head, name, of_these))
        titles[i] = join(head, _sort_by(name, frame))
    said = f"Kinds and histograms are of {plural(len(rows), 'record')}." if shown_names else ""
    table = html_table(titles, rows, said, class_="records")
    return scrolled("records", table), len(rows)


def scrolled(name: str, table: Html, class_: str = "") -> Html:
    """A table that is wider than the page, for keys and screen readers as well."""
    place = {"role": "region", "aria_label": name, "tabindex": 0}
    return element("div", table, class_=f"scroll {class_}".strip(), **place)


def _columns(records: Sequence[Record]) -> list[FeatureName]:
    """The names of features, those with pictures first."""
    first: dict[FeatureName, bool] = {}
    for record in records:
        for name in record.names:
            if not first.get(name):
                first[name] = first_picture(record, name) is not None
    return sorted(first, key=lambda name: (not first[name], name))


def _sort_by(name: FeatureName, frame: Frame) -> Html:
    return frame.sort(as_field(name), title(name, 60)) if has_field(name) else NOTHING


def _row(
    record: Record, names: Sequence[FeatureName], width: int, look: Look, frame: Frame
) -> Html:
    offset = f"byte {record.offset:,}"
    place = _place_cells(record, look, frame)
    width -= len(place)
    kind, text = "other", too_long(record)
    if record.is_decoded:
        cells = [cell_of_feature(record, name, look) for name in names]
        cells += [NOTHING] * (width - len(cells))
        return element("tr", place, cells_of_row(cells))
    if record.kind in ("damage", "unreadable"):
        kind, text = "bad", damage_text(record)
        text += f" at {offset}: not shown" if record.kind == "damage" else ""
    elif record.kind == "other":
        text = join("not an Example", _hint(record), ": ", _content(record, look))
    return element("tr", place, element("td", text, colspan=width), class_=kind)


def _place_cells(record: Record, look: Look, frame: Frame) -> list[Html]:
    """The numbers of a record in all files and in its own, and its size."""
    offset, address = f"byte {record.offset:,}", look.link(record) if record.is_read else ""
    row = record.row if frame.labels else record.number
    number = "..." if row is None else f"{row:,}"  # files before it are not counted yet
    link = element("a", number, href=address) if address else number
    cells = [element("td", link, title=offset)]
    if frame.labels:
        place = shown_text(frame.labels[record.file], 30), f": {record.number:,}"
        cells.append(element("td", small(*place)))
    return [*cells, element("td", f"{record.size:,}")]


def damage_text(record: Record) -> str:
    """What is damaged, in words."""
    if record.kind == "unreadable":
        return f"the file cannot be read: {record.reason}"
    return _DAMAGE.get(record.reason, record.reason)


def _hint(record: Record) -> str:
    content = likely_content(record.payload)
    return f", maybe {content}" if content is not None else ""


def _content(record: Record, look: Look) -> Html:
    """A record that is not an Example: as the picture that it is, or its first bytes."""
    picture = picture_of_payload(record)
    return bytes_text(record.payload) if picture is None else shown(picture, look)


def record_head(record: Record, file: str = "", **attributes: str) -> Html:
    """The number of a record in all files, and in its own, of which it has the name."""
    number = record.number if record.row is None else record.row
    head = element("h2", f"Record {number:,}", **attributes)
    return join(head, facts(f"record {record.number:,} of {file}" if file else ""))


def record_view(record: Record, look: Look) -> Html:
    """All of a record: every feature, pictures whole, films with a slider."""
    place = f"at byte {record.offset:,}"
    said = facts(f"{record.kind}, {plural(record.size, 'byte')} {place}")
    if record.kind in ("damage", "unreadable"):
        return join(said, element("p", damage_text(record), class_="bad"))
    if record.kind == "long":
        return element("p", f"{too_long(record)}; {place}")
    if record.kind == "other":
        hint = f"Not an Example{_hint(record)}. Records may hold other messages, or any bytes."
        picture = picture_of_payload(record)
        image = "" if picture is None else element("p", shown(picture, look))
        return join(said, image, element("p", hint), _dump(record.payload))
    steps, hidden = episode(record, look)
    names = [name for name in _columns([record]) if name not in hidden]
    parts = [said, steps]
    if names:
        parts.append(_feature_table(record, names, look, record.left_out))
    if any(hidden.values()):
        names = [name for name, is_listed in hidden.items() if is_listed]
        table = _feature_table(record, names, look)
        parts.append(element("details", element("summary", "the numbers of the steps"), table))
    return join(*parts)


def _feature_table(
    record: Record, names: Sequence[FeatureName], look: Look, left_out: int = 0
) -> Html:
    rows = look.budget.html.fill(partial(_feature_row, record, name, look) for name in names)
    left_out += len(names) - len(rows)
    if left_out:
        rows.append(row_of_cells([small(plural(left_out, "more feature")), "", ""]))
    return scrolled("features", html_table(["feature", "", "values"], rows), "record")


def _feature_row(record: Record, name: FeatureName, look: Look) -> Html:
    """The row of a feature: how many values, and all of them, within reason."""
    if first_picture(record, name) is not None:
        values = film(record, name, look)
    else:
        values = all_values(record, name, room=look.budget.html.detail)
    key = element("b", title(name, 80))
    return row_of_cells([key, join(count_of(record, name), not_read(record, name)), values])


def _dump(payload: bytes) -> Html:
    """The first bytes in hexadecimal and as text."""
    lines = []
    for at in range(0, min(len(payload), _DUMP_BYTES), 16):
        part = payload[at : at + 16]
        text = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in part)
        lines.append(join(f"{at:06x}  {part.hex(' '):47}  {text}"))
    if len(payload) > _DUMP_BYTES:
        lines.append(Html("..."))
    return element("pre", Html("\n".join(lines)))


def feature_summary(summary: FeatureSummary, room: Allowance) -> Html:
    """What the records of a sample hold, where the bytes are, and the specification that parses
    them, if one does."""
    titles = ["feature", "kind", "present", "values", "", "bytes"]
    rows = room.fill(partial(labelled_row, titles, cells) for cells in summary.rows())
    notes = []
    if summary.num_features > len(rows):
        notes.append(plural(summary.num_features - len(rows), "more feature"))
    if summary.num_partly:
        notes.append(f"of {plural(summary.num_partly, 'record')}, only the first values are read")
    table = scrolled("features", html_table(titles, rows), "features")
    specification = summary.specification
    code = "" if specification is None else _code(specification, room)
    said = element("div", table, facts("; ".join(notes)))
    return element("div", said, element("div", code), class_="side")


def labelled_row(titles: Sequence[str], cells: Sequence[object]) -> Html:
    """A row that is read without the titles above it, on a phone."""
    named = zip(titles, cells, strict=True)
    return element("tr", [element("td", cell, data_label=cell and name) for name, cell in named])


def _code(specification: InferredSchema, room: Allowance) -> Html:
    """A specification as Python code to copy."""
    lines = repr(specification).splitlines()
    shown_lines = room.fill(partial(shown_text, line, 300) for line in lines[:_LINES_OF_CODE])
    if len(lines) > len(shown_lines):
        left = plural(len(lines) - len(shown_lines), "more line")
        shown_lines.append(Html(f"# and {left}"))
    return join(element("h2", "Specification"), element("pre", Html("\n".join(shown_lines))))


def has_field(name: FeatureName) -> bool:
    """Whether an address may have the name of a feature: it is not too long."""
    return len(name.text) <= _LONGEST_FIELD


def as_field(name: FeatureName) -> str:
    """The name of a feature, which may hold any bytes, as a field of an address; - if it is empty,
    as an empty field stands for any feature."""
    text = name.text.encode("utf-8", "surrogateescape").hex() or "-"
    return text + "[]" * name.is_list


def name_of_field(field: str) -> FeatureName:
    """The opposite of as_field.

    Raises:
        ValueError: It has not written this.
    """
    text = field.removesuffix("[]")
    name = b"" if text == "-" else bytes.fromhex(text)
    return FeatureName(name.decode("utf-8", "surrogateescape"), field.endswith("[]"))


def options(names: Sequence[FeatureName], chosen: FeatureName | None, room: Allowance) -> Html:
    """The choices of a list."""
    found: list[Html] = []
    size = room.detail
    for name in names:
        text, is_chosen = title(name, 60), name == chosen
        option = element("option", text, value=as_field(name), selected=is_chosen)
        size -= len(option)
        if size < 0:
            left = f"and {len(names) - len(found):,} more"
            found.append(element("option", left, disabled=True))
            break
        found.append(option)
    return join(found)


def key_help(meanings: dict[str, str]) -> Html:
    """What keys do; those without a meaning have that of the next one."""
    shown_keys = [f"{element('kbd', key)} {text}".strip() for key, text in meanings.items()]
    return small(Html(" ".join(shown_keys)), class_="keys")


class Order(NamedTuple):
    """How rows are sorted.

    Attributes:
        field: "row", "size", or a feature as addresses have it; empty: they are not.
        is_falling: The largest come first.
    """

    field: str = ""
    is_falling: bool = False

    def of(self, records: Sequence[Record]) -> list[Record]:
        """Records in this order, of a feature by its first value: numbers, then strings, then
        records without any.

        Raises:
            ValueError: There is no such field.
        """
        if not self.field or (self.field == "row" and not self.is_falling):
            return list(records)
        if self.field == "row":
            return list(records[::-1])
        keys = [self._key(record) for record in records]
        known = [i for i, key in enumerate(keys) if key is not None]
        known.sort(key=keys.__getitem__, reverse=self.is_falling)
        return [records[i] for i in [*known, *(i for i, key in enumerate(keys) if key is None)]]

    def _key(self, record: Record) -> Any:
        if self.field == "size":
            return record.size if record.kind != "unreadable" else None
        steps = record.steps(name_of_field(self.field))
        values = next((each for each in steps or () if len(each)), None)
        if values is None:
            return None
        is_number = isinstance(values, np.ndarray) and values.dtype != object
        if is_number and np.isnan(values[0]):
            return None
        return (0, values[0].item(), b"") if is_number else (1, 0, values[0])
