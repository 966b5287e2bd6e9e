"""The server of the viewer's pages, for a browser on this machine.

Only GET requests are answered, with the token of the printed address in their path, and under a
host name of this machine: no page elsewhere can read through it (DNS rebinding).
"""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from tfwire import Error
from tfwire.view._html import Html, element
from tfwire.view._page import csp, document, html_document
from tfwire.view._records import BrowsedFile
from tfwire.view._site import Site

_HTML = "text/html; charset=utf-8"


class Viewer(ThreadingHTTPServer):
    """Serves pages about files on a free port of the loopback interface.

    Args:
        files: What to show.
        corners: As Look has them.

    Attributes:
        site: The pages.
        url: The address, with its token.
    """

    daemon_threads = True

    def __init__(self, files: Sequence[BrowsedFile], corners: tuple[str, ...] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = Site(files, corners)
        self.token = secrets.token_urlsafe(24)
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_port}/{self.token}/"
        self._entrances: dict[bytes, Callable[[], None]] = {}

    def server_close(self) -> None:
        """Ends the threads that read files, too."""
        self.site.close()
        super().server_close()

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
                body = self.server.site.page(fields).encode("utf-8", "replace")
                return self._send(HTTPStatus.OK, _HTML, body, with_body)
            if rest == [b"status"]:
                told = json.dumps(self.server.site.status(fields)).encode()
                return self._send(HTTPStatus.OK, "application/json", told, with_body)
            if rest == [b"picture"]:
                kind, contents = self.server.site.picture(fields)
                return self._send(HTTPStatus.OK, kind, contents, with_body)
            if rest == [b"payload"]:
                name, contents = self.server.site.payload(fields)
                return self._send_file(f"record-{name}.bin", contents, with_body)
            raise LookupError("there is no such page")
        except (LookupError, ValueError, OSError, Error, MemoryError) as error:
            body = self.server.site.problem_page(error).encode("utf-8", "replace")
            self._send(HTTPStatus.NOT_FOUND, _HTML, body, with_body)

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
