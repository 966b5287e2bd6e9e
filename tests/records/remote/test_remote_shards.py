"""ShardedWriter over URLs: nothing is visible before close, and a set is old or new."""

from __future__ import annotations

import contextlib
import json
import warnings

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tfwire as tfw
from helpers.products import diagonals
from helpers.remote.object_server import RECORDS, ObjectServer, file_of, names
from tfwire._records.reading.publishing_markers import MARKER
from tfwire._records.remote.upload import RemoteShardSink
from tfwire.sharding import recover_shards

NAME = "train-{shard:02d}-of-{shards:02d}"


def written(folder, records=RECORDS, **options):
    options = options or {"num_shards": 3}
    with tfw.ShardedWriter(f"{folder}/{NAME}", **options) as writer:
        writer.write_many(records)
    return writer


@pytest.mark.parametrize(
    ("options", "num_threads", "compression"),
    diagonals(
        *(0, 2, [{"num_shards": 3}, {"shard_size": "200kB", "index": True}], [1, 3]),
        [None, "GZIP"],
    ),
)
def test_objects_appear_together(folder, options, num_threads, compression):
    """Each with its index, where that is asked for."""
    with tfw.ShardedWriter(
        f"{folder}/{NAME}", options=compression, num_threads=num_threads, **options
    ) as writer:
        writer.write_many(RECORDS)
        assert [] == [name for name in names(folder) if not name.startswith(".tfwire-")]
    files = [path.rsplit("/", 1)[-1] for path in writer.paths]
    indexes = [f"{file}.tfwindex" for file in files] if "index" in options else []
    assert names(folder) == sorted(files + indexes)
    assert all(path.startswith(folder) for path in writer.paths)
    assert writer.receipt == tfw.Receipt.of(tfw.read_records(writer.paths))
    assert len(RECORDS) == writer.num_records == len(tfw.TFRecordFiles(writer.paths))
    for path in writer.paths if indexes else ():
        assert tfw.RecordIndex.build(path) == tfw.RecordIndex.load(path)


def test_an_error_leaves_what_was_there(folder):
    paths = written(folder, [b"old"] * 3).paths
    before = names(folder)
    with (
        contextlib.suppress(KeyError),
        tfw.ShardedWriter(f"{folder}/{NAME}", num_shards=3) as writer,
    ):
        writer.write_many(RECORDS)
        raise KeyError
    assert before == names(folder)
    assert [b"old"] * 3 == list(tfw.read_records(paths))


def failing(monkeypatch, number, error):
    """Makes the publishing of one object fail."""
    real, calls = RemoteShardSink.publish, []

    def publish(self, path):
        calls.append(path)
        if path.endswith(f"train-{number:02d}-of-03"):
            raise error
        real(self, path)

    monkeypatch.setattr(RemoteShardSink, "publish", publish)


@pytest.mark.parametrize(("number", "old"), [(0, True), (1, False), (2, True)])
def test_a_failure_while_publishing_restores_the_old_objects(monkeypatch, folder, number, old):
    if old:
        written(folder, [b"old"] * 3, num_shards=3, index=True)
    before = names(folder)
    failing(monkeypatch, number, OSError("the store is full"))
    with pytest.raises(OSError, match=r"cannot be published.*the store is full.*train-00-of-03"):
        written(folder, num_shards=3, index=True)
    assert before == names(folder)
    if old:
        assert [b"old"] * 3 == list(tfw.read_records(f"{folder}/train-*"))
        assert 3 == len(tfw.TFRecordFiles(f"{folder}/train-*"))


class KilledError(BaseException):
    """The process ends here: nothing is undone."""


def kill(monkeypatch, number, folder):
    """Kills a writer while it publishes one object."""
    with monkeypatch.context() as patch, contextlib.suppress(KilledError):
        failing(patch, number, KilledError())
        patch.setattr("tfwire._records.shards.shard_files.undo_objects", lambda *arguments: None)
        patch.setattr("tfwire._records.shards.shard_files.RemoteShards.discard", lambda self: None)
        written(folder)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_killed_writer_leaves_a_marker_until_it_is_recovered(monkeypatch, folder, number):
    written(folder, [b"old"] * 3)
    written(folder, [b"other"] * 4, num_shards=4)
    before = names(folder)
    kill(monkeypatch, number, folder)
    assert MARKER in names(folder)
    with pytest.raises(FileExistsError, match=rf"recover_shards.*{folder}/{MARKER}"):
        tfw.ShardedWriter(f"{folder}/{NAME}", num_shards=3)
    assert ["train-00-of-03", "train-01-of-03", "train-02-of-03"] == recover_shards(folder)
    assert before == names(folder)
    assert [b"old"] * 3 == list(tfw.read_records(f"{folder}/train-*-of-03"))
    assert [] == recover_shards(folder)
    written(folder)


def test_what_another_program_wrote_since_stays(monkeypatch):
    kill(monkeypatch, 2, "memory://folder")
    fsspec.filesystem("memory").pipe_file("/folder/train-00-of-03", b"another's")
    recover_shards("memory://folder")
    assert ["train-00-of-03"] == [each for each in names("memory://folder") if each[0] != "."]


def test_a_marker_that_appears_meanwhile_is_refused():
    writer = tfw.ShardedWriter(f"memory://folder/{NAME}", num_shards=2)
    fsspec.filesystem("memory").pipe_file(f"/folder/{MARKER}", b"[]")
    with pytest.raises(FileExistsError, match=MARKER):
        writer.close()
    assert [MARKER] == names("memory://folder")


