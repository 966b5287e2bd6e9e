"""Records by number that stay in memory: ``cache_bytes``."""

import os
import pickle
import threading
from functools import partial

import numpy as np
import pytest

import tfwire as tfw
from helpers.processes.forks import forked

RECORDS = [bytes([i % 251]) * (i * 37 % 3000) for i in range(400)]
RECORDS[200] = os.urandom(200_000)  # several blocks
ENOUGH = 1 << 30


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.tfrecord"
    tfw.write_records(path, RECORDS)
    return path


def overwrite(path):
    """Makes everything that is read from now on an error."""
    size, stat = os.path.getsize(path), os.stat(path)
    with open(path, "r+b") as file:
        file.write(bytes(size))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


KEYS = [slice(None), slice(None, None, -7), [3, 200, 3, -1], np.arange(0, 400, 3), []]


@pytest.mark.parametrize("many", [False, True])
def test_records_are_those_of_the_file_and_are_read_once(path, many):
    def opened(**options):
        return (
            tfw.TFRecordFiles([path, path], **options)
            if many
            else tfw.TFRecordFile(path, **options)
        )

    with opened() as plain, opened(cache_bytes=ENOUGH) as cached:
        for key in KEYS:
            assert plain[key] == cached[key]
        assert RECORDS * (2 if many else 1) == list(cached)
        assert RECORDS == [cached[i] for i in range(400)]
        overwrite(path)
        assert RECORDS == [cached[i] for i in range(400)] == list(cached)[:400] == cached[:400]
        with pytest.raises(tfw.DataLossError):
            plain[7]


def test_what_does_not_fit_is_read_from_the_file(path):
    size = os.path.getsize(path)
    with tfw.TFRecordFile(path, cache_bytes=size - 1) as records:
        assert RECORDS == list(records)
        overwrite(path)
        with pytest.raises(tfw.DataLossError):
            records[5]


def test_the_first_files_that_fit_are_kept(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for path, size in zip(paths, [1000, 5000, 2000], strict=True):
        tfw.write_records(path, [bytes(size)] * 10)
    budget = os.path.getsize(paths[0]) + os.path.getsize(paths[2])
    with tfw.TFRecordFiles(paths, cache_bytes=budget, max_open_files=1) as records:
        assert 30 == len(list(records))
        list(map(overwrite, [paths[0], paths[2]]))
        # The memory stays while another file is open. Opening one again compares it with its index.
        assert bytes(2000) == records[25]
        with pytest.raises(tfw.DataLossError, match="stale"):
            records[3]


def damage(path, offset):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1]))


def outcome(function):
    try:
        return function()
    except (tfw.DataLossError, OSError) as error:
        return type(error), str(error), vars(error)


@pytest.mark.parametrize("change", ["payload", "header", "cut"])
def test_errors_are_those_of_the_file(path, change):
    index = tfw.RecordIndex.build(path)
    with (
        tfw.TFRecordFile(path, index) as plain,
        tfw.TFRecordFile(path, index, cache_bytes=ENOUGH) as cached,
    ):
        begin = int(index.offsets[200])
        if change == "cut":
            os.truncate(path, begin + 100_000)
        else:
            damage(path, begin + (5000 if change == "payload" else 3))
        for key in (200, 199, slice(198, 203), [399, 200]):
            found = [outcome(partial(each.__getitem__, key)) for each in (plain, cached)]
            assert found[0] == found[1]


def test_records_of_another_number_are_refused(path):
    """Two records change places: those behind verify, but only their headers say which they are."""
    index, stat, data = tfw.RecordIndex.build(path), os.stat(path), path.read_bytes()
    a, b, c = (int(index.offsets[i]) for i in (300, 301, 302))
    with open(path, "r+b") as file:
        file.write(data[:a] + data[b:c] + data[a:b] + data[c:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    plain, cached = tfw.TFRecordFile(path, index), tfw.TFRecordFile(path, index, cache_bytes=ENOUGH)
    for key in (299, 350, 300, slice(290, 310)):
        assert outcome(partial(plain.__getitem__, key)) == outcome(partial(cached.__getitem__, key))
    with pytest.raises(tfw.DataLossError, match="stale"):
        cached[350]


def test_compressed_files_are_read_as_ever(tmp_path):
    path = tmp_path / "a"
    tfw.write_records(path, RECORDS, "GZIP")
    assert RECORDS == list(tfw.TFRecordFile(path, cache_bytes=ENOUGH))
    assert RECORDS == tfw.TFRecordFiles([path], cache_bytes=ENOUGH)[:]
    assert [] == tfw.TFRecordFile(written(tmp_path / "none", []), cache_bytes=ENOUGH)[:]


def written(path, records):
    tfw.write_records(path, records)
    return path


def test_pickles_keep_it(path):
    for records in (
        tfw.TFRecordFile(path, cache_bytes=ENOUGH),
        tfw.TFRecordFiles([path], cache_bytes=ENOUGH),
    ):
        again = pickle.loads(pickle.dumps(records))
        assert RECORDS == again[:]
        assert ENOUGH == again._cache_bytes


def test_threads_and_children_share_it(path):
    with tfw.TFRecordFile(path, cache_bytes=ENOUGH) as records:
        found, barrier = [], threading.Barrier(4)

        def read():
            barrier.wait()
            found.append([records[i] for i in range(400)])

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [RECORDS] * 4 == found
        overwrite(path)
        assert forked(lambda: RECORDS == records[:])()


@pytest.mark.parametrize("value", [-1, 1.5, "many"])
def test_wrong_budgets_are_refused(path, value):
    for call in (tfw.TFRecordFile, tfw.TFRecordFiles):
        with pytest.raises((ValueError, TypeError), match="cache_bytes"):
            call(path, cache_bytes=value)
    with pytest.raises((ValueError, TypeError), match="cache_bytes"):
        tfw.TFRecordDataset(path, indexed=True, cache_bytes=value)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_datasets_keep_what_earlier_epochs_have_read(tmp_path, num_threads):
    path = tmp_path / "numbers"
    tfw.write_records(path, [tfw.encode_example({"n": i}) for i in range(3000)])
    spec = {"n": tfw.FixedLenFeature([], tfw.int64)}
    with pytest.raises(ValueError, match="indexed"):
        tfw.TFRecordDataset(path, cache_bytes=ENOUGH)
    records = tfw.TFRecordDataset(path, indexed=True, cache_bytes=ENOUGH).shuffle(9999, seed=1)
    batches = records.batch(100).parse_example(spec, num_threads=num_threads)
    first = np.concatenate([batch["n"] for batch in batches])
    overwrite(path)
    second = np.concatenate([batch["n"] for batch in batches])
    assert sorted(first) == sorted(second) == list(range(3000))
    assert first.tolist() != second.tolist()
    assert 3000 == len(list(records))
