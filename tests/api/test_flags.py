"""Flags must be bools everywhere: "no" and "False" would count as true."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from tfwire._records.index.record_index import RecordIndex
from tfwire._records.shards.sharded_writer import ShardedWriter

SPEC = {"a": tfw.FixedLenFeature([], tfw.int64)}
ROW = {"a": 1}

# A call with valid arguments otherwise, and the function whose flags it takes.
CALLS = {
    "read_records": (lambda **o: list(tfw.read_records("data", **o)), tfw.read_records),
    "follow_records": (
        lambda **o: list(tfw.follow_records("data", timeout=0, **o)),
        tfw.follow_records,
    ),
    "verify_file": (lambda **o: tfw.verify_file("data", **o), tfw.verify_file),
    "verify_files": (lambda **o: tfw.verify_files("data", **o), tfw.verify_files),
    "repair_file": (
        lambda **o: tfw.repair_file("data", "repaired", **o),
        tfw.repair_file,
    ),
    "TFRecordDataset": (lambda **o: list(tfw.TFRecordDataset("data", **o)), tfw.TFRecordDataset),
    "RecordIndex.load": (lambda **o: RecordIndex.load("data", **o), RecordIndex.load),
    "TFRecordWriter": (lambda **o: tfw.TFRecordWriter("new", **o).close(), tfw.TFRecordWriter),
    "ShardedWriter": (lambda **o: ShardedWriter("new", num_shards=1, **o).close(), ShardedWriter),
    "encode_example": (lambda **o: tfw.encode_example(ROW, **o), tfw.encode_example),
    "encode_examples": (lambda **o: tfw.encode_examples([ROW], **o), tfw.encode_examples),
    "encode_columns": (lambda **o: tfw.encode_columns({"a": [1]}, **o), tfw.encode_columns),
    "encode_sequence_example": (
        lambda **o: tfw.encode_sequence_example(ROW, {}, **o),
        tfw.encode_sequence_example,
    ),
    "decode_raw": (lambda **o: tfw.decode_raw(b"1", "uint8", **o), tfw.decode_raw),
    "Parser": (lambda **o: tfw.Parser(SPEC, **o), tfw.Parser),
    "SequenceParser": (lambda **o: tfw.SequenceParser(SPEC, **o), tfw.SequenceParser),
    "parse_file": (
        lambda **o: list(tfw.Parser(SPEC).parse_file("data", **o)),
        tfw.Parser.parse_file,
    ),
}


def flags_of(function):
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if isinstance(each.default, bool)}


CASES = [(name, flag) for name, (_, function) in CALLS.items() for flag in flags_of(function)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tfw.write_records("data", [ROW])
    RecordIndex.build("data").save()
    Path("new").write_bytes(b"precious")


@pytest.mark.parametrize(("name", "flag"), CASES)
@pytest.mark.parametrize("wrong", ["no", "", 1, 0, None, 1.0, np.int64(1), []], ids=repr)
def test_a_flag_that_is_no_bool_is_refused(name, flag, wrong):
    with pytest.raises(TypeError, match=f"^{flag} must be a bool, found {type(wrong).__name__}$"):
        CALLS[name][0](**{flag: wrong})
    assert b"precious" == Path("new").read_bytes()


@pytest.mark.parametrize(("name", "flag"), CASES)
def test_a_bool_of_numpy_is_a_bool(name, flag):
    call, function = CALLS[name]
    call(**{flag: np.bool_(flags_of(function)[flag])})


def test_every_function_with_flags_is_tried():
    """Those of the package itself; a parsing function takes its own from Parser."""
    found = {name for name in tfw.__all__ if callable(getattr(tfw, name))}
    with_flags = set()
    for name in found:
        try:
            if flags_of(getattr(tfw, name)):
                with_flags.add(name)
        except (TypeError, ValueError):  # a class without a signature
            continue
    assert len(CASES) >= 20
    assert with_flags <= {*CALLS, "FixedLenSequenceFeature", "SparseFeature", "RaggedFeature"}
