"""An HTTP server that lies: about sizes, ranges, encodings and versions, or by never ending."""

from __future__ import annotations

import gzip
import itertools
import re
import socket
import socketserver
import threading
import time
import zlib
from functools import cache, wraps

_CHUNK = bytes(1 << 16)


class Request:
    """A request, and how to answer it.

    Attributes:
        method, path, headers: As they were sent; the names of headers are lower case.
        data: The object.
        begin, end: The range that was asked for; None, None: everything.
        number: How many requests for bytes there were before.
    """

    def __init__(self, server, connection, method, path, headers):
        self.server, self._connection = server, connection
        self.method, self.path, self.headers = method, path, headers
        self.data = server.objects.get(path)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("range", ""))
        self.begin, self.end = (int(found[1]), int(found[2]) + 1) if found else (None, None)
        self.number = server.number

    def send(self, data):
        self.server.num_bytes += len(data)
        self._connection.sendall(data)

    def head(self, status, *lines, **headers):
        """Sends the status and the headers; names may have underscores."""
        named = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        text = "\r\n".join([f"HTTP/1.1 {status} X", *lines, *named, "Connection: close", "", ""])
        self.send(text.encode("latin-1"))

    def some(self):
        """Begins the right answer; returns its bytes."""
        begin, end = self.begin or 0, min(self.end or len(self.data), len(self.data))
        self.head(206, Content_Range=f"bytes {begin}-{end - 1}/{len(self.data)}")
        return self.data[begin:end]

    def body(self, data):
        if self.method != "HEAD":
            self.send(data)

    def honest(self, size=None, **headers):
        """The right answer, with other headers, perhaps: the value None leaves one out."""
        total = len(self.data)
        begin, end = (0, total) if self.begin is None else (self.begin, min(self.end, total))
        told = {"Content_Length": end - begin, "ETag": '"1"'}
        if self.begin is not None:
            told["Content_Range"] = f"bytes {begin}-{end - 1}/{total}"
        if begin >= end and self.begin is not None:
            self.head(416, Content_Range=f"bytes */{total}", Content_Length=0)
            return
        told |= headers
        told = {name: value for name, value in told.items() if value is not None}
        self.head(200 if self.begin is None else 206, **told)
        self.body(self.data[begin:end])

    def endless(self, piece=_CHUNK, pause=0.0):
        """Sends for ever, until the client goes."""
        while True:
            self.send(piece)
            time.sleep(pause)

    def chunked(self, pieces):
        for piece in pieces:
            self.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.send(b"0\r\n\r\n")


LIES = {}  # by name: what answers a request


def lie(function):
    LIES[function.__name__.replace("_", " ")] = function


def lie_of_bytes(function):
    """Of the answers with bytes alone."""

    @lie
    @wraps(function)
    def answer(request):
        (Request.honest if request.method == "HEAD" else function)(request)


def of_head(name, **headers):
    """A lie of HEAD alone."""

    def answer(request):
        if request.method == "HEAD":
            request.begin = None
        request.honest(**headers if request.method == "HEAD" else {})

    LIES[f"HEAD says {name}"] = answer


def of_bytes(name, **headers):
    """A lie of the answers with bytes alone; functions are called with the request."""

    def answer(request):
        lies = headers.items() if request.method != "HEAD" else ()
        request.honest(**{key: value(request) if callable(value) else value for key, value in lies})

    LIES[f"answers say {name}"] = answer


of_head("0 bytes", Content_Length=0)
of_head("1 byte", Content_Length=1)
of_head("an end between records", Content_Length=1016)
of_head("an end within a record", Content_Length=50_001)
of_head("twice as many bytes", Content_Length=2 * 10**6)
of_head("2^60 bytes", Content_Length=2**60)
of_head("no size", Content_Length=None)
of_head("no version", ETag=None)
of_head("another version", ETag='"2"')
of_head("that it is encoded", Content_Encoding="gzip")
of_head("no ranges", Accept_Ranges="none")

of_bytes("no range", Content_Range=None)
of_bytes("another begin", Content_Range=lambda r: f"bytes {r.begin + 1}-{r.end}/{len(r.data)}")
of_bytes("begin 0", Content_Range=lambda r: f"bytes 0-{r.end - r.begin - 1}/{len(r.data)}")
of_bytes("an end before the begin", Content_Range=lambda r: f"bytes {r.begin}-0/{len(r.data)}")
of_bytes("a later end", Content_Range=lambda r: f"bytes {r.begin}-{r.end + 5}/{10**9}")
of_bytes("a size before the end", Content_Range=lambda r: f"bytes {r.begin}-{r.end - 1}/1")
of_bytes("any size", Content_Range=lambda r: f"bytes {r.begin}-{r.end - 1}/*")
of_bytes("no numbers", Content_Range="bytes x-y/z")
of_bytes("huge numbers", Content_Range=f"bytes 0-{10**30}/{10**31}")
of_bytes("lines", Content_Range="items 0-5/6")
of_bytes(
    "another size each time",
    Content_Range=lambda r: f"bytes {r.begin}-{r.end - 1}/{len(r.data) + r.number}",
)
of_bytes("another version each time", ETag=lambda r: f'"{r.number}"')
of_bytes("no version", ETag=None)
of_bytes("gzip", Content_Encoding="gzip")
of_bytes("identity", Content_Encoding="identity")
of_bytes("brotli", Content_Encoding="br")
of_bytes("too few", Content_Length=10)
of_bytes("too many", Content_Length=10**9)
of_bytes("a long header", X_Long="x" * 100_000)


