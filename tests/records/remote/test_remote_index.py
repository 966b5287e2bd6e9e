"""Records of URLs by number: indexes beside objects, ranges of neighbours, objects that change."""

from __future__ import annotations

import pickle
import struct
import threading
from collections import Counter
from itertools import pairwise

import fsspec
import numpy as np
import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.remote.object_server import (
    RECORDS,
    ObjectFileSystem,
    file_of,
)
from helpers.threads import at_once
from tfwire._records.index import index_files

pytestmark = pytest.mark.usefixtures("small")

FAR = 70_000  # bytes of a record: its neighbours do not share a range


def indexed(server, path, folder):
    """Puts the index of an object beside it; returns its URL."""
    url = server.url(path)
    saved = folder / "index"
    tfw.RecordIndex.build(url).save(saved)
    server.add(f"{path}.tfwindex", saved.read_bytes())
    server.requests, server.ranges[:] = Counter(), []
    return url


def requests(server):
    return sum(server.requests.values())


# ---- Indexes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [None, "GZIP", "ZLIB"])
@pytest.mark.parametrize("records", [[], [b""], [b"x"], RECORDS], ids=len)
def test_the_index_of_an_object_is_that_of_a_file_with_its_bytes(tmp_path, records, options):
    (tmp_path / "a").write_bytes(file_of(records, options))
    fsspec.filesystem("memory").pipe("/set/a", file_of(records, options))
    local = tfw.RecordIndex.build(tmp_path / "a", "auto" if options is None else options)
    index = tfw.RecordIndex.build("memory://set/a", "auto" if options is None else options)
    assert local.offsets.tolist() == index.offsets.tolist()
    for fact in ("compression", "size", "fingerprint"):
        assert getattr(local, fact) == getattr(index, fact)
    index.save()
    again = tfw.RecordIndex.load("memory://set/a")
    assert index == again == pickle.loads(pickle.dumps(index))
    assert records == list(tfw.TFRecordFile("memory://set/a"))


def test_an_index_may_be_in_a_local_folder_or_beside_the_object(server, tmp_path):
    url = server.url("/a")
    tfw.RecordIndex.build(url).save(tmp_path / "cached")
    server.ranges.clear()
    with tfw.TFRecordFile(url, tmp_path / "cached") as records:
        assert [] == server.ranges
        assert RECORDS[7] == records[7]
    with pytest.raises(ValueError, match="the file is closed"):
        records[0]
    tfw.write_records("memory://set/a", RECORDS)
    index = tfw.RecordIndex.build("memory://set/a")
    index.save("memory://other/index")
    assert index == tfw.RecordIndex.load("memory://set/a", "memory://other/index")
    assert [1000 + i for i in range(400)] == index.lengths.tolist()
    with pytest.raises(OSError, match="is the record file itself"):
        index.save("memory://set/a")


def test_records_of_an_object_are_found_by_key(server, tmp_path):
    """The index is read whole, and the records by ranges."""
    rows = [tfw.encode_example({"id": f"id {i}", "x": "x" * FAR}) for i in range(40)]
    server.add("/keys", file_of(rows))
    url = server.url("/keys")
    tfw.RecordIndex.build(url, key="id").save(tmp_path / "index")
    server.add("/keys.tfwindex", (tmp_path / "index").read_bytes())
    server.ranges.clear()
    with tfw.TFRecordFiles([url]) as records:
        assert "id 40" not in records.by_key
        opened = len(server.ranges)
        assert [rows[30], rows[2]] == records.by_key[["id 30", "id 2"]]
    assert 2 == len(server.ranges) - opened


def test_a_damaged_object_is_not_indexed():
    data = bytearray(file_of(RECORDS))
    data[3] ^= 1
    fsspec.filesystem("memory").pipe("/set/a", bytes(data))
    for make in (tfw.RecordIndex.build, tfw.TFRecordFile, tfw.TFRecordFiles):
        with pytest.raises(tfw.DataLossError, match=r"memory://set/a: .*byte 0"):
            make("memory://set/a")
    fsspec.filesystem("memory").pipe("/set/b", file_of(RECORDS)[:-1])
    with pytest.raises(tfw.DataLossError, match="memory://set/b"):
        tfw.RecordIndex.build("memory://set/b")


