"""Reading records as bytes, every checksum verified."""

from __future__ import annotations

import contextlib
import io
import os

import pytest

import peers
import tfwire as tfw
from tfwire.cli import main
from tfwire.view._dataset import DataSet
from tfwire.view._records import BrowsedFile
from tfwire.view._search import Search


def read(path):
    return sum(1 for _ in tfw.read_records(path))


def bench_iterate_tutorial(versus, work):
    w = work["W1"]
    few = w.count // 50
    rivals = {"struct + crc32c package": (lambda: peers.plain_reader(w.path), None)}
    if peers.HAS_TENSORFLOW:
        rivals |= {
            "v1 tf_record_iterator": (lambda: peers.v1_iterator(w.path), 7.5),
            "tf.data batched to numpy": (lambda: peers.dataset_batched(w.path), 12),
            "tf.data one by one": (lambda: peers.dataset_one_by_one(w.path, few), 400),
        }
    versus("iterate records as bytes", "W1", lambda: read(w.path), rivals, w.size / w.count)


@pytest.mark.parametrize(("name", "v1", "plain"), [("W2", 5, 3.5), ("W3", 4.5, 1.6)])
def bench_iterate_long(versus, work, name, v1, plain):
    w = work[name]
    rivals = {"struct + crc32c package": (lambda: peers.plain_reader(w.path), plain)}
    if peers.HAS_TENSORFLOW:
        rivals["v1 tf_record_iterator"] = (lambda: peers.v1_iterator(w.path), v1)
    versus("iterate records as bytes", name, lambda: read(w.path), rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W2", "W3"])
def bench_verify(versus, work, name):
    """Every checksum of a file, as tfwire verify does it."""
    w = work[name]
    rivals = {"memcpy of the same bytes": (peers.copied(w.path, w.count), 0.7)}

    def ours():
        return tfw.verify_file(w.path).num_records

    versus("verify a file", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W3", "W5"])
@pytest.mark.parametrize("text", ["no such text", "417417", "77", "2.5"])
def bench_search(versus, work, name, text):
    """The viewer's search for what no record, or few have, beside verifying by as many threads."""
    w = work[name]
    threads = os.cpu_count() or 1

    def verified():
        return sum(each.num_records for each in tfw.verify_files([w.path], num_threads=threads))

    def ours():
        search = Search(DataSet([BrowsedFile(str(w.path))]), None, text)
        search.start()
        search.wait(w.count + 1, 60)
        return w.count

    rivals = {"verify_files": (verified, 0.5)}
    versus(f"search a file for {text}", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W2", "W3"])
def bench_index(versus, work, name):
    """Where every record lies; long payloads are not read for it."""
    w = work[name]
    rivals = {"memcpy of the same bytes": (peers.copied(w.path, w.count), 0.7)}

    def ours():
        return len(tfw.RecordIndex.build(w.path))

    versus("index a file", name, ours, rivals, w.size / w.count)


@pytest.mark.parametrize("name", ["W1", "W3", "W4", "W5"])
def bench_stats(versus, work, name):
    """tfwire stats, beside the parsing of the same file."""
    w = work[name]
    parser = tfw.Parser(w.spec(tfw), bytes_as="column")

    def parsed():
        batches = parser.parse_file(w.path, peers.BATCH)
        return sum(len(next(iter(batch.values()))) for batch in batches)

    def ours():
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), "utf-8")):
            assert main(["stats", str(w.path)]) == 0
        return w.count

    rivals = {"parse_file": (parsed, 0.5)}
    versus("tfwire stats", name, ours, rivals, w.size / w.count)


def bench_iterate_gzip(versus, work):
    w = work["W7"]
    rivals = {}
    if peers.HAS_TENSORFLOW:
        rivals["tf.data batched to numpy"] = (lambda: peers.dataset_batched(w.path, "GZIP"), 4)
    versus("iterate records as bytes", "W7", lambda: read(w.path), rivals, w.size / w.count)
