"""Units of parse_file: what C reads by itself, kept in a block or read again, damaged anywhere."""

import os
import sys
import threading
from collections import Counter

import numpy as np
import pytest

import tfwire as tfw
from cases.results import plain_dict
from helpers.products import diagonals
from helpers.reading import write_anew
from tfwire._parsing import file_units
from tfwire._records.reading import unit_block

FEATURES = {"n": tfw.FixedLenFeature([], tfw.int64), "s": tfw.FixedLenFeature([], tfw.string)}
BATCH, COUNT = 4, 12
HEADER, FOOTER = 12, 4


def record(n):
    return tfw.encode_example({"n": n, "s": b"s" * (20 + 7 * (n % 3))})


RECORDS = [record(n) for n in range(COUNT)]


def framed(payload):
    length = len(payload).to_bytes(8, "little")
    header = length + tfw.checksum.masked_crc32c(length).to_bytes(4, "little")
    return header + payload + tfw.checksum.masked_crc32c(payload).to_bytes(4, "little")


def flipped(frame, at):
    return frame[:at] + bytes([frame[at] ^ 1]) + frame[at + 1 :]


# What may be wrong with a record; None: the file ends within it.
DAMAGE = {
    "length": lambda frame: flipped(frame, 0),
    "length checksum": lambda frame: flipped(frame, 9),
    "payload": lambda frame: flipped(frame, HEADER + 3),
    "footer": lambda frame: flipped(frame, len(frame) - 1),
    "misfit": lambda frame: framed(tfw.encode_example({"n": b"text", "s": b""})),
    "missing": lambda frame: framed(tfw.encode_example({"n": 1, "other": 2})),
    "malformed": lambda frame: framed(b"\x0a\x7f"),
    "cut header": lambda frame: frame[: HEADER - 5],
    "cut payload": lambda frame: frame[: HEADER + 5],
    "empty": lambda frame: framed(b""),
    "huge": lambda frame: frame[:0] + framed(bytes(5000)),
}
# Bytes of a block, mean bytes of a record from which on nothing is kept.
MEMORY = {"kept": (1 << 20, 1 << 14), "read again": (1 << 20, 0), "partly": (150, 1 << 14)}


def everything(paths, num_threads, **options):
    found, error = [], None
    with tfw.Parser(FEATURES).parse_file(
        paths, BATCH, num_threads=num_threads, **options
    ) as batches:
        try:
            found.extend(plain_dict(batch) for batch in batches)
        except tfw.Error as caught:
            error = type(caught), str(caught), caught.reason, caught.record_index
        return found, error, [str(one) for one in batches.parse_errors]


def one_by_one(paths):
    """The same by read_records and Parser.parse: the records before the first error."""
    parser, good, error = tfw.Parser(FEATURES), [], None
    try:
        for one in tfw.read_records(paths):
            parser.parse([one])
            good.append(one)
    except tfw.Error as caught:
        error = type(caught), caught.reason
    batches = [good[i : i + BATCH] for i in range(0, len(good), BATCH)]
    return [plain_dict(parser.parse(batch)) for batch in batches], error


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize(("kind", "memory", "first"), diagonals(0, 3, DAMAGE, MEMORY, range(3)))
def test_damage_at_every_record_of_every_unit(tmp_path, monkeypatch, kind, memory, first):
    """Batches before the error, and the error itself, are the same for any number of threads."""
    monkeypatch.setattr(file_units, "_PARALLEL_UNIT_BYTES", 1)  # every batch is a unit
    monkeypatch.setattr(file_units, "_UNIT_BYTES", 1)
    kept, long = MEMORY[memory]
    monkeypatch.setattr(unit_block, "_KEPT", kept)
    monkeypatch.setattr(unit_block, "_LONG", long)
    paths = [tmp_path / "0", tmp_path / "1"]
    paths[0].write_bytes(b"".join(map(framed, RECORDS)))
    for at in range(first, COUNT, 3):
        frames = list(map(framed, RECORDS))
        frames[at] = DAMAGE[kind](frames[at])
        write_anew(paths[1], b"".join(frames[: at + 1] if "cut" in kind else frames))
        expected = everything(paths, 1)
        found, error = one_by_one(paths)
        assert found == expected[0]
        assert error == (expected[1] and (expected[1][0], expected[1][2]))
        for num_threads in (2, 3, 8):
            assert expected == everything(paths, num_threads)
        for options in ({"on_corrupt": "tail"}, {"verify": False}):
            assert everything(paths, 1, **options) == everything(paths, 2, **options)


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_left_out_does_not_stop_a_unit(tmp_path, kind):
    options = {"on_corrupt": "skip", "on_parse_error": "skip"}
    for at in (0, 3, 4, COUNT - 1):
        frames = list(map(framed, RECORDS))
        frames[at] = DAMAGE[kind](frames[at])
        (tmp_path / "x").write_bytes(b"".join(frames))
        expected = everything([tmp_path / "x"] * 2, 1, **options)
        numbers = np.concatenate([batch["n"][2] for batch in expected[0]]).tolist()
        left = [n for n in range(COUNT) if n != at]
        assert ("cut" in kind) or left * 2 == numbers
        assert expected == everything([tmp_path / "x"] * 2, 2, **options)


@pytest.mark.parametrize("size", ["whole records", "part of a record", "nothing"])
def test_a_file_that_is_cut_before_it_is_read_again(tmp_path, monkeypatch, size):
    """What was found is gone: an error, and no record is missing silently."""
    monkeypatch.setattr(unit_block, "_LONG", 0)
    path = tmp_path / "x"
    path.write_bytes(b"".join(map(framed, RECORDS)))
    whole = len(b"".join(map(framed, RECORDS[:6])))
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


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("taken", [0, 1, 2, 100])
def test_no_file_stays_open(tmp_path, monkeypatch, taken):
    monkeypatch.setattr(unit_block, "_LONG", 0)
    monkeypatch.setattr(file_units, "_PARALLEL_UNIT_BYTES", 1)
    path = tmp_path / "x"
    path.write_bytes(b"".join(map(framed, RECORDS)))
    parser = tfw.Parser(FEATURES)
    list(parser.parse_file(path, BATCH, num_threads=2))
    before = open_files()
    with parser.parse_file([path] * 3, BATCH, num_threads=2) as batches:
        for _ in zip(range(taken), batches, strict=False):
            pass
    assert before == open_files()


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_unit_takes_few_calls(tmp_path, num_threads):
    """One: each releases the GIL, and waits for it again. With threads there is one more, to find
    where the unit ends."""
    path = tmp_path / "x"
    path.write_bytes(framed(record(1)) * 200_000)
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
