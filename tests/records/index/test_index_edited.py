"""Indexes that somebody made or edited by hand: right records or an error, in bounded steps."""

from __future__ import annotations

import contextlib
import itertools
import random
import struct

import numpy as np
import pytest

import tfwire as tfw
from helpers import reference
from helpers.records.indexed import RECORDS, begins, with_fingerprint, write
from tfwire._records.index import local_records, offset_checks
from tfwire._records.index.random_access import TFRecordFile
from tfwire._records.index.record_index import RecordIndex

RIGHT = begins(RECORDS)
SIZE = RIGHT[-1]


@pytest.fixture(params=["", "fetched", "GZIP"])
def path(request, tmp_path, monkeypatch):
    """A file that counts as written long ago. It may be compared with an index in few steps."""
    if request.param == "fetched":  # lists of any length, all at once
        monkeypatch.setattr(local_records, "_READ_ALONE", 0)
    monkeypatch.setattr(offset_checks, "_TICK", 0)
    steps = []

    def step(self, *arguments):
        steps.append(1)
        assert len(steps) < 5000, "the comparison does not end"
        return compare(self, *arguments)

    compare = offset_checks.FileLayout._step
    monkeypatch.setattr(offset_checks.FileLayout, "_step", step)
    return write(tmp_path / "data", RECORDS, request.param.removeprefix("fetched"))


def check_every_access(file):
    """Every record that it gives is the one of that number; it gives those up to which all offsets
    are right."""
    pairs = zip(RIGHT, file.index.offsets.tolist(), strict=False)
    right = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)) - 1
    for number in range(min(len(file), 2 * len(RECORDS))):
        for key in (number, [number], slice(number, number + 2)):
            try:
                found = file[key]
            except (tfw.DataLossError, ValueError, OSError):
                assert number >= right or isinstance(key, slice)
                continue
            expected = RECORDS[key] if isinstance(key, (int, slice)) else [RECORDS[number]]
            assert expected == found
    found = []
    with contextlib.suppress(tfw.DataLossError, ValueError, OSError):
        found.extend(iter(file))
    assert RECORDS[: len(found)] == found


LIES = {
    "at the end": lambda right, i: [*right[:i], SIZE, *right[i + 1 :]],
    "at the end, all": lambda right, i: [*right[:i], *[SIZE] * (len(right) - i)],
    "past the end": lambda right, i: [*right[:i], SIZE + 1, *right[i + 1 :]],
    "far past the end": lambda right, i: [*right[:i], 2**62, *right[i + 1 :]],
    "twice": lambda right, i: [*right[:i], right[i - 1], *right[i + 1 :]],
    "decreasing": lambda right, i: [*right[:i], right[i + 1], right[i], *right[i + 2 :]],
    "backwards": lambda right, i: right[::-1],
    "negative": lambda right, i: [*right[:i], -(2**63), *right[i + 1 :]],
    "within a record": lambda right, i: [*right[:i], right[i] + 3, *right[i + 1 :]],
    "the first is missing": lambda right, i: right[1:],
    "the first is at the end": lambda right, i: [SIZE, *right[1:]],
    "one is missing": lambda right, i: [*right[:i], *right[i + 1 :]],
    "one, and another one too many": lambda right, i: [*right[:i], *right[i + 1 : -1], SIZE, SIZE],
    "none": lambda right, i: [],
    "only the end": lambda right, i: [SIZE],
    "of rank 2": lambda right, i: [[each] for each in right],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
@pytest.mark.parametrize("number", [0, 1, 20, len(RECORDS) - 2])
def test_offsets_that_cannot_be(path, lie, number):
    index = RecordIndex.build(path)
    index.offsets = np.array(lie(RIGHT, number), np.int64)
    try:
        file = TFRecordFile(path, with_fingerprint(index) if index.offsets.ndim == 1 else index)
    except (tfw.DataLossError, ValueError, IndexError):
        return
    check_every_access(file)


@pytest.mark.parametrize("seed", range(20))
def test_saved_indexes_that_were_edited(path, seed):
    """The checksum is made to fit, and the file is the one that was indexed."""
    rng = random.Random(seed)
    RecordIndex.build(path).save()
    saved = path.with_name(f"{path.name}.tfwindex")
    data = bytearray(saved.read_bytes()[:-4])
    lengths = list(struct.unpack_from(f"<{len(RECORDS)}I", data, 48))
    for _ in range(rng.randrange(1, 4)):
        edit(rng, lengths)
    if rng.random() < 0.3:
        data[rng.randrange(48)] ^= 1 << rng.randrange(8)
    data[40:] = struct.pack(f"<Q{len(lengths)}I", len(lengths), *lengths)
    with open(saved, "r+b") as file:  # in place: its attributes stay
        file.write(data + reference.masked(bytes(data)))
        file.truncate()
    try:
        index = RecordIndex.load(path)
    except (tfw.DataLossError, ValueError):
        index = RecordIndex.build(path)
        index.offsets = np.cumsum([0, *[16 + length for length in lengths]])
    check_every_access(TFRecordFile(path))
    try:
        file = TFRecordFile(path, with_fingerprint(index))
    except tfw.DataLossError:
        return
    check_every_access(file)


def edit(rng, lengths):
    """Moves the borders between records; what they add up to stays, mostly."""
    i = rng.randrange(len(lengths) - 1)
    match rng.randrange(5):
        case 0:  # two become one, and one two
            lengths[i : i + 2] = [lengths[i] + lengths[i + 1] + 16]
            longest = max(range(len(lengths)), key=lengths.__getitem__)
            left = lengths[longest] - 16
            lengths[longest : longest + 1] = [left // 2, left - left // 2]
        case 1:
            lengths[i], lengths[i + 1] = lengths[i + 1], lengths[i]
        case 2:
            moved = rng.randrange(lengths[i] + 1)
            lengths[i], lengths[i + 1] = lengths[i] - moved, lengths[i + 1] + moved
        case 3:
            lengths[i] = rng.choice([0, 2**32 - 1, lengths[i] + 16])
        case 4:
            rng.shuffle(lengths)


@pytest.mark.posix("no extended attributes")
def test_the_attribute_of_an_index_does_not_hold_for_another(path):
    """What is noted of the file is noted for these bytes of the index."""
    index = RecordIndex.build(path)
    index.save()
    assert index._identity == RecordIndex.load(path)._identity
    index.offsets = index.offsets.copy()
    assert index._identity is None
    saved = path.with_name(f"{path.name}.tfwindex")
    data = bytearray(saved.read_bytes()[:-4])
    data[24] ^= 1  # the time
    with open(saved, "r+b") as file:
        file.write(data + reference.masked(bytes(data)))
    assert RecordIndex.load(path, ignore_mtime=True)._identity is None
