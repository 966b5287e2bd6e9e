"""A server of objects over HTTP, with latency and faults; and a filesystem of fsspec for it, made
of http.client alone."""

from __future__ import annotations

import gc
import http.client
import io
import random
import re
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.memory import MemoryFile

import tfwire as tfw
from helpers.threads import threads_of_tfwire, wait_for
from tfwire._records.index import remote_records
from tfwire._records.remote import objects, read_ahead

PROTOCOL, ASYNC_PROTOCOL = "objects", "async-objects"
# Five of the small ranges.
RECORDS = [random.Random(i).randbytes(1000 + i) for i in range(400)]


@contextmanager
def small_ranges(monkeypatch):
    """Ranges of 100 kB, and short pauses; no thread is left in the end."""
    monkeypatch.setattr(read_ahead, "_RANGE_BYTES", 100_000)
    monkeypatch.setattr(remote_records, "_RANGE_BYTES", 100_000)
    monkeypatch.setattr(objects, "_FIRST_PAUSE", 0.001)
    yield
    fsspec.filesystem("memory").store.clear()
    gc.collect()  # datasets, which hold cycles
    no_threads_left()


def no_threads_left():
    assert wait_for(lambda: not threads_of_tfwire()), "a thread of the reader is left"


def file_of(records, options=None):
    out = io.BytesIO()
    tfw.write_records(out, records, options)
    return out.getvalue()


def names(folder):
    """The objects of a folder, by its URL."""
    fs, path = fsspec.core.url_to_fs(folder)
    return sorted(name.rsplit("/", 1)[-1] for name in fs.find(path))


@cache
def objects_of_records():
    """RECORDS as they are, and compressed."""
    return {"/a": file_of(RECORDS), "/gz": file_of(RECORDS, "GZIP")}


@contextmanager
def serving_records():
    """A server with RECORDS as /a, and as /gz."""
    with ObjectServer() as server:
        for path, data in objects_of_records().items():
            server.add(path, data)
        yield server


class ObjectServer:
    """Serves the objects in ``objects`` by their paths, like "/a.tfrecord".

    Attributes:
        objects: Their bytes, by path.
        etags: Their versions, by path.
        faults: Called with the path and the range of every GET; a word says what goes wrong:
            "reset", "short", "gone", a status as int, or None.
        ranges: The ranges that were asked for.
        latency: Seconds before every answer.
        before_answer: Called before every answer to a GET, by the thread that gives it.
        rate: Bytes a second of a connection; None: any.
        ignores_ranges: Whether it answers with the whole object.
        token: What ``Authorization`` must say; None: anything.
    """

    def __init__(self):
        self.objects, self.etags = {}, {}
        self.faults = lambda path, begin, end: None
        self.ranges, self.requests = [], Counter()
        self.latency, self.rate, self.ignores_ranges, self.token = 0.0, None, False, None
        self.before_answer = lambda: None
        self.in_flight = self.most_in_flight = 0
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def url(self, path, protocol=PROTOCOL):
        return f"{protocol}://127.0.0.1:{self.port}{path}"

    def wrap(self, context):
        """Speaks TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def add(self, path, data, etag='"1"'):
        self.objects[path], self.etags[path] = data, etag

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        """A client that hangs up is no error."""


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 0
        disable_nagle_algorithm = True

        def log_message(self, *args):
            pass

        def do_HEAD(self):
            self._answer("HEAD")

        def do_GET(self):
            with server.lock:
                server.in_flight += 1
                server.most_in_flight = max(server.most_in_flight, server.in_flight)
            try:
                server.before_answer()
                self._answer("GET")
            finally:
                with server.lock:
                    server.in_flight -= 1

        def _answer(self, method):
            with server.lock:
                server.requests[method] += 1
            if server.latency:
                time.sleep(server.latency)
            data = server.objects.get(self.path)
            if server.token is not None and self.headers.get("Authorization") != server.token:
                return self._status(403)
            if data is None:
                return self._status(404)
            begin, end, status = 0, len(data), 200
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if found and not server.ignores_ranges:
                begin, end, status = int(found[1]), min(end, int(found[2]) + 1), 206
                if begin >= len(data):
                    return self._status(416)
            fault = None
            if method == "GET":
                with server.lock:
                    server.ranges.append((begin, end))
                    fault = server.faults(self.path, begin, end)
            if isinstance(fault, int):
                return self._status(fault)
            sent = end - begin
            if fault == "short":
                end = begin + sent // 2
            self.send_response(status)
            self.send_header("Content-Length", str(sent if fault == "reset" else end - begin))
            self.send_header("ETag", server.etags[self.path])
            if status == 206:
                self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(data)}")
            self.end_headers()
            if method == "HEAD":
                return None
            if fault == "reset":
                self._send(memoryview(data)[begin : begin + sent // 2])
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return None
            return self._send(memoryview(data)[begin:end])

        def _send(self, data):
            began, step = time.monotonic(), 1 << 20
            for at in range(0, len(data), step):
                self.wfile.write(data[at : at + step])
                if server.rate:
                    due = began + min(at + step, len(data)) / server.rate
                    time.sleep(max(0.0, due - time.monotonic()))

        def _status(self, status):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    return Handler


class StatusError(OSError):
    """An answer with an error."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


class ObjectFileSystem(fsspec.AbstractFileSystem):
    """The objects of an ObjectServer. ``token`` is what it wants to see."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, token=None):
        super().__init__()
        self.token = token

    @classmethod
    def _strip_protocol(cls, path):
        return path

    def unstrip_protocol(self, name):
        return name

    def _request(self, method, url, headers=None):
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        try:
            sent = dict(headers or {})
            if self.token:
                sent["Authorization"] = self.token
            connection.request(method, parts.path, headers=sent)
            answer = connection.getresponse()
            if answer.status == 404:
                raise FileNotFoundError(url)
            if answer.status >= 400:
                raise StatusError(answer.status)
            return answer, answer.read()
        finally:
            connection.close()

    def info(self, path, **kwargs):
        answer, _ = self._request("HEAD", path)
        size, etag = int(answer.headers["Content-Length"]), answer.headers["ETag"]
        return {"name": path, "type": "file", "size": size, "ETag": etag}

    def cat_file(self, path, start=None, end=None, **kwargs):
        return self._request("GET", path, {"Range": f"bytes={start}-{end - 1}"})[1]

    def _open(self, path, mode="rb", **kwargs):
        if "rb" != mode:
            raise NotImplementedError
        return MemoryFile(None, path, self._request("GET", path)[1])


class AsyncObjectFileSystem(AsyncFileSystem):
    """The same as an asynchronous filesystem, whose event loop is fsspec's."""

    protocol = ASYNC_PROTOCOL
    cachable = False

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._blocking = ObjectFileSystem()
        self._threads = ThreadPoolExecutor(40, "objects")

    _strip_protocol = ObjectFileSystem._strip_protocol

    def unstrip_protocol(self, name):
        return name

    async def _info(self, path, **kwargs):
        return await self._call(self._blocking.info, path)

    async def _cat_file(self, path, start=None, end=None, **kwargs):
        return await self._call(self._blocking.cat_file, path, start, end)

    def _call(self, function, *arguments):
        return self.loop.run_in_executor(self._threads, function, *arguments)


fsspec.register_implementation(PROTOCOL, ObjectFileSystem, clobber=True)
fsspec.register_implementation(ASYNC_PROTOCOL, AsyncObjectFileSystem, clobber=True)
