"""What transformations hold back comes before the error of their source."""

from __future__ import annotations

import gc
import json
import os

import numpy as np
import pytest

import tfwire as tfw
import tfwire.compat as tf
from helpers.data.files import SPEC, drain
from helpers.reading import flip_byte
from helpers.threads import threads_of_tfwire, wait_for
from tfwire import Dataset, TFRecordDataset


class FailingAt:
    def __init__(self, number):
        self._number = number

    def __call__(self, x):
        if x == self._number:
            raise RuntimeError("of the function")
        return x


def same(x):
    return x


BUFFERS = {
    "shuffle": lambda d: d.shuffle(4, seed=1),
    "of all": lambda d: d.shuffle(100, seed=1),
    "twice": lambda d: d.shuffle(100, seed=1).shuffle(3, seed=2),
    "prefetch": lambda d: d.shuffle(100, seed=1).prefetch(2),
    "threads": lambda d: d.shuffle(100, seed=1).map(same, num_parallel_calls=3),
    "batch": lambda d: d.shuffle(100, seed=1).batch(4),
    "of batches": lambda d: d.batch(2).shuffle(100, seed=1),
    "filter": lambda d: d.shuffle(100, seed=1).filter(lambda x: True),
    "shuffle_batch": lambda d: d.shuffle_batch(3, 20, 10, 1, allow_smaller_final_batch=True),
}