@pytest.mark.parametrize("marker", [b"", b"no json", b'[["a", "../b", [1], null]]'])
def test_a_marker_that_is_not_ours(marker):
    fsspec.filesystem("memory").pipe_file(f"/folder/{MARKER}", marker)
    fsspec.filesystem("memory").pipe_file("/b", b"stays")
    if b".." in marker:
        with pytest.raises(ValueError, match="another folder"):
            recover_shards("memory://folder")
    else:
        assert [] == recover_shards("memory://folder")
    assert fsspec.filesystem("memory").exists("/b")


class FileNamedByClose(fsspec.spec.AbstractBufferedFile):
    """Ignores autocommit."""

    def _initiate_upload(self):
        self.sent = b""

    def _upload_chunk(self, final=False):
        self.sent += self.buffer.getvalue()
        if final:
            MemoryFileSystem().pipe_file(self.path, self.sent)
        return True


class StoreNamingByClose(MemoryFileSystem):
    """A store as RemoteSink sees it, whose uploads do not wait for commit."""

    protocol = "late"
    async_impl = True
    cachable = False

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.replace("late://", "memory://"))

    def _open(self, path, mode="rb", **kwargs):
        return FileNamedByClose(self, path, mode)


def test_a_store_whose_uploads_do_not_wait(monkeypatch):
    fsspec.register_implementation("late", StoreNamingByClose, clobber=True)
    writer = tfw.ShardedWriter(f"late://folder/{NAME}", num_shards=3)
    writer.write_many(RECORDS)
    failing(monkeypatch, 1, OSError("full"))
    with pytest.raises(OSError, match="full"):
        writer.close()
    assert [] == names("memory://folder")
    monkeypatch.undo()
    written("late://folder")
    assert 3 == len(names("memory://folder"))
    assert tfw.Receipt.of(RECORDS) == tfw.Receipt.of(tfw.read_records("memory://folder/*"))


@pytest.mark.parametrize(
    "make",
    [
        tfw.TFRecordWriter,
        lambda url: tfw.ShardedWriter(url.replace("new", "new-{shard}"), num_shards=2),
    ],
)
def test_a_filesystem_that_cannot_be_written(make):
    with (
        ObjectServer() as server,
        pytest.raises(OSError, match=r"cannot be opened for writing.*cannot be written.*/new"),
    ):
        make(server.url("/new"))


@pytest.mark.parametrize("url", ["simplecache::memory://a/x-{shard}", "memory://a/"])
def test_urls_that_cannot_name_a_set(url):
    with pytest.raises(ValueError, match="memory://a/"):
        tfw.ShardedWriter(url, num_shards=2)


# ---- Readers -----------------------------------------------------------------------------------


READERS = [
    lambda paths: list(tfw.read_records(paths)),
    lambda paths: list(tfw.TFRecordDataset(paths)),
    lambda paths: list(tfw.TFRecordFiles(paths)),
]


def half_published(folder):
    """A set of which a killed writer named one object; and a neighbour."""
    paths = written(folder, [b"old"] * 3).paths
    fs, path = fsspec.core.url_to_fs(folder)
    steps = [["draft", name.rsplit("/", 1)[1], [1], None] for name in paths]
    fs.pipe_file(f"{path}/{MARKER}", json.dumps(steps).encode())
    tfw.write_records(f"{folder}/other", [b"x"])
    return paths


@pytest.mark.parametrize("read", READERS)
def test_readers_tell_of_a_half_published_set_once(folder, read):
    paths = half_published(folder)
    for given in (paths, f"{folder}/train-*"):
        with pytest.warns(tfw.TfwireWarning) as found:
            assert [b"old"] * 3 == read(given)
        assert 1 == len(found)
        assert "/train-00-of-03: belongs to a set of shards" in str(found[0].message)
        assert "recover_shards" in str(found[0].message)
    with warnings_as_errors():
        assert [b"x"] == read([f"{folder}/other"])
    fs, path = fsspec.core.url_to_fs(folder)
    for text in (b"[]", b"no json", b'[["a", "../b", [1], null]]', b""):
        fs.pipe_file(f"{path}/{MARKER}", text)
        with warnings_as_errors():
            assert [b"old"] * 3 == read(paths)


@contextlib.contextmanager
def warnings_as_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def test_a_missing_object_of_a_half_published_set_is_explained():
    paths = half_published("memory://folder")
    fsspec.filesystem("memory").rm("/folder/train-00-of-03")
    with pytest.warns(tfw.TfwireWarning, match="belongs to"), pytest.raises(FileNotFoundError):
        list(tfw.read_records(paths))


def test_a_marker_is_not_kept_by_a_cache(tmp_path):
    paths = half_published("memory://folder")
    cached = [f"simplecache::{path}" for path in paths]
    options = {"simplecache": {"cache_storage": str(tmp_path)}}
    with pytest.warns(tfw.TfwireWarning, match="simplecache::memory://folder/train-00-of-03: bel"):
        list(tfw.read_records(cached, storage_options=options))
    fsspec.filesystem("memory").rm(f"/folder/{MARKER}")
    with warnings_as_errors():
        list(tfw.read_records(cached, storage_options=options))


def test_the_marker_takes_one_request_for_a_folder():
    with ObjectServer() as server:
        for name in "abc":
            server.add(f"/set/{name}", file_of([b"x"]))
        urls = [server.url(f"/set/{name}") for name in "abc"]
        list(tfw.read_records(urls[0]))
        assert 1 == server.requests.pop("GET")
        with warnings_as_errors():
            assert [b"x"] * 3 == list(tfw.read_records(urls))
        assert 3 + 1 == server.requests["GET"]
        steps = [["draft", "b", [1], None]]
        server.add(f"/set/{MARKER}", json.dumps(steps).encode())
        with pytest.warns(tfw.TfwireWarning, match="/set/b: belongs to a set"):
            list(tfw.read_records(urls))
