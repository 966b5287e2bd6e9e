"""Datasets of numpy elements: sources, stages, lengths."""

import itertools
import pickle
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfwire as tfw
import tfwire.compat
from helpers.data.files import NumberedFiles
from tfwire import Dataset, TFRecordDataset


def numbers(count):
    return Dataset.from_tensor_slices(np.arange(count))


def values(dataset):
    return [int(element) for element in dataset]


def test_slices_of_tuples_and_dicts():
    dataset = Dataset.from_tensor_slices((np.arange(2), {"name": ["a", "ä"]}))
    assert [(0, {"name": b"a"}), (1, {"name": "ä".encode()})] == list(dataset)
    assert len(dataset) == 2


def test_slices_keep_trailing_zero_bytes_of_lists():
    """numpy's S arrays drop them."""
    assert [b"a\0", b"\0"] == list(Dataset.from_tensor_slices([b"a\0", b"\0"]))


@pytest.mark.parametrize(
    "strings",
    [
        [[b"a\0", "b"], ["é", b"\xff"]],
        np.array([[b"a\0", "b"], ["é", b"\xff"]], object),
    ],
)
def test_strings_of_any_rank_become_bytes(strings):
    dataset = Dataset.from_tensor_slices(strings)
    expected = [[b"a\0", b"b"], ["é".encode(), b"\xff"]]
    assert expected == [row.tolist() for row in dataset]
    assert expected == next(iter(dataset.batch(2))).tolist()


def test_batches_keep_strings_whole():
    """numpy's own strings drop trailing zeros."""
    dataset = Dataset.from_generator(lambda: [[b"a\0"], ["b", "c\0"]])
    padded = next(iter(dataset.padded_batch(2, padding_values="-")))
    assert [[b"a\0", b"-"], [b"b", b"c\0"]] == padded.tolist()
    batch = next(iter(Dataset.from_generator(lambda: [[b"a\0"], ["b"]]).batch(2)))
    assert [[b"a\0"], [b"b"]] == batch.tolist()
    assert object == batch.dtype
    words = Dataset.from_generator(lambda: ["a", "é"]).batch(2)
    assert [b"a", "é".encode()] == next(iter(words)).tolist()


def test_rows_may_be_changed():
    """Neither the array nor the next pass sees it."""
    rows = np.zeros((2, 2))
    dataset = Dataset.from_tensor_slices(rows).map(lambda row: np.add(row, 1, out=row))
    for _ in range(2):
        assert [[1, 1], [1, 1]] == [row.tolist() for row in dataset]
    assert not rows.any()


@pytest.mark.parametrize("tensors", [np.float32(1), (np.arange(2), np.arange(3)), "text"])
def test_slices_need_a_common_first_axis(tensors):
    with pytest.raises(ValueError, match="axis"):
        Dataset.from_tensor_slices(tensors)


def test_generator_is_called_for_every_iteration():
    calls = itertools.count()
    dataset = Dataset.from_generator(lambda: iter([next(calls), 7]))
    assert [0, 7] == list(dataset)
    assert [1, 7] == list(dataset)
    with pytest.raises(TypeError, match="callable"):
        Dataset.from_generator([1, 2])
    with pytest.raises(TypeError, match="not known"):
        len(dataset)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 5])
def test_take_and_skip_share_the_elements(count):
    dataset = numbers(4)
    assert values(dataset.take(count)) + values(dataset.skip(count)) == [0, 1, 2, 3]
    assert len(dataset.take(count)) + len(dataset.skip(count)) == 4


def test_map_hands_tuples_over_as_arguments():
    dataset = Dataset.from_tensor_slices((np.arange(3), np.arange(3) * 10))
    assert [0, 11, 22] == values(dataset.map(lambda a, b: a + b))
    assert [1, 11, 21] == values(dataset.map(lambda a, b: (b, 1)).map(lambda b, one: b + one))


class Point(NamedTuple):
    x: object
    y: object


@pytest.mark.parametrize("lib", [Dataset, tfwire.compat.data.Dataset])
def test_a_named_tuple_is_one_argument(lib):
    dataset = lib.from_tensor_slices(Point([1, 2], [3, 4]))
    for found in (dataset, dataset.batch(2).unbatch(), dataset.filter(lambda one: one.x > 0)):
        assert [4, 6] == [int(x) for x in found.map(lambda one: one.x + one.y)]
    pairs = dataset.map(lambda one: (one, one.x)).map(lambda one, x: Point(x, one.y))
    assert [Point(1, 3), Point(2, 4)] == list(pairs.as_numpy_iterator())


