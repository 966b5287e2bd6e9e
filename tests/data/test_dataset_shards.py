"""Shards of datasets: over all of them nothing is lost or doubled."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from tfwire import Dataset, TFRecordDataset


def write(folder, sizes):
    """Files of records that are all different; their names and all records."""
    names = [str(folder / f"{i}") for i in range(len(sizes))]
    numbers = itertools.count()
    records = [[b"%d" % next(numbers) for _ in range(size)] for size in sizes]
    for name, content in zip(names, records, strict=True):
        tfw.write_records(name, content)
    return names, list(itertools.chain(*records))


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    hosts=st.integers(1, 4),
    workers=st.integers(1, 4),
    rule=st.sampled_from(["even", "drop", "pad"]),
    twice=st.booleans(),
)
def test_shards_by_record(tmp_path_factory, sizes, hosts, workers, rule, twice):
    """For any numbers of hosts and workers, numbered through or shard by shard."""
    names, records = write(tmp_path_factory.mktemp("files"), sizes)
    shards = []
    for host, worker in itertools.product(range(hosts), range(workers)):
        dataset = TFRecordDataset(names, indexed=True)
        if twice:
            dataset = dataset.shard_source(hosts, host, rule).shard_source(workers, worker, rule)
        else:
            number = host * workers + worker
            dataset = dataset.shard_source(hosts * workers, number, rule)
        found = list(dataset)
        assert len(dataset) == len(found)
        shards.append(found)
    seen = Counter(itertools.chain(*shards))
    lengths = set(map(len, shards))
    if rule == "even":
        assert Counter(records) == seen
        assert twice or max(lengths) - min(lengths) <= 1
    elif rule == "drop":
        assert seen <= Counter(records)
        assert 1 == len(lengths)
        assert twice or len(records) - seen.total() < len(shards)
    else:
        assert Counter(records) <= seen
        assert 1 == len(lengths)
        assert twice or seen.total() - len(records) < max(1, len(shards)) or not records


def test_a_padded_shard_repeats_the_first_records(tmp_path):
    names, records = write(tmp_path, [5])
    shards = [
        list(TFRecordDataset(names, indexed=True).shard_source(3, i, "pad")) for i in range(3)
    ]
    assert [records[:2], records[2:4], [records[4], records[0]]] == shards


@pytest.mark.filterwarnings("ignore:.*shards are empty:tfwire.TfwireWarning")
@pytest.mark.parametrize("num_shards", [1, 2, 3, 7])
def test_shards_by_file(tmp_path, num_shards):
    names, records = write(tmp_path, [3, 0, 4, 2, 5])
    shards = [list(TFRecordDataset(names).shard_source(num_shards, i)) for i in range(num_shards)]
    assert sorted(records) == sorted(itertools.chain(*shards))
    assert [b"0", b"1", b"2"] == shards[0][:3]


def test_shards_of_arrays_and_generators():
    arrays = Dataset.from_tensor_slices({"x": np.arange(7)})
    shards = [[int(e["x"]) for e in arrays.shard_source(3, i)] for i in range(3)]
    assert [[0, 1], [2, 3], [4, 5, 6]] == shards
    padded = [[int(e["x"]) for e in arrays.shard_source(3, i, "pad")] for i in range(3)]
    assert [[0, 1, 2], [3, 4, 5], [6, 0, 1]] == padded
    generated = Dataset.from_generator(lambda: range(7))
    assert [[0, 3, 6], [1, 4], [2, 5]] == [list(generated.shard_source(3, i)) for i in range(3)]


AFTER = {
    "take": lambda dataset: dataset.take(15),
    "skip": lambda dataset: dataset.skip(5),
    "enumerate": lambda dataset: dataset.enumerate(),
    "shard": lambda dataset: dataset.shard(2, 1),
    "zip": lambda dataset: Dataset.zip((dataset, Dataset.range(30))),
    "concatenate and take": lambda dataset: dataset.concatenate(Dataset.range(9)).take(25),
    "a sample": lambda dataset: Dataset.sample_from_datasets(
        [dataset, Dataset.range(9)], seed=2, stop_on_empty_dataset=True
    ),
}


@pytest.mark.parametrize("after", AFTER)
def test_shards_in_one_process_are_of_the_same_epoch(after):
    """Each of them counts for itself, as in processes of their own."""
    dataset = AFTER[after](Dataset.range(20).shuffle(3, seed=1))
    shards = [dataset.shard_source(2, i) for i in range(2)]
    for _ in range(3):
        parts = [[str(element) for element in shard] for shard in shards]
        assert Counter(map(str, dataset)) == Counter(itertools.chain(*parts))


def test_the_pipeline_above_stays(tmp_path):
    """Only the source is another; stages with seeds keep them."""
    names, records = write(tmp_path, [6, 5])
    dataset = TFRecordDataset(names, indexed=True).shuffle(100).repeat(2).batch(4)
    found = [
        record
        for i in range(2)
        for batch in dataset.shard_source(2, i)
        for record in batch.tolist()
    ]
    assert Counter(2 * records) == Counter(found)
    assert 6 == sum(len(dataset.shard_source(2, i)) for i in range(2))


def test_what_is_no_shard(tmp_path):
    names, _ = write(tmp_path, [3])
    dataset = TFRecordDataset(names)
    with pytest.raises(ValueError, match="shard index"):
        dataset.shard_source(2, 2)
    with pytest.raises(ValueError, match="rule"):
        dataset.shard_source(2, 0, "some")
    with pytest.raises(ValueError, match="indexed=True"):
        dataset.shard_source(2, 0, "drop")
    with pytest.raises(ValueError, match="generator"):
        Dataset.from_generator(list).shard_source(2, 0, "pad")
    with pytest.raises(ValueError, match="excludes"):
        TFRecordDataset(names, indexed=True, on_corrupt="skip")
