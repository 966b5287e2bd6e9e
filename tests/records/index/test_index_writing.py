"""Indexes that are made while a file is written."""

from __future__ import annotations

import contextlib
import io

import fsspec
import numpy as np
import pytest

import tfwire as tfw
from tfwire._records.reading import batch_reader
from tfwire._records.remote import read_ahead

RECORDS = [bytes([i % 251]) * (i * 37 % 900) for i in range(1000)]


@pytest.fixture(autouse=True)
def empty_memory():
    yield
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(params=["path", "memory"])
def path(request, tmp_path):
    return str(tmp_path / "a") if request.param == "path" else "memory://folder/a"


def write_records(writer):
    for record in RECORDS[:500]:
        writer.write(record)
    writer.write_many(RECORDS[500:])


def write_long(writer):
    writer.write_many([bytes(100_000), b"", bytes(3 << 20), b"x"])


def write_rows(writer):
    writer.write_many([{"a": i} for i in range(500)])


def write_columns(writer):
    writer.write_columns({"a": np.arange(50_000)})


def write_nothing(writer):
    pass


@pytest.mark.parametrize("compression", [None, "GZIP", "ZLIB"])
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize(
    "write", [write_records, write_long, write_rows, write_columns, write_nothing]
)
def test_it_is_the_index_that_build_makes(path, write, compression, num_threads):
    with tfw.TFRecordWriter(path, compression, index=True, num_threads=num_threads) as writer:
        write(writer)
    assert tfw.RecordIndex.build(path, compression) == tfw.RecordIndex.load(path)


def test_the_object_is_not_read_again(monkeypatch, path):
    def refuse(*args, **kwargs):
        raise AssertionError("the file was read")

    monkeypatch.setattr(batch_reader.BatchReader, "__init__", refuse)
    monkeypatch.setattr(read_ahead.RemoteSource, "__init__", refuse)
    with tfw.TFRecordWriter(path, "GZIP", index=True) as writer:
        writer.write_many(RECORDS)
    assert len(RECORDS) == len(tfw.RecordIndex.load(path))


def test_a_path_is_the_one_at_the_beginning(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    with tfw.TFRecordWriter("a", index=True) as writer:
        writer.write_many(RECORDS)
        monkeypatch.chdir("other")
    assert len(RECORDS) == len(tfw.RecordIndex.load(tmp_path / "a"))


def test_an_error_leaves_no_index():
    with contextlib.suppress(KeyError), tfw.TFRecordWriter("memory://a/b", index=True) as writer:
        writer.write(b"x")
        raise KeyError
    assert [] == fsspec.filesystem("memory").find("a")


def test_a_file_that_somebody_changed_gets_no_index(monkeypatch, tmp_path):
    writer = tfw.TFRecordWriter(tmp_path / "a", index=True, atomic=True)
    writer.write_many(RECORDS)
    close = writer._sink.close
    writer._sink.close = lambda: (close(), (tmp_path / "a").write_bytes(bytes(3)))
    with pytest.raises(OSError, match=r"has 3: no index was saved"):
        writer.close()
    assert ["a"] == [each.name for each in tmp_path.iterdir()]


def test_an_index_that_cannot_be_saved_leaves_the_file(tmp_path):
    (tmp_path / "a.tfwindex").mkdir()
    writer = tfw.TFRecordWriter(tmp_path / "a", index=True)
    writer.write_many(RECORDS)
    with pytest.raises(IsADirectoryError, match=r"a\.tfwindex"):
        writer.close()
    assert RECORDS == list(tfw.read_records(tmp_path / "a"))


def test_where_there_is_no_place_for_an_index(tmp_path):
    with pytest.raises(ValueError, match="index needs a path"):
        tfw.TFRecordWriter(io.BytesIO(), index=True)
    with pytest.raises(ValueError, match="index and append exclude"):
        tfw.TFRecordWriter(tmp_path / "a", index=True, append=True)
    with pytest.raises(TypeError, match="index must be"):
        tfw.TFRecordWriter(tmp_path / "a", index="a.idx")
    assert [] == list(tmp_path.iterdir())
