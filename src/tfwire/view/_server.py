"""The viewer: pages about record files, served to a browser on this machine.

Only GET requests are answered, with the token of the printed address in their path, and under a
host name of this machine: no page elsewhere can read through it (DNS rebinding).
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlencode

from tfwire import Error, RecordPosition
from tfwire._interface.messages import plural
from tfwire.view._budget import Budget
from tfwire.view._grid import has_pictures, record_grid
from tfwire.view._html import Html, element, facts, join, shown_text, small
from tfwire.view._page import (
    as_field,
    csp,
    document,
    feature_summary,
    has_field,
    html_document,
    key_help,
    name_of_field,
    options,
    record_table,
    record_view,
)
from tfwire.view._pictures import Look, Picture, find_picture, picture_of_payload
from tfwire.view._records import BrowsedFile, FeatureName, Page, Record, search_for
from tfwire.view._summary import FeatureSummary

_PAGE_RECORDS = 50
_SAMPLE_RECORDS = 1000
_MOST_OPTIONS = 500
_MOST_FILES = 1000  # in the list
_MOST_PLACES = 10_000
_HTML = "text/html; charset=utf-8"
_PLACE_OF_PAGE = (
    "start",
    "at",
    "feature",
    "value",
    "as",
)  # fields of a page that links of records keep
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
        self.names: dict[int, list[FeatureName]] = {}  # that were seen in each file
        # Where the page before another one begins: by file, search, and the other one's start.
        self._before: dict[tuple[Any, ...], RecordPosition] = {}
        self._entrances: dict[bytes, Callable[[], None]] = {}

    def entrance(self, passed: Callable[[], None]) -> str:
        """An address without the token that leads to the pages once, and calls ``passed`` then."""
        name = secrets.token_urlsafe(24)
        self._entrances[name.encode()] = passed
        return f"http://127.0.0.1:{self.server_port}/{name}"

    def entrance_page(self, passed: Callable[[], None]) -> Html:
        """A page for a private file, which leads to an entrance."""
        address = self.entrance(passed)
        head = [
            element("meta", charset="utf-8"),
            element("title", "tfwire view"),
            element("meta", name="referrer", content="no-referrer"),
            element("meta", http_equiv="refresh", content=f"0;url={address}"),
        ]
        link = element("p", element("a", "tfwire view", href=address))
        return html_document(head, element("body", link))

    def enter(self, name: bytes) -> str | None:
        """A page that leads on to the others; None if there is no such entrance."""
        passed = self._entrances.pop(name, None)
        if passed is None:
            return None
        passed()
        link = element("a", "tfwire view", href=self.url)
        return document("tfwire view", link, Html(), then=self.url)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a browser that has left; socketserver prints a traceback."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)

    # ---- Pages ----------------------------------------------------------------------------------

    def page(self, fields: Fields, budget: Budget | None = None) -> str:
        """The page that the fields of an address ask for.

        Args:
            fields: Names to values.
            budget: What the page may cost; None: the usual.

        Raises:
            LookupError: There is no such file or record.
        """
        number = _integer(fields, "file")
        self._file(number)
        view = fields.get("view", "records")
        budget = budget or Budget()
        if view == "record":
            return self._record_page(number, fields, budget)
        if view == "features":
            return self._feature_page(number, budget)
        return self._records_page(number, fields, budget)

    def _records_page(self, number: int, fields: Fields, budget: Budget) -> str:
        file = self.files[number]
        name, text = _feature(fields), fields.get("value", "")
        start = self._start(file, fields, budget)
        wanted = search_for(name, text)
        page = file.page(start, _PAGE_RECORDS, wanted, budget)
        self._note_names(number, page)
        body = Html()
        if page.records:
            view = record_grid if fields.get("as") == "grid" else record_table
            toggle = self._toggle(number, start, page.records, fields)
            body, num_rows = view(page.records, self._look(number, fields, budget))
            page = page.first(num_rows, start)
            body = join(toggle, body)
        note = element("p", self._note(page, start, wanted is not None), class_="facts")
        turns = self._turns(number, start, page, fields)
        search = self._search(number, fields, budget)
        return self._document(number, "records", join(note, body), turns, search)

    def _toggle(
        self, number: int, start: RecordPosition, records: Sequence[Record], fields: Fields
    ) -> Html:
        """A link from rows to a grid of pictures, if there are some, or back."""
        is_grid = fields.get("as") == "grid"
        if not (is_grid or has_pictures(records)):
            return Html()
        place = {"file": number, **_kept(fields, "feature", "value"), **_at(start)}
        address = _address(place, **({} if is_grid else {"as": "grid"}))
        link = element("a", "as rows" if is_grid else "as a grid of pictures", href=address)
        return element("p", link, class_="facts toggle")

    def _note_names(self, number: int, page: Page) -> None:
        """Keeps the names of features, for the list of the search."""
        names = {name for record in page.records[:20] for name in record.names[:_MOST_OPTIONS]}
        names = set(filter(has_field, names))
        self.names[number] = sorted(names.union(self.names.get(number, [])))[:_MOST_OPTIONS]

    def _start(self, file: BrowsedFile, fields: Fields, budget: Budget) -> RecordPosition:
        """Where a page begins: at a place, or at a record's number."""
        number = _integer(fields, "start")
        return (
            RecordPosition(number, _integer(fields, "at"))
            if "at" in fields
            else _find(file, number, budget)
        )

    def _note(self, page: Page, start: RecordPosition, is_search: bool) -> str:
        if not is_search:
            return "" if page.records else "the file has no records"
        last = start.record_index + page.passed
        end = "; the search continues on the next page" if page.next else ""
        if page.partly:
            end += f"; of {plural(page.partly, 'record')}, only the first values are searched"
        found = plural(len(page.records), "record")
        read = f"from {start.record_index:,} to {max(start.record_index, last - 1):,}"
        return f"{found} found in those {read}{end}"

    def _turns(self, number: int, start: RecordPosition, page: Page, fields: Fields) -> Html:
        """Links to the pages before and after."""
        kept = {"file": number, **_kept(fields, "feature", "value", "as")}
        key = (number, kept.get("feature"), kept.get("value"))
        links = []
        if start.record_index:
            # Pages differ in their number of records: the one before is known once it was shown.
            before = self._before.get((key, start.record_index))
            if before is None:
                before = RecordPosition(max(0, start.record_index - _PAGE_RECORDS), -1)
            links.append(_turn("previous", "prev", kept, **_at(before)))
        if page.next:
            if len(self._before) >= _MOST_PLACES:
                self._before.clear()
            self._before[key, page.next.record_index] = start
            links.append(_turn("next", "next", kept, **_at(page.next)))
        return Html(" ".join(links))

    def _record_page(self, number: int, fields: Fields, budget: Budget) -> str:
        file, n = self.files[number], _integer(fields, "n")
        kept = {"file": number, **_kept(fields, *_PLACE_OF_PAGE)}
        wanted = search_for(_feature(fields), fields.get("value", ""))
        if wanted is not None and "after" in fields:
            start = _find(file, _integer(fields, "after") + 1, budget)
            page = file.page(start, 1, wanted, budget)
        else:
            page = file.page(_find(file, n, budget), 1, budget=budget)
        if not page.records or (wanted is None and page.records[0].number != n):
            if wanted is None:
                raise LookupError(f"there is no record {n:,}")
            raise LookupError("no further record was found; go back to search on")
        record = page.records[0]
        links = [_turn("back", "up", {"start": record.number, **kept})]
        kept["view"] = "record"
        n = record.number
        if wanted is None and n:
            links.append(_turn("previous", "prev", kept, n=n - 1))
        if wanted is None and page.next:
            links.append(_turn("next", "next", kept, n=n + 1))
        if wanted is not None and page.next:
            links.append(_turn("next found", "next", kept, after=n))
        if record.is_read:
            payload = f"payload?{urlencode({'file': number, 'n': n})}"
            links.append(element("a", "payload", href=payload))
        look = self._look(number, fields, budget)
        body = join(element("h2", f"Record {n:,}"), record_view(record, look))
        keys = key_help({"n": "", "p": "records", "Escape": "back"})
        return self._document(number, "record", body, Html(" ".join(links)), keys)

    def _feature_page(self, number: int, budget: Budget) -> str:
        file, summary, passed = self.files[number], FeatureSummary(), 0
        for record in file.first(_SAMPLE_RECORDS, budget):
            summary.add(record)
            passed += 1
        is_whole = file.num_records is not None and passed >= file.num_records
        which = "all" if is_whole else "the first"
        note = facts(f"of {which} {plural(summary.num_records, 'record')}")
        body = join(note, feature_summary(summary, budget.html))
        return self._document(number, "features", body)

    def _document(
        self, number: int, view: str, body: Html, turns: object = "", tools: object = ""
    ) -> Html:
        file = self.files[number]
        known = [plural(file.size, "byte")] if file.size is not None else []
        if file.num_records is not None:
            known.append(plural(file.num_records, "record"))
        tabs = []
        for name in ("records", "features"):
            current = "page" if name == view else None
            address = _address(file=number, view=name)
            tabs.append(element("a", name, href=address, aria_current=current))
        header = join(
            element("h1", shown_text(file.name)),
            element("span", ", ".join(known), class_="facts"),
            self._file_list(number),
            element("nav", tabs, turns, tools),
        )
        return document(file.name, header, body)

    def _search(self, number: int, fields: Fields, budget: Budget) -> Html:
        names = options(self.names.get(number, []), _feature(fields), budget.html)
        file = element("input", type="hidden", name="file", value=number)
        if "as" in fields:
            file = join(file, element("input", type="hidden", name="as", value=fields["as"]))
        choice = element("select", element("option", "any", value=""), names, name="feature")
        value = {"name": "value", "value": fields.get("value", ""), "placeholder": "value"}
        find = [
            *(file, element("label", small("feature"), " ", choice), " "),
            element("input", type="search", **value, aria_label="value"),
            element("button", "find"),
        ]
        start = {"name": "start", "inputmode": "numeric", "pattern": "[0-9]*"}
        label = {"placeholder": "record", "aria_label": "record", "size": 8}
        go = [file, element("input", **start, **label), element("button", "go")]
        keys = {"j": "", "k": "rows", "Enter": "open", "n": "", "p": "pages", "/": "find"}
        return join(element("form", find), element("form", go), key_help(keys))

    def _file_list(self, number: int) -> Html:
        """A list to choose from, which needs no script, and links to the neighbors."""
        if len(self.files) == 1:
            return Html()
        first = max(0, min(number - _MOST_FILES // 2, len(self.files) - _MOST_FILES))
        choices = [
            element("option", shown_text(self.files[i].name, 80), value=i, selected=i == number)
            for i in range(first, min(first + _MOST_FILES, len(self.files)))
        ]
        links = [
            element("a", f"{word} file", href=_address(file=i))
            for i, word in ((number - 1, "previous"), (number + 1, "next"))
            if 0 <= i < len(self.files)
        ]
        choice = element("select", choices, name="file", class_="files", aria_label="file")
        place = small(f"{number + 1:,} of {plural(len(self.files), 'file')}")
        return element("nav", element("form", choice, element("button", "open")), links, place)

    def _look(self, number: int, fields: Fields, budget: Budget) -> Look:
        """Links to records know the page and the search to go back to."""
        kept: dict[str, Any] = {"start": 0, **_kept(fields, *_PLACE_OF_PAGE)}

        def link(record: Record) -> str:
            return _address({"view": "record", "file": number, "n": record.number, **kept})

        def source(picture: Picture) -> dict[str, str]:
            at: dict[str, Any] = {"file": number, "n": picture.number}
            if picture.name is not None:
                if not has_field(picture.name):
                    return {}
                at |= {"feature": as_field(picture.name)}
                at |= {"step": picture.step, "value": picture.item}
            return {"src": f"picture?{urlencode(at)}"}

        return Look(source, link, budget, self.corners)

    # ---- What records hold ----------------------------------------------------------------------

    def picture(self, fields: Fields) -> tuple[str, bytes]:
        """The type and the bytes of the picture that the fields of an address ask for.

        Raises:
            LookupError: There is none.
        """
        number, budget = _integer(fields, "file"), Budget()
        record = self._file(number).record(_integer(fields, "n"), budget)
        if record is None:
            raise LookupError("there is no such record")
        name, picture = _feature(fields), picture_of_payload(record)
        if name is not None:
            step, index = _integer(fields, "step"), _integer(fields, "value")
            picture = find_picture(record, name, step, index)
        if picture is None or not picture.media.is_shown(budget.pixels):
            raise LookupError("this value is not a picture")
        return picture.media.type, picture.file(budget.effort)

    def payload(self, fields: Fields) -> tuple[str, bytes]:
        """The number and the bytes of the record that the fields of an address ask for.

        Raises:
            LookupError: It is not there, damaged or too long.
        """
        number = _integer(fields, "n")
        found = self._file(_integer(fields, "file")).payload(number)
        if found is None:
            raise LookupError("there is no such record")
        return str(number), found

    def _file(self, number: int) -> BrowsedFile:
        if number >= len(self.files):
            raise LookupError(f"there is no file {number}")
        return self.files[number]


def _find(file: BrowsedFile, number: int, budget: Budget) -> RecordPosition:
    """The place of a record.

    Raises:
        LookupError: It is not there, or too far for the time.
    """
    place = file.find(number, budget)
    if place is None:
        known = "" if file.num_records is None else f": the file has {file.num_records:,}"
        hint = known or ": it is too far to read there; tfwire index makes that quick"
        raise LookupError(f"record {number:,} was not found{hint}")
    return place


def _address(kept: Mapping[str, Any] | None = None, **fields: Any) -> str:
    """A link within the viewer."""
    return f"?{urlencode({**(kept or {}), **fields})}"


def _turn(text: str, relation: str, kept: Mapping[str, Any], **fields: Any) -> Html:
    return element("a", text, rel=relation, href=_address(kept, **fields))


def _at(place: RecordPosition) -> dict[str, int]:
    """A place in the fields of an address; without an offset if that is not known."""
    at = {"start": place.record_index, "at": place.offset}
    return at if place.offset > 0 else {"start": place.record_index}


def _kept(fields: Fields, *names: str) -> dict[str, str]:
    return {name: fields[name] for name in names if name in fields}


def _feature(fields: Fields) -> FeatureName | None:
    field = fields.get("feature", "")
    return name_of_field(field) if field else None


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
        address, _, query = self.path.partition("?")
        _, _, path = address.partition("/")
        token, *rest = path.encode().split(b"/")
        if with_body and not rest and self.headers.get("Host") in self.server.hosts:
            # A browser says that a file led here: from a site that is not this one.
            entered = self.server.enter(token)
            if entered is not None:
                return self._send(HTTPStatus.OK, _HTML, entered.encode(), with_body)
        if not self._is_ours() or not secrets.compare_digest(token, self.server.token.encode()):
            return self._send(HTTPStatus.FORBIDDEN, "text/plain", b"forbidden\n", with_body)
        try:
            fields = {key: values[-1] for key, values in parse_qs(query).items()}
            if rest == [b""]:
                body = self.server.page(fields).encode("utf-8", "replace")
                return self._send(HTTPStatus.OK, _HTML, body, with_body)
            if rest == [b"picture"]:
                kind, contents = self.server.picture(fields)
                return self._send(HTTPStatus.OK, kind, contents, with_body)
            if rest == [b"payload"]:
                name, contents = self.server.payload(fields)
                return self._send_file(f"record-{name}.bin", contents, with_body)
            problem = "there is no such page"
        except (LookupError, ValueError, OSError, Error, MemoryError) as error:
            problem = str(error.args[0] if isinstance(error, LookupError) else error)
        home = element("p", element("a", "back to the records", rel="up", href="./"))
        said = join(element("p", shown_text(problem)), home)
        text = document("not found", element("h1", "tfwire view"), said)
        self._send(HTTPStatus.NOT_FOUND, _HTML, text.encode(), with_body)

    def _is_ours(self) -> bool:
        """Whether the request names this machine, and comes from no page elsewhere."""
        origin = self.headers.get("Origin")
        site = self.headers.get("Sec-Fetch-Site", "none")
        return (
            self.headers.get("Host") in self.server.hosts
            and (origin is None or origin.removeprefix("http://") in self.server.hosts)
            and site in ("none", "same-origin")
        )

    def _send_file(self, name: str, body: bytes, with_body: bool) -> None:
        """Bytes that the browser saves, whatever they are."""
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
        }
        self._send(HTTPStatus.OK, "application/octet-stream", body, with_body, headers)

    def _send(
        self,
        status: HTTPStatus,
        kind: str,
        body: bytes,
        with_body: bool,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        policy = {"Content-Security-Policy": csp("'self' data:") + "; frame-ancestors 'none'"}
        for name, value in {**_HEADERS, **policy, **headers}.items():
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
