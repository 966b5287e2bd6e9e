"""A wrong argument changes no file: everything is checked before anything is opened."""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest

import tfwire as tfw
from helpers.reference import file_of
from tfwire._records.shards.sharded_writer import ShardedWriter
from tfwire.sharding import recover_shards

PRECIOUS = b"precious"
OTHERS = [None, 7, True, 1.5, object(), [], {}]  # as a path


def failing():
    raise KeyError("of the user")
    yield b""


def options(kind="GZIP", **given):
    return tfw.TFRecordOptions(kind, **given)


WRONG_OPTIONS = {
    "no such type": "LZ4",
    "no such number": 7,
    "an object": object(),
    "bytes": b"bz2",
    **{f"flush_mode {mode}": options(flush_mode=mode) for mode in (99, zlib.Z_FINISH, "x", 1.5)},
    **{f"window_bits {bits}": options(window_bits=bits) for bits in (7, 50, -15, "x")},
    **{f"level {level}": options(compression_level=level) for level in (42, -2, "x", 1.5, 10**30)},
    **{f"ZLIB level {level}": options("ZLIB", compression_level=level) for level in (42, "x")},
    "compression_method": options(compression_method=3),
    "mem_level 0": options(mem_level=0),
    "mem_level 10": options(mem_level=10),
    "mem_level x": options(mem_level="x"),
    "strategy": options(compression_strategy=9),
}
WRONG_LEVELS = {f"level= {level}": level for level in (42, -2, "x", 1.5, [], 10**30)}
WRONG_RECORDS = {
    "bytes": b"abc",
    "text": "abc",
    "None": None,
    "a number": 5,
    "columns": {"a": [1]},
    "an S array": np.array([b"a"]),
    "a list of numbers": [5],
    "a list of None": [None, b"a"],
    "a row without an encoding": [{"a": [None]}],
    "a generator that fails": failing(),
}
WRONG_PATTERNS = ["a{b}", "{", "{}", "{shard.x}", "{shard[0]}", "{shard:c}", "{shard:/>3}", "", "."]
WRONG_PATTERNS += [
    "{shard.real}",
    "{shard!r}",
    "{shard:0999999999}",
    "{shard:{shards}}",
    "{shards.x}",
]
WRONG_PATTERNS += [
    "{shard:e}",
    "{shard:.2g}",
    "{shard:%}",
    "{shard!z}",
    "{0}",
    "{shard:\0>3}",
    "{shard:d",
]
WRONG_PATTERNS += ["{shard.__class__}", "{shard:0999}"]
WRONG_COUNTS = [
    *({"num_shards": count} for count in (0, -1, 1.5, "2", True, 10**30)),
    *({"shard_size": size} for size in (0, -1, 1.5, "", "many", "1XB", None, True, [])),
    *({"shard_size": size} for size in ("0.1", "\u0663MB", "9" * 5000)),
    *({"num_shards": 2, "num_threads": count} for count in (0, -1, 1.5, "2", None)),
    {},
    {"num_shards": 2, "shard_size": 100},
]


def writer_cases():
    for name, wrong in WRONG_OPTIONS.items():
        for kind in ({}, {"atomic": True}, {"append": True}):
            yield name, lambda file, wrong=wrong, kind=kind: tfw.TFRecordWriter(file, wrong, **kind)
        yield name, lambda file, wrong=wrong: tfw.write_records(file, [b"a"], wrong)
        yield name, lambda file, wrong=wrong: ShardedWriter(file, num_shards=1, options=wrong)
    for name, wrong in WRONG_LEVELS.items():
        for kind in ({}, {"atomic": True}, {"append": True}):
            yield (
                name,
                lambda file, wrong=wrong, kind=kind: tfw.TFRecordWriter(
                    file, "GZIP", compression_level=wrong, **kind
                ),
            )
        yield (
            name,
            lambda file, wrong=wrong: ShardedWriter(
                file, num_shards=1, options="ZLIB", compression_level=wrong
            ),
        )
    for name, wrong in WRONG_RECORDS.items():
        yield name, lambda file, wrong=wrong: tfw.write_records(file, wrong)
    for kind in ({"append": True, "atomic": True}, {"repair_tail": True}):
        yield str(kind), lambda file, kind=kind: tfw.TFRecordWriter(file, **kind)
    yield "append to no records", lambda file: tfw.TFRecordWriter(file, append=True)
    for kind in ("GZIP", "ZLIB"):
        yield (
            f"append {kind}",
            lambda file, kind=kind: tfw.TFRecordWriter(file, kind, append=True, repair_tail=True),
        )


