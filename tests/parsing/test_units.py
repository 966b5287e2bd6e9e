"""Units of parse_file: what C reads by itself, kept in a block or read again."""

import os
import sys
import threading
from collections import Counter

import pytest

import tfwire as tfw
from helpers.reading import open_files
from helpers.reference import file_of, frame
from tfwire._parsing import file_units
from tfwire._records.reading import unit_block

FEATURES = {"n": tfw.FixedLenFeature([], tfw.int64), "s": tfw.FixedLenFeature([], tfw.string)}
BATCH, COUNT = 4, 12


def record(n):
    return tfw.encode_example({"n": n, "s": b"s" * (20 + 7 * (n % 3))})


RECORDS = [record(n) for n in range(COUNT)]


@pytest.mark.parametrize("size", ["whole records", "part of a record", "nothing"])
def test_a_file_that_is_cut_before_it_is_read_again(tmp_path, monkeypatch, size):
    """What was found is gone: an error, and no record is missing silently."""
    monkeypatch.setattr(unit_block, "_LONG", 0)
    path = tmp_path / "x"
    path.write_bytes(file_of(RECORDS))
    whole = len(file_of(RECORDS[:6]))
    left = {"whole records": whole, "part of a record": whole + 20, "nothing": 0}[size]
    read_ahead = unit_block.Block.read_ahead

    def then_cut(self, *arguments):
        end = read_ahead(self, *arguments)
        os.truncate(path, left)
        return end

    monkeypatch.setattr(unit_block.Block, "read_ahead", then_cut)
    found, error = [], None
    try:
        for batch in tfw.Parser(FEATURES).parse_file(path, 100, num_threads=2):
            found += batch["n"].tolist()
    except tfw.DataLossError as caught:
        error = caught.record_index, caught.reason
    number = 6 if left else 0
    assert (number, "truncated") == error
    assert list(range(number)) == found


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("taken", [0, 1, 2, 100])
def test_no_file_stays_open(tmp_path, monkeypatch, taken):
    monkeypatch.setattr(unit_block, "_LONG", 0)
    monkeypatch.setattr(file_units, "_PARALLEL_UNIT_BYTES", 1)
    path = tmp_path / "x"
    path.write_bytes(file_of(RECORDS))
    parser = tfw.Parser(FEATURES)
    list(parser.parse_file(path, BATCH, num_threads=2))
    before = open_files()
    with parser.parse_file([path] * 3, BATCH, num_threads=2) as batches:
        for _ in zip(range(taken), batches, strict=False):
            pass
    assert not open_files() - before


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_unit_takes_few_calls(tmp_path, num_threads):
    """One: each releases the GIL, and waits for it again. With threads there is one more, to find
    where the unit ends."""
    path = tmp_path / "x"
    path.write_bytes(frame(record(1)) * 200_000)
    calls = Counter()

    def profile(frame, event, function):
        if event == "c_call" and function.__name__.startswith("tfw_"):
            calls[function.__name__] += 1

    parser = tfw.Parser(FEATURES, bytes_as="column")
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        for _ in parser.parse_file(path, 1000, num_threads=num_threads):
            pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    num_units = calls["tfw_read_unit"]
    assert num_units >= 5
    per_file = 24  # the first and the last unit, the end of the file
    assert sum(calls.values()) <= num_threads * num_units + per_file, calls
