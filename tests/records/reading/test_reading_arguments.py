"""Wrong arguments of everything that reads: refused by the call, before a file is opened."""

from __future__ import annotations

import io
import os

import pytest

import tfwire as tfw
from helpers.labels import label
from tfwire._records.index.random_access import TFRecordFile, TFRecordFiles
from tfwire._records.index.record_index import RecordIndex
from tfwire._records.reading.options import AS_TENSORFLOW

RECORDS = [b"one", b"two"]
PARSER = tfw.Parser({"a": tfw.VarLenFeature(tfw.int64)})

# How each takes a path and options, and which options it has.
READERS = {
    "read_records": (tfw.read_records, {"type", "corrupt", "most", "buffer", "start"}),
    "follow_records": (tfw.follow_records, {"type", "most", "buffer", "start", "time"}),
    "verify_file": (tfw.verify_file, {"type", "most", "progress"}),
    "repair_file": (lambda path, **o: tfw.repair_file(path, "new", **o), {"type", "most"}),
    "parse_file": (PARSER.parse_file, {"type", "corrupt", "most"}),
    "TFRecordDataset": (tfw.TFRecordDataset, {"type", "corrupt", "most", "buffer"}),
    "RecordIndex.build": (RecordIndex.build, {"type", "local"}),
    "RecordIndex.load": (RecordIndex.load, {"local", "index_path"}),
    "RecordIndex.read_text": (lambda path: RecordIndex.read_text(path, "text"), {"local"}),
    "TFRecordFile": (TFRecordFile, {"local", "index"}),
    "TFRecordFiles": (TFRecordFiles, {"local", "open"}),
}

WRONG = {
    "type": [
        ({"compression_type": word}, ValueError, '"GZIP" or "ZLIB"')
        for word in ("zip", "gz", 3, 1.5, [], b"x")
    ],
    "corrupt": [
        ({"on_corrupt": word}, ValueError, "raise.*skip.*tail.*stop.*found")
        for word in ("ignore", None, "", 1, [], AS_TENSORFLOW.name, "as TensorFlow")
    ],
    "most": [
        ({"max_record_size": 0}, ValueError, "max_record_size must be at least 1, found 0"),
        ({"max_record_size": -1}, ValueError, "max_record_size must be at least 1"),
        ({"max_record_size": 2**63}, ValueError, "max_record_size must fit into 64 bits"),
        ({"max_record_size": 1.5}, TypeError, "max_record_size must be an integer, found float"),
        ({"max_record_size": "1"}, TypeError, "max_record_size must be an integer, found str"),
        ({"max_record_size": True}, TypeError, "max_record_size must be an integer, found bool"),
    ],
    "buffer": [
        ({"buffer_size": -1}, ValueError, "buffer_size must be at least 0, found -1"),
        ({"buffer_size": "1"}, TypeError, "buffer_size must be an integer, found str"),
    ],
    "start": [
        ({"start": (-1, 0)}, ValueError, "start.record_index must be at least 0"),
        ({"start": (0, 2**70)}, ValueError, "start.offset must fit into 64 bits"),
        ({"start": (0, 1.5)}, TypeError, "start.offset must be an integer, found float"),
        ({"start": (1,)}, TypeError, "start must be a RecordPosition, found tuple"),
        ({"start": 7}, TypeError, "start must be a RecordPosition, found int"),
        ({"start": "ab"}, TypeError, "start must be a RecordPosition, found str"),
    ],
    "time": [
        ({"interval": -1}, ValueError, "interval must be a number of seconds, 0 or more"),
        ({"interval": float("nan")}, ValueError, "interval must be a number of seconds"),
        ({"interval": "1"}, TypeError, "interval must be a number, found str"),
        ({"interval": None}, TypeError, "interval must be a number, found NoneType"),
        ({"timeout": -0.5}, ValueError, "timeout must be a number of seconds, 0 or more"),
        ({"timeout": "soon"}, TypeError, "timeout must be a number, found str"),
    ],
    "progress": [({"progress": 7}, TypeError, "progress must be callable, found int")],
    "index_path": [({"index_path": 7}, TypeError, "index_path must be a str.*found int")],
    "index": [({"index": 7}, TypeError, "index must be a str.*found int")],
    "open": [
        ({"max_open_files": 0}, ValueError, "max_open_files must be at least 1, found 0"),
        ({"max_open_files": "1"}, TypeError, "max_open_files must be an integer, found str"),
    ],
    "local": [],
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With files of every name that is used; the test ends if one of them has changed."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("data", RECORDS)
    RecordIndex.build("data").save()
    RecordIndex.build("data").write_text("text")
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir()}
    yield tmp_path
    assert before == {name: (tmp_path / name).read_bytes() for name in os.listdir()}


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        pytest.param(name, *case, id=f"{name}-{case[0]}")
        for name, (_, kinds) in READERS.items()
        for kind in sorted(kinds)
        for case in WRONG[kind]
    ],
)
@pytest.mark.parametrize("path", ["data", "missing"])
def test_a_wrong_option_is_refused_by_the_call(
    folder, monkeypatch, name, path, options, error, message
):
    monkeypatch.setattr(os, "open", None)
    with pytest.raises(error, match=message):
        READERS[name][0](path, **options)


@pytest.mark.parametrize("path", [None, 7, 1.5, True, {"a": 1}.keys, object()], ids=label)
@pytest.mark.parametrize("name", READERS)
def test_what_is_no_path_is_refused_by_the_call(folder, monkeypatch, name, path):
    monkeypatch.setattr(os, "open", None)
    with pytest.raises(TypeError, match=r"(path|filename).* must .*found \w+"):
        READERS[name][0](path)


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("wrong", [None, 7, ["data"]], ids=repr)
@pytest.mark.parametrize("name", ["read_records", "TFRecordFiles"])
def test_a_wrong_item_of_a_list_is_refused_by_the_call(folder, monkeypatch, name, wrong, kind):
    monkeypatch.setattr(os, "open", None)
    with pytest.raises(TypeError, match=f"found {type(wrong).__name__}"):
        READERS[name][0](kind(["data", wrong, "data"]))


@pytest.mark.parametrize("wrong", [None, 7])
def test_a_wrong_item_of_another_iterable_is_an_error_when_it_is_reached(folder, wrong):
    records = tfw.read_records(iter(["data", wrong, "data"]))
    assert RECORDS == [next(records), next(records)]
    with pytest.raises(TypeError, match="an item of paths must be a path"):
        next(records)


@pytest.mark.parametrize("name", [name for name, (_, kinds) in READERS.items() if "local" in kinds])
def test_random_access_needs_a_path(folder, name):
    with pytest.raises(TypeError, match="found BytesIO"):
        READERS[name][0](io.BytesIO())
    assert READERS[name][0](b"data") is not None


@pytest.mark.parametrize("out", [None, 7, io.BytesIO()], ids=label)
def test_a_wrong_output_of_a_repair_is_refused_by_the_call(folder, out):
    with pytest.raises(TypeError, match="out_path must be a str"):
        tfw.repair_file("data", out)
