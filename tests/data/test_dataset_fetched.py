"""Records by number that are batched and parsed without an object for each: what comes is what
comes of objects, for any number of threads."""

import os
import random
from functools import partial

import numpy as np
import pytest

import tfwire as tfw
from helpers.processes.forks import forked
from tfwire import TFRecordDataset
from tfwire._data import batching, fetched

SPEC = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
    "pair": tfw.FixedLenFeature([2, 1], tfw.float32),
    "more": tfw.VarLenFeature(tfw.float32),
    "ragged": tfw.RaggedFeature(tfw.int64, row_splits_dtype=tfw.int64),
}
SIZES = [700, 0, 1, 300]
THREADS = [1, 2, 3, 8]


def row(i):
    return {
        "n": [i],
        "name": [b"x" * (i % 70)],
        "pair": [float(i), 0.5],
        "more": [float(i)] * (i % 3),
        "ragged": [i] * (i % 4),
    }


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of a thousand records in all, of which a few batches are ordered at a time."""
    monkeypatch.setattr(fetched, "_ORDER_RECORDS", 100)
    paths, first = [], 0
    for number, size in enumerate(SIZES):
        paths.append(tmp_path / f"{number}.tfrecord")
        tfw.write_records(paths[-1], map(tfw.encode_example, map(row, range(first, first + size))))
        tfw.RecordIndex.build(paths[-1]).save()
        first += size
    return paths


PIPELINES = {
    "in order": lambda records: records.batch(16),
    "shuffled": lambda records: records.shuffle(5000, seed=3).batch(16),
    "all at once": lambda records: records.shuffle(5000, seed=3).batch(5000),
    "one by one": lambda records: records.shuffle(5000, seed=3).batch(1),
    "whole batches": lambda records: records.shuffle(5000, seed=3).batch(16, drop_remainder=True),
    "repeated": lambda records: records.shuffle(5000, seed=3).repeat(3).batch(64),
    "a shard": lambda records: records.shuffle(5000, seed=3).shard(3, 1).batch(7),
    "a padded shard": lambda records: (
        records.shuffle(5000, seed=3).batch(7).shard_source(3, 2, "pad")
    ),
    "cut": lambda records: records.shuffle(5000, seed=3).skip(10).take(500).batch(9),
    "left out": lambda records: records.skip(130).take(521).batch(16, drop_remainder=True),
    "again": lambda records: records.take(100).repeat(4).batch(33),
}


def dataset_of(files, name, num_threads=1):
    records = TFRecordDataset(files, indexed=True)
    return PIPELINES[name](records).parse_example(SPEC, num_threads=num_threads)


def outcomes(iterator):
    """All batches, and the error that ends them."""
    found = []
    try:
        for batch in iterator:
            found.append(batch)
    except (tfw.DataLossError, tfw.ParseError, OSError) as error:
        return found, (type(error), str(error), vars(error))
    return found, None


@pytest.fixture
def by_objects(monkeypatch):
    """What a function returns where records are read as objects."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(batching, "indexed_table", lambda files: None)
            return function()

    return run


def same(expected, found):
    assert expected[1] == found[1]
    assert len(expected[0]) == len(found[0])
    for one, other in zip(expected[0], found[0], strict=True):
        assert plain(one) == plain(other)


def plain(batch):
    return {key: as_lists(value) for key, value in batch.items()}


def as_lists(value):
    if isinstance(value, tfw.SparseTensor):
        return [part.tolist() for part in (value.indices, value.values, value.dense_shape)]
    return value.to_list() if isinstance(value, tfw.RaggedTensor) else value.tolist()


def is_fetched(dataset):
    return isinstance(dataset._stage.open("0"), fetched.FetchingCursor)


@pytest.mark.parametrize("name", PIPELINES)
def test_what_comes_is_what_comes_of_objects(files, by_objects, name):
    expected = by_objects(lambda: outcomes(iter(dataset_of(files, name))))
    assert expected[0]
    for num_threads in THREADS:
        dataset = dataset_of(files, name, num_threads)
        assert is_fetched(dataset)
        same(expected, outcomes(iter(dataset)))


@pytest.mark.parametrize("name", ["shuffled", "repeated", "whole batches"])
def test_a_pass_goes_on_where_any_other_has_stopped(files, by_objects, name):
    """With another number of threads, and with objects."""
    expected = by_objects(lambda: list(dataset_of(files, name)))
    for num_threads in THREADS:
        for given in (0, 1, 7, len(expected) - 1, len(expected)):
            iterator = iter(dataset_of(files, name, num_threads))
            for _ in range(given):
                next(iterator)
            state = iterator.state_dict()
            iterator.close()
            for other in (1, 3):
                resumed = iter(dataset_of(files, name, other))
                resumed.load_state_dict(state)
                same((expected[given:], None), outcomes(resumed))
            careful = iter(dataset_of(files, name))
            careful.load_state_dict(state)
            same((expected[given:], None), by_objects(partial(outcomes, careful)))


def damage_payload(data, begin, end):
    data[end - 5] ^= 1


def damage_header(data, begin, end):
    data[begin + 1] ^= 1


