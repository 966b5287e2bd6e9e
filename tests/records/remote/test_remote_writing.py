"""URLs that are written: what is visible, and when."""

from __future__ import annotations

import contextlib
import gc

import fsspec
import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.remote.object_server import RECORDS, names


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_nothing_is_visible_before_close(folder, options):
    writer = tfw.TFRecordWriter(f"{folder}/a", options)
    writer.write_many(RECORDS)
    writer.flush()
    assert "a" not in names(folder)
    writer.close()
    assert ["a"] == names(folder)
    assert RECORDS == list(tfw.read_records(f"{folder}/a"))


def test_an_error_leaves_what_was_there(folder):
    tfw.write_records(f"{folder}/a", [b"old"])
    with contextlib.suppress(KeyError), tfw.TFRecordWriter(f"{folder}/a") as writer:
        writer.write_many(RECORDS)
        raise KeyError
    assert ["a"] == names(folder)
    assert [b"old"] == list(tfw.read_records(f"{folder}/a"))


def test_a_write_that_fails_names_the_url(monkeypatch, folder):
    fs, _ = fsspec.core.url_to_fs(folder)
    writer = tfw.TFRecordWriter(f"{folder}/a")
    monkeypatch.setattr(type(fs), "mv" if "file" in folder else "cp_file", fails)
    with pytest.raises(OSError, match=r"it cannot be completed.*full.*/a"):
        writer.close()
    assert [] == names(folder)


def fails(*args, **kwargs):
    raise OSError("the store is full")


def test_a_directory_is_not_written(folder):
    tfw.write_records(f"{folder}/a", [b"x"])
    with pytest.raises(IsADirectoryError, match="Is a directory"):
        tfw.TFRecordWriter(folder)
    assert ["a"] == names(folder)


@FORKS_BESIDE_THREADS
def test_a_forked_writer_leaves_the_object_to_its_parent(folder):
    writer = tfw.TFRecordWriter(f"{folder}/a")
    writer.write_many(RECORDS)
    assert forked(lambda: gc.collect() or True)()
    writer.close()
    assert RECORDS == list(tfw.read_records(f"{folder}/a"))
