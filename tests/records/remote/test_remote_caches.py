"""Objects by way of fsspec's local caches: whole files, and blocks."""

from __future__ import annotations

import fsspec
import pytest
from fsspec.spec import AbstractBufferedFile

import tfwire as tfw
from helpers.remote.object_server import RECORDS, ObjectFileSystem
from tfwire._base.parallel_map import ParallelMap

# fsspec's cache of blocks leaves its files to be closed by the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning"),
    pytest.mark.usefixtures("small"),
]

CACHES = ["blockcache", "filecache", "simplecache"]


class BlockFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start, end)


class BlockFileSystem(ObjectFileSystem):
    """Its files are read in blocks, as those of stores are. It cannot list a folder, as most
    servers of HTTP."""

    protocol = "blocks"
    cachable = True

    def info(self, path, **kwargs):
        return super().info(path.replace("blocks://", "objects://"))

    def cat_file(self, path, start=None, end=None, **kwargs):
        return super().cat_file(path, start or 0, self.info(path)["size"] if end is None else end)

    def _open(self, path, mode="rb", block_size=None, **kwargs):
        return BlockFile(self, path, mode, 50_000, **kwargs)

    def get_file(self, rpath, lpath, **kwargs):
        with open(lpath, "wb") as file:
            file.write(self.cat_file(rpath))


fsspec.register_implementation("blocks", BlockFileSystem, clobber=True)


@pytest.fixture(params=CACHES)
def cache(request, tmp_path):
    """The name of a cache, and its options."""
    return request.param, {request.param: {"cache_storage": str(tmp_path / "cache")}}


@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_objects_are_read_through_a_cache(server, cache, path):
    url, options = f"{cache[0]}::{server.url(path, 'blocks')}", cache[1]
    for _ in range(2):
        assert RECORDS == list(tfw.read_records(url, storage_options=options))
    assert tfw.verify_file(url, storage_options=options).num_records == len(RECORDS)


@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_objects_are_read_by_number_through_a_cache(server, cache, path, tmp_path):
    tfw.RecordIndex.build(server.url(path)).save(tmp_path / "index")
    server.add(f"{path}.tfwindex", (tmp_path / "index").read_bytes())
    url, options = f"{cache[0]}::{server.url(path, 'blocks')}", cache[1]
    assert tfw.RecordIndex.build(url, storage_options=options) == tfw.RecordIndex.load(
        url, storage_options=options
    )
    with tfw.TFRecordFile(url, storage_options=options) as records:
        assert [RECORDS[i] for i in (399, 3, 4)] == records[[399, 3, 4]]
        assert RECORDS[7] == records[7]
        assert RECORDS == list(records)


def test_a_cache_of_blocks_fetches_no_block_twice(server, tmp_path):
    options = {"blockcache": {"cache_storage": str(tmp_path)}}
    url = f"blockcache::{server.url('/a', 'blocks')}"
    for _ in range(2):
        assert RECORDS == list(tfw.read_records(url, storage_options=options))
        assert len(server.objects["/a"]) == sum(end - begin for begin, end in server.ranges)


def test_threads_share_a_cache(server, cache):
    url, options = f"{cache[0]}::{server.url('/a', 'blocks')}", cache[1]

    def read(_, check):
        return list(tfw.read_records(url, storage_options=options))

    if cache[0] != "blockcache":  # fsspec fetches a whole file without a lock
        read(0, None)
    assert [RECORDS] * 8 == list(ParallelMap(read, range(8), 4))


def test_a_cache_of_blocks_that_cannot_hold_an_object_says_what_to_use():
    tfw.write_records("memory://set/a", RECORDS)
    tfw.RecordIndex.build("memory://set/a").save()
    url = "blockcache::memory://set/a"
    for call in (
        lambda: next(tfw.read_records(url)),
        lambda: tfw.TFRecordFile(url)[3],
        lambda: tfw.RecordIndex.build(url),
    ):
        with pytest.raises(OSError, match=r"use simplecache:: or filecache::.*'blockcache::mem"):
            call()
