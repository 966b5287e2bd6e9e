"""URLs with the real libraries: s3fs and moto's S3 server, aiohttp, universal_pathlib."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import threading
import time

import fsspec
import pytest
from moto.server import ThreadedMotoServer
from upath import UPath

import tfwire as tfw
import tfwire.sharding
from helpers.remote.object_server import (
    RECORDS,
    ObjectServer,
    file_of,
    no_threads_left,
    small_ranges,
)
from tfwire._records.remote import read_ahead
from tfwire._records.remote.upload import RemoteShardSink

# Ten megabytes: two ranges of their real size, and two parts of an upload.
MANY = [random.Random(i).randbytes(100_000) for i in range(100)]


@pytest.fixture(scope="module")
def s3():
    """storage_options of a server with a bucket."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"key": "k", "secret": "s", "endpoint_url": f"http://{host}:{port}"}
    fsspec.filesystem("s3", **options).mkdir("bucket")
    yield options
    server.stop()


@pytest.fixture
def small(monkeypatch):
    with small_ranges(monkeypatch):
        yield


@pytest.fixture
def server(small):
    with ObjectServer() as server:
        for path, options in (("/a", None), ("/gz", "GZIP")):
            server.add(path, file_of(RECORDS, options))
        yield server


# ---- S3 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_s3(s3, options):
    url = "s3://bucket/a.tfrecord"
    tfw.write_records(url, MANY, options, storage_options=s3)
    assert MANY == list(tfw.read_records(url, storage_options=s3))
    assert MANY == list(tfw.read_records("s3://bucket/*.tfrecord", storage_options=s3))
    assert len(MANY) == tfw.verify_file(url, storage_options=s3).num_records
    path = UPath(url, **s3)
    assert MANY == list(tfw.read_records(path))
    assert MANY == list(tfw.TFRecordDataset([path], "auto"))
    no_threads_left()


def test_an_upload_is_seen_when_it_is_complete(s3):
    url, fs = "s3://bucket/late/a", fsspec.filesystem("s3", **s3)
    tfw.write_records(url, [b"old"], storage_options=s3)
    writer = tfw.TFRecordWriter(url, storage_options=s3 | {"default_block_size": 5 << 20})
    writer.write_many(MANY)
    assert [b"old"] == list(tfw.read_records(url, storage_options=s3))
    writer.close()
    assert MANY == list(tfw.read_records(url, storage_options=s3))
    assert ["bucket/late/a"] == fs.ls("bucket/late", refresh=True)


def test_an_upload_that_fails_is_aborted(s3):
    url, fs = "s3://bucket/never/a", fsspec.filesystem("s3", **s3)
    options = s3 | {"default_block_size": 5 << 20}
    with pytest.raises(TypeError), tfw.TFRecordWriter(url, storage_options=options) as writer:
        writer.write_many([*MANY, 3])
    assert not fs.exists(url)
    assert not fs.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads")


def test_an_empty_object_is_written(s3):
    url = "s3://bucket/empty"
    tfw.TFRecordWriter(url, storage_options=s3).close()
    assert [] == list(tfw.read_records(url, storage_options=s3))


def test_errors_of_s3_name_the_url(s3):
    for url in ("s3://bucket/missing", "s3://nowhere/missing", "s3://bucket/missing-*"):
        with pytest.raises(FileNotFoundError, match=url.replace("*", r"\*")):
            list(tfw.read_records(url, storage_options=s3))
    with pytest.raises(FileNotFoundError, match="s3://nowhere/a"):
        tfw.write_records("s3://nowhere/a", [b"x"], storage_options=s3)


def test_a_changed_object_of_s3_is_told(s3, small):
    url = "s3://bucket/changing"
    tfw.write_records(url, MANY, storage_options=s3)
    records = tfw.read_records(url, storage_options=s3)
    next(records)
    tfw.write_records(url, MANY[::-1], storage_options=s3)
    with pytest.raises(OSError, match=r"changed while it was read.*ETag.*s3://bucket/changing"):
        list(records)


SHARDS = "s3://bucket/{folder}/{{shard}}-of-{{shards}}"


@pytest.mark.parametrize("how", [{"num_shards": 3}, {"shard_size": "4MB"}])
def test_shards_of_s3_appear_together(s3, how):
    folder, fs = f"shards-{next(iter(how))}", fsspec.filesystem("s3", **s3)
    options = s3 | {"default_block_size": 5 << 20}
    pattern = SHARDS.format(folder=folder)
    with tfw.ShardedWriter(pattern, index=True, storage_options=options, **how) as writer:
        writer.write_many(MANY)
        fs.invalidate_cache()
        found = fs.find(f"bucket/{folder}")
        assert [] == [name for name in found if "/.tfwire-" not in name]
    fs.invalidate_cache()
    assert sorted(fs.find(f"bucket/{folder}")) == sorted(
        f"bucket/{folder}/{i}-of-3{suffix}" for i in range(3) for suffix in ("", ".tfwindex")
    )
    assert tfw.Receipt.of(MANY) == tfw.Receipt.of(
        tfw.read_records(writer.paths, storage_options=s3)
    )
    for path in writer.paths:
        index = tfw.RecordIndex.build(path, storage_options=s3)
        assert index == tfw.RecordIndex.load(path, storage_options=s3)
        assert "ETag" in index.version