def test_an_object_that_changed_after_it_was_indexed_is_told_with_both_versions(server, tmp_path):
    url = indexed(server, "/a", tmp_path)
    index = tfw.RecordIndex.load(url)
    server.add("/a", file_of(RECORDS[::-1]), '"2"')
    size = len(server.objects["/a"])
    told = rf"{url}: .*is stale: it is for {size} bytes, ETag \"1\", the file has .*ETag \"2\""
    for load in (
        lambda: tfw.RecordIndex.load(url),
        lambda: tfw.TFRecordFile(url, index),
        lambda: tfw.TFRecordFile(url, tmp_path / "index"),
    ):
        with pytest.raises(tfw.DataLossError, match=told) as caught:
            load()
        assert "index" == caught.value.reason
    assert RECORDS[::-1] == list(tfw.TFRecordFile(url))  # indexed anew


def test_the_index_of_a_file_that_was_copied_to_a_store_is_accepted(server, tmp_path):
    (tmp_path / "a").write_bytes(file_of(RECORDS))
    tfw.RecordIndex.build(tmp_path / "a").save()
    server.add("/a.tfwindex", (tmp_path / "a.tfwindex").read_bytes())
    index = tfw.RecordIndex.load(server.url("/a"))
    assert '"1"' in index.version
    assert RECORDS[5] == tfw.TFRecordFile(server.url("/a"), index)[5]
    server.add("/a", file_of(RECORDS[::-1]))  # of the same size
    with pytest.raises(tfw.DataLossError, match="is stale: it is for fingerprint"):
        tfw.RecordIndex.load(server.url("/a"))
    server.add("/a", file_of(RECORDS[1:]))
    with pytest.raises(tfw.DataLossError, match=r"is stale: it is for \d+ bytes"):
        tfw.RecordIndex.load(server.url("/a"))


def test_the_index_of_an_object_fits_a_copy_of_it_on_disk(server, tmp_path):
    (tmp_path / "a").write_bytes(file_of(RECORDS))
    tfw.RecordIndex.build(server.url("/a")).save(tmp_path / "a.tfwindex")
    with pytest.raises(tfw.DataLossError, match="is stale"):
        tfw.RecordIndex.load(tmp_path / "a")
    index = tfw.RecordIndex.load(tmp_path / "a", ignore_mtime=True)
    assert index.version is None
    assert RECORDS == list(tfw.TFRecordFile(tmp_path / "a", index))


def test_an_object_without_a_version_is_known_by_its_fingerprint(server, monkeypatch):
    info = ObjectFileSystem.info

    def versionless(self, path, **kwargs):
        return {**info(self, path), "ETag": None}

    monkeypatch.setattr(ObjectFileSystem, "info", versionless)
    index = tfw.RecordIndex.build(server.url("/a"))
    assert f"{index.size} bytes" == index.version
    assert RECORDS[5] == tfw.TFRecordFile(server.url("/a"), index)[5]
    server.add("/a", file_of(RECORDS[::-1]))
    with pytest.raises(tfw.DataLossError, match="is stale: it is for fingerprint"):
        tfw.TFRecordFile(server.url("/a"), index)


@pytest.mark.parametrize("fetched", [50, 60, 100, 1652, 1700, 10_000])
def test_an_index_may_take_two_requests(monkeypatch, fetched):
    tfw.write_records("memory://set/a", RECORDS)
    index = tfw.RecordIndex.build("memory://set/a")
    index.save()
    monkeypatch.setattr(index_files, "_FETCHED", fetched)
    assert index == tfw.RecordIndex.load("memory://set/a")


def test_damaged_indexes_beside_objects_are_refused(tmp_path):
    tfw.write_records("memory://set/a", RECORDS)
    tfw.RecordIndex.build("memory://set/a").save()
    fs = fsspec.filesystem("memory")
    whole = fs.cat_file("/set/a.tfwindex")
    huge = whole[:40] + struct.pack("<Q", 1 << 60) + whole[48:]
    damaged = [b"", b"TFWINDEX", whole[:-1], whole + b"x", b"X" + whole[1:], huge]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(8, len(whole), 7)]
    for data in damaged:
        fs.pipe("/set/a.tfwindex", data)
        with pytest.raises(tfw.DataLossError, match=r"memory://set/a\.tfwindex"):
            tfw.RecordIndex.load("memory://set/a")
    assert RECORDS[3] == tfw.TFRecordFile("memory://set/a")[3]  # indexed anew
    fs.rm("/set/a.tfwindex")
    with pytest.raises(FileNotFoundError, match=r"no such index.*memory://set/a\.tfwindex"):
        tfw.RecordIndex.load("memory://set/a")


# ---- Reading ------------------------------------------------------------------------------------


