"""Records by number in compressed files, from the seek points of an index."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import struct
import threading
import zlib

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers import reference
from helpers.records.seekable import compress, section
from tfwire._records.files import seek_points
from tfwire._records.files.seek_points import NotReadable, SeekPoints
from tfwire._records.index import local_records
from tfwire._records.index.local_records import StreamAccess

COUNT = 600


def indexed(path, kind="GZIP", seekable=None):
    """The index of a file, with seek points."""
    index = tfw.RecordIndex.build(path, kind)
    if seekable.points:
        index._points = SeekPoints(seekable.section)
    return index


@pytest.fixture(scope="module")
def records():
    rng = random.Random(1)
    lengths = [rng.choice((0, 10, 300, 3000)) for _ in range(COUNT)]
    lengths[100] = lengths[300] = 200_000  # longer than what lies between two points
    words = [rng.randbytes(rng.randrange(1, 9)) for _ in range(300)]
    return [b"".join(rng.choices(words, k=length // 4 + 1))[:length] for length in lengths]


@pytest.fixture(scope="module")
def seekable(records):
    content = b"".join(map(reference.frame, records))
    step = len(content) // 40
    hows = ("partial", "sync", "full", "block", "stream")
    cuts = [(step * (i + 1), hows[i % len(hows)]) for i in range(39)]
    found = compress(content, cuts)
    assert len(found.points) > 30
    assert len({bit % 8 for _, bit, _ in found.points}) > 4
    return found


@pytest.fixture
def path(tmp_path, seekable):
    path = tmp_path / "data.gz"
    path.write_bytes(seekable.data)
    indexed(path, "GZIP", seekable).save()
    return path


@pytest.fixture(autouse=True)
def _eager(monkeypatch):
    """A point is used even if little content lies between."""
    monkeypatch.setattr(local_records, "_BEGINNING_COST", 0)


@pytest.fixture
def only_points(monkeypatch):
    """Fails where a file is read from its beginning."""

    def opened(self):
        raise AssertionError("read from the beginning")

    monkeypatch.setattr(StreamAccess, "_opened_at_beginning", opened)


# ---- Reading ------------------------------------------------------------------------------------


def test_records_are_read_from_the_nearest_point(path, records, seekable, only_points):
    index = tfw.RecordIndex.load(path)
    assert len(seekable.points) == index.seek_points
    first = int(np.searchsorted(index.offsets, seekable.points[0][0]))
    numbers = random.Random(2).choices(range(first, COUNT), k=300)
    with tfw.TFRecordFile(path) as file:
        assert [records[number] for number in numbers] == [file[number] for number in numbers]
        assert [records[number] for number in numbers] == file[numbers]


def test_all_access_is_as_of_a_plain_file(path, records):
    with tfw.TFRecordFile(path) as file:
        assert records == list(file) == file[:] == file[::-1][::-1]
        first, second = iter(file), iter(file)
        assert records[:50] == [next(first) for _ in range(50)]
        assert records == list(second)
        assert records[50:] == list(first)
    with tfw.TFRecordFiles([path, path]) as files:
        assert [records[-1], records[5], records[5]] == files[[-1, 5, COUNT + 5]]
    dataset = tfw.TFRecordDataset(str(path), indexed=True)
    assert sorted(records) == sorted(dataset.shuffle(COUNT, seed=1))
    assert records[1::3] == list(dataset.shard(3, 1))


def test_a_call_reads_on_where_another_one_ended(path, records, monkeypatch):
    begun = []
    rewind = seek_points.SeekableContent.rewind
    monkeypatch.setattr(
        seek_points.SeekableContent, "rewind", lambda *given: begun.append(1) or rewind(*given)
    )
    monkeypatch.setattr(local_records, "_BEGINNING_COST", 1 << 20)
    with tfw.TFRecordFile(path) as file:
        assert records[350:] == [file[number] for number in range(350, COUNT)]
        assert 1 == len(begun)
        for number in range(350):  # several places are remembered
            assert (records[number], records[599 - number]) == (file[number], file[599 - number])
        assert len(begun) < 350


def test_few_streams_are_kept_and_one_with_a_long_batch(path, records, monkeypatch):
    with tfw.TFRecordFile(path) as file:
        for number in range(COUNT - 1, 0, -7):
            file[number]
        assert 8 == len(file._kept._streams)
        monkeypatch.setattr(local_records, "_LONG_BATCH", 150_000)
        assert records[300] == file[300]
        assert 1 == len(file._kept._streams)


def test_threads_and_forked_children_read_by_themselves(path, records):
    with tfw.TFRecordFile(path) as file:
        wrong = []

        def read(seed):
            for number in random.Random(seed).choices(range(COUNT), k=80):
                if file[number] != records[number]:
                    wrong.append(number)

        threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        if hasattr(os, "fork"):
            pid = os.fork()
            if pid == 0:
                signal.alarm(60)
                os._exit(7 if file[COUNT - 1] == records[COUNT - 1] else 8)
            assert 7 == os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        for thread in threads:
            thread.join()
        assert not wrong


def test_an_index_with_points_is_pickled(path, records, only_points):
    with tfw.TFRecordFile(path) as file:
        index, copy = file.index, pickle.loads(pickle.dumps(file))
        assert records[-1] == copy[-1]
        assert index == copy.index
        assert index.seek_points == copy.index.seek_points > 0
        index.offsets = index.offsets  # nobody knows whose numbers these are
        assert index != copy.index
        assert 0 == index.seek_points


def test_an_object_is_read_from_points_of_the_file(path, records, only_points):
    """The index came with the file."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for suffix in ("", ".tfwindex"):
        memory.pipe(f"/seek/data.gz{suffix}", path.with_name(path.name + suffix).read_bytes())
    with tfw.TFRecordFile("memory://seek/data.gz") as file:
        assert [records[-1], records[400], records[401]] == [file[-1], *file[400:402]]
        file.index.save()
        assert file.index == tfw.RecordIndex.load("memory://seek/data.gz")