@pytest.mark.parametrize("lib", [Dataset, tfwire.compat.data.Dataset])
def test_a_sparse_tensor_is_one_argument(lib):
    tensor = tfw.SparseTensor(np.array([[1]]), np.array([5]), np.array([3]))
    dataset = lib.from_generator(lambda: [tensor]).map(lambda one: one.values)
    assert [[5]] == [x.tolist() for x in dataset.as_numpy_iterator()]


def test_the_spec_of_several_datasets_is_what_they_share():
    def zeros(*shape):
        return Dataset.from_tensor_slices({"a": np.zeros(shape, np.float32)})

    assert {"a": "float32[?, 2]"} == zeros(3, 4, 2).concatenate(zeros(1, 5, 2)).element_spec
    assert {"a": "float32[...]"} == zeros(3, 4).concatenate(zeros(3)).batch(2).element_spec
    mixed = Dataset.sample_from_datasets([zeros(3, 4), zeros(3, 5)])
    assert {"a": "float32[?, ?]"} == mixed.batch(2).element_spec
    assert {"a": "float32[2, 7]"} == zeros(3, 4).padded_batch(2, [7], None, True).element_spec
    assert zeros(3).concatenate(Dataset.range(3)).element_spec is None


def test_filter():
    dataset = numbers(6).filter(lambda x: x % 2)
    assert [1, 3, 5] == values(dataset)
    with pytest.raises(TypeError):
        len(dataset)


@pytest.mark.parametrize(("count", "drop", "sizes"), [(3, False, [3, 3, 1]), (3, True, [3, 3])])
def test_batch_stacks(count, drop, sizes):
    dataset = Dataset.from_tensor_slices((np.arange(7), ["x"] * 7)).batch(count, drop)
    assert sizes == [len(numbers) for numbers, _ in dataset]
    assert len(sizes) == len(dataset)
    assert [b"x", b"x", b"x"] == next(iter(dataset))[1].tolist()


def test_sparse_tensors_are_values_of_a_dataset():
    """A SparseTensor is a tuple to Python, but no structure of values."""
    spec = {"x": tfw.VarLenFeature(tfw.int64)}
    serialized = tfw.encode_examples([{"x": [1, 2]}, {}, {"x": [3]}])
    dataset = Dataset.from_tensor_slices(serialized).map(
        lambda s: tfw.parse_single_example(s, spec)
    )
    assert [[1, 2], [], [3]] == [element["x"].to_dense().tolist() for element in dataset]
    (batch,) = dataset.batch(3)
    np.testing.assert_equal(tfw.parse_example(serialized, spec)["x"], batch["x"])


def test_ragged_tensors_are_stacked():
    inner = tfw.RaggedTensor([b"a\0", b"b", b"c"], [0, 2, 2, 3])
    outer = tfw.RaggedTensor(inner, [0, 1, 3])
    (batch,) = Dataset.from_generator(lambda: [outer, outer[1:], outer[:0]]).batch(3)
    rows = outer.to_list()
    assert [rows, rows[1:], []] == batch.to_list()
    assert 3 == batch.ragged_rank
    (batch,) = Dataset.from_generator(lambda: [tfw.RaggedTensor(np.arange(2), [0, 1, 2])]).batch(3)
    assert [[[0], [1]]] == batch.to_list()
    assert np.int64 == batch.dtype


class Pair(NamedTuple):
    left: Any
    right: Any


def test_named_tuples_stay_what_they_are():
    dataset = Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3) * 10))
    assert Pair(1, 10) == list(dataset)[1]
    assert isinstance(next(iter(dataset.batch(2))), Pair)


def test_what_ends_an_endless_dataset_gives_it_a_length():
    three, endless = Dataset.range(3), Dataset.range(3).filter(bool).repeat()
    assert [5, 4] == [len(endless.take(5)), len(endless.shuffle(3).skip(1).take(4))]
    assert 3 == len(Dataset.zip(three, endless.batch(2))) == len(list(Dataset.zip(three, endless)))
    assert [0, 0] == [len(endless.repeat(0)), len(Dataset.range(0).repeat())]
    for unknown in (endless, endless.filter(bool).take(2), three.filter(bool).take(2)):
        with pytest.raises(TypeError, match="not known without reading"):
            len(unknown)


def test_prefetch_keeps_elements_order_and_length():
    dataset = numbers(100).prefetch(3)
    assert list(range(100)) == values(dataset) == values(dataset.prefetch(-1))
    assert list(range(100)) == values(dataset.prefetch(0))
    assert len(dataset) == 100
    with pytest.raises(ValueError, match="buffer_size"):
        numbers(1).prefetch(-2)


