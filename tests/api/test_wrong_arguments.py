"""Wrong arguments that the table of test_error_messages.py has no place for: items of lists, files
that are something else, and arguments that do not fit together. They change no file either."""

from __future__ import annotations

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.products import check_each
from helpers.reference import file_of

PRECIOUS = b"precious"
SPEC = {"a": tfw.VarLenFeature(tfw.int64)}
MESSAGE = tfw.encode_example({"a": 1})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """With files of every name that is used; the test ends if one of them has changed."""
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "data": PRECIOUS,
        "data.json": PRECIOUS,
        "records": file_of([b"1", b"2"]),
        "rubbish": b"no records are in this file at all",
    }.items():
        Path(name).write_bytes(content)
    tfw.RecordIndex.build("records").save()
    tfw.RecordIndex.build("records").write_text("text")
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    yield tmp_path
    assert before == {name: Path(name).read_bytes() for name in os.listdir()}


def failing():
    raise KeyError("of the user")
    yield b""


def repair(*paths, **options):
    return lambda: tfw.repair_file(*paths, **{"overwrite": True, **options})


OTHER = {
    "a generator that fails": lambda: tfw.write_records("data", failing()),
    "append and atomic": lambda: tfw.TFRecordWriter("data", append=True, atomic=True),
    "repair_tail alone": lambda: tfw.TFRecordWriter("data", repair_tail=True),
    "append to no records": lambda: tfw.TFRecordWriter("data", append=True),
    **{
        f"append {kind}": lambda k=kind: tfw.TFRecordWriter(
            "data", k, append=True, repair_tail=True
        )
        for kind in ("GZIP", "ZLIB")
    },
    "no shards": lambda: tfw.ShardedWriter("data-{shard}"),
    "no shards but threads": lambda: tfw.ShardedWriter("d-{shard}", num_threads=2),
    "two kinds of shards": lambda: tfw.ShardedWriter("d-{shard}", num_shards=2, shard_size=100),
    "an index over its file": lambda: tfw.RecordIndex.build("records").save("records"),
    "a text over its file": lambda: tfw.RecordIndex.build("records").write_text("records"),
    "it exists": repair("records", "data", overwrite=False),
    "the file itself": repair("records", "records"),
    "a wrong compression": repair("records", "data", compression_type="LZ4"),
    "no input": repair("missing", "data"),
    "input without records": repair("rubbish", "data"),
    "an output that is no path": repair("records", io.BytesIO()),
}


@pytest.mark.parametrize("case", OTHER)
def test_a_wrong_argument_changes_no_file(folder, case):
    with pytest.raises((TypeError, ValueError, OSError, KeyError, tfw.DataLossError)):
        OTHER[case]()


def test_right_arguments_do_change_it(tmp_path):
    """So that the tables do not hold for want of a file that could change."""
    path, full = tmp_path / "data", zlib.Z_FULL_FLUSH
    options = {"window_bits": 9, "mem_level": 9}
    for write in (
        lambda: tfw.TFRecordWriter(path).close(),
        lambda: tfw.TFRecordWriter(path, tfw.TFRecordOptions("GZIP", flush_mode=full)).close(),
        lambda: tfw.write_records(path, [b"a"], tfw.TFRecordOptions("GZIP", **options)),
        lambda: tfw.write_schema(SPEC, path),
        lambda: tfw.ShardedWriter(path, num_shards=1).close(),
    ):
        path.write_bytes(PRECIOUS)
        write()
        assert PRECIOUS != path.read_bytes()


@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("function", [tfw.read_records, tfw.TFRecordFiles])
def test_a_wrong_item_of_a_list_is_refused_by_the_call(folder, monkeypatch, function, kind):
    monkeypatch.setattr(os, "open", None)
    for wrong in (None, 7, ["records"]):
        with pytest.raises(TypeError, match=f"found {type(wrong).__name__}"):
            function(kind(["records", wrong, "records"]))


def test_a_wrong_item_of_another_iterable_is_an_error_when_it_is_reached(folder):
    for wrong in (None, 7):
        records = tfw.read_records(iter(["records", wrong, "records"]))
        assert [b"1", b"2"] == [next(records), next(records)]
        with pytest.raises(TypeError, match="an item of paths must be a path"):
            next(records)


def test_random_access_needs_a_path(folder):
    index = tfw.RecordIndex
    for function in (
        *(index.build, index.load, tfw.TFRecordFile, tfw.TFRecordFiles),
        lambda path: index.read_text(path, "text"),
    ):
        with pytest.raises(TypeError, match="found BytesIO"):
            function(io.BytesIO())
        assert function(b"records") is not None


def test_example_names_of_every_form_are_in_the_error():
    spec = {"b": tfw.FixedLenFeature([], tfw.int64)}

    def check(call, names):
        with pytest.raises(tfw.ParseError, match="Name: x: Feature: b"):
            call([MESSAGE] if call is tfw.parse_example else MESSAGE, spec, names)

    lists = [["x"], ("x",), np.array([b"x"], object), np.array(["x"])]
    singles = [*lists, "x", b"x", np.array("x"), np.array(b"x", object)]
    check_each(check, [(tfw.parse_example, names) for names in lists])
    check_each(check, [(tfw.parse_single_example, names) for names in singles])