def damaged_files(folder, number):
    """Files of 12 records, in which one is damaged."""
    paths = [str(folder / name) for name in "ab"]
    rows = tfw.encode_examples([{"n": i, "z": "no zero at the end"} for i in range(12)])
    for path, part in zip(paths, (rows[:8], rows[8:]), strict=True):
        tfw.write_records(path, part)
    flip_byte(paths[number // 8], number % 8 * (16 + len(rows[0])) + 12)
    return paths, {row: i for i, row in enumerate(rows)}


@pytest.mark.parametrize("number", [0, 1, 5, 11])
@pytest.mark.parametrize("pipeline", BUFFERS)
def test_a_shuffle_gives_all_of_its_buffer_before_an_error(pipeline, number):
    dataset = BUFFERS[pipeline](Dataset.range(12).map(FailingAt(number)))
    found, error = drain(dataset)
    assert list(range(number)) == sorted(found)
    assert isinstance(error, RuntimeError)


@pytest.mark.parametrize("number", [0, 1, 5, 8, 11])
@pytest.mark.parametrize("pipeline", BUFFERS)
def test_a_shuffle_gives_every_intact_record_before_damage(tmp_path, pipeline, number):
    paths, numbers = damaged_files(tmp_path, number)
    found, error = drain(BUFFERS[pipeline](TFRecordDataset(paths)))
    assert list(range(number)) == sorted(map(numbers.__getitem__, found))
    assert (paths[number // 8], number % 8) == (error.path, error.record_index)


def test_records_in_packed_buffers_come_before_damage_too(tmp_path):
    paths, _ = damaged_files(tmp_path, 9)
    dataset = TFRecordDataset(paths).shuffle(100, seed=1).batch(4).parse_example(SPEC)
    found, error = drain(row["n"] for row in dataset)
    assert list(range(9)) == sorted(found)
    assert isinstance(error, tfw.DataLossError)


@pytest.mark.parametrize("pipeline", BUFFERS)
def test_no_state_is_saved_while_a_shuffle_gives_its_buffer_before_an_error(tmp_path, pipeline):
    """The error may not come again: then the order is another one. States of before go on."""
    paths, numbers = damaged_files(tmp_path, 6)
    dataset = BUFFERS[pipeline](TFRecordDataset(paths))
    elements, given, states = iter(dataset), [], []
    for _ in range(12):
        try:
            states.append((list(given), json.loads(json.dumps(elements.state_dict()))))
            given += np.ravel(next(elements)).tolist()
        except tfw.DataLossError:
            break
    else:
        raise AssertionError("no error came")
    assert states
    flip_byte(paths[0], 6 * (os.path.getsize(paths[0]) // 8) + 12)  # mended
    for before, state in states:
        resumed = iter(dataset)
        resumed.load_state_dict(state)
        rest = [numbers[x] for element in resumed for x in np.ravel(element).tolist()]
        assert list(range(12)) == sorted([*map(numbers.__getitem__, before), *rest])
    del elements, resumed
    gc.collect()
    assert wait_for(lambda: not threads_of_tfwire())


def test_an_error_that_is_raised_again_and_again_does_not_grow():
    elements = iter(Dataset.range(12).map(FailingAt(5)).shuffle(100, seed=1))
    next(elements)
    lengths = []
    for _ in range(3):
        with pytest.raises(RuntimeError) as raised:
            elements.state_dict()
        lengths.append(len(raised.traceback))
    assert lengths[0] == lengths[2]


# ---- tfwire.compat ------------------------------------------------------------------------------


def listed(elements):
    """Elements as lists of numbers, those of inner datasets too, up to the end or an error."""
    found = []
    try:
        for element in elements:
            if isinstance(element, tf.data.Dataset):
                found.append([int(x) for x in element])
            else:
                found.append(np.ravel(getattr(element, "flat_values", element)).tolist())
    except RuntimeError:
        found.append("error")
    return found


GROUPS = {
    "window": (lambda d: d.window(4), [[0, 1, 2, 3], [4], "error"]),
    "complete windows": (lambda d: d.window(4, drop_remainder=True), [[0, 1, 2, 3], "error"]),
    "windows that overlap": (lambda d: d.window(4, 2), [[0, 1, 2, 3], [2, 3, 4], [4], "error"]),
    "windows with gaps": (lambda d: d.window(2, 4), [[0, 1], [4], "error"]),
    "windows with strides": (lambda d: d.window(2, 3, 2), [[0, 2], [3], "error"]),
    "ragged_batch": (
        lambda d: d.map(lambda x: tf.fill([1], x)).ragged_batch(4),
        [[0, 1, 2, 3], [4], "error"],
    ),
    "group_by_window": (
        lambda d: d.group_by_window(lambda x: x % 2, lambda key, group: group.batch(3), 3),
        [[0, 2, 4], [1, 3], "error"],
    ),
    "bucket_by_sequence_length": (
        lambda d: d.bucket_by_sequence_length(lambda x: x % 2, [1], [2, 3]),
        [[0, 2], [4], [1, 3], "error"],
    ),
    "batch": (lambda d: d.batch(4), [[0, 1, 2, 3], [4], "error"]),
    "padded_batch": (lambda d: d.padded_batch(4), [[0, 1, 2, 3], [4], "error"]),
    "cache": (lambda d: d.cache(), [[0], [1], [2], [3], [4], "error"]),
    "unbatch": (lambda d: d.batch(2).unbatch(), [[0], [1], [2], [3], [4], "error"]),
    "interleave": (
        lambda d: d.interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2, 1),
        [[0], [1], [0], [1], [2], [3], [2], [3], [4], "error"],
    ),
    "choose_from_datasets": (
        lambda d: tf.data.Dataset.choose_from_datasets(
            [d, tf.data.Dataset.range(9)], tf.data.Dataset.range(2).repeat(9)
        ),
        [[0], [0], [1], [1], [2], [2], [3], [3], [4], [4], "error"],
    ),
}


@pytest.mark.parametrize("group", GROUPS)
def test_groups_come_before_the_error_of_their_source(group):
    build, expected = GROUPS[group]
    assert expected == listed(build(tf.data.Dataset.range(12).map(FailingAt(5))))


def test_groups_come_before_the_error_of_their_key():
    numbers = tf.data.Dataset.range(12)
    grouped = numbers.group_by_window(FailingAt(5), lambda key, group: group.batch(9), 9)
    assert [[0], [1], [2], [3], [4], "error"] == listed(grouped)


@pytest.mark.parametrize("group", ["window", "ragged_batch", "group_by_window"])
def test_no_state_is_saved_after_a_group_that_an_error_cut_short(group):
    build, expected = GROUPS[group]
    elements = iter(build(tf.data.Dataset.range(12).map(FailingAt(5))))
    for _ in expected[:-1]:
        next(elements)
    with pytest.raises(RuntimeError, match="of the function"):
        elements.state_dict()