def test_many_random_records_take_four_requests_more_than_their_ranges(server, tmp_path):
    server.add("/big.tfrecord", file_of([b"%07d" % i * 1000 for i in range(2000)]))
    url = indexed(server, "/big.tfrecord", tmp_path)
    numbers = np.random.default_rng(1).permutation(2000)[:300]
    begins = np.sort(numbers) * 7016
    ranges, first, end = 1, begins[0], begins[0] + 7016
    for begin in begins[1:]:  # the theory: neighbours share a range
        if begin - end > 64 << 10 or begin + 7016 - first > 100_000:
            ranges, first = ranges + 1, begin
        end = begin + 7016
    found = tfw.TFRecordFile(url)[numbers]
    assert [b"%07d" % i * 1000 for i in numbers] == found
    assert ranges <= requests(server) <= ranges + 4
    assert 1 < server.most_in_flight <= 32


def test_a_thousand_far_records_take_three_round_trips_beside_whole_waves(server, tmp_path):
    """Each answer waits until as many requests are in flight as may be: the answers of a wave."""
    server.add("/far", file_of([b"%07d" % i * (FAR // 7) for i in range(1000)]))
    url = indexed(server, "/far", tmp_path)
    records = tfw.TFRecordFile(url)
    assert requests(server) <= 3
    numbers = np.random.default_rng(1).permutation(1000)
    waves = Waves([32] * 31 + [8])
    server.before_answer = waves.wait
    assert [b"%07d" % i * (FAR // 7) for i in numbers] == records[numbers]
    assert 32 == waves.ended


class Waves:
    """Lets requests wait until so many are there, wave after wave."""

    def __init__(self, sizes):
        self._barriers = [threading.Barrier(size, self._end) for size in sizes]
        self._order = iter([barrier for barrier in self._barriers for _ in range(barrier.parties)])
        self.ended = 0

    def _end(self):
        self.ended += 1

    def wait(self):
        next(self._order).wait(timeout=60)


def test_neighbours_share_a_range_and_long_ranges_are_split(server, tmp_path):
    server.add("/far", file_of([bytes([i]) * FAR for i in range(20)] + [b"L" * 250_000]))
    url = indexed(server, "/far", tmp_path)
    size = FAR + 16
    with tfw.TFRecordFile(url) as records:
        server.ranges.clear()
        assert [FAR, FAR] == list(map(len, records[[9, 3]]))
        assert sorted(server.ranges) == [(3 * size, 4 * size), (9 * size, 10 * size)]
        server.ranges.clear()
        assert [b"L" * 250_000] == records[-1:]
        begin = 20 * size
        cuts = [begin, begin + 100_000, begin + 200_000, begin + 250_016]
        assert sorted(server.ranges) == list(pairwise(cuts))
    url = indexed(server, "/a", tmp_path)
    with tfw.TFRecordFile(url) as records:
        server.ranges.clear()
        assert [RECORDS[7], RECORDS[2], RECORDS[7], RECORDS[40]] == records[[7, 2, 7, 40]]
        assert len(server.ranges) == 1
        server.ranges.clear()
        assert RECORDS == list(records)
        assert all(end - begin <= 100_000 for begin, end in server.ranges)
        assert len(server.ranges) <= 8
        assert [] == records[[]]
        assert RECORDS[5:50:7] == records[5:50:7]
        assert (RECORDS[-1], RECORDS[0]) == (records[-1], records[np.int64(0)])


def test_damage_is_told_where_it_is_and_only_where_it_is_read(server, tmp_path):
    url = indexed(server, "/a", tmp_path)
    records = tfw.TFRecordFile(url)
    begin = int(records.index.offsets[100])
    damaged = bytearray(server.objects["/a"])
    damaged[begin + 500] ^= 1
    server.objects["/a"] = bytes(damaged)
    for number in ([100], [98, 99, 100], range(90, 110)):
        with pytest.raises(tfw.DataLossError, match=url) as caught:
            records[number]
        found = caught.value
        assert (100, begin, "data crc") == (found.record_index, found.offset, found.reason)
    assert RECORDS[99:102:2] == records[[99, 101]]  # the range holds the damaged one
    with pytest.raises(tfw.DataLossError):
        list(records)


def test_records_that_are_not_where_the_index_says_are_refused(server, tmp_path):
    index = tfw.RecordIndex.build(server.url("/a"))
    right = index.offsets
    wrong = right.copy()
    wrong[5] += 1
    index.offsets = wrong
    records = tfw.TFRecordFile(server.url("/a"), index)
    with pytest.raises(tfw.DataLossError, match=r"record 4.*the index is stale"):
        records[4]
    with pytest.raises(tfw.DataLossError, match=r"record 7: record 4 is of another length"):
        records[7]
    assert RECORDS[3] == records[3]
    wrong[5], wrong[6] = right[5], 1 << 40
    records = tfw.TFRecordFile(server.url("/a"), index)
    with pytest.raises(tfw.DataLossError, match="record 5: no record has its offsets"):
        records[5]


@pytest.mark.parametrize("fault", ["reset", "short", 503, 429])
def test_requests_are_tried_again(server, tmp_path, fault):
    url = indexed(server, "/a", tmp_path)
    tried = Counter()

    def faults(path, begin, end):
        tried[end] += 1
        return fault if tried[end] <= 2 else None

    server.faults = faults
    numbers = [300, 5, 4, 180]
    assert [RECORDS[i] for i in numbers] == tfw.TFRecordFile(url)[numbers]


def test_an_error_names_the_url_the_bytes_and_the_tries(server, tmp_path):
    url = indexed(server, "/a", tmp_path)
    records = tfw.TFRecordFile(url)
    server.faults = lambda path, begin, end: 503
    begin, end = map(int, records.index.offsets[7:9])
    with pytest.raises(OSError, match=rf"bytes {begin} to {end} cannot be read \(6 tries\)") as one:
        records[7]
    assert url == one.value.filename
    with pytest.raises(OSError, match=r"cannot be read \(6 tries\)"):
        records[[7, 300]]
    server.faults = lambda path, begin, end: None
    assert RECORDS[7] == records[7]


def test_an_object_that_changes_while_it_is_open_is_an_error(server, tmp_path):
    url = indexed(server, "/a", tmp_path)
    records = tfw.TFRecordFile(url)
    server.add("/a", file_of([bytes(len(each)) for each in RECORDS[::-1]]), '"2"')
    with pytest.raises(OSError, match=r'changed while it was read: .*"1", and is .*"2"') as caught:
        records[100]
    assert url == caught.value.filename
    gzip = tfw.TFRecordFile(server.url("/gz"))
    server.etags["/gz"] = '"2"'
    with pytest.raises(OSError, match="changed while it was read"):
        gzip[3]


def test_an_object_that_vanishes_is_an_error(server, tmp_path):
    url = indexed(server, "/a", tmp_path)
    records = tfw.TFRecordFile(url)
    del server.objects["/a"]
    for read in (lambda: records[3], lambda: tfw.TFRecordFile(url), lambda: list(records)):
        with pytest.raises(FileNotFoundError, match="there is no such object") as caught:
            read()
        assert url == caught.value.filename


def test_a_server_without_ranges_is_refused(server, tmp_path):
    url = indexed(server, "/a", tmp_path)
    server.ignores_ranges = True
    records = tfw.TFRecordFile(url)
    for key in (3, [3, 300]):
        with pytest.raises(OSError, match="needs ranges of bytes, which the server ignores"):
            records[key]


def test_credentials_are_passed_on(server, tmp_path):
    server.token = "secret"
    url, options = server.url("/a"), {"token": "secret"}
    for make in (tfw.RecordIndex.build, tfw.TFRecordFile, tfw.TFRecordFiles):
        with pytest.raises(PermissionError, match=url):
            make(url)
        with pytest.raises(PermissionError, match="status 403"):
            make(url, storage_options={"token": "wrong"})
        assert 400 == len(make(url, storage_options=options))
        with pytest.raises(TypeError, match="storage_options must be a mapping"):
            make(url, storage_options="secret")
    records = pickle.loads(pickle.dumps(tfw.TFRecordFile(url, storage_options=options)))
    assert RECORDS[9] == records[9]
    files = pickle.loads(pickle.dumps(tfw.TFRecordFiles([url], storage_options=options)))
    assert RECORDS[9] == files[9]


@FORKS_BESIDE_THREADS
@pytest.mark.parametrize("path", ["/a", "/gz"])
def test_threads_and_forked_processes_share_an_object(server, tmp_path, path):
    records = tfw.TFRecordFile(indexed(server, path, tmp_path))
    assert RECORDS[0] == records[0]
    assert [RECORDS[i::4] for i in range(4)] == at_once(lambda i: records[i::4])
    assert forked(lambda: [RECORDS[3], RECORDS[300]] == records[[3, 300]])()


# ---- Many objects -------------------------------------------------------------------------------


@pytest.fixture
def urls():
    """Three objects with indexes, one of them compressed."""
    names = [f"memory://set/part-{i}" for i in range(3)]
    for i, name in enumerate(names):
        tfw.write_records(name, RECORDS[i * 100 : (i + 1) * 100], "GZIP" if i == 1 else None)
        tfw.RecordIndex.build(name).save()
    return names


def test_many_objects_are_one_sequence(urls, tmp_path):
    tfw.write_records(tmp_path / "local", RECORDS[300:])
    for paths in ([*urls, tmp_path / "local"], ["memory://set/part-*", tmp_path / "local"]):
        with tfw.TFRecordFiles(paths) as records:
            assert 400 == len(records)
            assert [RECORDS[i] for i in (399, 0, 250, 101)] == records[[399, 0, 250, 101]]
            assert RECORDS == list(records)
            assert RECORDS[150] == pickle.loads(pickle.dumps(records))[150]
    assert [100] * 3 == list(map(len, tfw.RecordIndex.build_many("memory://set/part-?")))
    with pytest.raises(FileNotFoundError, match="no object matches the pattern"):
        tfw.TFRecordFiles("memory://nothing/*")


def test_many_objects_are_read_at_the_same_time(server, tmp_path):
    for i in range(20):
        server.add(f"/part-{i}", file_of(RECORDS[i * 10 : i * 10 + 10]))
        indexed(server, f"/part-{i}", tmp_path)
    records = tfw.TFRecordFiles([server.url(f"/part-{i}") for i in range(20)])
    assert requests(server) == 2 * 20 + 1
    server.latency, server.most_in_flight = 0.02, 0
    numbers = list(range(199, 0, -10))
    assert [RECORDS[i] for i in numbers] == records[numbers]
    assert requests(server) == 4 * 20 + 1
    assert 1 < server.most_in_flight <= 8
    del server.objects["/part-7"]
    with pytest.raises(FileNotFoundError, match="/part-7"):
        records[numbers]


def test_datasets_of_urls_are_shuffled_and_sharded_exactly(urls):
    dataset = tfw.TFRecordDataset(urls, "", indexed=True)
    shuffled = list(dataset.shuffle(1000, seed=1))
    assert RECORDS[:300] != shuffled
    assert sorted(RECORDS[:300]) == sorted(shuffled)
    shards = [list(dataset.shard_source(7, i)) for i in range(7)]
    assert RECORDS[:300] == [record for shard in shards for record in shard]


@pytest.mark.parametrize("indexed", [True, False])
def test_datasets_of_urls_resume(urls, indexed):
    dataset = tfw.TFRecordDataset(urls, "auto", indexed=indexed).shuffle(1000, seed=1)
    iterator = iter(dataset)
    head = [next(iterator) for _ in range(170)]
    state = iterator.state_dict()
    again = iter(dataset)
    again.load_state_dict(state)
    assert sorted(RECORDS[:300]) == sorted([*head, *again])


@pytest.mark.parametrize("compression_type", ["", "auto"])
def test_a_resumed_read_begins_at_its_byte(server, compression_type):
    dataset = tfw.TFRecordDataset(server.url("/a"), compression_type)
    iterator = iter(dataset)
    assert RECORDS[:300] == [next(iterator) for _ in range(300)]
    state = iterator.state_dict()
    iterator.close()
    begin = int(tfw.RecordIndex.build(server.url("/a")).offsets[300])
    server.ranges.clear()
    again = iter(dataset)
    again.load_state_dict(state)
    assert RECORDS[300:] == list(again)
    long = [each for each in server.ranges if each[1] - each[0] > 1000]
    first = min(long)[0]  # of the batch in which the position is
    assert 0 < first <= begin
    assert len(server.objects["/a"]) - first == sum(end - begin for begin, end in long)
    assert len(server.ranges) <= len(long) + 1  # the first bytes tell the compression


@pytest.mark.parametrize("path", ["/a", "/gz"])
@pytest.mark.parametrize("ignores", [False, True])
def test_reading_goes_on_at_a_position(server, path, ignores):
    server.ignores_ranges = ignores
    positions = list(tfw.read_records(server.url(path)).with_positions())
    for number in (1, 250, 399):
        _, index, offset, _ = positions[number]
        records = tfw.read_records(server.url(path), start=(index, offset))
        assert RECORDS[number:] == list(records)


def test_an_object_that_was_cut_does_not_go_on(server):
    size = len(server.objects["/a"])
    with pytest.raises(tfw.DataLossError, match=rf"the file has {size} bytes; the file was cut"):
        next(tfw.read_records(server.url("/a"), start=(500, size + 1)))