KINDS = st.sampled_from(["GZIP", "ZLIB"])
HOWS = st.sampled_from(["partial", "sync", "full", "block", "stream"])


def repeated(word, length):
    return (word * (length // len(word) + 1))[:length]


@st.composite
def files(draw):
    """Records, and their file with points."""
    rng = random.Random(draw(st.integers(0, 99)))
    lengths = draw(st.lists(st.sampled_from([0, 1, 50, 900, 40_000, 90_000]), max_size=12))
    word = draw(st.sampled_from([1, 50, 100_000]))  # what is repeated
    records = [repeated(rng.randbytes(word), length) for length in lengths]
    content = b"".join(map(reference.frame, records))
    places = draw(st.lists(st.integers(1, max(1, len(content))), max_size=12, unique=True))
    cuts = [(place, draw(HOWS)) for place in sorted(places) if place < len(content)]
    level, padding = draw(st.integers(0, 9)), draw(st.sampled_from([0, 1, 70_000]))
    kind = draw(KINDS)
    return records, kind, compress(content, cuts, kind, level, padding if kind == "GZIP" else 0)


@settings(max_examples=50, deadline=None)
@given(files(), st.randoms(use_true_random=False), st.none() | st.integers(0, 1 << 20))
def test_any_file_gives_what_zlib_gives_or_an_error(tmp_path_factory, made, rng, damage):
    records, kind, seekable = made
    if not records:
        return
    path = tmp_path_factory.mktemp("any") / "data"
    path.write_bytes(seekable.data)
    index = indexed(path, kind, seekable)
    with tfw.TFRecordFile(path, index) as file:
        if damage is not None:
            data = bytearray(seekable.data)
            data[damage % len(data)] ^= 1 << damage % 8
            path.write_bytes(data)
        for number in rng.choices(range(len(records)), k=20):
            with contextlib.suppress(*() if damage is None else (tfw.DataLossError,)):
                assert records[number] == file[number]


def test_damage_is_said_as_without_points_and_what_follows_is_read(path, records, seekable):
    """A point after the damage is as good as ever."""
    damaged = bytearray(seekable.data)
    at = seekable.points[20][1] // 8
    damaged[at + 200 : at + 260] = bytes(60)
    with tfw.TFRecordFile(path) as file:
        number = int(np.searchsorted(file.index.offsets, seekable.points[21][0])) - 1
        path.write_bytes(damaged)
        plain = StreamAccess(file._kept._source, "GZIP", file.index.offsets)
        with pytest.raises(tfw.DataLossError) as expected:
            plain.one(number)
        for _ in range(2):
            with pytest.raises(tfw.DataLossError) as found:
                file[number]
            assert str(expected.value) == str(found.value)
            assert records[number + 40 :] == file[number + 40 :]
            assert records[3] == file[3]


def test_a_file_that_is_cut_while_it_is_open(path, records, seekable):
    with tfw.TFRecordFile(path) as file:
        os.truncate(path, len(seekable.data) // 2)
        assert records[10] == file[10]
        with pytest.raises(tfw.DataLossError, match="ends too early"):
            file[COUNT - 1]


@pytest.mark.parametrize("change", ["window", "bit", "offset"])
def test_points_that_are_wrong_give_the_right_records(path, records, seekable, change):
    """Somebody has edited the index."""
    points = list(seekable.points)
    for number, (offset, bit, window) in enumerate(points):
        points[number] = {
            "window": (offset, bit, bytes(len(window))),
            "bit": (offset, bit + 1, window),
            "offset": (offset + 1, bit, window),
        }[change]
    index = tfw.RecordIndex.load(path)
    index._points = SeekPoints(section(points))
    with tfw.TFRecordFile(path, index) as file:
        assert records[::-7] == [file[number] for number in range(COUNT)[::-7]]
        assert records[::-1] == file[::-1]


# ---- The section of an index --------------------------------------------------------------------


def test_an_index_with_points_is_as_documented(path, seekable):
    """docs/internals/index-format.md, by hand."""
    saved = path.with_name(path.name + ".tfwindex")
    index = tfw.RecordIndex.load(path)
    data = saved.read_bytes()
    fields = (3, 2, len(seekable.data), path.stat().st_mtime_ns, index.fingerprint, 4, COUNT)
    expected = b"TFWINDEX" + struct.pack("<IIQqIIQ", *fields)
    expected += index.lengths.astype("<u4").tobytes() + struct.pack("<I", 0) + seekable.section
    assert expected + reference.masked(expected) == data
    index.save()
    assert data == saved.read_bytes()


def test_an_index_without_points_is_of_version_1(path):
    index = tfw.RecordIndex.build(path)
    index.save()
    assert 0 == index.seek_points == tfw.RecordIndex.load(path).seek_points
    saved = path.with_name(path.name + ".tfwindex").read_bytes()
    assert 1 == struct.unpack_from("<I", saved, 8)[0]


def with_checksum(data):
    return data + struct.pack("<I", tfw.checksum.masked_crc32c(data))


def test_a_damaged_index_with_points_is_refused(path, seekable):
    saved = path.with_name(path.name + ".tfwindex")
    data = saved.read_bytes()[:-4]
    at = 48 + 4 * COUNT
    wrong = {
        "version 5, this tfwire reads versions 1 to 4": data[:8] + b"\5" + data[9:],
        "not in the file": data[:12] + b"\0" + data[13:],
        "do not fit": data[:at] + struct.pack("<I", 0),
        "version does not fit": data[:at] + struct.pack("<I", 1 << 20) + data[at + 4 :],
        "windows of its seek points": data + b"\0",
        "follow each other": data[: at + 8] + bytes(8) + data[at + 16 :],
    }
    for text, content in wrong.items():
        saved.write_bytes(with_checksum(content))
        with pytest.raises(tfw.DataLossError, match=text) as caught:
            tfw.RecordIndex.load(path)
        assert "index" == caught.value.reason
    for length in range(0, len(data), len(data) // 50):
        saved.write_bytes(data[:length])
        with pytest.raises(tfw.DataLossError):
            tfw.RecordIndex.load(path)


def test_any_section_is_refused_or_has_points_in_order(seekable):
    rng, tail = random.Random(3), seekable.section
    refused = 0
    for _ in range(3000):
        data = bytearray(tail[:600] if rng.random() < 0.3 else tail)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(min(len(data), 900))] = rng.randrange(256)
        try:
            points = SeekPoints(bytes(data))
        except ValueError:
            refused += 1
            continue
        assert points._offsets == sorted(set(points._offsets))
        assert 0 < len(points) * 20 < len(data)
        for offset in points._offsets[:3]:
            try:
                points.begin(offset)
            except NotReadable:
                refused += 1
    assert refused > 500


def test_a_window_that_inflates_to_much_more_takes_no_memory():
    bomb = zlib.compress(bytes(1 << 24))
    points = SeekPoints(struct.pack("<IQQI", 1, 9, 99, len(bomb)) + bomb)
    inflater, bit = points.begin(9)
    assert 99 == bit
    assert not inflater.eof
    with pytest.raises(ValueError, match="do not fit"):
        SeekPoints(struct.pack("<I", 1 << 13) + bytes(20 << 13))