def test_prefetch_draws_ahead_but_no_further_than_its_buffer():
    drawn = []
    full = threading.Event()

    def generate():
        for i in range(10):
            drawn.append(i)
            if i == 3:
                full.set()
            yield i

    elements = iter(Dataset.from_generator(generate).prefetch(3))
    assert next(elements) == 0
    assert full.wait(10)  # 0 was given, 1 to 3 are ahead
    assert [0, 1, 2, 3] == drawn
    elements.close()


def test_any_number_of_elements_may_be_prefetched():
    """More than fit into memory, if there were so many."""
    for count in (1500, 2**63 - 1):
        dataset = numbers(5000).prefetch(count)
        assert list(range(5000)) == values(dataset)
        assert list(range(5000)) == values(dataset.prefetch(count))


def test_a_large_prefetch_draws_as_far_as_its_buffer():
    drawn = []
    dataset = numbers(5000).map(lambda x: drawn.append(x) or x).prefetch(2000)
    elements = iter(dataset)
    next(elements)
    deadline = time.monotonic() + 60
    while len(drawn) < 2001 and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)  # time to draw more, which it must not
    assert 2001 <= len(drawn) <= 2002
    elements.close()


def test_prefetch_raises_an_error_after_the_elements_before_it():
    elements = iter(numbers(3).map(lambda x: [b"a", b"b"][x]).prefetch(10))
    assert [b"a", b"b"] == [next(elements), next(elements)]
    with pytest.raises(IndexError):
        next(elements)


def test_batch_refuses_different_shapes():
    dataset = Dataset.from_generator(lambda: [np.zeros(1), np.zeros(2)]).batch(2)
    with pytest.raises(ValueError, match="different shapes"):
        list(dataset)
    with pytest.raises(ValueError, match="at least 1"):
        dataset.batch(0)


def test_repeat():
    assert [0, 1, 0, 1] == values(numbers(2).repeat(2))
    assert [0, 1, 0] == values(numbers(2).repeat().take(3))
    assert [] == values(numbers(0).repeat())


@pytest.mark.parametrize("count", [0, 1, 5, 9])
@pytest.mark.parametrize("num_shards", [1, 2, 4])
def test_shards_lose_and_double_nothing(count, num_shards):
    shards = [numbers(count).shard(num_shards, index) for index in range(num_shards)]
    assert sorted(itertools.chain(*map(values, shards))) == list(range(count))
    assert [len(values(shard)) for shard in shards] == [len(shard) for shard in shards]
    with pytest.raises(ValueError, match="shard index"):
        numbers(count).shard(num_shards, num_shards)


@pytest.mark.parametrize("buffer_size", [1, 3, 10, 100])
def test_shuffle_gives_every_element_once(buffer_size):
    dataset = numbers(10).shuffle(buffer_size, seed=3)
    first, second = values(dataset), values(dataset)
    assert sorted(first) == list(range(10))
    assert (first == second) == (buffer_size == 1)
    assert first == values(numbers(10).shuffle(buffer_size, seed=3))
    steady = numbers(10).shuffle(buffer_size, seed=3, reshuffle_each_iteration=False)
    assert values(steady) == values(steady)


def test_shuffle_never_moves_an_element_before_its_buffer():
    for position, element in enumerate(values(numbers(100).shuffle(10, seed=0))):
        assert element < position + 10


@pytest.fixture
def files(tmp_path):
    return NumberedFiles(tmp_path, (2, 0, 3)).plain


def test_a_dataset_is_true_whatever_is_in_it():
    assert Dataset.range(0)
    assert TFRecordDataset("never read")


def test_repr_shows_the_elements():
    dataset = Dataset.from_tensor_slices({"x": np.zeros((4, 28, 28), np.float32)})
    assert "<from_tensor_slices elements={'x': 'float32[28, 28]'}, length=4>" == repr(dataset)
    assert "<batch elements={'x': 'float32[?, 28, 28]'}, length=2>" == repr(dataset.batch(2))
    assert "unknown until read" in repr(dataset.map(len))


# ---- Thresholds, padding, names --------------------------------------------------------------


def test_shuffle_batch_gives_batches_as_soon_as_there_is_enough():
    drawn = []

    def generate():
        for i in range(100):
            drawn.append(i)
            yield i

    dataset = Dataset.from_generator(generate).shuffle_batch(4, 50, 10, seed=1)
    elements = iter(dataset)
    first = next(elements)
    assert len(drawn) < 50
    assert max(first) < len(drawn)
    rest = list(elements)
    assert sorted(drawn) == sorted(np.concatenate([first, *rest]).tolist())
    assert {4} == set(map(len, rest))


