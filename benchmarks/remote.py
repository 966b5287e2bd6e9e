"""Records of an object over HTTP, from a server with latency and a limit per connection.

    python benchmarks/remote.py [--megabytes 1000] [--latency 20] [--rate 200]

The server is a process of its own. "theory" is what the ranges in flight can carry: each takes the
latency and its bytes at the rate of a connection. Needs fsspec and aiohttp.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np

import tfwire as tfw
from tfwire._records.remote import random_ranges, read_ahead

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

RECORD_BYTES = 150_000  # of W3: a JPEG each
PARTS = 10


def serve(connection: Any, count: int, latency: float, rate: float) -> None:
    """Serves a file of records, plain and compressed, until the other side says a word."""
    import io
    import os

    from helpers.remote.object_server import ObjectServer

    payload = os.urandom(RECORD_BYTES)
    with ObjectServer() as server:
        for path, options in (("/plain", None), ("/gzip", "GZIP")):
            out = io.BytesIO()
            tfw.write_records(out, [payload] * count, options)
            server.add(path, out.getvalue())
        for i in range(PARTS):
            out = io.BytesIO()
            tfw.write_records(out, [payload] * (count // PARTS))
            server.add(f"/plain-{i}", out.getvalue())
        server.latency, server.rate = latency, rate
        connection.send((server.port, len(server.objects["/plain"])))
        connection.recv()


def seconds(read: Callable[[], Iterable[bytes]], count: int) -> float:
    """The best of three passes."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        found = sum(1 for _ in read())
        best = min(best, time.perf_counter() - began)
        assert count == found
    return best


def default_file(url: str) -> Iterable[bytes]:
    with fsspec.open(url, "rb") as file:
        yield from tfw.read_records(file)


def print_random(url: str, count: int, latency: float, rate: float) -> None:
    """1,000 random records of an object that has an index, with the time to open it. Theory: all
    the ranges that may be in flight are, and two requests before."""
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "index")
        tfw.RecordIndex.build(url).save(saved)
        numbers = np.random.default_rng(1).permutation(count)[:1000]

        def read() -> Iterable[bytes]:
            with tfw.TFRecordFile(url, saved) as records:
                return records[numbers]

        taken = seconds(read, len(numbers))
    sizes = group_sizes(np.sort(numbers))
    flight = random_ranges._SHORT_IN_FLIGHT
    theory = 2 * latency + (len(sizes) * latency + sum(sizes) / rate) / flight
    print(f"{len(numbers)} random records{'':4} {taken:7.3f} s, theory {theory:.3f} s")


def group_sizes(numbers: np.ndarray[Any, Any]) -> list[int]:
    """Bytes of the ranges that some records take."""
    size = RECORD_BYTES + 16
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [len(group) * size for group in groups]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=20.0, help="milliseconds of every answer")
    parser.add_argument("--rate", type=float, default=200.0, help="MB/s of every connection")
    options = parser.parse_args()
    count = options.megabytes * 1_000_000 // RECORD_BYTES
    latency, rate = options.latency / 1000, options.rate * 1e6
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=serve, args=(there, count, latency, rate), daemon=True)
    server.start()
    port, size = here.recv()
    url = f"http://127.0.0.1:{port}/plain"
    part = read_ahead._RANGE_BYTES
    default = size / seconds(lambda: default_file(url), count) / 1e6
    print(f"{'fsspec, default file':24} {default:7.0f} MB/s")
    for flight in (1, 2, 4, 8):
        read_ahead._IN_FLIGHT = flight
        theory = flight * part / (latency + part / rate) / 1e6
        found = size / seconds(lambda: tfw.read_records(url), count) / 1e6
        print(
            f"{flight} in flight{'':13} {found:7.0f} MB/s, {found / theory:4.0%} of {theory:.0f}, "
            f"{found / default:4.1f} times the default"
        )
    urls = [f"{url}-{i}" for i in range(PARTS)]
    parts = size / seconds(lambda: tfw.read_records(urls), count // PARTS * PARTS) / 1e6
    print(f"{f'{PARTS} objects, 8 in flight':24} {parts:7.0f} MB/s")
    gzip = count * RECORD_BYTES / seconds(lambda: tfw.read_records(url[:-5] + "gzip"), count) / 1e6
    print(f"{'gzip, 8 in flight':24} {gzip:7.0f} MB/s")
    print_random(url, count, latency, rate)
    here.send("end")
    server.join(10)


if __name__ == "__main__":
    main()
