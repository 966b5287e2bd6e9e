"""Seek points of gzip and zlib files, found by rapidgzip: records by number as of plain files."""

import gzip
import os
import pickle
import random
import sys
import zlib

import numpy as np
import pytest
import rapidgzip

import tfwire as tfw
from helpers.command import output_of_python
from tfwire._records.files import seek_points
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.seek_points import SeekableContent, find_points
from tfwire._records.index.local_records import StreamAccess

COUNT = 15_000


def made(folder, name, records, compression, level=None):
    options = tfw.TFRecordOptions(compression, compression_level=level)
    tfw.write_records(folder / name, records, options)
    return folder / name


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(1)
    words = [rng.bytes(int(rng.integers(1, 9))) for _ in range(999)]
    lengths = rng.integers(0, 3000, COUNT)
    lengths[COUNT // 2] = 9_000_000  # over several points
    source = rng.bytes(100_000)
    texts = [b"".join(words[i] for i in rng.integers(0, 999, 700)) for _ in range(50)]
    return [
        (texts[number % 50] + source)[number % 200 :][:length]
        if length < 5000
        else rng.bytes(int(length))
        for number, length in enumerate(lengths.tolist())
    ]


@pytest.fixture(scope="module", params=["GZIP", "ZLIB", "GZIP-9"])
def path(request, records, tmp_path_factory):
    kind, _, level = request.param.partition("-")
    folder = tmp_path_factory.mktemp("seek")
    path = made(folder, "records", records, kind, int(level) if level else None)
    tfw.RecordIndex.build(path).save()
    return path


@pytest.fixture
def without_rapidgzip(monkeypatch):
    monkeypatch.setattr(seek_points, "_rapidgzip", lambda: None)


@pytest.fixture
def only_points(monkeypatch):
    """Fails where a file is read from its beginning."""

    def opened(self):
        raise AssertionError("read from the beginning")

    monkeypatch.setattr(StreamAccess, "_opened_at_beginning", opened)


def far(path):
    """Numbers of records after the first point, in any order."""
    index = tfw.RecordIndex.load(path)
    first = int(np.searchsorted(index.offsets, index._points._offsets[0]))
    return random.Random(2).choices(range(first, COUNT), k=60)


def test_records_are_read_from_points_without_rapidgzip(
    path, records, without_rapidgzip, only_points
):
    assert tfw.RecordIndex.load(path).seek_points >= 3
    numbers = far(path)
    with tfw.TFRecordFile(path) as file:
        assert [records[number] for number in numbers] == [file[number] for number in numbers]
        assert [records[number] for number in numbers] == file[numbers]
        assert records[-1] == pickle.loads(pickle.dumps(file))[-1]


def test_an_index_in_memory_has_points(path, records, only_points):
    with tfw.TFRecordFile(path, tfw.RecordIndex.build(path)) as file:
        assert records[-1] == file[-1]


def test_without_rapidgzip_there_are_none(path, records, without_rapidgzip):
    index = tfw.RecordIndex.build(path)
    assert 0 == index.seek_points
    with tfw.TFRecordFile(path, index) as file:
        assert [records[-1], records[0]] == [file[-1], file[0]]


def test_shuffles_and_shards_are_exact(path, records):
    dataset = tfw.TFRecordDataset([str(path)] * 2, indexed=True)
    assert sorted(records + records) == sorted(dataset.shuffle(2 * COUNT, seed=1))
    assert records[1::3] + records[2::3] == list(
        tfw.TFRecordDataset(str(path), indexed=True).shard(3, 1)
    ) + list(tfw.TFRecordDataset(str(path), indexed=True).shard(3, 2))


def test_the_command_saves_points(path, tmp_path):
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes())
    text = output_of_python("-m", "tfwire", "index", copy)
    assert "15000 records" in text.replace(",", "")
    assert tfw.RecordIndex.load(path)._points == tfw.RecordIndex.load(copy)._points


# ---- Files of every kind ------------------------------------------------------------------------


