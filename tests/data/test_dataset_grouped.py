"""interleave and bucket_by_sequence_length, and arrays that are shuffled as a whole."""

import itertools
import pickle
from functools import partial

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.named_pipelines import goes_on_everywhere
from tfwire import Dataset, TFRecordDataset

ROWS = [np.full(size, size) for size in (3, 9, 1, 4, 12, 2, 5, 4, 7, 0)]


def tens(number):
    return Dataset.range(10 * int(number), 10 * int(number) + 3)


def rows():
    return iter(ROWS)


def ints(dataset):
    return [int(x) for x in dataset]


# ---- interleave -------------------------------------------------------------------------------


def test_datasets_take_turns():
    assert [0, 10, 1, 11, 2, 12] == ints(Dataset.range(2).interleave(tens, 2))
    assert [0, 1, 10, 11, 2, 12, 20, 21, 22] == ints(Dataset.range(3).interleave(tens, 2, 2))
    assert ints(Dataset.range(3).interleave(tens, 1, 3)) == [0, 1, 2, 10, 11, 12, 20, 21, 22]
    assert [] == ints(Dataset.range(0).interleave(tens, 4))
    goes_on_everywhere(lambda: Dataset.range(4).interleave(tens, 3, 2))


def test_files_take_turns(tmp_path):
    names = [str(tmp_path / f"part-{i}") for i in range(5)]
    for i, name in enumerate(names):
        tfw.write_records(name, [b"%d %d" % (i, j) for j in range(i)])
    files = Dataset.list_files(str(tmp_path / "part-*"), shuffle=False)
    found = files.interleave(TFRecordDataset, cycle_length=3)
    expected = list(tfw.read_records(names))
    assert sorted(expected) == sorted(found)
    assert list(pickle.loads(pickle.dumps(found))) == list(found)
    shards = [list(found.shard_source(2, i)) for i in range(2)]
    assert sorted(expected) == sorted(itertools.chain(*shards))
    assert {b"2", b"3", b"4"} == {record.split()[0] for record in shards[1]}
    with pytest.raises(ValueError, match="'drop'"):
        found.shard_source(2, 0, "drop")


def test_interleaved_shuffles_differ_by_epoch():
    dataset = Dataset.range(3).interleave(lambda n: tens(n).shuffle(9, seed=1), 3)
    epochs = [ints(dataset) for _ in range(4)]
    assert len(set(map(tuple, epochs))) > 1
    dataset.set_epoch(0)
    assert epochs[0] == ints(dataset)


def test_errors_of_interleaved_datasets_come_at_their_element():
    def failing(number):
        if number == 1:
            raise KeyError("odd")
        return tens(number)

    elements = iter(Dataset.range(3).interleave(failing, 1))
    assert [0, 1, 2] == [int(next(elements)) for _ in range(3)]
    with pytest.raises(KeyError, match="odd"):
        next(elements)
    with pytest.raises(TypeError, match="found tuple"):
        list(Dataset.range(1).interleave(lambda n: [n], 1))


# ---- bucket_by_sequence_length ----------------------------------------------------------------


def buckets(*arguments, **options):
    dataset = Dataset.from_generator(rows)
    return dataset.bucket_by_sequence_length(len, *arguments, padding_values=-1, **options)


def test_batches_are_of_similar_length():
    found = [batch.tolist() for batch in buckets([4, 8], [2, 3, 2])]
    assert [[9] * 9 + [-1] * 3, [12] * 12] == found[1]
    assert [[3, 3, 3], [1, -1, -1]] == found[0]
    assert [5, 4, 4] == sorted((row[0] for row in found[2]), reverse=True)
    assert [[2, 2], [-1, -1]] == found[3]
    assert [[7] * 7] == found[4]
    assert 5 == len(found)
    goes_on_everywhere(lambda: buckets([4, 8], [2, 3, 2]))
    assert found[:3] == [b.tolist() for b in buckets([4, 8], [2, 3, 2], drop_remainder=True)][:3]
    shapes = [b.shape for b in buckets([4, 13], [2, 3, 1], None, pad_to_bucket_boundary=False)]
    assert (3, 12) in shapes


