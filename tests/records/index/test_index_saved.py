"""Saved indexes: their formats, and indexes that are stale, damaged or lie."""

from __future__ import annotations

import gzip
import itertools
import os
import struct

import pytest

import tfwire as tfw
from helpers import reference
from helpers.records.indexed import RECORDS, begins, touch, with_fingerprint, write
from tfwire._records.index.random_access import TFRecordFile
from tfwire._records.index.record_index import RecordIndex

# ---- Saving ------------------------------------------------------------------------------------


def test_saved_index_is_loaded_and_used(file, monkeypatch):
    built = RecordIndex.build(file)
    built.save()
    loaded = RecordIndex.load(file)
    assert built.offsets.tolist() == loaded.offsets.tolist()
    assert vars(built).keys() == vars(loaded).keys()
    for name in ("compression", "size", "mtime_ns", "fingerprint"):
        assert getattr(built, name) == getattr(loaded, name)
    monkeypatch.setattr(RecordIndex, "build", None)  # it saves the walk
    assert RECORDS == list(TFRecordFile(file))


def test_saved_index_is_as_documented(plain):
    """docs/internals/index-format.md, by hand."""
    RecordIndex.build(plain).save()
    data = plain.with_name(plain.name + ".tfwindex").read_bytes()
    file, status = plain.read_bytes(), plain.stat()
    ends = begins(RECORDS)
    places = sorted({i * 40 // 63 for i in range(64)})
    places = [min(max(ends[place] - 4, 0), len(file) - 16) for place in places]
    fingerprint = reference.crc32c(b"".join(file[place : place + 16] for place in places))
    fields = (1, 0, len(file), status.st_mtime_ns, fingerprint, 4, 40)
    expected = b"TFWINDEX" + struct.pack("<IIQqIIQ", *fields)
    expected += struct.pack("<40I", *map(len, RECORDS))
    assert expected + reference.masked(expected) == data


def test_index_of_an_index_path(file, tmp_path):
    RecordIndex.build(file).save(tmp_path / "elsewhere")
    assert ["data.tfrecord", "elsewhere"] == sorted(os.listdir(tmp_path))
    assert RECORDS == list(TFRecordFile(file, tmp_path / "elsewhere"))


def test_an_index_is_no_number(plain):
    """A number would be an open file's, which reading would close."""
    with open(plain, "rb") as file:
        for read in (
            lambda: TFRecordFile(plain, file.fileno()),
            lambda: RecordIndex.load(plain, file.fileno()),
            lambda: RecordIndex.read_text(plain, file.fileno()),
        ):
            with pytest.raises(TypeError, match="int"):
                read()
        os.fstat(file.fileno())


def test_lengths_above_four_gigabytes_take_eight_bytes(tmp_path):
    """A compressed file may hold such records; here only its index is."""
    path = write(tmp_path / "data", RECORDS, "GZIP")
    index = RecordIndex.build(path)
    offsets = index.offsets.copy()
    offsets[20:] += 1 << 33
    index.offsets = offsets
    index.save()
    assert offsets.tolist() == RecordIndex.load(path).offsets.tolist()


def test_text_of_tfrecord2idx_is_written_and_read(file, tmp_path):
    index = RecordIndex.build(file)
    index.write_text(tmp_path / "idx")
    expected = "".join(
        f"{begin} {end - begin}\n" for begin, end in itertools.pairwise(begins(RECORDS))
    )
    assert expected == (tmp_path / "idx").read_text()
    read = RecordIndex.read_text(file, tmp_path / "idx")
    assert index.offsets.tolist() == read.offsets.tolist()
    assert RECORDS == list(TFRecordFile(file, read))


@pytest.mark.parametrize(
    "text",
    ["0 16\n17 16\n", "5 16\n", "0 15\n", "0 16\n16\n", "a b\n", f"0 {2**70}\n", "0 -16\n"],
)
def test_malformed_text_is_refused(plain, tmp_path, text):
    (tmp_path / "idx").write_text(text)
    with pytest.raises(tfw.DataLossError, match="not a usable index") as caught:
        RecordIndex.read_text(plain, tmp_path / "idx")
    assert "index" == caught.value.reason
    (tmp_path / "idx").write_text("0 16\n16 100\n")  # of another file
    with pytest.raises(tfw.DataLossError, match=r"116 bytes.*has \d+ bytes"):
        RecordIndex.read_text(plain, tmp_path / "idx")


# ---- Stale and lying indexes -------------------------------------------------------------------


def test_a_file_of_another_time_needs_a_new_index(file):
    RecordIndex.build(file).save()
    status = file.stat()
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 100))
    with pytest.raises(tfw.DataLossError, match=r"is stale.*mtime") as caught:
        RecordIndex.load(file)
    assert "index" == caught.value.reason
    assert RECORDS == list(TFRecordFile(file))
    copied = RecordIndex.load(file, ignore_mtime=True)
    assert RECORDS == list(TFRecordFile(file, copied))


