"""Random access: RecordIndex, TFRecordFile and TFRecordFiles."""

from __future__ import annotations

import contextlib
import gzip
import os
import pickle
import random
import shutil
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers import reference
from helpers.processes.forks import forked
from helpers.reading import open_files
from helpers.records.indexed import RECORDS, begins, write
from helpers.threads import at_once
from tfwire._records.index.random_access import TFRecordFile, TFRecordFiles
from tfwire._records.index.record_index import RecordIndex

# Short, longer than a page, longer than the room of a fetch, and around every threshold.
SIZES = [0, 1, 100, 4079, 4080, 4081, 32751, 32752, 32753, 70000, 262144, 300000, 5, 6, 7]


def long_records():
    return [random.Random(size).randbytes(size) for size in SIZES]


# ---- Building ----------------------------------------------------------------------------------


def test_index_tells_where_every_record_lies(file):
    index = RecordIndex.build(file)
    assert begins(RECORDS) == index.offsets.tolist()
    assert [len(record) for record in RECORDS] == index.lengths.tolist()
    assert len(RECORDS) == len(index)


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
    assert begins(expected) == records.index.offsets.tolist()
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


@given(
    lengths=st.lists(st.integers(0, 200), min_size=1, max_size=50),
    numbers=st.lists(st.integers(-50, 49), max_size=30),
)
@settings(max_examples=60, deadline=None)
def test_numbers_mean_what_they_mean_to_lists(lengths, numbers, tmp_path_factory):
    expected = [bytes([i]) * length for i, length in enumerate(lengths)]
    records = TFRecordFile(write(tmp_path_factory.mktemp("data") / "data", expected))
    if all(-len(expected) <= number < len(expected) for number in numbers):
        assert [expected[i] for i in numbers] == records[numbers]
    else:
        with pytest.raises(IndexError, match=f"of {len(expected)}"):
            records[numbers]


@pytest.mark.parametrize("number", [40, -41, 2**70])
def test_records_that_are_not_there_are_index_errors(file, number):
    records = TFRecordFile(file)
    with pytest.raises(IndexError, match=f"record {number} of 40"):
        records[number]
    with pytest.raises((IndexError, TypeError)):
        records[[0, number]]


@pytest.mark.parametrize("key", [[1.0], [True], [[1]], "1", ["1"], 1.0, None], ids=repr)
def test_other_keys_are_type_errors(plain, key):
    with pytest.raises(TypeError):
        TFRecordFile(plain)[key]


def test_closed_files_give_nothing_and_calls_under_way_go_on(file):
    records = TFRecordFile(file)
    iterator = iter(records)
    first = next(iterator)
    records.close()
    records.close()
    assert RECORDS == [first, *iterator]
    assert "closed" in repr(records)
    for key in (0, [0], slice(0, 3)):
        with pytest.raises(ValueError, match="closed"):
            records[key]
    many = TFRecordFiles([file])
    many.close()
    with pytest.raises(ValueError, match="closed"):
        many[0]


def test_only_regular_files_are_indexed(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)
    with pytest.raises(ValueError, match="regular file"):
        RecordIndex.build(tmp_path / "pipe")
    os.close(reader)
    os.close(writer)
    with pytest.raises(IsADirectoryError, match=r"use TFRecordFiles\(paths\)"):
        TFRecordFile(tmp_path)
    with pytest.raises(FileNotFoundError):
        TFRecordFile(tmp_path / "missing")


# ---- Threads, forks, pickles -------------------------------------------------------------------


def test_threads_may_share_a_file(file):
    records = TFRecordFile(file)

    def is_right(seed):
        numbers = random.Random(seed).choices(range(40), k=200)
        expected = [RECORDS[i] for i in numbers]
        return expected == [records[number] for number in numbers] == records[numbers]

    assert all(at_once(is_right))


def test_processes_that_fork_share_no_position(file):
    records, many, closed = TFRecordFile(file), TFRecordFiles([file]), TFRecordFiles([file])
    assert RECORDS[20] == records[20] == many[20] == closed[20]

    def read():
        closed.close()
        return RECORDS == [records[i] for i in range(40)] == list(many)

    # As another thread might have it at this moment.
    lock = getattr(records._kept, "_lock", contextlib.nullcontext())
    with lock:
        ended = forked(read)
    assert RECORDS == list(records)
    assert ended()


def test_pickled_files_are_opened_anew(file):
    with TFRecordFile(file) as records:
        copy = pickle.loads(pickle.dumps(records))
    assert RECORDS == list(copy)
    many = pickle.loads(pickle.dumps(TFRecordFiles([file, file], max_open_files=1)))
    assert RECORDS + RECORDS == list(many)


