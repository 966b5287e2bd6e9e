"""TFRecordDataSource in Grain's own pipelines."""

import pickle

import grain
import numpy as np
import pytest
from absl import flags
from sample import COUNT, SPEC, columns

import tfwire as tfw
from tfwire.grain import TFRecordDataSource


def test_elements_are_what_the_parser_gives(files):
    source = TFRecordDataSource(files, SPEC)
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert COUNT == len(source)
    assert (7, b"name 7") == (source[7]["id"], source[7]["name"])
    assert 999 == source[-1]["id"]
    with pytest.raises(IndexError):
        source[COUNT]
    assert list(tfw.read_records(files)) == list(TFRecordDataSource(files))


def test_a_map_dataset_shuffles_and_batches(files):
    dataset = grain.MapDataset.source(TFRecordDataSource(files, SPEC)).seed(3).shuffle()
    batches = list(dataset.batch(64).to_iter_dataset())
    ids = np.concatenate([batch["id"] for batch in batches])
    assert list(range(COUNT)) == sorted(ids.tolist())
    expected = columns(batches[0]["id"])
    np.testing.assert_array_equal(expected["x"], batches[0]["x"])
    assert expected["name"] == batches[0]["name"].tolist()


def test_elements_may_be_batches(files):
    source = TFRecordDataSource(files, SPEC, batch_size=300)
    assert [300, 300, 300, 100] == [len(batch["id"]) for batch in source]
    assert list(range(900, 1000)) == source[-1]["id"].tolist()
    with pytest.raises(IndexError):
        source[4]
    dataset = grain.MapDataset.source(source).seed(1).shuffle().to_iter_dataset()
    ids = np.concatenate([batch["id"] for batch in dataset])
    assert list(range(COUNT)) == sorted(ids.tolist())
    records = TFRecordDataSource(files, batch_size=999)
    assert [999, 1] == [len(batch) for batch in records]
    with pytest.raises(ValueError, match="batch_size"):
        TFRecordDataSource(files, batch_size=0)


def test_a_checkpoint_goes_on_where_it_was(files):
    dataset = grain.MapDataset.source(TFRecordDataSource(files, SPEC)).seed(5).shuffle()
    iterator = iter(dataset.batch(10).to_iter_dataset())
    for _ in range(7):
        next(iterator)
    state = iterator.get_state()
    rest = [batch["id"].tolist() for batch in iterator]
    again = iter(dataset.batch(10).to_iter_dataset())
    again.set_state(state)
    assert rest == [batch["id"].tolist() for batch in again]


def test_the_loader_of_several_processes(files):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])  # worker processes ask for them
    source = TFRecordDataSource(files, SPEC)
    sampler = grain.samplers.IndexSampler(COUNT, num_epochs=1, shuffle=True, seed=1)
    loader = grain.DataLoader(
        data_source=source,
        sampler=sampler,
        operations=[grain.transforms.Batch(50)],
        worker_count=2,
    )
    ids = np.concatenate([batch["id"] for batch in loader])
    assert list(range(COUNT)) == sorted(ids.tolist())


def test_sources_pickle_and_are_told_apart(files):
    source = TFRecordDataSource(files, SPEC, batch_size=10)
    copy = pickle.loads(pickle.dumps(source))
    assert repr(source) == repr(copy)
    assert source[3]["id"].tolist() == copy[3]["id"].tolist()
    assert repr(source) != repr(TFRecordDataSource(files, SPEC))
    assert repr(source) != repr(TFRecordDataSource(files[:2], SPEC, batch_size=10))
