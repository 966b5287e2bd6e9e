"""Indexes that do not belong to their file, or are no file at all; comparing them; numbers of any
size; the memory that they take."""

from __future__ import annotations

import os
import pickle
import random
import struct
import time
import tracemalloc

import numpy as np
import pytest

import tfwire as tfw
from helpers.records.indexed import other_records, outcome, touch, with_fingerprint
from helpers.reference import file_of, frame
from tfwire._records.index import offset_checks
from tfwire._records.index.index_files import Contents, write_index
from tfwire._records.index.random_access import TFRecordFile, TFRecordFiles
from tfwire._records.index.record_index import RecordIndex
from tfwire._records.reading.damage import SkippedRegion, SkippedRegions

RECORDS = [b"%03d" % i * (1 + i % 5) for i in range(300)]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "data").write_bytes(file_of(RECORDS))
    return tmp_path / "data"


# ---- Another file of equal size, time and samples ----------------------------------------------


@pytest.fixture
def long_ago(monkeypatch):
    """Files that were just written count as written long ago."""
    monkeypatch.setattr(offset_checks, "_TICK", 0)


@pytest.fixture(params=["found in this process", "saved", "of a file with another name", "pickled"])
def replaced(request, tmp_path, long_ago):
    """A file, its records, and the index of another one of equal size, time and samples."""
    records = [b"%020d" % i for i in range(1000)]
    path, other = tmp_path / "data", tmp_path / "other"
    path.write_bytes(file_of(records))
    index, status = RecordIndex.build(path), path.stat()
    index.save()
    sampled = sorted({i * len(records) // 63 for i in range(64)})
    new = other_records(records, sampled[5] + 2, sampled[6] - 2)
    assert len(file_of(new)) == status.st_size
    if request.param == "of a file with another name":
        other.write_bytes(file_of(new))
        touch(other, status)
        index.save(f"{other}.tfwindex")
        return other, new, f"{other}.tfwindex"
    time.sleep(0.02)  # the clock of files ticks
    path.write_bytes(file_of(new))
    touch(path, status)
    if request.param == "saved":
        return path, new, None
    return path, new, pickle.loads(pickle.dumps(index)) if request.param == "pickled" else index


def test_an_index_never_gives_a_record_of_another_number(replaced):
    path, records, index = replaced
    with TFRecordFile(path, index) as file:
        assert len(records) == len(file)
        outcomes = set()
        for number in random.Random(1).sample(range(len(records)), 150):
            for key in (number, [number], slice(number, number + 1)):
                found = outcome(file, key)
                outcomes.add(type(found))
                assert found in (records[number], [records[number]], ("index", number))
        assert tuple in outcomes
        with pytest.raises(tfw.DataLossError, match="index is stale"):
            list(file)


NOTED = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")


@pytest.mark.parametrize("save", [pytest.param(True, marks=NOTED), False])
def test_an_unchanged_file_is_not_looked_through_again(path, long_ago, monkeypatch, save):
    index = RecordIndex.build(path)
    if save:
        index.save()
        index = None
    monkeypatch.setattr(offset_checks, "Walk", None)
    with TFRecordFile(path, index) as file:
        assert RECORDS == list(file) == [file[i] for i in range(len(RECORDS))]
        assert RECORDS == list(pickle.loads(pickle.dumps(file)))


def test_a_file_is_looked_through_once_and_as_far_as_needed(path, monkeypatch):
    begins = []
    step = offset_checks.Walk.step
    monkeypatch.setattr(
        offset_checks.Walk,
        "step",
        lambda self, out, first: begins.append(self.offset) or step(self, out, first),
    )
    index = RecordIndex.build(path)
    index._identity = None
    begins.clear()
    with TFRecordFile(path, index) as file:
        assert RECORDS == list(file) == [file[i] for i in range(len(RECORDS))]
    assert [0] == begins


def test_a_damaged_header_before_a_record_says_nothing_of_its_number(path):
    index = RecordIndex.build(path)
    data = bytearray(path.read_bytes())
    for number in (3, 50, 51):
        data[index.offsets[number] + 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(0, index.mtime_ns))
    with TFRecordFile(path, with_fingerprint(index)) as file:
        for number, record in enumerate(RECORDS):
            if number in (3, 50, 51):
                with pytest.raises(tfw.DataLossError, match="length checksum"):
                    file[number]
            else:
                assert record == file[number]


# ---- Indexes that are no files -----------------------------------------------------------------


def test_an_index_that_is_no_file_is_not_waited_for(path):
    beside = path.with_name("data.tfwindex")
    for make in (os.mkfifo, lambda name: name.symlink_to("/dev/zero"), os.mkdir):
        make(beside)
        assert RECORDS == list(TFRecordFile(path))
        with pytest.raises((tfw.DataLossError, OSError)) as caught:
            RecordIndex.load(path)
        assert "regular" in str(caught.value) or isinstance(caught.value, IsADirectoryError)
        with pytest.raises((tfw.DataLossError, OSError)):
            RecordIndex.read_text(path, beside)
        os.rmdir(beside) if beside.is_dir() else os.remove(beside)
    os.mkfifo(beside)
    with pytest.raises(ValueError, match="needs a regular file"):
        TFRecordFile(beside)


def peak_of(function, *args):
    tracemalloc.start()
    try:
        function(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", [0, 2])
def test_of_a_huge_index_no_more_is_read_than_the_file_has_records(path, compression):
    """4 GiB, mostly holes, whose header agrees with all that is known."""
    beside, size = path.with_name("data.tfwindex"), path.stat().st_size
    count = 2**30 - 13
    header = struct.pack("<8sIIQqIIQ", b"TFWINDEX", 1, compression, size, 0, 0, 4, count)
    beside.write_bytes(header)
    os.truncate(beside, 48 + 4 * count + 4)
    assert peak_of(lambda: TFRecordFile(path)) < 9 << 20  # 8 MiB, not touched, set up the heap
    with pytest.raises(tfw.DataLossError, match="stale"):
        RecordIndex.load(path)
    text = path.with_name("text")
    text.touch()
    os.truncate(text, 1 << 32)
    with pytest.raises(tfw.DataLossError, match="stale"):
        RecordIndex.read_text(path, text)


def test_building_takes_memory_for_records_and_not_for_bytes(tmp_path):
    """Many short records and then a long one, which is a hole of 10 GB."""
    path = tmp_path / "data"
    size = 10 * 10**9
    length = struct.pack("<Q", size)
    with path.open("wb") as file:
        file.write(
            frame(b"") * 70_000 + length + struct.pack("<I", tfw.checksum.masked_crc32c(length))
        )
        file.truncate(file.tell() + size + 4)
    indexes = []
    assert peak_of(lambda: indexes.append(RecordIndex.build(path))) < 8 << 20
    assert [70_001, size] == [len(indexes[0]), indexes[0].lengths[-1]]


# ---- Comparing ---------------------------------------------------------------------------------


def test_indexes_are_equal_when_they_say_the_same(path, tmp_path):
    built = RecordIndex.build(path)
    built.save()
    assert built == RecordIndex.build(str(path)) == RecordIndex.load(path)
    assert built == pickle.loads(pickle.dumps(built))
    built.write_text(tmp_path / "text")
    assert built == RecordIndex.read_text(path, tmp_path / "text")
    (tmp_path / "copy").write_bytes(path.read_bytes())
    for other in (RecordIndex.build(tmp_path / "copy"), None, 7, built.offsets.tolist()):
        assert built != other
    changed = RecordIndex.build(path)
    changed.mtime_ns += 1
    assert built != changed
    with pytest.raises(TypeError, match="unhashable"):
        hash(built)


def test_regions_are_equal_when_lists_and_totals_are():
    region = SkippedRegion("a", 0, 5, 0, "data crc")
    assert SkippedRegions([region], 1, 5) == SkippedRegions([region], 1, 5)
    assert SkippedRegions([region], 1, 5) != SkippedRegions([region], 2, 9)
    assert SkippedRegions([region], 1, 5) == [region]
    assert [] == SkippedRegions()
    assert hash(region) == hash(SkippedRegion("a", 0, 5, 0, "data crc"))
    copy = pickle.loads(pickle.dumps(SkippedRegions([region], 2, 9)))
    assert (2, 9, [region]) == (copy.num_regions, copy.num_bytes, list(copy))


# ---- Numbers of any size -----------------------------------------------------------------------

HUGE = [2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64, 10**20, -(2**63), -(2**63) - 1, -(10**30)]


@pytest.fixture(params=["one file", "many files"])
def records(request, path):
    return TFRecordFile(path) if request.param == "one file" else TFRecordFiles([path])


@pytest.mark.parametrize("number", HUGE)
def test_huge_numbers_are_index_errors(records, number):
    kinds = [number, [number], [0, number], (number, -1), [number, 2**63]]
    if -(2**63) <= number < 2**64:
        kinds += [np.array([number]), np.array([number], object)]
    for key in kinds:
        with pytest.raises(IndexError, match=f"record {number} of 300"):
            records[key]


@pytest.mark.parametrize("number", HUGE)
def test_slices_with_huge_numbers_are_those_of_lists(records, number):
    for key in (
        slice(number),
        slice(number, None),
        slice(None, None, number),
        slice(5, 1, number),
        slice(298, None, number),
        slice(-number, number, 7),
        slice(None, -number, -3),
    ):
        assert RECORDS[key] == records[key]


@pytest.mark.parametrize("number", [*HUGE, "9" * 5000, "-" + "9" * 5000])
@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_a_text_with_huge_numbers_is_refused(tmp_path, number, compression):
    path = tmp_path / "data"
    tfw.write_records(path, RECORDS, compression)
    for line in (f"0 {number}", f"{number} 16", f"0 16\n16 {number}", f"{number} {number}"):
        (tmp_path / "text").write_text(line + "\n")
        with pytest.raises((ValueError, IndexError, tfw.DataLossError)):
            TFRecordFile(path, RecordIndex.read_text(path, tmp_path / "text"))[-1]


def test_an_index_with_huge_lengths_is_refused(path):
    """Its checksum is right, and so is all that it says of the file."""
    index = RecordIndex.build(path)
    for lengths in ([2**62, 2**62], [2**61] * 3, [index.size, 2**60]):
        contents = Contents("", index.size, index.mtime_ns, 0, np.array(lengths))
        write_index(path.with_name("data.tfwindex"), contents)
        with pytest.raises(tfw.DataLossError) as caught:
            RecordIndex.load(path)
        assert "index" == caught.value.reason