def make_misfit(data, begin, end):
    message = b"no message" + bytes(end - begin - 26)
    data[begin:end] = framed(message)


def framed(message):
    length = len(message).to_bytes(8, "little")
    crcs = [tfw.checksum.masked_crc32c(part).to_bytes(4, "little") for part in (length, message)]
    return length + crcs[0] + message + crcs[1]


@pytest.mark.parametrize("name", ["shuffled", "repeated", "all at once", "left out"])
@pytest.mark.parametrize("damage", [damage_payload, damage_header, make_misfit])
def test_errors_are_those_of_objects(files, by_objects, name, damage):
    """Two records are wrong: the first that is drawn is reported, after the batches before it. One
    that is left out with the last batch was read, too, and not parsed."""
    records = TFRecordDataset(files, indexed=True)._stage.files
    offsets, stat = records.indexes[0].offsets, os.stat(files[0])
    data = bytearray(files[0].read_bytes())
    for number in (120, 650):
        damage(data, int(offsets[number]), int(offsets[number + 1]))
    with open(files[0], "r+b") as file:
        file.write(data)
    os.utime(files[0], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    expected = by_objects(lambda: outcomes(iter(dataset_of(files, name))))
    assert (expected[1] is None) == (name == "left out" and damage is make_misfit)
    for num_threads in THREADS:
        same(expected, outcomes(iter(dataset_of(files, name, num_threads))))


def cut(path):
    os.truncate(path, os.path.getsize(path) - 100)


def swap_two_records(path):
    """Of the same lengths in all, so that only the headers between say it."""
    offsets = tfw.RecordIndex.load(path).offsets
    data, stat = path.read_bytes(), os.stat(path)
    a, b, c = (int(offsets[i]) for i in (300, 301, 302))
    with open(path, "r+b") as file:
        file.write(data[:a] + data[b:c] + data[a:b] + data[c:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("change", [cut, swap_two_records, os.unlink])
def test_files_that_change_before_they_are_read(files, by_objects, change):
    datasets = {n: dataset_of(files, "shuffled", n) for n in THREADS}
    change(files[0])
    expected = by_objects(lambda: outcomes(iter(datasets[1])))
    assert expected[1] is not None
    for dataset in datasets.values():
        dataset.set_epoch(0)
        same(expected, outcomes(iter(dataset)))


def test_files_that_are_cut_while_they_are_read(files, by_objects):
    for num_threads in THREADS:
        dataset = dataset_of(files, "in order", num_threads)
        iterator = iter(dataset)
        next(iterator)
        size = os.path.getsize(files[3])
        os.truncate(files[3], size - 100)
        found, error = outcomes(iterator)
        assert "the index is stale, or the file was cut" in error[1] or "truncated" in str(error)
        assert sum(len(batch["n"]) for batch in found) < sum(SIZES)
        os.truncate(files[3], size)


def test_what_c_cannot_read_comes_of_objects(files, tmp_path):
    plain = tfw.read_records(files[0])
    path = tmp_path / "compressed"
    tfw.write_records(path, plain, "GZIP")
    assert not is_fetched(dataset_of([path], "shuffled"))
    assert sum(SIZES[:1]) == sum(len(batch["n"]) for batch in dataset_of([path], "shuffled"))


def test_specifications_whose_columns_must_fit_each_other(files, by_objects, monkeypatch):
    spec = {"values": tfw.SparseFeature("n", "more", tfw.float32, 2000)}

    def found(num_threads):
        dataset = TFRecordDataset(files, indexed=True).shuffle(5000, seed=1).batch(10)
        return outcomes(iter(dataset.parse_example(spec, num_threads=num_threads)))

    expected = by_objects(lambda: found(1))
    assert expected[1] is not None
    for num_threads in THREADS:
        same(expected, found(num_threads))


@pytest.mark.parametrize("num_threads", THREADS)
def test_batches_that_are_kept_do_not_change(files, num_threads):
    kept = list(dataset_of(files, "shuffled", num_threads))
    numbers = np.concatenate([batch["n"] for batch in kept])
    assert sorted(numbers.tolist()) == list(range(sum(SIZES)))
    for batch in kept:
        assert (batch["pair"][:, 0, 0] == batch["n"]).all()
        batch["n"][:] = 0  # they may be written to


def test_a_forked_child_goes_on_with_one_thread_only(files):
    expected = list(dataset_of(files, "shuffled"))
    iterator = iter(dataset_of(files, "shuffled"))
    next(iterator)
    assert forked(lambda: len(list(iterator)) == len(expected) - 1)()
    threaded = iter(dataset_of(files, "shuffled", 3))
    next(threaded)
    assert forked(lambda: "did not survive the fork" in outcome_of(threaded))()
    same((expected[1:], None), outcomes(threaded))


def outcome_of(iterator):
    try:
        return str(list(iterator))
    except RuntimeError as error:
        return str(error)


def test_dropped_and_closed_at_any_time(files):
    random.seed(1)
    for _ in range(30):
        iterator = iter(dataset_of(files, "repeated", random.choice(THREADS)))
        for _ in range(random.randrange(10)):
            next(iterator)
        if random.random() < 0.5:
            iterator.close()
            assert next(iterator, None) is None
