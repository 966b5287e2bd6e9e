"""URLs that are read: ranges in flight, faults of servers, patterns and options."""

from __future__ import annotations

import contextlib
import gc
import pickle
import sys
import threading
import time
import weakref
import zipfile
from itertools import chain

import fsspec
import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.remote.object_server import RECORDS, file_of
from helpers.threads import Consumer, wait_for
from tfwire import arrow
from tfwire._records.files.urls import ObjectPath
from tfwire._records.remote import read_ahead

pytestmark = pytest.mark.usefixtures("small")


class Upath:
    """A path as universal_pathlib has it."""

    def __init__(self, fs, path):
        self.fs, self.path = fs, path


def memory(path):
    return Upath(fsspec.filesystem("memory"), path)


# ---- Reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_an_object_is_read_by_large_ranges_that_are_in_flight_together(server, path):
    server.latency = 0.02
    assert RECORDS == list(tfw.read_records(server.url(path)))
    size = len(server.objects[path])
    assert [(i, min(i + 100_000, size)) for i in range(0, size, 100_000)] == sorted(server.ranges)
    assert 1 < server.most_in_flight <= 8


def test_ranges_are_read_ahead_within_a_bound(server):
    server.add("/long", file_of(RECORDS * 10))
    records = tfw.read_records(server.url("/long"))
    next(records)
    assert wait_for(lambda: len(server.ranges) >= 8)
    time.sleep(0.05)
    assert len(server.ranges) <= 8 + 2 + 1
    records.close()


def test_objects_that_are_read_together_share_the_ranges_in_flight(server, monkeypatch):
    monkeypatch.setattr(read_ahead, "_reading", weakref.WeakSet())
    server.add("/long", file_of(RECORDS * 10))
    readers = [tfw.read_records(server.url("/long")) for _ in range(10)]
    for reader in readers:
        next(reader)
    counts = [reader._batches.reader._file._input._workers._threads for reader in readers]
    assert [8, 4, 2, 2, 1, 1, 1, 1, 1, 1] == list(map(len, counts))
    for reader in readers:
        reader.close()


def many(server, count=5):
    """URLs of objects of one to five ranges, and their records."""
    parts = [RECORDS[: 50 + 80 * i] for i in range(count)]
    for i, part in enumerate(parts):
        server.add(f"/part-{i}", file_of(part, "GZIP" if i % 2 else None))
    return [server.url(f"/part-{i}") for i in range(count)], list(chain(*parts))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_next_object_of_a_list_is_fetched_while_one_ends(server, threads):
    urls, expected = many(server)
    asked, in_time = threading.Event(), []
    server.lock = contextlib.nullcontext()  # the server waits in faults

    def wait(path, begin, end):
        if path == "/part-1":
            asked.set()
        if path == "/part-0":
            in_time.append(asked.wait(30))

    server.faults = wait
    assert expected == list(tfw.read_records(urls, num_threads=threads))
    assert [True] == in_time
    assert 1 + 2 + 3 + 4 + 5 == len(server.ranges)  # each once


def test_a_closed_iterator_leaves_no_prepared_object(server):
    urls, _ = many(server)
    for count in (1, 49, 50, 51):
        records = tfw.read_records(urls)
        for _ in range(count):
            next(records)
        records.close()
    del records


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_objects_that_are_verified_together_are_fetched_once(server, threads):
    urls, expected = many(server)
    for _ in range(5):
        server.ranges.clear()
        reports = tfw.verify_files(urls, num_threads=threads)
        assert len(expected) == sum(report.num_records for report in reports)
        assert 1 + 2 + 3 + 4 + 5 == len(server.ranges)


def test_an_error_of_the_next_object_comes_at_its_place(server):
    urls, expected = many(server, 2)
    records = tfw.read_records([*urls, server.url("/missing")])
    assert expected == [next(records) for _ in expected]
    with pytest.raises(FileNotFoundError, match="/missing"):
        next(records)


def test_a_list_of_many_objects_is_read_and_pickled():
    tfw.write_records("memory://set/a", [b"x"])
    urls = ["memory://set/a"] * 1200
    assert 1200 == sum(1 for _ in tfw.read_records(urls))
    dataset = pickle.loads(pickle.dumps(tfw.TFRecordDataset(urls)))
    assert 1200 == sum(1 for _ in dataset)


def test_a_dropped_iterator_ends_its_threads(server):
    server.add("/long", file_of(RECORDS * 10))
    next(tfw.read_records(server.url("/long")))
    gc.collect()  # the fixture looks for threads


def test_an_empty_object_has_no_records(server):
    server.add("/empty", b"")
    assert [] == list(tfw.read_records(server.url("/empty")))
    assert [] == server.ranges


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_objects_as_long_as_their_ranges(server, extra):
    server.add("/even", file_of([bytes(200_000 - 16 + extra)]))
    assert [200_000 - 16 + extra] == list(map(len, tfw.read_records(server.url("/even"))))


