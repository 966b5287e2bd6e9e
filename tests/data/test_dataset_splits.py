"""take, skip and shard before shard_source choose from all the data, for any number of shards."""

from __future__ import annotations

import itertools
import warnings

import pytest

import tfwire as tfw
from helpers.data.files import SPEC, NumberedFiles, number_of
from helpers.data.named_pipelines import NUMBERED, STREAMS, goes_on_everywhere, indexed
from helpers.products import diagonals
from tfwire import Dataset, TFRecordDataset
from tfwire._data.batching import threaded

SIZES = [7, 0, 12, 5, 1, 3]
TOTAL = sum(SIZES)
pytestmark = pytest.mark.filterwarnings("ignore:.*shards are empty:tfwire.TfwireWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES)


SOURCES = NUMBERED | STREAMS
STAGES = {
    "take": lambda dataset: dataset.take(15),
    "skip": lambda dataset: dataset.skip(15),
    "window": lambda dataset: dataset.skip(4).take(20).skip(3),
    "shard": lambda dataset: dataset.shard(3, 1),
    "more than all": lambda dataset: dataset.take(1000),
    "all of them": lambda dataset: dataset.take(-1),
    "none": lambda dataset: dataset.skip(-1),
    "beyond": lambda dataset: dataset.skip(1000).take(3),
}


def texts(dataset):
    return list(map(repr, dataset))


@pytest.mark.parametrize(
    ("name", "stage", "num_shards"), diagonals(0, 4, SOURCES, STAGES, [1, 2, 3, 7])
)
def test_shards_divide_what_was_chosen(files, name, stage, num_shards):
    def make():
        return STAGES[stage](SOURCES[name](files))

    expected = sorted(texts(make()))
    shards = []
    for index in range(num_shards):
        shard = make().shard_source(num_shards, index)
        shards.append(texts(shard))
        if name in NUMBERED:
            assert len(shard) == len(shards[-1])
    assert sorted(itertools.chain(*shards)) == expected
    if stage == "all of them" and name in STREAMS:
        return  # whole files, perhaps
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@pytest.mark.parametrize("rule", ["drop", "pad"])
@pytest.mark.parametrize("name", SOURCES)
def test_equal_shards(files, name, rule):
    def make():
        return SOURCES[name](files).skip(4).take(21)

    expected = texts(make())
    if rule == "pad" and name in STREAMS:
        with pytest.raises(ValueError, match="known length"):
            make().shard_source(4, 1, rule)
        return
    shards = [texts(make().shard_source(4, index, rule)) for index in range(4)]
    together = list(itertools.chain(*shards))
    assert {len(expected) // 4 if rule == "drop" else -(-len(expected) // 4)} == set(
        map(len, shards)
    )
    if name != "repeated":
        assert len(set(together)) == min(len(expected), len(together))
    assert set(together) <= set(expected)


@pytest.mark.parametrize(("name", "num_shards"), diagonals(0, 2, SOURCES, [1, 3]))
def test_a_shard_of_chosen_elements_goes_on_at_every_place(files, name, num_shards):
    def make():
        return SOURCES[name](files).skip(4).take(20).shard_source(num_shards, num_shards // 2)

    goes_on_everywhere(make, step=2)


@pytest.mark.parametrize("stage", ["take", "skip", "shard", "window"])
def test_an_order_that_no_other_process_knows_is_an_error(files, stage):
    for dataset in (
        indexed(files).shuffle(1000),
        TFRecordDataset(files.plain).shuffle(10),
        Dataset.range(30).shuffle(5).map(int).prefetch(1),
    ):
        chosen = STAGES[stage](dataset)
        assert list(chosen)
        with pytest.raises(ValueError, match="need a seed"):
            chosen.shard_source(2, 0)
    with pytest.raises(ValueError, match="need a seed"):
        Dataset.zip(Dataset.range(9).shuffle(9), Dataset.range(9)).shard_source(2, 0)


def test_a_shuffle_after_a_split_is_exact_and_takes_no_memory(files):
    """And every shard has other records in every epoch, all of them of its side."""
    sides = []
    for side in (indexed(files).skip(9), indexed(files).take(9)):
        dataset = side.shuffle(1000, seed=1)
        shards = [dataset.shard_source(2, index) for index in range(2)]
        epochs = []
        for epoch in range(3):
            for shard in shards:
                shard.set_epoch(epoch)
            epochs.append([set(map(number_of, shard)) for shard in shards])
        assert 1 == len({frozenset(a | b) for a, b in epochs})
        assert not any(a & b for a, b in epochs)
        assert epochs[0] != epochs[1] or epochs[1] != epochs[2]
        sides.append(epochs[0][0] | epochs[0][1])
    assert sides == [set(range(9, TOTAL)), set(range(9))]


def test_threads_keep_the_part_of_an_order(files):
    dataset = indexed(files).shuffle(1000, seed=1).take(20).batch(3).parse_example(SPEC)
    dataset = dataset.shard_source(2, 1)
    assert texts(threaded(dataset, 2)) == texts(dataset)


@pytest.mark.parametrize("shuffled", [False, True])
def test_fewer_files_than_shards_warn(files, shuffled):
    dataset = TFRecordDataset(files.plain, shuffle_files=shuffled).batch(2)
    with pytest.warns(tfw.TfwireWarning, match="8 shards of 6 files: 2 shards are empty") as found:
        dataset.shard_source(8, 0)
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        indexed(files).shard_source(800, 0)
        shard = dataset.shard_source(3, 0)
        with pytest.raises(tfw.TfwireWarning, match="3 shards of 2 files"):
            shard.shard_source(3, 0)


def test_a_dataset_that_was_chosen_from_says_so(files):
    assert 20 == len(indexed(files).skip(4).take(20))
    assert "take" in repr(indexed(files).take(3))
    assert [3, 5, 7] == list(map(number_of, indexed(files).shard(2, 1).skip(1).take(3)))
    assert [3, 5, 7] == [int(x) for x in Dataset.range(50).shard(2, 1).skip(1).take(3)]