@pytest.mark.posix("no /proc to count files")
def test_files_crowded_out_are_closed(tmp_path):
    paths = [write(tmp_path / str(i), [bytes([i])]) for i in range(20)]
    records = TFRecordFiles(paths, max_open_files=3)
    before = open_files()
    assert [bytes([i]) for i in range(20)] == [records[i] for i in range(20)]
    assert 3 == len(open_files() - before)
    records.close()
    assert set() == open_files() - before


# ---- Damaged files -----------------------------------------------------------------------------


def test_every_flipped_bit_is_found_by_the_record_it_is_in(path):
    records = [b"first", b"", b"the third"]
    data, ends = reference.file_of(records), begins(records)
    path.write_bytes(data)
    index = RecordIndex.build(path)
    file = TFRecordFile(path, index)
    for bit in range(8 * len(data)):
        path.write_bytes(reference.flip(data, bit))
        hit = next(i for i in range(3) if bit // 8 < ends[i + 1])
        reason = "length crc" if bit // 8 - ends[hit] < 12 else "data crc"
        for number in range(3):
            for read in (lambda n=number: file[n], lambda n=number: file[[n]][0]):
                if number != hit:
                    assert records[number] == read()
                    continue
                with pytest.raises(tfw.DataLossError, match="record") as caught:
                    read()
                error = caught.value
                assert (path, hit, ends[hit]) == (error.path, error.record_index, error.offset)
                assert reason == error.reason


def test_building_reports_damage_where_it_is(path):
    data = reference.file_of(RECORDS)
    for cut in (begins(RECORDS)[7] + 3, len(data) - 1):
        path.write_bytes(data[:cut])
        number = sum(end <= cut for end in begins(RECORDS)) - 1
        with pytest.raises(tfw.DataLossError) as caught:
            RecordIndex.build(path)
        error = caught.value
        assert (path, number, begins(RECORDS)[number], "truncated") == (
            error.path,
            error.record_index,
            error.offset,
            error.reason,
        )
    path.write_bytes(reference.flip(data, 8 * begins(RECORDS)[9]))
    with pytest.raises(tfw.DataLossError, match="record 9 at byte") as caught:
        TFRecordFile(path)
    assert "length crc" == caught.value.reason


def test_a_file_cut_while_it_is_open_is_an_error(tmp_path):
    records = [bytes(size) for size in (10, 50000, 10)]
    path = write(tmp_path / "data", records)
    file = TFRecordFile(path)
    os.truncate(path, 30000)
    assert records[0] == file[0]
    for key in (1, 2, [1], [0, 2]):
        with pytest.raises(tfw.DataLossError) as caught:
            file[key]
        assert "truncated" == caught.value.reason


def test_no_memory_is_reserved_for_what_the_file_cannot_hold(path):
    """A record of 64 MiB, of which the file, cut meanwhile, has next to nothing."""
    size = 1 << 26
    length = struct.pack("<Q", size)
    path.write_bytes(length + struct.pack("<I", tfw.checksum.masked_crc32c(length)))
    os.truncate(path, size + 16)
    file = TFRecordFile(path)
    os.truncate(path, 100)
    tracemalloc.start()
    try:
        for key in (0, [0], slice(0, 1)):
            with pytest.raises(tfw.DataLossError, match="the file ends at byte 100"):
                file[key]
        assert tracemalloc.get_traced_memory()[1] < size // 16
    finally:
        tracemalloc.stop()


def test_damage_in_a_compressed_file_is_reported_and_does_not_stay(tmp_path):
    path = write(tmp_path / "data", [os.urandom(50) for _ in range(2000)], "GZIP")
    expected = list(tfw.read_records(path))
    file = TFRecordFile(path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert expected[3] == file[3]
    with pytest.raises(tfw.DataLossError) as caught:
        file[1999]
    assert "compressed stream" == caught.value.reason
    path.write_bytes(data)
    assert expected[1999] == file[1999]


def test_a_compressed_file_replaced_while_it_is_open_is_an_error(tmp_path):
    path = write(tmp_path / "data", RECORDS, "GZIP")
    file = TFRecordFile(path)
    write(path, RECORDS[::-1], "GZIP")
    with pytest.raises(tfw.DataLossError, match="stale"):
        file[3]
    write(path, RECORDS[:5], "GZIP")
    with pytest.raises(tfw.DataLossError, match="the file ends before it"):
        file[30]


@pytest.mark.parametrize("make", [RecordIndex.build, TFRecordFile, TFRecordFiles])
@pytest.mark.parametrize(
    ("data", "looks"),
    [
        (b"name,age\nAda,36\n", "not a TFRecord file? it begins like text"),
        (b"Ada\n", "not a TFRecord file? it begins like text"),
        (gzip.compress(b"name,age\nAda,36\n", mtime=0), "not a TFRecord file? it begins like text"),
        (b"\x1f\x8b\x07" + bytes(20), "not a TFRecord file? it begins like gzip"),
        (bytes(3), "3 stray bytes and no record, which takes 16 or more"),
    ],
)
def test_a_file_without_records_is_said_to_look_like_something_else(path, make, data, looks):
    """As read_records says it, and as the first thing that went wrong."""
    path.write_bytes(data)
    with pytest.raises(tfw.DataLossError) as caught:
        make(path)
    assert looks in str(caught.value)
    assert caught.value.__context__ is None


def test_a_gzip_file_read_as_plain_is_told(tmp_path):
    path = write(tmp_path / "data", RECORDS, "GZIP")
    with pytest.raises(tfw.DataLossError, match="begins like gzip; compression_type is none"):
        RecordIndex.build(path, None)


def test_stray_bytes_after_the_last_record_are_counted(plain):
    with open(plain, "ab") as file:
        file.write(b"stray")
    with pytest.raises(tfw.DataLossError, match="5 stray bytes after record 39"):
        RecordIndex.build(plain)


def test_loading_an_index_that_is_not_there_says_how_to_make_one(plain):
    with pytest.raises(FileNotFoundError, match=r"RecordIndex\.build.*'tfwire index") as caught:
        RecordIndex.load(plain)
    assert f"{plain}.tfwindex" == caught.value.filename
    plain.unlink()
    with pytest.raises(FileNotFoundError) as caught:
        RecordIndex.load(plain)
    assert os.fspath(plain) == os.fspath(caught.value.filename)


def test_iterating_gives_every_record_before_damage(plain):
    """As every reader does; also where they are read by many at a time."""
    file = TFRecordFile(plain)
    data = plain.read_bytes()
    for number, begin in enumerate(begins(RECORDS)[:-1]):
        plain.write_bytes(reference.flip(data, 8 * (begin + 16 + len(RECORDS[number])) - 1))
        for records in (file, tfw.TFRecordDataset(plain, indexed=True).as_numpy_iterator()):
            found = []
            with pytest.raises(tfw.DataLossError) as caught:
                found.extend(records)  # extends by what comes before an error
            assert ("data crc", number) == (caught.value.reason, caught.value.record_index)
            assert RECORDS[:number] == found


# ---- Other files under the same name ------------------------------------------------------------


OPEN = pytest.mark.posix("a file that is open is not replaced")


@pytest.mark.parametrize("kind", [None, "GZIP", "ZLIB"])
@pytest.mark.parametrize("how", [pytest.param("renamed", marks=OPEN), "chdir"])
def test_an_open_file_is_not_mistaken_for_another_of_its_name(tmp_path, monkeypatch, kind, how):
    """Of the same layout, so that nothing else would tell."""
    (tmp_path / "elsewhere").mkdir()
    others = [b"\xff" * len(record) for record in RECORDS]
    other = write(tmp_path / "elsewhere" / "data", others, kind)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data", RECORDS, kind)
    with TFRecordFile("data") as file:
        assert RECORDS[3] == file[3]
        if how == "chdir":
            monkeypatch.chdir("elsewhere")
        else:
            other.rename("data")
        assert RECORDS[0] == file[0]
        assert RECORDS == list(file)


@pytest.mark.parametrize("kind", [None, "GZIP"])
def test_files_are_found_after_a_chdir(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data", RECORDS, kind)
    with TFRecordFiles(["data", "data"], max_open_files=1) as files:
        monkeypatch.chdir("/")
        assert RECORDS * 2 == list(files)
        assert (["data"] * 2, RECORDS[1]) == (files.paths, files[len(RECORDS) + 1])
        monkeypatch.chdir(tmp_path)
        copy = pickle.loads(pickle.dumps(files))
        monkeypatch.chdir("/")
        assert RECORDS * 2 == list(copy)


def test_an_index_is_saved_beside_its_file_after_a_chdir(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "data", RECORDS)
    path.chmod(0o600)
    index = RecordIndex.build("data")
    monkeypatch.chdir("elsewhere")
    for save in (index.save, index.write_text):
        with pytest.raises(shutil.SameFileError):
            save("../data")
    index.save()
    index.save("named")
    assert ["named"] == os.listdir()
    assert path.stat().st_mode == os.stat("named").st_mode
    monkeypatch.chdir(tmp_path)
    assert index == RecordIndex.load("data") == RecordIndex.load("data", "elsewhere/named")
