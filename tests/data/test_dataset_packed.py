"""Records that are shuffled, batched and parsed without an object for each."""

import gzip
import itertools
import os
import threading
import warnings

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.named_pipelines import goes_on_everywhere
from helpers.reference import file_of
from helpers.threads import at_once, quick_switches
from tfwire import Dataset, TFRecordDataset
from tfwire._data import packed_records

SPEC = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
    "more": tfw.VarLenFeature(tfw.float32),
}
COUNT = 300


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Files of 0 to 100 records of different lengths; memory is given back again and again."""
    monkeypatch.setattr(packed_records, "_SLACK", 1000)
    paths = []
    for first, end in [(0, 100), (100, 100), (100, 101), (101, 200), (200, COUNT)]:
        paths.append(tmp_path / f"{first}-{end}.tfrecord")
        rows = [
            {"n": [i], "name": [b"x" * (i % 70)], "more": [float(i)] * (i % 3)}
            for i in range(first, end)
        ]
        tfw.write_records(paths[-1], [tfw.encode_example(row) for row in rows])
    return paths


def parsed(records):
    return tfw.parse_example(list(records), SPEC)


def packs(dataset):
    """Whether a pass over the dataset makes no objects of its records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfwire._records.reading.read_records.read_records", None)
        return sum(len(batch["n"]) for batch in dataset)


def same(expected, found):
    expected, found = list(expected), list(found)
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_equal(one, other)


@pytest.mark.parametrize("buffer_size", [1, 17, 299, 300, 5000])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_batches_are_those_of_records_that_are_objects(files, buffer_size, batch_size):
    batches = TFRecordDataset(files).shuffle(buffer_size, 3, False).batch(batch_size)
    assert COUNT == packs(batches.parse_example(SPEC))
    same(batches.map(parsed), batches.parse_example(SPEC))


STAGES = {
    "repeat": lambda dataset: dataset.repeat(3),
    "take": lambda dataset: dataset.take(123),
    "skip": lambda dataset: dataset.skip(123),
    "shard": lambda dataset: dataset.shard(3, 1),
    "all": lambda dataset: dataset.skip(5).repeat(3).shard(2, 0).take(400),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("drop", [False, True])
def test_stages_between_give_the_records_on(files, stage, drop):
    dataset = STAGES[stage](TFRecordDataset(files).shuffle(40, 3, False))
    batches = dataset.batch(9, drop_remainder=drop)
    assert packs(batches.parse_example(SPEC)) == sum(map(len, batches))
    same(batches.map(parsed), batches.parse_example(SPEC))


def test_batches_at_the_thresholds_of_shuffle_batch(files):
    batches = TFRecordDataset(files).shuffle_batch(8, 50, 20, 3, allow_smaller_final_batch=True)
    same(batches.map(parsed), batches.parse_example(SPEC))


def test_a_pass_goes_on_where_it_was_left(files):
    dataset = TFRecordDataset(files).shuffle(50, seed=1, reshuffle_each_iteration=False)
    dataset = dataset.repeat(2).batch(20).parse_example(SPEC)
    goes_on_everywhere(lambda: dataset, step=5)


def test_batches_outlive_their_pass(files):
    """Rows of batches that were taken together do not share bytes with records that moved."""
    batches = TFRecordDataset(files).shuffle(30, 1, False).batch(10)
    expected = [parsed(batch) for batch in batches]
    found = []
    elements = iter(batches.parse_example(SPEC))
    found.extend(elements)
    elements.close()
    del elements
    same(expected, found)


@pytest.mark.parametrize("reader", ["gzip", "long", "in turn", "generator", "indexed"])
def test_other_records_become_objects(reader, tmp_path):
    records = [tfw.encode_example({"n": [i], "name": [b"x"]}) for i in range(50)]
    if reader == "long":
        records = [tfw.encode_example({"n": [i], "name": [b"x" * 3000]}) for i in range(50)]
    path = tmp_path / "data"
    tfw.write_records(path, records, "GZIP" if reader == "gzip" else None)
    options = {
        "gzip": {"compression_type": "GZIP"},
        "in turn": {"num_parallel_reads": 2},
        "indexed": {"indexed": True},
    }
    dataset = TFRecordDataset([path, path], **options.get(reader, {}))
    if reader == "generator":
        dataset = Dataset.from_generator(lambda: records)
    batches = dataset.shuffle(10, 2, False).batch(8)
    same(batches.map(parsed), batches.parse_example(SPEC))


@pytest.mark.parametrize("parse", [False, True])
def test_threads_share_an_iterator_and_every_record_is_given_once(files, parse):
    dataset = TFRecordDataset(files).shuffle(30, 1).repeat(20).batch(7)
    elements = iter(dataset.parse_example(SPEC) if parse else dataset.map(parsed))
    with quick_switches():
        drawn = at_once(lambda _: [n for batch in elements for n in batch["n"].tolist()])
    assert sorted(list(range(COUNT)) * 20) == sorted(itertools.chain(*drawn))


def test_a_look_at_the_first_record_takes_nothing_out_of_a_pipe(files, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    thread = threading.Thread(target=fifo.write_bytes, args=(files[0].read_bytes(),))
    thread.start()
    batches = TFRecordDataset(fifo).shuffle(10).batch(7).parse_example(SPEC)
    assert list(range(100)) == sorted(n for batch in batches for n in batch["n"].tolist())
    thread.join()


def test_a_pass_over_a_compressed_file_goes_on_after_damage(tmp_path):
    data = bytearray(file_of([tfw.encode_example({"n": [i]}) for i in range(60)]))
    for offset in (200, 500, 900):
        data[offset] ^= 1
    (tmp_path / "data").write_bytes(gzip.compress(data))
    dataset = TFRecordDataset(tmp_path / "data", "GZIP", on_corrupt="skip").batch(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 15 == len(goes_on_everywhere(lambda: dataset))


def until_damage(dataset):
    found = []
    with pytest.raises(tfw.DataLossError, match=r"101-200.tfrecord: record 98"):
        found.extend(batch["n"].tolist() for batch in dataset)
    return found


def test_a_damaged_record_is_an_error_after_the_records_that_were_drawn(files):
    with open(files[3], "r+b") as file:
        file.seek(-1, 2)
        file.write(b"?")
    batches = TFRecordDataset(files).shuffle(20, 1, False).batch(4)
    expected, found = until_damage(batches.map(parsed)), until_damage(batches.parse_example(SPEC))
    assert expected == found
    assert len(found) > 40
    skipped = TFRecordDataset(files, on_corrupt="skip").shuffle(20, 1, False).batch(4)
    with pytest.warns(UserWarning, match="left out"):
        assert COUNT - 1 == packs(skipped.parse_example(SPEC))


def test_a_record_that_does_not_fit_is_an_error_of_its_batch(tmp_path):
    records = [tfw.encode_example({"n": [i] * (1 + (i == 30)), "name": [b""]}) for i in range(40)]
    tfw.write_records(tmp_path / "data", records)
    batches = TFRecordDataset(tmp_path / "data").shuffle(10, 4, False).batch(3)
    expected = next(i for i, batch in enumerate(batches) if records[30] in batch.tolist())
    elements = iter(batches.parse_example(SPEC))
    for _ in range(expected):
        next(elements)
    with pytest.raises(tfw.ParseError, match="Key: n") as caught:
        next(elements)
    assert list(batches)[expected].tolist().index(records[30]) == caught.value.record_index


def test_a_missing_file_is_named(files):
    dataset = TFRecordDataset([*files, "nowhere"]).shuffle(10).batch(10).parse_example(SPEC)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(dataset)
