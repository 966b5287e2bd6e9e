"""The viewer: pages about record files, served to a browser on this machine.

Only GET requests are answered, with the token of the printed address in their path, and under a
host name of this machine: no page elsewhere can read through it (DNS rebinding).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tfwire._base.errors import Error
from tfwire._base.text import plural
from tfwire._records.damage import RecordPosition
from tfwire.view._html import escaped
from tfwire.view._page import (
    Look,
    as_field,
    csp,
    document,
    feature_summary,
    hidden,
    options,
    record_table,
    record_view,
)
from tfwire.view._pictures import Picture, find_picture
from tfwire.view._records import BrowsedFile, Page, Record, matches
from tfwire.view._summary import FeatureSummary

__all__ = ["Viewer"]

_PAGE_RECORDS = 50
_SAMPLE_RECORDS = 1000
_MOST_OPTIONS = 500
Fields = dict[str, str]


class Viewer(ThreadingHTTPServer):
    """Serves pages about files on a free port of the loopback interface.

    Args:
        files: What to show.
        corners: As Look has them.

    Attributes:
        url: The address, with its token.
    """

    daemon_threads = True

    def __init__(self, files: Sequence[BrowsedFile], corners: tuple[str, ...] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = files
        self.corners = corners
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_port}/{self.token}/"
        self.names: dict[int, list[str]] = {}  # of the features that were seen in each file

    # ---- Pages ----------------------------------------------------------------------------------

    def page(self, fields: Fields) -> str:
        """The page that the fields of an address ask for.

        Raises:
            LookupError: There is no such file or record.
        """
        number = _integer(fields, "file")
        if number >= len(self.files):
            raise LookupError(f"there is no file {number}")
        view = fields.get("view", "records")
        if view == "record":
            return self._record_page(number, _integer(fields, "n"))
        if view == "features":
            return self._feature_page(number)
        return self._records_page(number, fields)

    def _records_page(self, number: int, fields: Fields) -> str:
        file = self.files[number]
        feature, text = _feature(fields), fields.get("value", "")
        start = self._start(file, fields)
        wanted = (lambda record: matches(record, feature, text)) if feature else None
        page = file.page(start, _PAGE_RECORDS, wanted)
        names = {name for r in page.records[:20] for name in (*r.features, *r.lists)}
        known = sorted(names.union(self.names.get(number, [])))[:_MOST_OPTIONS]
        self.names[number] = known
        body = record_table(page.records, self._look(number)) if page.records else ""
        note = f'<p class="facts">{self._note(page, start, feature)}</p>'
        return self._document(number, "records", note + body, fields, self._turns(page, fields))

    def _start(self, file: BrowsedFile, fields: Fields) -> RecordPosition:
        """Where a page begins: at a place, or at a record's number."""
        number = _integer(fields, "start")
        if "at" in fields:
            return RecordPosition(number, _integer(fields, "at"))
        place = file.find(number)
        if place is None:
            known = "" if file.num_records is None else f": the file has {file.num_records:,}"
            hint = known or ": it is too far to read there; tfwire index makes that quick"
            raise LookupError(f"record {number:,} was not found{hint}")
        return place

    def _note(self, page: Page, start: RecordPosition, feature: str) -> str:
        if not feature:
            return "the file has no records" if not page.records else ""
        last = start.record_index + page.passed
        end = "; the search continues on the next page" if page.next else ""
        found = plural(len(page.records), "record")
        read = f"from {start.record_index:,} to {max(start.record_index, last - 1):,}"
        return f"{found} found in those {read}{end}"

    def _turns(self, page: Page, fields: Fields) -> str:
        """Links to the pages before and after."""
        names: tuple[str, ...] = ("file", "feature", "value")
        kept = {name: fields[name] for name in names if name in fields}
        links = []
        start = _integer(fields, "start")
        if start:
            before = _address(kept, start=max(0, start - _PAGE_RECORDS))
            links.append(f'<a rel="prev" href="{before}">previous</a>')
        if page.next:
            after = _address(kept, start=page.next.record_index, at=page.next.offset)
            links.append(f'<a rel="next" href="{after}">next</a>')
        return " ".join(links)

    def _record_page(self, number: int, n: int) -> str:
        record = self.files[number].record(n)
        if record is None:
            raise LookupError(f"there is no record {n:,}")
        up = f'<a rel="up" href="{_address(file=number, start=n)}">back</a>'
        turns = f'<a rel="next" href="{_address(view="record", file=number, n=n + 1)}">next</a>'
        if n:
            before = _address(view="record", file=number, n=n - 1)
            turns = f'<a rel="prev" href="{before}">previous</a> {turns}'
        title = f"<h2>Record {n:,}</h2>"
        body = title + record_view(record, self._look(number))
        return self._document(number, "record", body, {}, f"{up} {turns}")

    def _feature_page(self, number: int) -> str:
        file = self.files[number]
        summary = FeatureSummary(file.first(_SAMPLE_RECORDS))
        whole = file.num_records is not None and file.num_records <= _SAMPLE_RECORDS
        which = "all" if whole else "the first"
        note = f'<p class="facts">of {which} {plural(summary.num_records, "record")}</p>'
        return self._document(number, "features", note + feature_summary(summary), {}, "")

    def _document(self, number: int, view: str, body: str, fields: Fields, turns: str) -> str:
        file = self.files[number]
        facts = [plural(file.size, "byte")] if file.size is not None else []
        if file.num_records is not None:
            facts.append(plural(file.num_records, "record"))
        tabs = "".join(
            f'<a href="{_address(file=number, view=name)}"{_current(name == view)}>{name}</a>'
            for name in ("records", "features")
        )
        search = ""
        if view == "records":
            search = self._search(number, fields)
        header = (
            f'<h1>{escaped(file.name)}</h1><span class="facts">{", ".join(facts)}</span>'
            f"{self._file_list(number)}<nav>{tabs}{turns}{search}</nav>"
        )
        return document(file.name, header, body)

    def _search(self, number: int, fields: Fields) -> str:
        names = options(self.names.get(number, []), _feature(fields))
        value = escaped(fields.get("value", ""))
        return (
            f"<form>{hidden({'file': number})}<label><small>feature</small> "
            f'<select name="feature"><option value=""></option>{names}</select></label> '
            f'<input type="search" name="value" value="{value}" placeholder="value" '
            'aria-label="value"><button>find</button></form>'
            f'<form>{hidden({"file": number})}<input name="start" inputmode="numeric" '
            'pattern="[0-9]*" placeholder="record" aria-label="record" size="8">'
            "<button>go</button></form>"
            '<small class="keys"><kbd>j</kbd> <kbd>k</kbd> rows <kbd>n</kbd> <kbd>p</kbd> pages '
            "<kbd>/</kbd> find</small>"
        )

    def _file_list(self, number: int) -> str:
        if len(self.files) == 1:
            return ""
        links = "".join(
            f'<a href="{_address(file=i)}"{_current(i == number)}>{escaped(file.name, 50)}</a>'
            for i, file in enumerate(self.files[:100])
        )
        return f"<nav>{links}</nav>"

    def _look(self, number: int) -> Look:
        def link(record: Record) -> str:
            return f"?{urlencode({'view': 'record', 'file': number, 'n': record.number})}"

        return Look(_PictureAddresses(number).address, link, self.corners)

    # ---- Pictures -------------------------------------------------------------------------------

    def picture(self, fields: Fields) -> Picture:
        """The picture that the fields of an address ask for.

        Raises:
            LookupError: There is none.
        """
        file, n = _integer(fields, "file"), _integer(fields, "n")
        record = self.files[file].record(n) if file < len(self.files) else None
        if record is None or record.kind in ("other", "damage"):
            raise LookupError("there is no such record")
        name = _feature(fields)
        step, index = _integer(fields, "step"), _integer(fields, "value")
        picture = find_picture(record, name, step, index)
        if picture is None or not picture.media.is_shown:
            raise LookupError("this value is not a picture")
        return picture