def test_every_reader_takes_a_url(server, tmp_path):
    rows = [{"x": i} for i in range(9)]
    server.add("/rows", file_of(rows))
    server.add("/token", file_of(rows))
    url = server.url("/rows")
    server.token = "secret"
    options = {"storage_options": {"token": "secret"}}
    features = tfw.infer_schema(url, **options)
    assert ["x"] == list(features)
    batches = list(tfw.Parser(features).parse_file(url, num_threads=2, **options))
    assert list(range(9)) == batches[0]["x"].tolist()
    assert [9] == [batch.num_rows for batch in arrow.open_reader(url, **options)]
    assert 9 == tfw.verify_file(url, file_crc32c=True, **options).num_records
    assert [9] == [report.num_records for report in tfw.verify_files([url], **options)]
    assert 9 == len(list(tfw.follow_records(url, timeout=0, **options)))
    assert 9 == tfw.repair_file(url, tmp_path / "out", **options).num_records
    dataset = tfw.TFRecordDataset([url, url], num_parallel_reads=2, **options)
    assert 18 == len(list(dataset))
    assert 18 == len(list(pickle.loads(pickle.dumps(dataset))))
    for wrong in ({}, {"storage_options": {"token": "guessed"}}):
        with pytest.raises(PermissionError, match=r"403.*/rows"):
            list(tfw.read_records(url, **wrong))


# ---- Faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["reset", "short", 503, 429, 408])
@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_what_may_pass_is_tried_again(server, fault, path):
    asked = set()

    def fails_once(path, begin, end):
        if end in asked:
            return None
        asked.add(end)
        return fault

    server.faults = fails_once
    assert RECORDS == list(tfw.read_records(server.url(path)))
    assert len(server.ranges) == 2 * len(asked)


def test_what_arrived_of_a_short_answer_is_kept(server):
    server.faults = lambda path, begin, end: "short" if (begin, end) == (0, 100_000) else None
    assert RECORDS == list(tfw.read_records(server.url("/a")))
    assert (50_000, 100_000) in server.ranges


@pytest.mark.parametrize("fault", ["reset", 503])
def test_an_error_names_the_url_the_range_and_the_tries(server, fault):
    server.faults = lambda path, begin, end: fault if begin == 200_000 else None
    records = tfw.read_records(server.url("/a"))
    found = []
    with pytest.raises(OSError, match=r"bytes 200000 to 300000 cannot be read \(6 tries\)") as info:
        found.extend(iter(records.__next__, None))
    assert server.url("/a") == info.value.filename
    assert 6 == server.ranges.count((200_000, 300_000))


@pytest.mark.parametrize(
    ("status", "error"), [(403, PermissionError), (404, FileNotFoundError), (400, OSError)]
)
def test_what_does_not_pass_is_not_tried_again(server, status, error):
    server.faults = lambda path, begin, end: status if begin == 200_000 else None
    with pytest.raises(error, match=r"bytes 200000 to 300000.*\(1 try\).*/a"):
        list(tfw.read_records(server.url("/a")))
    assert 1 == server.ranges.count((200_000, 300_000))


def changing(server, path, data, when):
    """The object becomes another one when a range is asked for."""

    def change(asked, begin, end):
        if begin == when:
            server.add(path, data, '"2"')

    return change


def test_a_changed_object_is_told(server):
    data = file_of(RECORDS * 4)
    server.add("/long", data)
    server.faults = changing(server, "/long", data, 800_000)  # the last are asked for after it
    with pytest.raises(OSError, match=r'changed while it was read: .*ETag "1".*ETag "2".*/long'):
        list(tfw.read_records(server.url("/long")))


def test_damage_of_a_changed_object_is_its_change(server, monkeypatch):
    monkeypatch.setattr(read_ahead, "_IN_FLIGHT", 1)  # no range is asked for before the first
    server.faults = changing(server, "/a", bytes(len(server.objects["/a"])), 0)
    with pytest.raises(OSError, match="changed while it was read"):
        list(tfw.read_records(server.url("/a")))


def test_damage_of_an_unchanged_object_is_damage(server):
    server.add("/bad", file_of(RECORDS)[:-1])
    with pytest.raises(tfw.DataLossError, match="/bad"):
        list(tfw.read_records(server.url("/bad")))
    with pytest.warns(tfw.TfwireWarning, match="left out 1 damaged region"):
        found = list(tfw.read_records(server.url("/bad"), on_corrupt="tail"))
    assert RECORDS[:-1] == found


def test_a_missing_object_and_one_that_vanishes(server):
    server.faults = lambda path, begin, end: server.objects.pop(path, None) and None
    for path in ("/a", "/missing"):
        with pytest.raises(FileNotFoundError, match=f"no such object.*{path}"):
            list(tfw.read_records(server.url(path)))


def test_a_server_that_ignores_ranges_is_read_from_the_beginning(server):
    server.ignores_ranges = True
    for path in ("/a", "/gz"):
        assert RECORDS == list(tfw.read_records(server.url(path)))