def test_shuffle_batch_keeps_a_smaller_last_batch_on_demand():
    dataset = numbers(10)
    assert [4, 4] == list(map(len, dataset.shuffle_batch(4, 8, 5)))
    smaller = dataset.shuffle_batch(4, 8, 5, allow_smaller_final_batch=True)
    assert [4, 4, 2] == list(map(len, smaller))
    for least in (0, 9):
        with pytest.raises(ValueError, match="min_after_dequeue"):
            dataset.shuffle_batch(4, 8, least)


def test_padded_batch():
    rows = [{"x": np.arange(i), "name": b"n", "m": np.ones((i, 2))} for i in (1, 3, 0)]
    dataset = Dataset.from_generator(lambda: rows)
    two, one = dataset.padded_batch(2, padding_values={"x": -1, "name": None, "m": 0.5})
    assert [[0, -1, -1], [0, 1, 2]] == two["x"].tolist()
    assert [b"n", b"n"] == two["name"].tolist()
    assert (2, 3, 2) == two["m"].shape
    assert [[1, 1], [0.5, 0.5], [0.5, 0.5]] == two["m"][0].tolist()
    assert (1, 0) == one["x"].shape
    assert 1 == len(list(dataset.padded_batch(2, drop_remainder=True)))
    shapes = {"x": [4], "name": [], "m": [None, 3]}
    (padded,) = dataset.padded_batch(3, shapes)
    assert ((3, 4), (3, 3, 3)) == (padded["x"].shape, padded["m"].shape)


def test_padded_batch_of_tuples_and_single_values():
    dataset = Dataset.from_generator(lambda: [([1], [2.0, 3.0]), ([1, 1], [2.0])])
    ((a, b),) = dataset.padded_batch(2, ([None], (5,)), padding_values=(9, 0.0))
    assert [[1, 9], [1, 1]] == a.tolist()
    assert (2, 5) == b.shape
    (values,) = Dataset.from_generator(lambda: [[1], [1, 2]]).padded_batch(2, [None])
    assert [[1, 0], [1, 2]] == values.tolist()


@pytest.mark.parametrize("shape", [[1], [2, 2], []])
def test_padded_batch_refuses_what_does_not_fit(shape):
    dataset = Dataset.from_generator(lambda: [np.arange(2)])
    with pytest.raises(ValueError, match=r"does not fit|ranks"):
        list(dataset.padded_batch(1, shape))


@pytest.mark.parametrize("arguments", [(10**15,), (0, 2**63 - 1), (2**63 - 2, 2**63), (9, 2, -2)])
def test_a_range_takes_no_memory_for_its_numbers(arguments):
    dataset, numbers = Dataset.range(*arguments), range(*arguments)
    assert len(numbers) == len(dataset)
    assert list(numbers[:3]) == list(dataset.take(3))
    assert {np.int64} == set(map(type, dataset.take(3)))
    half = numbers[len(numbers) // 2 :]
    assert list(half[:3]) == list(dataset.shard_source(2, 1).take(3))


@pytest.mark.parametrize("arguments", [(2**63 + 1,), (-(2**63) - 1, 0), (-(2**63), 2**63)])
def test_a_range_beyond_int64_is_refused(arguments):
    with pytest.raises(ValueError, match="must be int64"):
        Dataset.range(*arguments)


@pytest.mark.parametrize("rule", ["even", "drop", "pad"])
def test_shards_of_a_range_are_those_of_its_array(rule):
    for length, num_shards in itertools.product([0, 1, 5, 10], [1, 2, 3, 7]):
        for index in range(num_shards):
            found = Dataset.range(length).shard_source(num_shards, index, rule)
            array = Dataset.from_tensor_slices(np.arange(length))
            assert list(array.shard_source(num_shards, index, rule)) == list(found)


def test_range_and_zip():
    assert [2, 5, 8] == values(Dataset.range(2, 10, 3))
    assert [(0, 5), (1, 6)] == [
        (int(a), int(b)) for a, b in Dataset.zip((Dataset.range(9), Dataset.range(5, 7)))
    ]
    assert 2 == len(Dataset.zip(Dataset.range(9), Dataset.range(5, 7)))


def odd(number):
    return number % 2 == 1


def test_datasets_go_to_other_processes(files):
    """With functions that pickle, generators and what makes seeds."""
    for dataset in (
        Dataset.from_generator(range, args=(5,)).map(np.negative).filter(odd),
        TFRecordDataset(files).shuffle(3).batch(2).prefetch(1),
        Dataset.zip(Dataset.range(3), Dataset.range(3).shuffle(3, seed=1)).map(np.add),
    ):
        sent = pickle.loads(pickle.dumps(dataset))
        assert [repr(element) for element in dataset] == [repr(element) for element in sent]