class _PictureAddresses:
    """Addresses of pictures of a file."""

    def __init__(self, file: int) -> None:
        self._file = file

    def address(self, picture: Picture) -> str:
        fields = {"file": self._file, "n": picture.number, "feature": as_field(picture.name)}
        return f"picture?{urlencode({**fields, 'step': picture.step, 'value': picture.item})}"


def _address(kept: Mapping[str, str] | None = None, **fields: Any) -> str:
    """A link within the viewer."""
    return f"?{urlencode({**(kept or {}), **fields})}".replace("&", "&amp;")


def _current(is_current: bool) -> str:
    return ' aria-current="page"' if is_current else ""


def _feature(fields: Fields) -> str:
    """The name of a feature, which as_field wrote."""
    return bytes.fromhex(fields.get("feature", "")).decode("utf-8", "surrogateescape")


def _integer(fields: Fields, name: str) -> int:
    text = fields.get(name) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise LookupError(f"{name} must be a number")
    return int(text)


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: Viewer
    server_version = "tfwire"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, with_body: bool) -> None:
        url = urlsplit(self.path)
        _, token, *rest = url.path.split("/")
        if not self._is_ours() or not secrets.compare_digest(token, self.server.token):
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", b"forbidden\n", with_body)
        fields = {key: values[-1] for key, values in parse_qs(url.query).items()}
        try:
            if rest == [""]:
                body = self.server.page(fields).encode("utf-8", "replace")
                return self._send(HTTPStatus.OK, "text/html; charset=utf-8", body, with_body)
            if rest == ["picture"]:
                picture = self.server.picture(fields)
                return self._send(HTTPStatus.OK, picture.media.type, picture.contents, with_body)
            problem = "there is no such page"
        except (LookupError, ValueError, OSError, Error, MemoryError) as error:
            problem = str(error.args[0] if isinstance(error, LookupError) else error)
        header = "<h1>tfwire view</h1>"
        home = '<p><a rel="up" href="./">back to the records</a></p>'
        text = document("not found", header, f"<p>{escaped(problem)}</p>{home}")
        self._send(HTTPStatus.NOT_FOUND, "text/html; charset=utf-8", text.encode(), with_body)

    def _is_ours(self) -> bool:
        """Whether the request names this machine, and comes from no page elsewhere."""
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") in self.server.hosts
            and (origin is None or origin.removeprefix("http://") in self.server.hosts)
            and site in ("none", "same-origin")
        )

    def _send(self, status: HTTPStatus, kind: str, body: bytes, with_body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", csp("'self'") + "; frame-ancestors 'none'")
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing: the terminal is for the address."""


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
