"""TFRecordDataSource in Grain's own pipelines."""

import json
import pickle

import grain
import numpy as np
import pytest
from absl import flags
from grain._src.python.dataset.base import SupportsBatchedReadRandomAccessDataSource
from sample import COUNT, SPEC, columns

import tfwire as tfw
from tfwire.grain import TFRecordDataSource, TFRecordIterDataset


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


def test_urls_are_read_by_number(files):
    urls = [f"file://{path}" for path in files]
    source = TFRecordDataSource(urls, SPEC, storage_options={"auto_mkdir": False})
    batches = grain.MapDataset.source(source).seed(3).shuffle().batch(64).to_iter_dataset()
    ids = np.concatenate([batch["id"] for batch in batches])
    assert list(range(COUNT)) == sorted(ids.tolist())
    again = pickle.loads(pickle.dumps(source))
    assert source[7]["name"] == again[7]["name"]


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
    with pytest.raises(TypeError, match="batch_size"):
        TFRecordDataSource(files, batch_size=1.5)


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


# ---- Streams ------------------------------------------------------------------------------------


def stream(files, size=40):
    return tfw.TFRecordDataset(files).shuffle(100, seed=1).batch(size).parse_example(SPEC)


def test_a_stream_is_mapped_and_read_to_its_end(files):
    batches = list(TFRecordIterDataset(stream(files)).map(lambda batch: batch["id"] + 1))
    assert [40] * 25 == list(map(len, batches))
    assert list(range(1, COUNT + 1)) == sorted(np.concatenate(batches).tolist())


@pytest.mark.parametrize("threads", [(1, 1), (1, 2), (2, 1)])
def test_threads_give_the_same_batches_and_states(files, threads):
    def batches(num_threads):
        dataset = TFRecordIterDataset(stream(files), num_threads=num_threads)
        return iter(dataset.map(lambda batch: batch["id"].tolist()))

    first, second = map(batches, threads)
    for _ in range(9):
        next(first)
    second.set_state(first.get_state())
    rest = list(second)
    assert rest == list(first)
    assert sum(map(len, rest)) == COUNT - 9 * 40


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_share_a_stream(files, workers):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])  # worker processes ask for them
    options = grain.multiprocessing.MultiprocessingOptions(num_workers=workers)
    batches = TFRecordIterDataset(stream(files)).mp_prefetch(options)
    ids = np.concatenate([batch["id"] for batch in batches])
    assert list(range(COUNT)) == sorted(ids.tolist())


@pytest.mark.parametrize("workers", [0, 2])
def test_another_number_of_hosts_and_processes_goes_on(files, workers):
    if not flags.FLAGS.is_parsed():
        flags.FLAGS(["pytest"])  # worker processes ask for them

    def make():
        dataset = tfw.TFRecordDataset(files, indexed=True).shuffle(COUNT, seed=1)
        return dataset.batch(16).parse_example(SPEC)

    def hosts(make, count):
        for i in range(count):
            stream = TFRecordIterDataset(make().shard_source(count, i))
            if workers:
                options = grain.multiprocessing.MultiprocessingOptions(num_workers=workers)
                stream = stream.mp_prefetch(options)
            yield iter(stream)

    given = []
    before = list(hosts(make, 2))
    for elements in before:
        given += [i for _ in range(3) for i in next(elements)["id"].tolist()]
    states = [json.loads(json.dumps(elements.get_state())) for elements in before]
    for elements in hosts(lambda: make().resume(states), 3):
        given += [i for batch in elements for i in batch["id"].tolist()]
    assert list(range(COUNT)) == sorted(given)


def test_a_stream_is_of_a_dataset(files):
    with pytest.raises(TypeError, match="found list"):
        TFRecordIterDataset(files)


# ---- Current interfaces -------------------------------------------------------------------------


def ids_of(batches):
    return [i for batch in batches for i in batch["id"].tolist()]


def indexed(files, repeats=1):
    dataset = tfw.TFRecordDataset(files, indexed=True).shuffle(COUNT, seed=1)
    dataset = dataset.repeat(repeats) if repeats > 1 else dataset
    return TFRecordIterDataset(dataset.batch(40).parse_example(SPEC))


@pytest.mark.parametrize("way", ["one thread", "threads", "interleaved"])
def test_threads_of_grain_read_a_stream(files, way):
    def of_file(path):
        return TFRecordIterDataset(tfw.TFRecordDataset(path).batch(40).parse_example(SPEC))

    experimental = grain.experimental
    if way == "one thread":
        batches = experimental.ThreadPrefetchIterDataset(indexed(files), prefetch_buffer_size=4)
    elif way == "threads":
        batches = experimental.multithread_prefetch(indexed(files), num_threads=2, buffer_size=4)
    else:
        streams = grain.MapDataset.source(files).map(of_file)
        batches = experimental.InterleaveIterDataset(streams, cycle_length=2)
    assert list(range(COUNT)) == sorted(ids_of(batches))


