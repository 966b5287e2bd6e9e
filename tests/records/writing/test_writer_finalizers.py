"""An interrupt while a writer that was not closed is finalized. Python loses the interrupt there;
the file is whole or ends after a whole record, and a warning says which writer it was."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

import tfwire as tfw
from helpers.processes.interrupts import NEVER, InterruptAt

RECORDS = [b"%d" % i * 100 for i in range(50)]
DISCARDED = ("atomic", "shards")  # what is not closed is removed
FIRST = 3  # points where the finalizer has not begun

KINDS = {
    "plain": lambda folder: tfw.TFRecordWriter(folder / "out"),
    "gzip": lambda folder: tfw.TFRecordWriter(folder / "out", "GZIP"),
    "append": lambda folder: tfw.TFRecordWriter(folder / "out", append=True),
    "atomic": lambda folder: tfw.TFRecordWriter(folder / "out", atomic=True),
    "shards": lambda folder: tfw.ShardedWriter(folder / "out-{shard}", num_shards=2, index=True),
}


def open_files(folder):
    """The files in a folder that this process has open."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return [name for name in found if name.startswith(str(folder))]


def interrupted(folder, kind, number):
    """Drops a writer that was not closed, with an interrupt. Returns whether it came, and the
    warnings."""
    writers = [KINDS[kind](folder)]
    writers[0].write_many(RECORDS)
    trace = InterruptAt(number)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        sys.settrace(trace)
        try:
            writers.clear()
        finally:
            sys.settrace(None)
    return trace.left == 0, [each for each in found if "out" in str(each.message)]


def num_records(folder, names):
    """How many records the files hold, which are all whole."""
    files = [name for name in names if name.startswith("out") and not name.endswith("tfwindex")]
    return sum(len(list(tfw.read_records(folder / name))) for name in files)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="older CPython has other instructions")
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_of_a_finalizer_leaves_no_part_of_a_record(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    came, number, whole = True, 0, 0
    while came:
        number += 1
        folder, traced = tmp_path / str(number), tmp_path / f"traced {number}"
        folder.mkdir()
        traced.mkdir()
        interrupted(traced, kind, NEVER)
        came, found = interrupted(folder, kind, number)
        names = os.listdir(folder)
        left = num_records(folder, names)
        assert left in (0, 50)
        whole += left == 50
        if number > FIRST:
            assert [] == open_files(folder)
            assert [] == [name for name in names if name.startswith(".tfwire")]
            categories = {each.category for each in found}
            assert ResourceWarning in categories
            assert RuntimeWarning in categories or left == 50 or kind in DISCARDED
    assert number > 30
    assert (whole == 0) == (kind in DISCARDED)