def path_cases():
    for wrong in OTHERS:
        name = f"path {wrong!r:.20}"
        for kind in ({}, {"atomic": True}, {"append": True}):
            yield name, lambda file, wrong=wrong, kind=kind: tfw.TFRecordWriter(wrong, **kind)
        yield name, lambda file, wrong=wrong: tfw.write_records(wrong, [b"a"])
        yield name, lambda file, wrong=wrong: ShardedWriter(wrong, num_shards=2)
        yield name, lambda file, wrong=wrong: tfw.write_schema({}, wrong)
        yield name, lambda file, wrong=wrong: tfw.repair_file(file, wrong)
        yield name, lambda file, wrong=wrong: recover_shards(wrong)
    for name in ("a\0b", "missing/folder", "x" * 256):
        yield name, lambda file, name=name: tfw.TFRecordWriter(file.with_name(name))
        yield name, lambda file, name=name: tfw.TFRecordWriter(file.with_name(name), atomic=True)
        yield name, lambda file, name=name: tfw.write_schema({}, file.with_name(name))
        yield name, lambda file, name=name: ShardedWriter(file.with_name(name), num_shards=1)
    for name in WRONG_PATTERNS:
        for counts in ({"num_shards": 1}, {"num_shards": 12}, {"shard_size": 10}):
            yield (
                f"pattern {name}",
                lambda file, name=name, counts=counts: ShardedWriter(
                    os.path.join(file.parent, name), **counts
                ),
            )
    for counts in WRONG_COUNTS:
        yield f"counts {counts}", lambda file, counts=counts: ShardedWriter(file, **counts)


def other_cases():
    records = "records"
    for wrong in [*OTHERS[1:], "a\0b", "missing/folder", "x" * 256]:
        name = f"index {wrong!r:.20}"
        yield name, lambda file, wrong=wrong: _index(file).save(_beside(file, wrong))
        yield name, lambda file, wrong=wrong: _index(file).write_text(_beside(file, wrong))
    yield "the file itself", lambda file: _index(file).save(file.with_name(records))
    yield "the file itself", lambda file: _index(file).write_text(file.with_name(records))
    yield "exists", lambda file: tfw.repair_file(file.with_name(records), file)
    yield (
        "the file itself",
        lambda file: tfw.repair_file(
            file.with_name(records), file.with_name(records), overwrite=True
        ),
    )
    for wrong in ("LZ4", 7, object()):
        yield (
            "compression",
            lambda file, wrong=wrong: tfw.repair_file(
                file.with_name(records), file, compression_type=wrong, overwrite=True
            ),
        )
    yield (
        "no input",
        lambda file: tfw.repair_file(file.with_name("missing"), file, overwrite=True),
    )
    yield (
        "input without records",
        lambda file: tfw.repair_file(file.with_name("rubbish"), file, overwrite=True),
    )
    wrong_features = [None, 5, {"a": 5}, {"a": None}, {5: tfw.FixedLenFeature([], tfw.int64)}]
    wrong_features += [{"a": tfw.FixedLenFeature([], tfw.int64, 7)}]
    for wrong in wrong_features:
        for name in ("data", "data.json"):
            yield (
                f"features {wrong!r:.20}",
                lambda file, wrong=wrong, name=name: tfw.write_schema(wrong, file.with_name(name)),
            )


def _index(file):
    return tfw.RecordIndex.build(file.with_name("records"))


def _beside(file, name):
    return file.with_name(name) if isinstance(name, str) else name


CASES = [*writer_cases(), *path_cases(), *other_cases()]


@pytest.mark.parametrize("call", [pytest.param(call, id=f"{name}") for name, call in CASES])
def test_a_wrong_argument_changes_no_file(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    before = {
        "data": PRECIOUS,
        "data.json": PRECIOUS,
        "records": file_of([b"1", b"2"]),
        "rubbish": b"no records are in this file at all",
    }
    for name, data in before.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises((TypeError, ValueError, OSError, KeyError, tfw.DataLossError)):
        call(tmp_path / "data")
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_right_arguments_do_change_it(tmp_path):
    """So that the table above does not hold for want of a file that could change."""
    path = tmp_path / "data"
    for write in (
        lambda: tfw.TFRecordWriter(path).close(),
        lambda: tfw.TFRecordWriter(path, options(flush_mode=zlib.Z_FULL_FLUSH)).close(),
        lambda: tfw.write_records(path, [b"a"], options(window_bits=9, mem_level=9)),
        lambda: tfw.write_schema({"a": tfw.VarLenFeature(tfw.int64)}, path),
        lambda: ShardedWriter(path, num_shards=1).close(),
    ):
        path.write_bytes(PRECIOUS)
        write()
        assert PRECIOUS != path.read_bytes()
