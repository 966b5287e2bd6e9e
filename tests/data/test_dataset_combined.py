"""concatenate, enumerate, unbatch, cache and sample_from_datasets: elements, shards and states."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.files import NumberedFiles, drain, number_of
from helpers.data.named_pipelines import COMBINED, sampled
from tfwire import Dataset, TFRecordDataset

SIZES = [5, 0, 6, 2, 1]
TOTAL = sum(SIZES)
pytestmark = pytest.mark.filterwarnings("ignore:.*shards are empty:tfwire.TfwireWarning")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES)


def texts(dataset):
    return list(map(repr, dataset))


@pytest.mark.parametrize("num_shards", [1, 2, 5])
@pytest.mark.parametrize("name", sorted(set(COMBINED) - {"enumerate", "all"}))
def test_shards_have_everything_once(files, name, num_shards):
    shards = [
        texts(COMBINED[name](files).shard_source(num_shards, index)) for index in range(num_shards)
    ]
    assert sorted(itertools.chain(*shards)) == sorted(texts(COMBINED[name](files)))


@pytest.mark.parametrize("num_shards", [2, 5])
def test_numbers_are_those_of_all_elements(files, num_shards):
    """In any number of shards."""
    dataset = COMBINED["enumerate"](files)
    shards = []
    for index in range(num_shards):
        shard = dataset.shard_source(num_shards, index)
        shard.set_epoch(0)
        shards.append([int(i) for i, _ in shard])
    assert sorted(itertools.chain(*shards)) == list(range(5, TOTAL + 5))


def test_concatenated():
    dataset = Dataset.range(2).concatenate(Dataset.range(5, 7))
    assert [0, 1, 5, 6] == [int(x) for x in dataset]
    assert 4 == len(dataset)
    assert "int64[]" == dataset.element_spec
    other = Dataset.range(2).concatenate(Dataset.from_tensor_slices(["a"]))
    assert other.element_spec is None
    with pytest.raises(TypeError, match="found list"):
        Dataset.range(2).concatenate([1])
    failing = Dataset.range(2).concatenate(Dataset.range(3).map(lambda x: 1 // int(x)))
    found, error = drain(iter(failing))
    assert [0, 1] == found
    assert isinstance(error, ZeroDivisionError)


def test_enumerated():
    numbers = list(Dataset.from_tensor_slices(["a", "b"]).enumerate(-1))
    assert [(-1, b"a"), (0, b"b")] == numbers
    assert isinstance(numbers[0][0], np.int64)
    assert 3 == len(Dataset.range(3).enumerate())
    with pytest.raises(TypeError, match="start"):
        Dataset.range(3).enumerate("1")


def test_unbatched():
    rows = {"x": np.arange(6).reshape(3, 2), "name": np.array([b"a", b"b", b"c"], object)}
    unbatched = list(Dataset.from_generator(lambda: [rows]).unbatch())
    assert [[0, 1], [2, 3], [4, 5]] == [row["x"].tolist() for row in unbatched]
    assert [b"a", b"b", b"c"] == [row["name"] for row in unbatched]
    ragged = tfw.RaggedTensor(np.arange(3), np.array([0, 2, 2, 3]))
    sparse = tfw.SparseTensor(np.array([[0, 1], [2, 0]]), np.array([5, 6]), np.array([3, 2]))
    found = list(Dataset.from_generator(lambda: [(ragged, sparse)]).unbatch())
    assert [[0, 1], [], [2]] == [row.tolist() for row, _ in found]
    assert [[0, 5], [0, 0], [6, 0]] == [row.to_dense().tolist() for _, row in found]
    with pytest.raises(ValueError, match="a scalar"):
        list(Dataset.range(3).unbatch())
    with pytest.raises(ValueError, match=r"sizes \[2, 3\]"):
        list(Dataset.from_generator(lambda: [(np.arange(2), np.arange(3))]).unbatch())


def test_cached(files):
    calls = []

    def noted(record):
        calls.append(record)
        return {"n": np.array([number_of(record)])}

    dataset = TFRecordDataset(files.plain).map(noted).cache()
    some = iter(dataset)
    next(some)
    some.close()
    first = list(dataset)
    assert TOTAL + 1 == len(calls)
    for element in first:
        element["n"][0] = -1  # the user's own
    assert list(range(TOTAL)) == [int(element["n"][0]) for element in dataset]
    for element in dataset:
        element["n"][0] = -1
    assert list(range(TOTAL)) == [int(element["n"][0]) for element in dataset]
    assert TOTAL + 1 == len(calls)
    with pytest.raises(ValueError, match="in memory"):
        dataset.cache("file")


def test_a_state_of_a_cache_holds_before_and_after_it_is_filled(files):
    dataset = TFRecordDataset(files.plain).shuffle(9, seed=1).cache()
    expected = list(dataset)
    elements = iter(dataset)
    for _ in range(9):
        next(elements)
    state = elements.state_dict()
    other = TFRecordDataset(files.plain).shuffle(9, seed=1).cache()
    for _ in range(2):
        resumed = iter(other)
        resumed.load_state_dict(state)
        assert expected[9:] == list(resumed)
    assert expected == list(other)


def test_sampled():
    counts = []
    for epoch in range(3):
        dataset = sampled(seed=3)
        dataset.set_epoch(epoch)
        found = [int(x) for x in dataset]
        assert sorted(found) == [*range(12), *range(100, 104), *range(200, 208)]
        assert list(range(12)) == [x for x in found if x < 100]
        counts.append(tuple(found))
    assert 3 == len(set(counts))
    many = [Dataset.range(10**6), Dataset.range(10**6, 2 * 10**6), Dataset.range(3)]
    drawn = Dataset.sample_from_datasets(many, [0.75, 0.25, 0], seed=1).take(2000)
    first = sum(int(x) < 10**6 for x in drawn)
    assert 1400 < first < 1600
    assert 24 == len(sampled(seed=1))
    with pytest.raises(TypeError, match="not known"):
        len(sampled(seed=1, stop_on_empty_dataset=True))
    found = [int(x) // 100 for x in sampled(seed=2, stop_on_empty_dataset=True)]
    assert any(found.count(i) == size for i, size in enumerate((12, 4, 8)))
    assert len(found) < 24


def test_samples_without_a_seed_go_on_in_another_process():
    """The state has the seed."""
    elements = iter(sampled())
    for _ in range(9):
        next(elements)
    resumed = iter(sampled())
    resumed.load_state_dict(elements.state_dict())
    assert texts(elements) == texts(resumed)
    with pytest.raises(ValueError, match="need a seed"):
        sampled().take(3).shard_source(2, 0)


@pytest.mark.parametrize("name", ["flat_map", "reduce", "window", "cardinality"])
def test_a_missing_name_says_what_to_use(name):
    with pytest.raises(AttributeError, match=f"no '{name}'; instead: .*"):
        getattr(Dataset.range(3), name)
    with pytest.raises(AttributeError, match=r"no 'nonsense'$"):
        _ = Dataset.range(3).nonsense
    assert not hasattr(Dataset.range(3), "as_torch")


def test_no_state_while_a_shuffle_below_a_cache_gives_its_buffer(tmp_path):
    """Without the error that comes after it, the elements would be others."""
    path = tmp_path / "data"
    tfw.write_records(path, [b"%d" % i for i in range(30)])
    right = path.read_bytes()

    def make():
        return tfw.TFRecordDataset(path).shuffle(3, seed=7).cache()

    whole = list(make())
    path.write_bytes(right[:-5] + bytes([right[-5] ^ 1]) + right[-4:])
    elements, given, states = iter(make()), [], []
    with contextlib.suppress(tfw.DataLossError):
        for element in elements:
            given.append(element)
            with contextlib.suppress(tfw.DataLossError):
                states.append((list(given), elements.state_dict()))
    assert 29 == len(given)
    assert 10 < len(states) < 27
    path.write_bytes(right)
    for before, state in states:
        resumed = iter(make())
        resumed.load_state_dict(state)
        assert whole == before + list(resumed)
