"""Long ranges over HTTP by sockets of threads, which receive straight into the caller's memory.

aiohttp copies what it receives several times: a GB takes it about a second of CPU time, and a
socket a third of that. It stays the one that asks whenever there is more to a request than a URL
and headers, and for everything but long ranges. What an answer must say, one module knows for both.
"""

from __future__ import annotations

import io
import re
import socket
import ssl
import threading
import time
from contextlib import suppress
from functools import cache
from http.client import HTTPException, HTTPResponse
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from tfwire._records.remote import http_answers
from tfwire._records.remote.http_answers import Body, Facts, Pace, UnsuitableError, size_of_answer

_MOST_HEAD = 1 << 16  # bytes before the body
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_MODULE = "fsspec.implementations.http"


class Connections:
    """Connections to the server of an object, each used by one thread at a time.

    Args:
        url: A yarl.URL.
        headers: Of every request.

    Attributes:
        suitable: Whether they may be used: an answer may show that they may not.
    """

    suitable = True

    def __init__(self, url: Any, headers: dict[str, str]) -> None:
        self._address = url.raw_host, url.port
        self._tls = url.scheme == "https"
        host = f"[{url.raw_host}]" if ":" in url.raw_host else url.raw_host
        known = {"host": host if url.is_default_port() else f"{host}:{url.port}"}
        known |= {"user-agent": "tfwire", "accept": "*/*", "accept-encoding": "identity"}
        known |= {name.lower(): value for name, value in headers.items()}
        lines = [f"{name}: {value}" for name, value in known.items()]
        self._request = "\r\n".join([f"GET {url.raw_path_qs} HTTP/1.1", *lines, ""])
        self._url = url
        self._idle: list[socket.socket] = []
        self._used: set[socket.socket] = set()
        self._lock = threading.Lock()  # of what is known of the object

    def __del__(self) -> None:
        self._close_idle()

    def stop(self) -> None:
        """Ends the requests in flight, which fail, and the connections."""
        for used in list(self._used):
            with suppress(OSError):
                # An SSLSocket's own method lets its thread read on, without decrypting.
                socket.socket.shutdown(used, socket.SHUT_RDWR)
        self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def read_range(self, body: Body, facts: Facts, stopped: threading.Event) -> None:
        """As ``http_answers.read_range``, for a body with room.

        Args:
            body, facts: The range, and what is known of the object.
            stopped: Set before ``stop`` is called.

        Raises:
            UnsuitableError: aiohttp should ask instead. The body is as it was.
        """
        try:
            self._read_range(body, facts, stopped)
        except ssl.SSLCertVerificationError:
            raise
        except ssl.SSLError as error:  # which passes, as aiohttp says by its own class
            raise ConnectionError(str(error)) from error

    def _read_range(self, body: Body, facts: Facts, stopped: threading.Event) -> None:
        wanted = f"Range: bytes={body.at}-{body.end - 1}\r\n\r\n"
        connection, answer, start = self._ask(wanted, stopped)
        whole = False
        try:
            with self._lock:
                size = size_of_answer(answer, body, facts)
            begin = body.at
            stop = begin + (size if answer.length is None else min(size, answer.length))
            body.add(start[: stop - begin])
            _receive(connection, body, stop)
            got = body.at - begin
            if answer.length is not None and got < size:
                raise EOFError(f"the answer ends after {got} of {size} bytes")
            whole = max(got, len(start)) == answer.length and not answer.will_close
        finally:
            self._used.discard(connection)
            if whole and not stopped.is_set():
                self._idle.append(connection)
            else:
                connection.close()

    def _ask(self, rest: str, stopped: threading.Event) -> tuple[socket.socket, _Answer, bytes]:
        """A connection in use, its answer and the first bytes of the body. A connection that waited
        may be closed by now: then a new one is made."""
        request = (self._request + rest).encode("ascii")
        for new in (False, True):
            if new:
                connection = self._connect(stopped)
            else:
                try:
                    connection = self._idle.pop()
                except IndexError:
                    continue
            self._used.add(connection)
            try:
                if stopped.is_set():  # before this connection was seen
                    raise EOFError
                connection.sendall(request)
                head, start = _receive_head(connection)
                return connection, _Answer(head, self._url), start
            except BaseException as error:
                self._used.discard(connection)
                connection.close()
                if new or not isinstance(error, (ConnectionError, ssl.SSLError)):
                    raise
        raise AssertionError

    def _connect(self, stopped: threading.Event) -> socket.socket:
        """A new connection, in use. Errors that pass are ConnectionErrors, as aiohttp's are."""
        try:
            found = socket.getaddrinfo(*self._address, type=socket.SOCK_STREAM)
            for number, (family, kind, protocol, _, address) in enumerate(found, 1):
                connection = socket.socket(family, kind, protocol)
                self._used.add(connection)
                try:
                    return self._greet(connection, address, stopped)
                except BaseException as error:
                    self._used.discard(connection)
                    connection.close()
                    if number == len(found) or not isinstance(error, OSError):
                        raise
        except socket.gaierror as error:
            raise ConnectionError(str(error)) from error
        raise ConnectionError(f"{self._address[0]} has no address")

    def _greet(
        self, connection: socket.socket, address: Any, stopped: threading.Event
    ) -> socket.socket:
        """Connects, and speaks TLS where the URL says so."""
        if stopped.is_set():
            raise EOFError
        connection.settimeout(http_answers.ANSWER_SECONDS)
        connection.connect(address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self._tls:
            return connection
        secure = _tls_context().wrap_socket(
            connection,
            server_hostname=self._address[0].rstrip("."),
            do_handshake_on_connect=False,
        )
        self._used.discard(connection)  # it is closed: the other has its descriptor
        self._used.add(secure)
        try:
            if stopped.is_set():
                raise EOFError
            secure.do_handshake()
        except BaseException:
            self._used.discard(secure)
            secure.close()
            raise
        return secure


# Headers that are not the user's: a request has them, or they would change what it is.
_OWN_HEADERS = {"range", "content-length", "transfer-encoding", "connection"}
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(r"[!-~]+")


def connections_of(fs: Any, path: str) -> Connections | None:
    """Connections for an object of fsspec's HTTPFileSystem, or None where a request of aiohttp has
    options that are not known here: proxies, cookies, certificates, a client of the user."""
    if type(fs).__name__ != "HTTPFileSystem" or type(fs).__module__ != _MODULE:
        return None
    headers = fs.kwargs.get("headers", {})
    if fs.client_kwargs or set(fs.kwargs) - {"headers"} or fs.get_client.__module__ != _MODULE:
        return None
    url = fs.encode_url(path)
    known = url.scheme in ("http", "https") and url.raw_host and url.user is None
    known = known and _TARGET.fullmatch(url.raw_path_qs) and isinstance(headers, dict)
    return Connections(url, headers) if known and all(map(_is_plain, headers.items())) else None


def _is_plain(header: tuple[Any, Any]) -> bool:
    name, value = header
    texts = isinstance(name, str) and isinstance(value, str)
    plain = texts and _HEADER_NAME.fullmatch(name) and value.isascii() and value.isprintable()
    return bool(plain and name.lower() not in _OWN_HEADERS)


class _Answer:
    """The beginning of an answer, as aiohttp shows it.

    Raises:
        UnsuitableError: aiohttp should receive it.
    """

    def __init__(self, head: bytes, url: Any) -> None:
        source: Any = SimpleNamespace(makefile=lambda mode: io.BytesIO(head))  # all that is used
        parsed = HTTPResponse(source, method="GET")
        try:
            parsed.begin()
        except HTTPException as error:
            raise UnsuitableError from error
        if parsed.chunked or parsed.status < 200 or 300 <= parsed.status < 400:
            raise UnsuitableError
        self.status = parsed.status
        headers: Any = parsed.headers
        headers.getall = headers.get_all  # as aiohttp names it
        self.headers = headers
        self.length, self.will_close = parsed.length, parsed.will_close
        self._reason, self._url = parsed.reason, url

    def raise_for_status(self) -> None:
        if self.status >= 400:
            aiohttp = import_module("aiohttp")
            about = aiohttp.RequestInfo(self._url, "GET", None, self._url)
            raise aiohttp.ClientResponseError(about, (), status=self.status, message=self._reason)


def _receive_head(connection: socket.socket) -> tuple[bytes, bytes]:
    """What comes before the body, and what came of the body with it."""
    received, deadline = bytearray(), time.monotonic() + http_answers.ANSWER_SECONDS
    while (end := _END_OF_HEAD.search(received)) is None:
        if len(received) > _MOST_HEAD:
            raise UnsuitableError
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"no answer came in {http_answers.ANSWER_SECONDS:g} seconds")
        connection.settimeout(left)
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionResetError("the server closed the connection without an answer")
        received += part
    connection.settimeout(http_answers.ANSWER_SECONDS)
    return bytes(received[: end.end()]), bytes(received[end.end() :])


def _receive(connection: socket.socket, body: Body, stop: int) -> None:
    """Receives what is left of a body up to an offset, or the end of the answer."""
    pace = Pace()
    while body.at < stop:
        began = time.monotonic()
        num_bytes = connection.recv_into(body.room_until(stop))
        if num_bytes == 0:
            return
        body.at += num_bytes
        pace.add(time.monotonic() - began, num_bytes)


@cache
def _tls_context() -> ssl.SSLContext:
    """As aiohttp's own."""
    return ssl.create_default_context()