def test_buckets_have_few_shapes():
    options = {"padded_shapes": [None], "pad_to_bucket_boundary": True}
    shapes = {batch.shape for batch in buckets([4, 8, 16], [2, 3, 2, 1], **options)}
    assert {(2, 3), (3, 7), (1, 7), (2, 15)} == shapes
    with pytest.raises(ValueError, match="not shorter"):
        list(buckets([4, 8], [2, 3, 2], **options))
    for boundaries in ([2, 1], [1, 1]):
        with pytest.raises(ValueError, match="increase"):
            buckets(boundaries, [1, 1, 1])
    with pytest.raises(ValueError, match="needs padded_shapes"):
        buckets([4], [1, 1], pad_to_bucket_boundary=True)
    same = [batch.shape for batch in buckets([4, 5], [1, 2, 1], no_padding=True)]
    assert (2, 4) in same


def test_tuples_and_dicts_are_bucketed():
    pairs = Dataset.zip(Dataset.from_generator(rows), Dataset.range(10))
    found = list(pairs.bucket_by_sequence_length(lambda row, n: len(row), [4], [3, 9]))
    assert sorted(range(10)) == sorted(n for _, numbers in found for n in numbers.tolist())


def test_an_error_comes_after_the_full_batches():
    def failing():
        yield from ROWS[:4]
        raise KeyError("odd")

    dataset = Dataset.from_generator(failing).bucket_by_sequence_length(len, [4], [2, 2])
    elements = iter(dataset)
    assert [(2, 3), (2, 9)] == [next(elements).shape for _ in range(2)]
    with pytest.raises(KeyError, match="odd"):
        next(elements)


# ---- Arrays and ranges shuffled as a whole ------------------------------------------------------

SOURCES = {
    "range": lambda: Dataset.range(100),
    "array": lambda: Dataset.from_tensor_slices(np.arange(100)),
    "part": lambda: Dataset.range(150).skip(20).take(100),
    "large": lambda: Dataset.from_tensor_slices(np.arange(2000)).take(1000),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("rule", ["even", "drop", "pad"])
def test_shards_have_other_elements_in_every_epoch(source, rule):
    whole = SOURCES[source]()
    shuffled = whole.shuffle(10**4, seed=3)
    shards = [shuffled.shard_source(3, i, rule) for i in range(3)]
    epochs = [[ints(shard) for shard in shards] for _ in range(3)]
    assert 3 == len({tuple(sorted(epoch[0])) for epoch in epochs})
    for epoch in epochs:
        together = sorted(itertools.chain(*epoch))
        if rule == "even":
            assert sorted(ints(whole)) == together
        elif rule == "drop":
            assert len(set(together)) == len(together) == len(whole) // 3 * 3
        else:
            assert set(ints(whole)) == set(together)
            assert 1 == len(set(map(len, epoch)))
    shuffled.set_epoch(0)
    assert epochs[0] == [
        ints(SOURCES[source]().shuffle(10**4, seed=3).shard_source(3, i, rule)) for i in range(3)
    ]


def test_the_shards_are_parts_of_the_whole_order():
    make = partial(SOURCES["array"]().shuffle, 100, seed=5)
    order = ints(make())
    assert order == list(itertools.chain(*(ints(make().shard_source(4, i)) for i in range(4))))
    assert order[10:30] == ints(make().skip(10).take(20))
    goes_on_everywhere(lambda: make().batch(7))
    without_seed = Dataset.range(100).shuffle(100)
    shards = [ints(without_seed.shard_source(2, i)) for i in range(2)]
    assert list(range(100)) == sorted(itertools.chain(*shards))


@pytest.mark.parametrize("length", ["a", 1.5, None, True])
def test_a_length_that_is_no_integer_is_refused(length):
    batches = Dataset.range(3).bucket_by_sequence_length(lambda _: length, [3], [1, 1])
    expected = rf"result of element_length_func must be an integer, found {type(length).__name__}"
    with pytest.raises(TypeError, match=expected):
        next(iter(batches))
