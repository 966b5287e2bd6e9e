"""Interrupts while a writer is opened, used and finalized: the file is whole or ends after a whole
record, nothing stays open, and the next writer is not refused."""

from __future__ import annotations

import itertools
import os
import sys
import warnings

import pytest

import tfwire as tfw
from helpers.processes.interrupts import NEVER, InterruptAt
from helpers.reading import open_files

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
    pytest.mark.skipif(sys.version_info < (3, 11), reason="older CPython has other instructions"),
]

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


def some_or_all(day):
    """How far the points lie apart that are interrupted: by day, and by night."""
    return pytest.mark.parametrize("stride", [day, pytest.param(1, marks=pytest.mark.slow)])


def interrupts(tmp_path, stride, prepare):
    """Calls what ``prepare`` makes, each time with an interrupt at another point, until none comes.

    Yields:
        The number of the point, the folder that ``prepare`` was given, and the warnings.
    """
    for number in itertools.count(1, stride):
        for trace in InterruptAt(NEVER), InterruptAt(number):
            folder = tmp_path / f"{number} {trace.left}"
            folder.mkdir()
            work = prepare(folder)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                sys.settrace(trace)
                try:
                    work()
                except KeyboardInterrupt:
                    pass
                finally:
                    sys.settrace(None)
                del work
        yield number, folder, found
        if trace.left:
            return


@pytest.fixture(autouse=True)
def lost(monkeypatch):
    """Python loses an interrupt of a finalizer, and would say so."""
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)


def open_in(folder):
    return [name for _, name in open_files() if name.startswith(f"{folder}/")]


@some_or_all(5)
@pytest.mark.parametrize("kind", ["plain", "gzip", "append"])
def test_an_interrupt_while_a_file_is_opened_leaves_it_closed(tmp_path, kind, stride):
    """And unlocked, so that the next writer is not refused."""

    def prepare(folder):
        return lambda: KINDS[kind](folder).close()

    for number, folder, _ in interrupts(tmp_path, stride, prepare):
        assert [] == open_in(folder), number
        KINDS[kind](folder).close()
    assert number > 30


def write(writer, asked):  # CPython 3.14's try does not cover the end of each round of a loop in it
    for i in range(20):
        writer.write(b"%d" % i + bytes(i * 100))
        asked.append(i)
        if i % 7 == 0:
            writer.flush()


@some_or_all(7)
@pytest.mark.parametrize("kind", ["plain", "gzip"])
def test_an_interrupt_of_a_write_leaves_whole_records_and_no_lock(tmp_path, kind, stride):
    def prepare(folder):
        writers[:], asked[:] = [KINDS[kind](folder)], []
        return lambda: write(writers[0], asked)

    writers, asked, failures = [], [], 0
    for number, folder, _ in interrupts(tmp_path, stride, prepare):
        try:
            writers[0].close()
            failure = ""
        except RuntimeError as error:
            failure = str(error)
            failures += 1
        assert failure == "" or "interrupted" in failure
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tfw.TfwireWarning)
            records = tfw.read_records(folder / "out", on_corrupt="stop" if failure else "raise")
            found = [int(record.split(bytes(1))[0]) for record in records]
        assert found == list(range(len(found))), number
        if not failure:
            assert asked == found[: len(asked)]
            assert len(found) <= len(asked) + 1
    assert failures


def num_records(folder, names):
    """How many records the files hold, which are all whole."""
    files = [name for name in names if name.startswith("out") and not name.endswith("tfwindex")]
    return sum(len(list(tfw.read_records(folder / name))) for name in files)


@some_or_all(3)
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_of_a_finalizer_leaves_no_part_of_a_record(tmp_path, kind, stride):
    """A warning says which writer it was."""

    def prepare(folder):
        writers = [KINDS[kind](folder)]
        writers[0].write_many(RECORDS)
        return writers.clear

    whole = 0
    for number, folder, found in interrupts(tmp_path, stride, prepare):
        names = os.listdir(folder)
        left = num_records(folder, names)
        assert left in (0, 50)
        whole += left == 50
        if number > FIRST:
            assert [] == open_in(folder)
            assert [] == [name for name in names if name.startswith(".tfwire")]
            categories = {each.category for each in found if "out" in str(each.message)}
            assert ResourceWarning in categories
            assert RuntimeWarning in categories or left == 50 or kind in DISCARDED
    assert number > 30
    assert (whole == 0) == (kind in DISCARDED)
