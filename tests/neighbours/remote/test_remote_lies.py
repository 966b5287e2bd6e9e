"""HTTP servers that lie: right records or an error with the URL, in bounded bytes and memory."""

from __future__ import annotations

import random
import resource
import warnings

import fsspec
import pytest

import tfwire as tfw
from helpers.remote.lying_server import LIES, LyingServer
from helpers.remote.object_server import file_of, small_ranges
from tfwire._records.remote import http_answers

RECORDS = [random.Random(i).randbytes(1000) for i in range(400)]
DATA = file_of(RECORDS)


@pytest.fixture(scope="module")
def server():
    with LyingServer() as server:
        server.objects["/a"] = DATA
        yield server


@pytest.fixture(autouse=True)
def small(monkeypatch, server):
    """Nobody waits for long."""
    monkeypatch.setattr(http_answers, "ANSWER_SECONDS", 0.4)
    monkeypatch.setattr(http_answers, "_WINDOW_SECONDS", 0.2)
    monkeypatch.setattr("tfwire._records.remote.objects._TRIES", 2)
    monkeypatch.setattr("tfwire._records.remote.objects._LEAST_PART", 500)
    monkeypatch.setattr("tfwire._records.remote.read_ahead._MOST_SEARCHED", 5_000_000)
    monkeypatch.setattr("tfwire._base.workers.PATIENCE", 0.01)
    with small_ranges(monkeypatch):
        yield
    fsspec.filesystem("http").clear_instance_cache()


@pytest.fixture(scope="module")
def index(server, tmp_path_factory):
    """The index of the object, as it is when nobody lies."""
    path = tmp_path_factory.mktemp("index") / "index"
    server.lie = LIES["answers say identity"]
    tfw.RecordIndex.build(server.url("/a")).save(path)
    return path


def few(url, index):
    with tfw.TFRecordFile(url, index) as file:
        for number in range(0, 400, 20):
            assert RECORDS[number] == file[number]
    return 20


def many(url, index):
    with tfw.TFRecordFile(url, index) as file:
        assert RECORDS[::-2] == file[::-2]
        assert list(file) == RECORDS
    return 600


def built(url, index):
    with tfw.TFRecordFile(url) as file:
        assert RECORDS == file[:]
    return 400


def all_of(url, index, **options):
    found = []
    for record in tfw.read_records(url, **options):
        found.append(record)
    assert RECORDS == found
    return 400


def skipping(url, index):
    """Whatever cannot be read is an error, or is told as skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = tfw.read_records(url, on_corrupt="skip")
        found = list(records)
    assert RECORDS == found or records.skipped
    return 400


def beside(url, index):
    """The lies are told of the index."""
    server = LyingServer()
    with server:
        server.objects = {"/a": DATA, "/a.tfwindex": index.read_bytes()}
        server.honest = {"/a"}
        server.lie = beside.lie
        assert RECORDS == tfw.TFRecordFile(server.url("/a"))[:]
        beside.num_bytes = server.num_bytes
    return 400


# Some requests are in flight when the first answer is refused, and sockets hold bytes of each.
MOST_BYTES = 100 * len(DATA)
ACCESSES = [few, many, built, all_of, skipping, beside]
# What every access sees through, and what reading from the beginning to the end does.
RIGHT = {
    *("HEAD says 0 bytes", "HEAD says 1 byte", "HEAD says an end between records"),
    *("HEAD says an end within a record", "HEAD says twice as many bytes", "HEAD says 2^60 bytes"),
    *("HEAD says no size", "HEAD says that it is encoded", "HEAD says no ranges"),
    *("answers say any size", "answers say no version", "answers say identity"),
    *("a body that never ends", "a kilobyte of each range"),
}
RIGHT_IN_ORDER = RIGHT | {"ignores ranges", "ignores ranges in chunks", "HEAD says no version"}
WRONG = [
    *("cannot be read", "cannot be found", "cannot be opened", "changed while it was read"),
    *("is stale", "length checksum", "no GZIP stream", "needs ranges", "needs an object of known"),
    "nothing tells where the object ends",
]
# If the first answer comes before the second is asked for, nothing contradicts that the object is
# as long as the first range, which ends within a record.
SHORTER = {"a whole object in place of each range": ["bytes but only 432 are left"]}


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: access.__name__)
@pytest.mark.parametrize("name", LIES)
def test_a_lie_gives_right_records_or_an_error_that_names_the_url(server, index, name, access):
    server.lie = beside.lie = LIES[name]
    server.num_bytes = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = ""
    try:
        access(server.url("/a"), index)
    except (OSError, tfw.DataLossError) as error:
        text = str(error)
    if text:
        assert "127.0.0.1" in text
        assert "/a" in text
        assert any(wrong in text for wrong in WRONG + SHORTER.get(name, []))
        assert len(text) < 400  # it shows no bytes of the body
        assert "::" not in text.replace(" ", "")  # every part says something
        assert name not in (RIGHT if access in (few, many, built) else RIGHT_IN_ORDER)
    assert server.num_bytes < MOST_BYTES
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000  # kB