@pytest.mark.parametrize("how", [{"num_shards": 3}, {"shard_size": "4MB"}])
def test_shards_of_s3_that_fail_restore_the_old_ones(monkeypatch, s3, how):
    folder, fs = f"failing-{next(iter(how))}", fsspec.filesystem("s3", **s3)
    pattern = SHARDS.format(folder=folder)
    options = s3 | {"default_block_size": 5 << 20}
    with tfw.ShardedWriter(pattern, num_shards=3, storage_options=s3) as writer:
        writer.write_many([b"old"] * 3)
    publish = RemoteShardSink.publish

    def fail(self, path):
        if path.endswith("/1-of-3"):
            raise OSError("no more")
        publish(self, path)

    monkeypatch.setattr(RemoteShardSink, "publish", fail)
    with (
        pytest.raises(OSError, match=r"cannot be published.*no more.*s3://bucket/failing"),
        tfw.ShardedWriter(pattern, storage_options=options, **how) as writer,
    ):
        writer.write_many(MANY)
    fs.invalidate_cache()
    assert [f"bucket/{folder}/{i}-of-3" for i in range(3)] == fs.find(f"bucket/{folder}")
    pattern = f"s3://bucket/{folder}/*"
    assert [b"old"] * 3 == list(tfw.read_records(pattern, storage_options=s3))
    assert not fs.call_s3("list_multipart_uploads", Bucket="bucket").get("Uploads")


def test_a_marker_of_s3_is_refused_and_recovered(s3):
    fs = fsspec.filesystem("s3", **s3)
    fs.pipe_file("bucket/marked/.tfwire-publishing", b"[]")
    with pytest.raises(FileExistsError, match=r"recover_shards.*s3://bucket/marked/\.tfwire"):
        tfw.ShardedWriter(SHARDS.format(folder="marked"), num_shards=2, storage_options=s3)
    assert [] == tfwire.sharding.recover_shards("s3://bucket/marked", storage_options=s3)
    fs.invalidate_cache()
    assert [] == fs.find("bucket/marked")


def test_simplecache_of_s3(s3, tmp_path):
    tfw.write_records("s3://bucket/cached", MANY, storage_options=s3)
    options = {"s3": s3, "simplecache": {"cache_storage": str(tmp_path)}}
    url = "simplecache::s3://bucket/cached"
    assert MANY == list(tfw.read_records(url, storage_options=options))
    assert [len(MANY) * (100_000 + 16)] == [each.stat().st_size for each in tmp_path.iterdir()]
    tfw.write_records("simplecache::s3://bucket/back", MANY, storage_options=options)
    assert MANY == list(tfw.read_records("s3://bucket/back", storage_options=s3))


# fsspec never closes the file of its blocks.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("cache", ["simplecache", "filecache", "blockcache"])
@pytest.mark.parametrize("store", ["s3", "http"])
def test_caches_of_ranges_and_files(s3, server, tmp_path, cache, store):
    url, options = server.url("/a", "http"), {cache: {"cache_storage": str(tmp_path)}}
    if store == "s3":
        url, options = "s3://bucket/blocks", {**options, "s3": s3}
        tfw.write_records(url, RECORDS, storage_options=s3)
    url = f"{cache}::{url}"
    assert RECORDS == list(tfw.read_records(url, storage_options=options))
    assert len(RECORDS) == tfw.verify_file(url, storage_options=options).num_records
    assert RECORDS[3] == tfw.TFRecordFile(url, storage_options=options)[3]


def test_a_forked_process_reads_s3_on(s3, small):
    url = "s3://bucket/forked"
    tfw.write_records(url, MANY, storage_options=s3)
    records = tfw.read_records(url, storage_options=s3)
    first = [next(records) for _ in range(3)]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child():
        queue.put(tfw.Receipt.of(records))
        os._exit(0)

    process = context.Process(target=child)
    process.start()
    found = queue.get()
    process.join(30)
    assert tfw.Receipt.of(MANY[3:]) == found == tfw.Receipt.of(records)
    assert MANY[:3] == first


# ---- HTTP ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_http(server, path):
    server.latency = 0.01
    assert RECORDS == list(tfw.read_records(server.url(path, "http")))
    assert 1 < server.most_in_flight <= 8
    assert 1 == server.requests["HEAD"]
    no_threads_left()


@pytest.mark.parametrize("fault", [None, "short"])
def test_the_memory_of_ranges_is_used_again(server, monkeypatch, fault):
    made, asked = [], set()
    monkeypatch.setattr(
        read_ahead, "bytearray", lambda size: made.append(size) or bytearray(size), raising=False
    )
    server.add("/many", file_of(MANY))
    server.faults = lambda path, begin, end: None if end in asked else asked.add(end) or fault
    for found, expected in zip(tfw.read_records(server.url("/many", "http")), MANY, strict=True):
        assert expected == found
    assert 1 < len(made) <= 8 + 2 + 1  # in flight, waiting, and being read


