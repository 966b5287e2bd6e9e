"""Records over HTTP, from a server on another core: what the client takes of its own."""

from __future__ import annotations

import http.client
import multiprocessing
from functools import partial

import fsspec
import pytest

import remote
import tfwire as tfw

pytest.importorskip("aiohttp", reason="fsspec reads URLs by it")

COUNT = 1333  # records of 150 kB, 200 MB


@pytest.fixture(scope="module")
def url():
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=remote.serve, args=(there, COUNT, 0.0, None), daemon=True)
    server.start()
    port, _ = here.recv()
    yield f"http://127.0.0.1:{port}/plain"
    here.send("end")
    server.join(10)


def ours(url):
    return sum(1 for _ in tfw.read_records(url))


def by_fsspec(url):
    with fsspec.open(url, "rb") as file:
        return sum(1 for _ in tfw.read_records(file))


def unread(url):
    """Nothing is made of the bytes."""
    host, path = url.removeprefix("http://").split("/")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", f"/{path}")
    answer, memory = connection.getresponse(), bytearray(8 << 20)
    while answer.readinto(memory):
        pass
    connection.close()
    return COUNT


def bench_read_over_http(versus, url):
    rivals = {
        "fsspec's own file": (partial(by_fsspec, url), 1),
        "bytes over one connection, dropped": (partial(unread, url), None),
    }
    versus("read over HTTP", "own", partial(ours, url), rivals, remote.RECORD_BYTES)