@lie
def one_byte_of_each_range(request):
    if request.method == "HEAD" or request.begin is None:
        request.honest()
    else:
        request.end = request.begin + 1
        request.honest()


@lie
def a_kilobyte_of_each_range(request):
    if request.begin is not None:
        request.end = min(request.end, request.begin + 1000)
    request.honest()


@lie
def ignores_ranges(request):
    request.begin = None
    request.honest()


@lie_of_bytes
def ignores_ranges_in_chunks(request):
    request.head(200, Transfer_Encoding="chunked")
    request.chunked([request.data[i : i + 5000] for i in range(0, len(request.data), 5000)])


@lie
def a_whole_object_in_place_of_each_range(request):
    if request.method == "HEAD" or request.begin is None:
        request.honest()
    else:
        data = request.data[request.begin : request.end]
        request.head(200, Content_Length=len(data))
        request.body(data)


@lie_of_bytes
def a_body_that_never_ends(request):
    request.send(request.some())
    request.endless()


@lie
def endless_zeros_of_unknown_size(request):
    request.head(200)
    if request.method != "HEAD":
        request.endless()


@lie
def endless_rubbish_that_looks_like_gzip(request):
    request.head(200, Transfer_Encoding="chunked")
    if request.method != "HEAD":
        request.chunked(itertools.chain([b"\x1f\x8b\x08\x00"], itertools.repeat(_CHUNK)))


@lie_of_bytes
def endless_chunks_of_a_known_size(request):
    request.head(200, Transfer_Encoding="chunked")
    request.chunked(itertools.repeat(_CHUNK))


@cache
def bomb(module):
    return module.compress(bytes(1 << 26))


@lie_of_bytes
def a_gzip_bomb(request):
    data = bomb(gzip)
    told = f"bytes {request.begin or 0}-{(request.end or 1) - 1}/{len(request.data)}"
    request.head(206, Content_Range=told, Content_Encoding="gzip", Content_Length=len(data))
    request.body(data)


@lie_of_bytes
def a_deflate_bomb_in_chunks(request):
    request.head(200, Content_Encoding="deflate", Transfer_Encoding="chunked")
    request.chunked(itertools.repeat(bomb(zlib)))


@lie_of_bytes
def a_drip_of_bytes(request):
    request.some()
    request.endless(b"\0", 0.01)


@lie_of_bytes
def a_drip_of_headers(request):
    request.send(b"HTTP/1.1 206 X\r\nX: ")
    request.endless(b"x", 0.01)


@lie_of_bytes
def silence(request):
    time.sleep(5)


@lie
def silence_after_HEAD(request):
    time.sleep(5)


@lie_of_bytes
def silence_within_a_body(request):
    request.send(request.some()[:1])
    time.sleep(5)


@lie_of_bytes
def endless_informational_answers(request):
    request.endless(b"HTTP/1.1 102 Processing\r\n\r\n", 0.001)


@lie
def a_redirect_to_itself(request):
    request.head(302, Location=request.path, Content_Length=0)


@lie
def redirects_without_end(request):
    request.head(307, Location=f"{request.path}?{request.number}x", Content_Length=0)


@lie
def a_redirect_to_a_file(request):
    request.head(302, Location="file:///etc/passwd", Content_Length=0)


@lie_of_bytes
def status_204(request):
    request.head(204)


@lie_of_bytes
def status_416(request):
    request.head(416, Content_Range=f"bytes */{len(request.data)}", Content_Length=0)


@lie_of_bytes
def many_ranges_in_one_body(request):
    text = b"--x\r\nContent-Range: bytes 0-5/6\r\n\r\nabcdef\r\n--x--\r\n"
    kind = "multipart/byteranges; boundary=x"
    request.head(206, Content_Type=kind, Content_Length=len(text))
    request.body(text)


@lie
def no_HTTP(request):
    request.send(b"SSH-2.0-OpenSSH_9.6\r\n")


class LyingServer:
    """Serves ``objects``, by their paths, with one of the LIES.

    Attributes:
        objects: Their bytes, by path. They are served honestly where ``honest`` has the path.
        lie: What answers.
        num_bytes: How many bytes were sent.
    """

    def __init__(self):
        self.objects, self.honest = {}, set()
        self.lie = Request.honest
        self.num_bytes = self.number = 0
        bomb(gzip), bomb(zlib)  # takes a while
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64
    block_on_close = False

    def handle_error(self, request, client_address):
        """A client that hangs up is no error."""


def _handler(server):
    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            first = self.rfile.readline(65536).decode("latin-1").split()
            if len(first) != 3:
                return
            headers = {}
            while (line := self.rfile.readline(65536).decode("latin-1").strip()) != "":
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            method, path = first[0], first[1].partition("?")[0]
            request = Request(server, self.connection, method, path, headers)
            server.number += method != "HEAD"
            if request.data is None:
                request.head(404, Content_Length=0)
            elif path in server.honest:
                request.honest()
            else:
                server.lie(request)

    return Handler