def pieces(rng):
    """Parts of a file: of every compression, and short and long ones, and empty ones."""
    for number in range(120):
        size = rng.choice([0, 0, 1, 1000, 70_000, 400_000])
        word = rng.randbytes(rng.choice([1, 100, 400_000]))
        yield (word * (size // len(word) + 1))[:size], number % 10


@pytest.mark.parametrize("seed", range(4))
def test_content_from_every_point_is_as_zlib_gives_it(tmp_path, seed):
    rng = random.Random(seed)
    parts = list(pieces(rng))
    path, content = tmp_path / "data.gz", b"".join(part for part, _ in parts)
    if seed % 2:
        data = b"".join(gzip.compress(part, level) for part, level in parts)
    else:
        deflater = zlib.compressobj(seed, zlib.DEFLATED, 31)
        data = b"".join(
            deflater.compress(part)
            + deflater.flush(rng.choice([zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_NO_FLUSH]))
            for part, _ in parts
        )
        data += deflater.flush()
    path.write_bytes(data)
    source = FileSource(path)
    points = find_points(source, len(content), lambda: None)
    source.close()
    assert points is not None
    for offset in points._offsets:
        reader = SeekableContent(FileSource(path), "GZIP", points)
        reader.rewind(offset)
        begin, buffer = min(offset + rng.randrange(100), len(content)), bytearray(300_000)
        reader.rewind(begin)
        done = 0
        while done < len(buffer) and (got := reader.readinto(memoryview(buffer)[done:])):
            done += got
        assert content[begin : begin + len(buffer)] == bytes(buffer[:done])
        reader.close()


def test_a_long_file_has_points_further_apart(path, records, monkeypatch):
    monkeypatch.setattr(seek_points, "_MOST_POINTS", 2)
    index = tfw.RecordIndex.build(path)
    assert 1 <= index.seek_points <= 2
    with tfw.TFRecordFile(path, index) as file:
        assert records[::-500] == [file[number] for number in range(COUNT)[::-500]]


def cut(content):
    return content[: len(content) * 2 // 3]


def without_footer(content):
    return content[:-4]


def flipped(content):
    at = len(content) // 2
    return content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]


def with_other_checksum(content):
    return content[:-8] + bytes([content[-8] ^ 1]) + content[-7:]


@pytest.mark.parametrize("damage", [cut, without_footer, flipped, with_other_checksum])
def test_a_damaged_file_is_refused_as_without_it(path, tmp_path, monkeypatch, damage):
    damaged = tmp_path / "damaged"
    damaged.write_bytes(damage(path.read_bytes()))

    def outcome():
        with pytest.raises(tfw.DataLossError) as caught:
            tfw.RecordIndex.build(damaged)
        return str(caught.value)

    found = outcome()
    monkeypatch.setattr(seek_points, "_rapidgzip", lambda: None)
    assert outcome() == found


def test_padding_that_rapidgzip_refuses_leaves_an_index_without_points(path, records, tmp_path):
    padded = tmp_path / "padded"
    padded.write_bytes(path.read_bytes() + bytes(100))
    index = tfw.RecordIndex.build(padded)
    assert 0 == index.seek_points
    assert records[-1] == tfw.TFRecordFile(padded, index)[-1]


# ---- Ends ---------------------------------------------------------------------------------------


def test_an_interrupt_closes_what_was_opened(path, monkeypatch):
    closed, opened = [], rapidgzip.open

    class File:
        def __init__(self, *given, **named):
            self.file = opened(*given, **named)

        def close(self):
            self.file.close()
            closed.append(self.file.closed)

        def seek(self, *given):
            raise KeyboardInterrupt

    monkeypatch.setattr(rapidgzip, "open", File)
    before = os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else []
    with pytest.raises(KeyboardInterrupt):
        tfw.RecordIndex.build(path)
    assert [True] == closed
    assert len(before) == len(os.listdir("/proc/self/fd")) if before else True


PROGRAM = """
import os, sys, threading, time
import tfwire as tfw
from tfwire._records.files import seek_points
begun = threading.Event()
export = seek_points._imported
def imported(file):
    begun.set()
    time.sleep(1)
    return export(file)
seek_points._imported = imported
def build():
    tfw.RecordIndex.build_many([sys.argv[1]] * 2, num_threads=2)
thread = threading.Thread(target=build, daemon=sys.argv[2] != "wait")
thread.start()
begun.wait()
if sys.argv[2] == "fork":
    pid = os.fork()
    if pid:
        status = os.waitpid(pid, 0)[1]
        assert status == 0, status
    else:
        tfw.RecordIndex.build(sys.argv[1])
print("done", flush=True)
"""


@pytest.mark.parametrize("end", ["exit", "wait", "fork"])
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_the_interpreter_ends_while_an_index_is_built(path, end):
    assert output_of_python("-c", PROGRAM, path, end).startswith("done\n")