def test_closing_ends_a_wait(server, monkeypatch):
    monkeypatch.setattr("tfwire._base.workers.PATIENCE", 0.01)
    hold = threading.Event()
    server.faults = lambda path, begin, end: hold.wait(60) and None if begin else None
    server.lock = contextlib.nullcontext()  # the server waits in faults
    records = tfw.read_records(server.url("/a"))
    consumer = Consumer(records)
    assert wait_for(lambda: len(server.ranges) >= 2 and consumer.found)
    records.close()
    hold.set()
    consumer.join()
    assert "closed" in str(consumer.error)


@FORKS_BESIDE_THREADS
def test_a_forked_process_reads_on(server):
    server.add("/long", file_of(RECORDS * 5))
    records = tfw.read_records(server.url("/long"))
    assert RECORDS[:3] == [next(records) for _ in range(3)]
    rest = RECORDS[3:] + RECORDS * 4
    ended = forked(lambda: rest == list(records))
    assert rest == list(records)
    assert ended()


# ---- Paths, options and patterns ----------------------------------------------------------------


def test_patterns_of_urls_are_expanded_in_order():
    for name in ("b", "a", "c"):
        tfw.write_records(f"memory://set/{name}.tfrecord", [name.encode()])
    tfw.write_records("memory://set/other", [b"other"])
    url = "memory://set/*.tfrecord"
    assert [b"a", b"b", b"c"] == list(tfw.read_records(url))
    assert [b"a", b"b", b"c"] == list(tfw.read_records(memory("/set/*.tfrecord")))
    assert [b"a", b"b", b"c"] == list(tfw.TFRecordDataset(url))
    names = [f"memory:///set/{name}.tfrecord".encode() for name in "abc"]
    assert names == list(tfw.Dataset.list_files(url, shuffle=False))
    assert [1, 1, 1] == [report.num_records for report in tfw.verify_files(url)]


def test_an_object_whose_name_looks_like_a_pattern():
    tfw.write_records("memory://set/a[1].tfrecord", [b"x"])
    assert [b"x"] == list(tfw.read_records("memory://set/a[1].tfrecord"))


def test_a_pattern_without_a_match_names_the_url():
    url = "memory://nothing/*.tfrecord"
    for read in (tfw.read_records, tfw.TFRecordDataset, tfw.infer_schema):
        with pytest.raises(FileNotFoundError, match=r"no object matches.*memory://nothing/\*"):
            list(read(url))
    with pytest.raises(ValueError, match="no files match 'memory://nothing"):
        tfw.Dataset.list_files(url)


def test_paths_of_universal_pathlib_are_read_and_written():
    path = memory("/folder/upath")
    tfw.write_records(path, RECORDS)
    assert RECORDS == list(tfw.read_records(path))
    assert RECORDS * 2 == list(tfw.read_records([path, path]))
    assert len(RECORDS) == tfw.verify_file(path).num_records
    for record in tfw.read_records(path).with_positions():
        assert "memory:///folder/upath" == record[0]
        break


def test_an_object_path_survives_pickling():
    path = ObjectPath("memory://a", {"x": 1}, fsspec.filesystem("memory"), "/a")
    again = pickle.loads(pickle.dumps(path))
    assert (path, path.options, path.path) == (again, again.options, again.path)


def test_archives_are_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("b", file_of(RECORDS))
    assert RECORDS == list(tfw.read_records(f"zip://b::file://{tmp_path}/x.zip"))


def test_a_folder_is_its_files():
    """In a list by a slash at its end alone: that costs no request for each object."""
    tfw.write_records("memory://set/a", [b"x"])
    for url in ("memory://set", "memory://set/"):
        assert [b"x"] == list(tfw.read_records(url))
    assert [b"x", b"x"] == list(tfw.read_records(["memory://set/", "memory://set/a"]))
    with pytest.raises(IsADirectoryError, match=r"end it with / .*memory://set"):
        list(tfw.read_records(["memory://set", "memory://set/a"]))
    with pytest.raises(IsADirectoryError, match="memory://set"):
        tfw.TFRecordFile("memory://set")


def test_unknown_protocols_and_options_name_the_url():
    with pytest.raises(ValueError, match="nosuch://a/b: cannot be opened"):
        next(tfw.read_records("nosuch://a/b"))
    with pytest.raises(ValueError, match="nosuch://a/b: cannot be opened"):
        tfw.TFRecordWriter("nosuch://a/b")
    with pytest.raises(
        ValueError, match="objects://x: cannot be opened with these storage_options"
    ):
        next(tfw.read_records("objects://x", storage_options={"wrong": 1}))


def test_a_missing_library_says_what_to_install(monkeypatch):
    for name in ("s3fs", "gcsfs", "aiohttp"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.http", raising=False)
    registry = sys.modules["fsspec.registry"]._registry
    for name in ("s3", "gs", "http", "https"):
        monkeypatch.delitem(registry, name, raising=False)
    for url, package in {"s3://b/k": "s3fs", "gs://b/k": "gcsfs", "http://h/k": "aiohttp"}.items():
        with pytest.raises(ImportError, match=f"{url}: needs {package}; pip install {package}"):
            next(tfw.read_records(url))
    with pytest.raises(ImportError, match="s3fs"):
        next(tfw.read_records("simplecache::s3://b/k"))