@pytest.mark.parametrize("fault", ["reset", "short", 503])
def test_faults_of_http_that_may_pass(server, fault):
    asked = set()

    def fails_once(path, begin, end):
        return None if end in asked else asked.add(end) or fault

    server.faults = fails_once
    assert RECORDS == list(tfw.read_records(server.url("/a", "http")))


@pytest.mark.parametrize(
    ("fault", "error", "tries"),
    [("reset", OSError, "6 tries"), (503, OSError, "6 tries"), (403, PermissionError, "1 try")]
    + [(404, FileNotFoundError, "1 try"), (416, OSError, "changed")],
)
def test_faults_of_http_that_stay(server, fault, error, tries):
    server.faults = lambda path, begin, end: fault if 200_000 <= begin < 300_000 else None
    with pytest.raises(error, match=rf"{tries}.*http://127.0.0.1:\d+/a"):
        list(tfw.read_records(server.url("/a", "http")))


def test_a_changed_etag_of_http_is_told(server):
    def change(path, begin, end):
        if begin == 300_000:
            server.add("/a", server.objects["/a"], '"2"')

    server.faults = change
    with pytest.raises(OSError, match='it was "1", and is "2"'):
        list(tfw.read_records(server.url("/a", "http")))


def test_http_without_ranges(server):
    server.ignores_ranges = True
    for path in ("/a", "/gz"):
        assert RECORDS == list(tfw.read_records(server.url(path, "http")))


def test_an_answer_without_ranges_ends_with_its_reader(server):
    server.add("/long", file_of(4 * MANY))  # which takes longer to send than is waited for
    server.ignores_ranges, server.rate = True, 1e6
    url = server.url("/long", "http")
    records = tfw.read_records(url)
    next(records)
    records.close()
    next(tfw.read_records(url))  # dropped
    deadline = time.monotonic() + 30
    while server.in_flight:
        assert time.monotonic() < deadline, "an answer is still being sent"
        time.sleep(0.01)
    no_threads_left()


def test_credentials_of_http(server):
    server.token = "secret"
    url = server.url("/a", "http")
    options = {"headers": {"Authorization": "secret"}}
    assert RECORDS == list(tfw.read_records(url, storage_options=options))
    with pytest.raises(PermissionError, match=r"403.*/a"):
        list(tfw.read_records(url))


def test_closing_cancels_what_is_in_flight(server):
    answer = threading.Event()
    server.lock = contextlib.nullcontext()  # the server waits in faults
    server.faults = lambda path, begin, end: answer.wait(60) and None if begin else None
    records = tfw.read_records(server.url("/a", "http"))
    next(records)
    records.close()
    no_threads_left()
    answer.set()
    with pytest.raises(ValueError, match="closed"):
        next(records)


def test_http_is_not_written(server):
    with pytest.raises(OSError, match=r"cannot be opened for writing.*cannot be written.*/a"):
        tfw.TFRecordWriter(server.url("/a", "http"))


# ---- By number -----------------------------------------------------------------------------------


def test_an_index_beside_an_object_of_s3(s3):
    url = "s3://bucket/indexed"
    tfw.write_records(url, MANY, storage_options=s3)
    index = tfw.RecordIndex.build(url, storage_options=s3)
    index.save()
    assert index == tfw.RecordIndex.load(url, storage_options=s3)
    with tfw.TFRecordFile(url, storage_options=s3) as records:
        assert [MANY[i] for i in (99, 0, 50)] == records[[99, 0, 50]]
        assert MANY == list(records)
    dataset = tfw.TFRecordDataset("s3://bucket/index?d", indexed=True, storage_options=s3)
    assert sorted(MANY) == sorted(dataset.shuffle(1000, seed=1))
    tfw.write_records(url, MANY[::-1], storage_options=s3)
    with pytest.raises(tfw.DataLossError, match=r"s3://bucket/indexed.* is stale.*ETag.*ETag"):
        tfw.TFRecordFile(url, index, storage_options=s3)
    with pytest.raises(FileNotFoundError, match="s3://bucket/nothing"):
        tfw.TFRecordFile("s3://bucket/nothing", storage_options=s3)


@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_records_of_http_by_number(server, tmp_path, path):
    url = server.url(path, "http")
    tfw.RecordIndex.build(url).save(tmp_path / "index")
    server.add(f"{path}.tfwindex", (tmp_path / "index").read_bytes())
    server.requests.clear()
    records = tfw.TFRecordFile(url)
    assert sum(server.requests.values()) == 3
    numbers = [300, 5, 4, 180]
    assert [RECORDS[i] for i in numbers] == records[numbers]
    assert RECORDS == list(records)
    server.add(path, server.objects[path], '"2"')
    with pytest.raises(OSError, match="changed while it was read"):
        records[numbers]
    server.ignores_ranges = True
    if path == "/a":
        with pytest.raises(OSError, match="the server ignores"):
            tfw.TFRecordFile(url)[3]
    no_threads_left()