def test_a_file_of_another_size_needs_a_new_index(plain):
    index = RecordIndex.build(plain)
    index.save()
    status = plain.stat()
    write(plain, RECORDS + [b"more"])
    touch(plain, status)
    for load in (lambda: RecordIndex.load(plain), lambda: TFRecordFile(plain, index)):
        with pytest.raises(tfw.DataLossError, match=r"is stale.*bytes"):
            load()
    assert [*RECORDS, b"more"] == list(TFRecordFile(plain))


@pytest.mark.parametrize("compress", [bytes, lambda data: gzip.compress(data, 0)])
def test_a_file_of_equal_size_and_time_is_known_by_its_fingerprint(path, compress):
    path.write_bytes(compress(reference.file_of([b"a" * 90, b"b" * 90])))
    RecordIndex.build(path).save()
    status = path.stat()
    path.write_bytes(compress(reference.file_of([b"a" * 89, b"b" * 91])))
    assert status.st_size == path.stat().st_size
    touch(path, status)
    with pytest.raises(tfw.DataLossError, match=r"is stale.*fingerprint"):
        RecordIndex.load(path)
    assert [b"a" * 89, b"b" * 91] == list(TFRecordFile(path))


def test_wrong_lengths_are_told_from_damage(plain):
    index = RecordIndex.build(plain)
    offsets = index.offsets.copy()
    offsets[5] += 20  # the record before is longer, this one begins within
    index.offsets = offsets
    records = TFRecordFile(plain, with_fingerprint(index))
    with pytest.raises(
        tfw.DataLossError, match=r"record 4 at byte \d+.*index says.*stale"
    ) as caught:
        records[4]
    assert ("index", 4, index.offsets[4]) == (
        caught.value.reason,
        caught.value.record_index,
        caught.value.offset,
    )
    with pytest.raises(tfw.DataLossError, match="stale, or the record is damaged") as caught:
        records[5]
    assert "length crc" == caught.value.reason


def test_every_damaged_byte_of_an_index_is_found(plain):
    RecordIndex.build(plain).save()
    path = plain.with_name(plain.name + ".tfwindex")
    data = path.read_bytes()
    damaged = [data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1 :] for i in range(len(data))]
    cut = [data[:i] for i in range(len(data))]
    for bad in [*damaged, *cut, data + b"\0", b""]:
        path.write_bytes(bad)
        with pytest.raises(tfw.DataLossError, match="not a usable index") as caught:
            RecordIndex.load(plain)
        assert "index" == caught.value.reason
    assert RECORDS == list(TFRecordFile(plain))


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 2},
        {"compression": 3},
        {"width": 2},
        {"count": 2**60},
        {"count": 2**64 - 1},
        {"width": 8, "count": 2, "body": b"\xff" * 16},
        {"width": 8, "count": 2, "body": (2**62).to_bytes(8, "little") * 2},
        {"width": 4, "count": 2, "body": b"\xff" * 8},
        {"size": 2**64 - 1},
        {"compression": 2},
    ],
    ids=str,
)
def test_hostile_indexes_with_right_checksums_are_refused(plain, fields):
    """None of them makes more memory than it takes itself."""
    index = RecordIndex.build(plain)
    known = {
        "version": 1,
        "compression": 0,
        "size": index.size,
        "mtime": index.mtime_ns,
        "fingerprint": index.fingerprint,
        "width": 4,
        "count": 40,
        "body": index.lengths.astype("<u4").tobytes(),
    }
    *numbers, body = {**known, **fields}.values()
    data = b"TFWINDEX" + struct.pack("<IIQqIIQ", *numbers) + body
    plain.with_name(plain.name + ".tfwindex").write_bytes(data + reference.masked(data))
    with pytest.raises(tfw.DataLossError) as caught:
        RecordIndex.load(plain)
    assert "index" == caught.value.reason
    assert RECORDS == list(TFRecordFile(plain))
