"""Random access: RecordIndex, TFRecordFile and TFRecordFiles."""

from __future__ import annotations

import gzip
import random
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import reference
from tfwire.index import RecordIndex, TFRecordFile, TFRecordFiles

RECORDS = [bytes([i]) * (i * i % 97) for i in range(40)]

# Short, longer than a page, longer than the room of a fetch, and around every threshold.
SIZES = [0, 1, 100, 4079, 4080, 4081, 32751, 32752, 32753, 70000, 262144, 300000, 5, 6, 7]


def long_records():
    return [random.Random(size).randbytes(size) for size in SIZES]


def write(path, records, compression=""):
    data = b"".join(map(reference.frame, records))
    if compression == "GZIP":
        data = gzip.compress(data)
    elif compression == "ZLIB":
        data = zlib.compress(data)
    path.write_bytes(data)
    return path


@pytest.fixture(params=["", "GZIP", "ZLIB"])
def file(request, tmp_path):
    return write(tmp_path / "data.tfrecord", RECORDS, request.param)


@pytest.fixture
def plain(tmp_path):
    return write(tmp_path / "data.tfrecord", RECORDS)


def begins(records):
    return np.cumsum([0] + [len(record) + 16 for record in records]).tolist()


# ---- Building ----------------------------------------------------------------------------------


def test_index_tells_where_every_record_lies(file):
    index = RecordIndex.build(file)
    assert begins(RECORDS) == index.offsets.tolist()
    assert [len(record) for record in RECORDS] == index.lengths.tolist()
    assert len(RECORDS) == len(index)


def test_index_of_records_of_every_size_class(tmp_path):
    records = long_records()
    index = RecordIndex.build(write(tmp_path / "data", records))
    assert begins(records) == index.offsets.tolist()


@given(sizes=st.lists(st.one_of(st.integers(0, 300), st.integers(0, 9000)), max_size=60))
@settings(max_examples=50, deadline=None)
def test_index_of_random_lengths(sizes, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("data") / "data", [bytes(size) for size in sizes])
    assert begins([bytes(size) for size in sizes]) == RecordIndex.build(path).offsets.tolist()


def test_index_of_an_empty_file(tmp_path):
    index = RecordIndex.build(write(tmp_path / "data", []))
    index.save()
    assert [0] == RecordIndex.load(index.path).offsets.tolist()
    assert [] == list(TFRecordFile(index.path))


# ---- Reading -----------------------------------------------------------------------------------


def test_file_is_a_sequence(file):
    with TFRecordFile(file) as records:
        assert len(RECORDS) == len(records)
        assert RECORDS == list(records)
        assert RECORDS == [records[i] for i in range(len(records))]
        assert RECORDS[-1] == records[-1]
        assert RECORDS[0] == records[-len(RECORDS)]
        assert RECORDS[7] == records[np.int64(7)]
        assert RECORDS[2:9] == records[2:9]
        assert RECORDS[::-3] == records[::-3]
        assert [] == records[9:2]


@pytest.mark.parametrize(
    "numbers",
    [[3, 1, 2], [5], [], [7, 7, 7], (39, 0), range(30, 3, -4), [-1, 0, -40]],
    ids=str,
)
def test_lists_of_numbers_are_read_in_the_order_asked(file, numbers):
    expected = [RECORDS[i] for i in numbers]
    with TFRecordFile(file) as records:
        assert expected == records[numbers]
        assert expected == records[np.array(numbers, np.int32)]
        assert expected == records.__getitems__(list(numbers))


def test_records_of_every_size_class(tmp_path):
    expected = long_records()
    records = TFRecordFile(write(tmp_path / "data", expected))
    order = random.Random(1).choices(range(len(expected)), k=40)
    assert expected == list(records)
    assert expected == [records[i] for i in range(len(records))]
    assert [expected[i] for i in order] == records[order]
    assert expected == records[:]


def test_many_files_are_one_sequence(tmp_path):
    parts = [RECORDS[:7], [], RECORDS[7:8], RECORDS[8:]]
    paths = [write(tmp_path / str(i), part) for i, part in enumerate(parts)]
    with TFRecordFiles(paths, max_open_files=1) as records:
        assert RECORDS == list(records)
        assert RECORDS == [records[i] for i in range(len(records))]
        order = random.Random(1).choices(range(-40, 40), k=100)
        assert [RECORDS[i] for i in order] == records[order]
        assert RECORDS[::-1] == records[::-1]


# ---- Saving ------------------------------------------------------------------------------------


def test_saved_index_is_loaded_and_used(file):
    built = RecordIndex.build(file)
    built.save()
    loaded = RecordIndex.load(file)
    assert built.offsets.tolist() == loaded.offsets.tolist()
    assert vars(built).keys() == vars(loaded).keys()
    for name in ("compression", "size", "mtime_ns", "fingerprint"):
        assert getattr(built, name) == getattr(loaded, name)
    assert RECORDS == list(TFRecordFile(file))
