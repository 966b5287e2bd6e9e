"""Datasets of numpy elements: sources, stages, lengths."""

import itertools
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest

import tfwire as tfw
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
    serialized = tfw.encode_rows([{"x": [1, 2]}, {}, {"x": [3]}])
    dataset = Dataset.from_tensor_slices(serialized).map(
        lambda s: tfw.parse_single_example(s, spec)
    )
    assert [[1, 2], [], [3]] == [element["x"].to_dense().tolist() for element in dataset]
    (batch,) = dataset.batch(3)
    np.testing.assert_equal(tfw.parse_example(serialized, spec)["x"], batch["x"])


def test_batch_refuses_ragged_tensors():
    ragged = tfw.RaggedTensor(np.arange(2), np.array([0, 1, 2]))
    with pytest.raises(TypeError, match="batch the records"):
        list(Dataset.from_generator(lambda: [ragged, ragged]).batch(2))


class Pair(NamedTuple):
    left: Any
    right: Any


def test_named_tuples_stay_what_they_are():
    dataset = Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3) * 10))
    assert Pair(1, 10) == list(dataset)[1]
    assert isinstance(next(iter(dataset.batch(2))), Pair)


def test_prefetch_keeps_elements_order_and_length():
    dataset = numbers(100).prefetch(3)
    assert list(range(100)) == values(dataset) == values(dataset.prefetch(-1))
    assert len(dataset) == 100
    for count in (0, -2):
        with pytest.raises(ValueError, match="buffer_size"):
            numbers(1).prefetch(count)


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


def test_prefetch_raises_an_error_behind_the_elements_before_it():
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
    """Three files of 2, 0 and 3 Examples {"n": 0..}."""
    paths = []
    number = itertools.count()
    for size in (2, 0, 3):
        paths.append(tmp_path / f"{size}.tfrecord")
        rows = [{"n": next(number)} for _ in range(size)]
        tfw.write_records(paths[-1], tfw.encode_rows(rows))
    return paths


SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}


def test_records_of_several_files(files):
    assert 5 == sum(1 for _ in TFRecordDataset(files))
    assert 2 == sum(1 for _ in TFRecordDataset(str(files[0])))
    parsed = TFRecordDataset(files).parse_example(SPEC)
    assert [0, 1, 2, 3, 4] == [int(row["n"]) for row in parsed]


def test_parallel_reads_take_files_in_turn(files):
    parsed = TFRecordDataset(files, num_parallel_reads=2).parse_example(SPEC)
    assert [0, 2, 1, 3, 4] == [int(row["n"]) for row in parsed]


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_batches_of_files_are_parsed_without_an_object_per_record(
    files, drop_remainder, monkeypatch
):
    expected = list(TFRecordDataset(files).batch(2, drop_remainder=drop_remainder).map(parsed_list))
    monkeypatch.setattr("tfwire.records.read_records", None)
    found = list(TFRecordDataset(files).batch(2, drop_remainder).parse_example(SPEC))
    assert len(expected) == len(found) > 1
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_equal(one, other)


def parsed_list(records):
    return tfw.parse_example(records, SPEC)


def test_parsing_and_batching_commute(files):
    """parse_example before batch is parsed by the batch all the same."""
    before = TFRecordDataset(files).parse_example(SPEC).batch(2)
    after = TFRecordDataset(files).batch(2).parse_example(SPEC)
    expected = [[0, 1], [2, 3], [4]]
    assert expected == [batch["n"].tolist() for batch in before]
    assert expected == [batch["n"].tolist() for batch in after]


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.tfrecord"):
        list(TFRecordDataset(tmp_path / "nowhere.tfrecord"))


def test_compression_is_as_said(tmp_path):
    path = tmp_path / "x.gz"
    tfw.write_records(path, [b"a"], "GZIP")
    assert [b"a"] == list(TFRecordDataset(path, "GZIP"))
    assert [b"a"] == list(TFRecordDataset(path, "auto"))
    with pytest.raises(tfw.DataLossError, match="gzip"):
        list(TFRecordDataset(path))
    with pytest.raises(ValueError, match="LZ4"):
        list(TFRecordDataset(path, "LZ4"))


def test_repr_shows_the_elements():
    dataset = Dataset.from_tensor_slices({"x": np.zeros((4, 28, 28), np.float32)})
    assert "<from_tensor_slices elements={'x': 'float32[28, 28]'}, length=4>" == repr(dataset)
    assert "<batch elements={'x': 'float32[?, 28, 28]'}, length=2>" == repr(dataset.batch(2))
    assert "unknown until read" in repr(dataset.map(len))


@pytest.mark.parametrize("num_parallel_reads", [None, 2])
def test_damaged_records_can_be_left_out(tmp_path, num_parallel_reads):
    """As told; every one of the two files says so at its end."""
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        tfw.write_records(path, [b"1", b"2", b"3"])
        data = bytearray(path.read_bytes())
        data[17 + 12] ^= 1
        path.write_bytes(data)
    policies = {"num_parallel_reads": num_parallel_reads, "on_corrupt": "skip"}
    with pytest.warns(UserWarning, match="left out 1 damaged") as caught:
        found = list(tfw.TFRecordDataset(paths, **policies))
    assert [b"1", b"1", b"3", b"3"] == sorted(found)
    assert 2 == len(caught)
    with pytest.raises(tfw.DataLossError):
        list(tfw.TFRecordDataset(paths))
    with pytest.raises(ValueError, match="on_corrupt"):
        list(tfw.TFRecordDataset(paths, on_corrupt="ignore"))
