"""Random numbers for functions of ``map``: of the seed, the epoch and the place alone."""

from __future__ import annotations

import pickle
from itertools import chain, islice

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from helpers.data.files import NumberedFiles
from helpers.data.named_pipelines import COMBINED, NUMBERED, OTHERS, STREAMS, goes_on_everywhere
from tfwire import Dataset, TFRecordDataset

SIZES = (10, 0, 5, 6, 1)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES)


def drawn(*element_and_generator):
    """What an element looks like, and random numbers for it."""
    *parts, generator = element_and_generator
    return repr(parts), generator.integers(2**63).item()


def randomized(dataset, seed=1, **options):
    return dataset.map(drawn, seed=seed, **options)


# Elements that are known by their places, whatever shard they are in.
PLACED = NUMBERED | {
    "generator": STREAMS["generator"],
    "repeated": STREAMS["repeated"],
    "zip": STREAMS["zip"],
    "taken": lambda files: NUMBERED["reshuffled"](files).skip(2).take(15),
    "taken of a generator": lambda files: STREAMS["generator"](files).skip(3).take(12),
    "some": lambda files: NUMBERED["arrays"](files).shard(2, 1),
    "cached": lambda files: NUMBERED["indexed"](files).cache(),
    "two": lambda files: NUMBERED["range"](files).concatenate(NUMBERED["reshuffled"](files)),
}
EVERY = PLACED | STREAMS | COMBINED | OTHERS
for _name in ("window", "grouped"):  # TensorFlow's map takes no seed
    del EVERY[_name]


@pytest.mark.parametrize("num_shards", [2, 5])
@pytest.mark.parametrize("name", PLACED)
def test_shards_draw_what_the_whole_draws(files, name, num_shards):
    whole = list(randomized(PLACED[name](files)))
    dataset = randomized(PLACED[name](files))
    shards = [list(dataset.shard_source(num_shards, i)) for i in range(num_shards)]
    assert sorted(whole) == sorted(chain(*shards))
    assert len(whole) == len({number for _, number in whole})


@given(
    first=st.integers(1, 4),
    second=st.integers(1, 3),
    rule=st.sampled_from(["even", "drop", "pad"]),
    shuffled=st.booleans(),
    skipped=st.integers(0, 5),
    before=st.booleans(),
)
def test_shards_of_shards_draw_the_same(files, first, second, rule, shuffled, skipped, before):
    def make():
        dataset = TFRecordDataset(files.plain, indexed=True)
        dataset = dataset.shuffle(100, seed=2) if shuffled else dataset
        if before:
            return randomized(dataset.skip(skipped))
        return randomized(dataset).skip(skipped)

    whole = set(make())
    for i in range(first):
        for j in range(second):
            shard = list(make().shard_source(first, i, rule).shard_source(second, j, rule))
            assert set(shard) <= whole


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")  # of few files, and of damaged records
@pytest.mark.parametrize("name", [*STREAMS, *COMBINED])
def test_no_two_elements_share_their_numbers(files, name):
    """Nor do those of other shards."""
    dataset = randomized((STREAMS | COMBINED)[name](files))
    found = [n for i in range(3) for _, n in dataset.shard_source(3, i)]
    assert len(found) > 7
    assert len(found) == len(set(found))


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("name", EVERY)
def test_every_place_is_gone_on_from(files, name):
    """By threads what one made, and in turn."""
    ways = [
        lambda: randomized(EVERY[name](files)),
        lambda: randomized(EVERY[name](files), num_parallel_calls=3),
    ]
    goes_on_everywhere(*ways, repr, 4, 16)


def test_epochs_draw_other_numbers():
    dataset = randomized(Dataset.range(5))
    epochs = [list(dataset) for _ in range(3)]
    assert 15 == len({number for _, number in chain(*epochs)})
    for epoch in (2, 0, 1):
        dataset.set_epoch(epoch)
        assert epochs[epoch] == list(dataset)
    twice = list(randomized(Dataset.range(5)).repeat(2))
    assert 10 == len(set(twice))
    assert [text for text, _ in twice[:5]] == [text for text, _ in twice[5:]]
    assert list(randomized(Dataset.range(5), seed=2)) != epochs[0]


def test_an_epoch_is_that_of_the_datasets_made_of_it():
    dataset = randomized(Dataset.range(8).shuffle(8, seed=1))
    shard = dataset.shard_source(2, 0).prefetch(1)
    dataset.set_epoch(3)
    later = dataset.shard_source(2, 0).batch(4)
    assert [3] == [int(n) for n in {stage.next_epoch for stage in later._stage.chain()} if n]
    shard.set_epoch(3)
    dataset.set_epoch(3)
    assert list(shard) == list(islice(dataset, 4))


def test_batches_and_tuples():
    """A function gets the Generator after the parts of a tuple."""
    pairs = Dataset.from_tensor_slices((np.arange(4), np.arange(4)))
    mixed = pairs.map(lambda a, b, rng: int(a + b) + rng.random(), seed=1)
    assert [0, 2, 4, 6] == [int(x) for x in mixed]
    batches = Dataset.range(8).batch(2).map(lambda x, rng: rng.permuted(x), seed=1)
    assert [0, 1] == sorted(next(iter(batches)))
    halves = [batches.shard_source(2, i) for i in range(2)]
    expected = [x.tolist() for x in batches]
    for half in halves:
        half.set_epoch(1)
    assert expected == [x.tolist() for half in halves for x in half]


def test_an_error_does_not_move_the_places():
    def fails_once(x, rng):
        if x == 2:
            raise ValueError("two")
        return int(x), rng.random()

    found = randomized(Dataset.range(5)).prefetch(2)
    with pytest.raises(ValueError, match="two"):
        list(Dataset.range(5).map(fails_once, seed=1))
    assert list(found) == list(pickle.loads(pickle.dumps(randomized(Dataset.range(5)))))


def test_the_state_of_another_seed_is_refused():
    elements = iter(randomized(Dataset.range(5)))
    next(elements)
    with pytest.raises(ValueError, match="another pipeline"):
        iter(randomized(Dataset.range(5), seed=2)).load_state_dict(elements.state_dict())


@pytest.mark.parametrize("seed", ["1", 1.5, True, np.array([1])])
def test_seeds_are_integers(seed):
    with pytest.raises(TypeError, match="seed must be an integer"):
        Dataset.range(3).map(drawn, seed=seed)


def test_without_a_seed_there_is_no_generator():
    assert [0, 1] == [int(x) for x in Dataset.range(2).map(lambda x: x)]
    assert [1, 2] == [int(x) for x in Dataset.range(2).map(lambda x: x + 1, seed=None)]


def test_datasets_have_no_elements_by_number():
    """torch's DataLoader looks for this method before it asks for elements."""
    assert not hasattr(Dataset.range(3), "any_other")
    with pytest.raises(TypeError, match=r"tfwire\.torch\.TFRecordIterableDataset"):
        hasattr(Dataset.range(3), "__getitems__")
    with pytest.raises(TypeError, match="not known without reading it"):
        len(tfw.Dataset.from_generator(list))
