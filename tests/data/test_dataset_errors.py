"""What datasets do when something goes wrong: in functions, in files, in arguments."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.files import SPEC, drain
from helpers.reading import flip_byte
from tfwire import Dataset, TFRecordDataset


def failing_at(number, result=lambda x: x):
    def function(x):
        if x == number:
            raise RuntimeError("of the function")
        return result(x)

    return function


# ---- Errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 3, 4, 7])
def test_an_error_of_a_predicate_is_not_lost_in_a_batch(batch_size):
    even = failing_at(5, lambda x: x % 2 == 0)
    found, error = drain(Dataset.range(12).filter(even).batch(batch_size))
    assert isinstance(error, RuntimeError)
    assert [0, 2, 4][: len(found)] == found


def test_an_error_at_the_beginning_of_another_pass_is_not_lost_in_a_batch():
    calls = []

    def numbers():
        calls.append(None)
        if len(calls) == 2:
            raise RuntimeError("of the function")
        return [1, 2, 3]

    found, error = drain(Dataset.from_generator(numbers).repeat(3).batch(4))
    assert [1, 2, 3] == found
    assert isinstance(error, RuntimeError)


def test_an_error_of_one_of_the_files_read_in_turn_ends_the_elements(tmp_path):
    """No record comes after it, although the other files have some."""
    paths = [str(tmp_path / name) for name in "abc"]
    for path in (paths[0], paths[2]):
        tfw.write_records(path, [b"%d" % i for i in range(5)])
    found, error = drain(TFRecordDataset(paths, num_parallel_reads=3))
    assert [b"0"] == found
    assert isinstance(error, FileNotFoundError)


PIPELINES = {
    "map": lambda numbers: numbers.map(failing_at(5)).batch(4),
    "filter": lambda numbers: numbers.filter(failing_at(5, lambda x: True)).batch(4),
    "zip": lambda numbers: Dataset.zip(numbers, numbers.map(failing_at(5))).batch(4),
    "batches": lambda numbers: numbers.map(failing_at(5)).batch(2).batch(2),
    "shuffle": lambda numbers: numbers.map(failing_at(5)).shuffle(3, seed=1).batch(4),
    "repeat": lambda numbers: numbers.map(failing_at(5)).repeat(2).batch(4),
    "prefetch": lambda numbers: numbers.map(failing_at(5)).batch(4).prefetch(2),
    "map by threads": lambda numbers: numbers.map(failing_at(5), 2).batch(4),
    "of a map": lambda numbers: numbers.map(failing_at(5)).map(abs, 2).batch(4),
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_no_state_passes_over_what_an_error_kept_back(pipeline):
    """Where an error broke off a batch, state_dict raises it, or going on there raises it."""
    elements = iter(PIPELINES[pipeline](Dataset.range(12)))
    error = None
    while error is None:
        try:
            next(elements)
            state = elements.state_dict()
        except RuntimeError as found:
            error = found
            continue
        resumed = iter(PIPELINES[pipeline](Dataset.range(12)))
        resumed.load_state_dict(json.loads(json.dumps(state)))
        left, met = drain(resumed)
        assert isinstance(met, RuntimeError)
        assert not set(left) & set(range(6, 12))


@pytest.mark.parametrize("method", ["map", "filter"])
def test_a_stop_iteration_in_a_function_is_no_end(method):
    def function(x):
        return x if x < 2 else next(iter(()))

    found, error = drain(getattr(Dataset.range(5), method)(function))
    assert {"map": [0, 1], "filter": [1]}[method] == found
    assert isinstance(error, RuntimeError)


def test_an_interrupted_iterator_says_no_wrong_place():
    """Some elements of the batch it was making are gone."""

    def function(x):
        if x == 5:
            raise KeyboardInterrupt
        return x

    elements = iter(Dataset.range(12).map(function).batch(4))
    next(elements)
    with pytest.raises(KeyboardInterrupt):
        next(elements)
    with pytest.raises(ValueError, match="interrupted"):
        elements.state_dict()


# ---- States ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [None, abs])
def test_a_closed_iterator_stands_nowhere(function):
    """What it had drawn ahead would be taken for given."""
    dataset = Dataset.range(10) if function is None else Dataset.range(10).map(function)
    elements = iter(dataset)
    next(elements)
    state = elements.state_dict()
    elements.close()
    with pytest.raises(ValueError, match="closed"):
        elements.state_dict()
    elements.load_state_dict(state)
    assert list(range(1, 10)) == drain(elements)[0]


def test_a_state_of_one_shard_is_not_taken_by_another(tmp_path):
    """Also where shards are alike in length and type, or in the names and sizes of their files."""
    paths = []
    for folder in "ab":
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "records")
        tfw.write_records(paths[-1], [b"%s%d" % (folder.encode(), number) for number in range(4)])
    sources = [
        Dataset.from_tensor_slices(np.arange(8)),
        Dataset.from_tensor_slices({"x": np.arange(16)}).shard_source(2, 0),
        Dataset.from_generator(lambda: range(8)),
        TFRecordDataset(paths),
        TFRecordDataset(paths, indexed=True),
        Dataset.zip(Dataset.range(8), Dataset.range(8, 16)),
    ]
    for source in sources:
        shards = [source.shard_source(2, number) for number in range(2)]
        for one, other in (shards, shards[::-1]):
            elements = iter(one)
            next(elements)
            state = elements.state_dict()
            iter(one).load_state_dict(state)
            with pytest.raises(ValueError, match="another pipeline"):
                iter(other).load_state_dict(state)
    with pytest.raises(ValueError, match="another pipeline"):
        iter(Dataset.range(8)).load_state_dict(iter(Dataset.range(8, 16)).state_dict())


def failing_once(number):
    """A function that fails at a number, the first time only."""
    failures = [RuntimeError("of the function")]

    def function(x):
        if x == number and failures:
            raise failures.pop()
        return x

    return function


@pytest.mark.parametrize("between", ["map", "prefetch", "generator", "zip"])
def test_no_state_goes_on_in_the_middle_of_a_round_of_shards(between):
    """Where an error broke off the round, the state is refused."""
    once = failing_once(5)
    numbers = Dataset.range(12).map(once)
    dataset = {
        "map": numbers,
        "prefetch": numbers.prefetch(1),
        "generator": Dataset.from_generator(lambda: map(once, range(12))),
        "zip": Dataset.zip(numbers, Dataset.range(12)).map(lambda a, b: a),
    }[between].shard(2, 0)
    elements = iter(dataset)
    given = [int(next(elements)) for _ in range(3)]
    assert [0, 2, 4] == given
    with pytest.raises(RuntimeError, match="of the function"):
        elements.state_dict()


def test_what_a_predicate_let_pass_comes_before_its_error():
    found, error = drain(Dataset.range(12).filter(failing_at(5, lambda x: True)).batch(16))
    assert [0, 1, 2, 3, 4] == found
    assert isinstance(error, RuntimeError)


def test_a_place_that_cannot_be_told_costs_a_prefetch_no_element():
    elements = iter(Dataset.range(12).map(failing_at(5)).shard(2, 0).prefetch(2))
    assert [0, 2, 4] == [int(next(elements)) for _ in range(3)]
    with pytest.raises(RuntimeError, match="of the function"):
        elements.state_dict()
    with pytest.raises(RuntimeError, match="of the function"):
        next(elements)


def test_numbers_of_numpy_make_states_for_json():
    dataset = Dataset.range(np.int64(30)).skip(np.int64(3)).shuffle(np.int32(4), np.int64(5))
    dataset = dataset.take(np.uint8(20)).shard(np.int64(2), np.int64(1)).repeat(np.int64(2))
    elements = iter(dataset.batch(np.int64(3)))
    next(elements)
    resumed = iter(dataset.batch(3))
    resumed.load_state_dict(json.loads(json.dumps(elements.state_dict())))
    assert drain(elements)[0] == drain(resumed)[0]


@pytest.mark.parametrize("function", [abs, failing_at(2)])
def test_an_iterator_at_its_end_takes_no_state(function):
    """It would give nothing; iterators of itertools do not come back."""
    elements = iter(Dataset.range(3).map(function))
    state = elements.state_dict()
    drain(elements)
    with pytest.raises(ValueError, match="at its end"):
        elements.load_state_dict(state)


@pytest.mark.parametrize("copying", [pickle.dumps, copy.copy, copy.deepcopy])
def test_iterators_are_not_copied(copying):
    """Half of it would be: what it had drawn, not where it stands."""
    with pytest.raises(TypeError, match="state_dict"):
        copying(iter(Dataset.range(3)))


@pytest.mark.parametrize("left_out", ["version", "pipeline", "epoch", "at", "given"])
def test_half_a_state_is_refused(left_out):
    elements = iter(Dataset.range(3))
    state = elements.state_dict()
    del state[left_out]
    with pytest.raises(ValueError, match="state of an iterator"):
        elements.load_state_dict(state)


# ---- Arguments ---------------------------------------------------------------------------------


def test_more_parallel_reads_than_files_are_as_many_as_there_are(tmp_path):
    tfw.write_records(tmp_path / "a", [b"1", b"2"])
    tfw.write_records(tmp_path / "b", [b"3"])
    paths = [tmp_path / "a", tmp_path / "b"]
    assert [b"1", b"3", b"2"] == list(TFRecordDataset(paths, num_parallel_reads=1 << 60))


# ---- Batches -----------------------------------------------------------------------------------

BETWEEN = {
    "take": lambda d: d.take(3),
    "repeat": lambda d: d.repeat(2),
    "prefetch": lambda d: d.prefetch(1),
    "shuffle": lambda d: d.shuffle(2, seed=0),
    "map": lambda d: d.map(lambda records: records),
}


@pytest.mark.parametrize("between", BETWEEN)
def test_batches_are_parsed_whatever_gave_them_on(tmp_path, between):
    tfw.write_records(tmp_path / "a", tfw.encode_examples([{"n": i} for i in range(10)]))
    batches = BETWEEN[between](TFRecordDataset(tmp_path / "a").batch(4))
    expected = [tfw.parse_example(batch, SPEC)["n"].tolist() for batch in batches]
    assert expected == [row["n"].tolist() for row in batches.parse_example(SPEC)]


def test_padding_is_limited():
    """A long element makes all others of its batch as long."""
    lengths = [1000, 0, 0, 1]
    dataset = Dataset.from_generator(lambda: [np.zeros(length) for length in lengths])
    assert (4, 1000) == next(iter(dataset.padded_batch(4))).shape
    padding = 8 * (4 * 1000 - sum(lengths))
    assert (4, 1000) == next(iter(dataset.padded_batch(4, max_padding=padding))).shape
    with pytest.raises(ValueError, match=f"{padding} bytes of padding; max_padding allows 9"):
        next(iter(dataset.padded_batch(4, max_padding=9)))
    full = Dataset.from_tensor_slices(np.zeros((4, 10)))
    assert (4, 10) == next(iter(full.padded_batch(4, max_padding=0))).shape


def test_a_batch_of_gigabytes_of_padding_needs_a_word():
    long = Dataset.from_generator(lambda: [np.zeros(1 << 19), *[np.zeros(0)] * 1023])
    with pytest.raises(ValueError, match="max_padding"):
        next(iter(long.padded_batch(1024)))


def test_padded_batch_of_scalars():
    assert [[0, 1], [2]] == [b.tolist() for b in Dataset.range(3).padded_batch(2)]


def test_batches_of_pairs_of_which_one_is_unknown():
    pairs = Dataset.zip(Dataset.range(3), Dataset.range(3).map(abs)).batch(2)
    assert ("int64[?]", None) == pairs.element_spec
    assert [[[0, 1], [0, 1]], [[2], [2]]] == [np.stack(pair).tolist() for pair in pairs]


@pytest.mark.parametrize("count", [3, 8, 23, 40])
def test_no_batch_is_made_of_a_dropped_remainder(tmp_path, count):
    tfw.write_records(tmp_path / "a", tfw.encode_examples([{"n": i} for i in range(count)]))
    dataset = TFRecordDataset(tmp_path / "a").shuffle(100, seed=1).batch(5, drop_remainder=True)
    for batches in (dataset.parse_example(SPEC).map(lambda row: row["n"]), dataset):
        assert [5] * (count // 5) == [len(batch) for batch in batches]
        assert [5] * (count // 5) == [len(batch) for batch in batches.prefetch(1)]


@pytest.mark.parametrize("method", ["batch", "padded_batch"])
@pytest.mark.parametrize(
    "elements",
    [
        [{"a": 1}, {"b": 1}],
        [{"a": 1}, {"a": 1, "b": 1}],
        [(1,), (1, 2)],
        [(1, 2), 1],
    ],
)
def test_no_part_of_an_element_is_left_out_of_a_batch(elements, method):
    dataset = Dataset.from_generator(lambda: elements)
    with pytest.raises(ValueError, match="structures differ: expected the parts"):
        list(getattr(dataset, method)(2))


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"padded_shapes": {"b": [3]}}, ValueError),
        ({"padded_shapes": {"a": {"b": [3]}}}, ValueError),
        ({"padded_shapes": [2.5]}, TypeError),
        ({"padding_values": 1.5}, ValueError),
    ],
)
def test_padding_fits_the_elements(arguments, kind):
    dataset = Dataset.from_generator(lambda: [{"a": [1]}, {"a": [1, 2]}])
    with pytest.raises(kind):
        list(dataset.padded_batch(2, **arguments))


@pytest.mark.skipif(sys.platform != "linux", reason="counts open files")
def test_an_error_leaves_no_file_open(tmp_path):
    """Nor until garbage is collected: the error's traceback leads to the readers of other files."""
    good, bad, missing = (str(tmp_path / name) for name in ("good", "bad", "missing"))
    tfw.write_records(good, [b"x"] * 50)
    Path(bad).write_bytes(Path(good).read_bytes()[:-1])
    damaged = tmp_path / "damaged"
    damaged.write_bytes(Path(good).read_bytes())
    flip_byte(damaged, 2 * 17 + 12)  # the payload of record 2
    records, zipped = tfw.TFRecordDataset, tfw.Dataset.zip
    failing = [
        lambda: list(records([good, missing], num_parallel_reads=2)),
        lambda: list(records([good, bad], num_parallel_reads=2)),
        lambda: list(zipped(records(good), records(bad))),
        lambda: list(zipped(records(good), records(missing))),
        lambda: list(records(good).map(lambda _: 1 // 0)),
        lambda: list(records(good).map(lambda _: 1 // 0).batch(2)),
        lambda: list(records(bad).shuffle(10)),
        lambda: tfw.TFRecordFile(damaged)[2],
    ]
    gc.collect()
    gc.disable()
    try:
        for call in failing:
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(3):
                try:
                    call()
                except (OSError, tfw.DataLossError, ZeroDivisionError, IndexError):
                    continue
                raise AssertionError
            assert before == len(os.listdir("/proc/self/fd")), failing.index(call)
    finally:
        gc.enable()
