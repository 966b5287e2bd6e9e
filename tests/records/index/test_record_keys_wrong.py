"""Keys that are stale, damaged or forged give no record that has another key."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import tfwire as tfw
from helpers.records.indexed import touch
from helpers.records.keyed import COUNT, KEYS, by_key_of, saved, write
from tfwire._records.index import index_files
from tfwire._records.index.record_keys import RecordKeys


def test_keys_of_another_file_are_not_used(tmp_path):
    path = write(tmp_path / "a", KEYS["text"])
    tfw.RecordIndex.build(path, key="id").save()
    write(tmp_path / "a", KEYS["text"][1:])
    with pytest.raises(tfw.DataLossError, match="is stale"):
        tfw.RecordIndex.load(path)
    with pytest.raises(ValueError, match="has no keys, or is stale"):
        by_key_of(tfw.TFRecordFile(path))


@pytest.mark.parametrize("many", [False, True])
def test_a_key_that_was_changed_in_place_is_no_hit(tmp_path, many):
    """With the size, the time and the samples of the file that was indexed."""
    path = tmp_path / "a"
    write(path, KEYS["text"])
    tfw.RecordIndex.build(path, key="id").save()
    status, records = path.stat(), list(tfw.read_records(path))
    records[101] = records[101].replace(b"id 101", b"id 999")
    tfw.write_records(tmp_path / "b", records)
    path.write_bytes((tmp_path / "b").read_bytes())
    touch(path, status)
    with tfw.TFRecordFiles([path]) as files:
        assert files[100] == files.by_key["id 100"]
        assert "id 999" not in files.by_key
        with pytest.raises(tfw.DataLossError, match="record 101: it has another key") as caught:
            files.by_key[["id 4", "id 101"] if many else "id 101"]
    assert ("index", 101) == (caught.value.reason, caught.value.record_index)


def test_a_record_that_lost_its_key_is_no_hit(tmp_path):
    path = tmp_path / "a"
    write(path, KEYS["int64"])
    index = tfw.RecordIndex.build(path, key="id")
    index._keys.name = b"n"  # as if another feature had been indexed
    with (
        tfw.TFRecordFile(path, index) as records,
        pytest.raises(tfw.DataLossError, match="record 5: it has another key"),
    ):
        records.by_key[KEYS["int64"][5]]
    index._keys.name = b"more"
    with (
        tfw.TFRecordFile(path, index) as records,
        pytest.raises(tfw.DataLossError, match="record 5: it has another key"),
    ):
        records.by_key[KEYS["int64"][5]]


def with_checksum(data):
    return data + struct.pack("<I", tfw.checksum.masked_crc32c(data))


def forged(data, at):
    """Sections of keys that are wrong, with the words of the refusal."""
    yield "name of its keys", data[:at]
    yield "name of its keys", data[:at] + struct.pack("<I", 1 << 17) + data[at + 4 :]
    yield "name of its keys", data[:at] + struct.pack("<I", 60_000) + data[at + 4 :]
    yield "do not fit", data[: at + 6] + struct.pack("<I", 2) + data[at + 10 :]
    yield "do not fit", data[: at + 6] + struct.pack("<I", 3) + data[at + 10 :]
    yield "do not fit", data[: at + 10] + struct.pack("<I", 0) + data[at + 14 :]
    yield "do not fit", data[: at + 10] + struct.pack("<II", 1 << 31, 1 << 31) + data[at + 18 :]
    yield "do not fit", data[:-1]
    yield "do not fit", data + b"\0"
    # The first key is as long as all of them: its record has no room for it.
    lengths = struct.unpack_from(f"<{COUNT}I", data, at + 10)
    moved = struct.pack(f"<{COUNT}I", sum(lengths), *[0] * (COUNT - 1))
    yield "do not fit", data[: at + 10] + moved + data[at + 10 + 4 * COUNT :]
    yield "seek points", data[: at - 4] + struct.pack("<I", 9) + bytes(9) + data[at:]


def test_a_forged_section_is_refused(tmp_path):
    path = write(tmp_path / "a", KEYS["text"])
    tfw.RecordIndex.build(path, key="id").save()
    data, at = saved(path)[:-4], 48 + 4 * COUNT + 8
    for text, content in forged(data, at):
        (tmp_path / "a.tfwindex").write_bytes(with_checksum(content))
        with pytest.raises(tfw.DataLossError) as caught:
            tfw.RecordIndex.load(path)
        assert "not a usable index" in str(caught.value)
        assert text in str(caught.value)
    for length in range(0, len(data), 131):
        (tmp_path / "a.tfwindex").write_bytes(data[:length])
        with pytest.raises(tfw.DataLossError):
            tfw.RecordIndex.load(path)


def test_any_bytes_are_refused_or_keys_of_all_records():
    random = np.random.default_rng(0)
    sizes = np.array([10, 20, 30])
    section = RecordKeys(b"id", np.arange(6, dtype=np.uint8), np.array([0, 1, 1, 6])).section
    for _ in range(3000):
        data = bytearray(section[: random.integers(len(section) + 1)])
        for at in random.integers(len(data), size=2 if data else 0):
            data[at] = random.integers(256)
        try:
            keys = RecordKeys.of_section(bytes(data), sizes)
        except ValueError:
            continue
        assert 3 == len(keys) == len(list(keys))


def test_an_index_that_says_one_key_twice_is_refused(tmp_path):
    path = write(tmp_path / "a", KEYS["text"])
    tfw.RecordIndex.build(path, key="id").save()
    data = saved(path)[:-4].replace(b"id 8id 9", b"id 8id 8")
    (tmp_path / "a.tfwindex").write_bytes(with_checksum(data))
    with pytest.raises(ValueError, match="record 8 and record 9 have the same key"):
        by_key_of(tfw.TFRecordFile(path))


def test_a_long_index_is_read_only_if_the_file_may_have_such_keys(tmp_path, monkeypatch):
    path = write(tmp_path / "a", KEYS["text"])
    tfw.RecordIndex.build(path, key="id").save()
    monkeypatch.setattr(index_files, "_SURELY_READ", 0)
    tfw.RecordIndex.load(path)
    data = bytearray(saved(path)[:-4])
    struct.pack_into("<Q", data, 16, 1 << 60)  # the size that it says its file has
    with open(f"{path}.tfwindex", "wb") as file:
        file.write(data)
        file.truncate(1 << 40)
    with pytest.raises(tfw.DataLossError, match="is stale"):
        tfw.RecordIndex.load(path)