def test_repeats_have_a_new_order(files):
    found = ids_of(indexed(files, repeats=2))
    first, second = found[:COUNT], found[COUNT:]
    assert first != second
    assert list(range(COUNT)) == sorted(first) == sorted(second)
    source = grain.MapDataset.source(TFRecordDataSource(files, SPEC))
    found = [int(item["id"]) for item in source.seed(1).shuffle().repeat(2)]
    assert found[:COUNT] != found[COUNT:]
    assert sorted(found[:COUNT]) == sorted(found[COUNT:])


def test_passes_are_epochs(files):
    stream = indexed(files)
    first, second = ids_of(stream), ids_of(stream)
    assert first != second
    stream.set_epoch(1)
    assert second == ids_of(stream)
    stream.set_slice(slice(1, None, 2))
    stream.set_epoch(0)
    assert first[COUNT // 2 :] == ids_of(stream)
    with pytest.raises(ValueError, match="epoch"):
        stream.set_epoch(-1)


def test_checkpoints_pass_the_check_of_grain(files):
    stream = indexed(files).map(lambda batch: batch["id"])
    grain.experimental.assert_equal_output_after_checkpoint(stream)


def test_elastic_iterators_and_slices_of_a_source(files):
    source = grain.MapDataset.source(TFRecordDataSource(files, SPEC))
    assert list(range(10, 15)) == [int(item["id"]) for item in source[10:15]]
    assert list(range(0, 9, 2)) == [int(item["id"]) for item in source.slice(slice(0, 9, 2))]

    def shards(count):
        return [
            iter(
                grain.experimental.ElasticIterator(
                    source.shuffle(seed=1), 40, grain.sharding.ShardOptions(i, count)
                )
            )
            for i in range(count)
        ]

    before = shards(2)
    found = [next(shard)["id"].tolist() for shard in before for _ in range(5)]
    after = shards(4)  # more hosts go on
    for shard in after:
        shard.set_state(before[0].get_state())
    found += [batch["id"].tolist() for shard in after for batch in shard]
    assert list(range(COUNT)) == sorted(i for ids in found for i in ids)


def test_a_batch_of_a_source_is_one_read(files, monkeypatch):
    source = TFRecordDataSource(files, SPEC)
    reads = []
    read = type(source._records).__getitem__
    monkeypatch.setattr(
        type(source._records), "__getitem__", lambda self, key: reads.append(key) or read(self, key)
    )
    # What Grain's batches call for a source with this method, so far as an experiment.
    assert isinstance(source, SupportsBatchedReadRandomAccessDataSource)
    found = grain.MapDataset.source(source).shuffle(seed=1)._getitems(range(100))
    assert 1 == len(reads)
    expected = [source[int(item["id"])] for item in found]
    assert [item["name"] for item in expected] == [item["name"] for item in found]
    records = list(tfw.read_records(files))
    assert [records[2], records[0]] == TFRecordDataSource(files)._getitems([2, 0])
    batches = TFRecordDataSource(files, SPEC, batch_size=300)._getitems([3, 1])
    assert [100, 300] == [len(batch["id"]) for batch in batches]


@pytest.mark.parametrize("num_bins", [1, 3, 64])
def test_rows_of_packed_sequences_are_those_of_grain(num_bins):
    sizes = np.random.default_rng(num_bins).integers(0, [12, 4, 2], (500, 3))
    sizes[::7] = 0
    elements = [
        {"ids": np.arange(a), "x": np.ones(b, np.float32), "weight": np.full(c, a)}
        for a, b, c in sizes.tolist()
    ]
    lengths = {"ids": 16, "x": 9, "weight": 8}
    stream = grain.MapDataset.source(elements).to_iter_dataset()
    options = {"num_packing_bins": num_bins, "shuffle_bins": False}
    expected = grain.experimental.FirstFitPackIterDataset(stream, length_struct=lengths, **options)
    found = tfw.Dataset.from_generator(lambda: elements).pack(lengths, num_bins=num_bins)
    for theirs, ours in zip(expected, found, strict=True):
        assert theirs.keys() == ours.keys()
        for name, values in theirs.items():
            np.testing.assert_array_equal(values, ours[name])
            assert values.dtype == ours[name].dtype
