"""Saved states that somebody edited: refused, or taken for another position; never worse."""

from __future__ import annotations

import json
import os
from itertools import islice

import numpy as np
import pytest

import tfwire as tfw
from helpers.data import edited_states
from helpers.data.files import SPEC
from helpers.reading import flip_byte
from tfwire import Dataset, TFRecordDataset


def test_edited_states_are_refused_or_another_position():
    refused, taken = edited_states.search("short", 0, least=5 * len(edited_states.PIPELINES))
    assert refused > 5 * taken > 0


@pytest.mark.slow
def test_very_many_edited_states_are_refused_or_another_position():
    seconds = float(os.environ.get("TFWIRE_STATES_SECONDS", "15"))
    edited_states.search("long", seconds)


def state_after(elements, count):
    for _ in islice(elements, count):
        pass
    return json.loads(json.dumps(elements.state_dict()))


def shuffled(state):
    """The part of a state that is a shuffle's."""
    return state["at"][1]


@pytest.mark.parametrize(
    "edits",
    [
        {"pulled": 2**60},
        {"pulled": 2**60, "drawn": 2**60},
        {"pulled": 2**60, "drawn": 2**60, "held": []},
        {"pulled": 2**60, "drawn": 2**60, "held": [], "next": []},
        {"pulled": 2**60, "drawn": 2**60 - 1, "held": [2**60 - 1]},
        {"drawn": 0},
        {"drawn": 2**62},
        {"held": []},
        {"place": [2**62, 0]},
    ],
)
def test_a_shuffle_of_an_endless_source_does_not_look_for_elements_forever(edits):
    dataset = Dataset.range(30).repeat().shuffle(9, seed=1)
    elements = iter(dataset)
    state = state_after(elements, 20)
    assert 9 == len(shuffled(state)["held"])
    shuffled(state).update(edits)
    with pytest.raises(ValueError, match="state"):
        iter(dataset).load_state_dict(state)


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**5000], ids=["above", "below", "far"])
def test_a_seed_has_64_bits(seed):
    dataset = Dataset.range(30).shuffle(9)
    state = state_after(iter(dataset), 3)
    state["at"][0] = seed
    with pytest.raises(ValueError, match="state is damaged"):
        iter(dataset).load_state_dict(state)


GENERATED = {
    "generator": lambda path: Dataset.from_generator(lambda: range(9)),
    "parsed": lambda path: (
        TFRecordDataset(path).batch(2).parse_example({"n": tfw.VarLenFeature(tfw.int64)})
    ),
}


@pytest.mark.parametrize("count", [10, 257, 2**63 - 1])
@pytest.mark.parametrize("name", GENERATED)
def test_more_elements_than_there_are_cannot_be_left_out(tmp_path, name, count):
    """They are counted when the next one is asked for. It used to be the end, in silence."""
    tfw.write_records(tmp_path / "a", [{"n": i} for i in range(9)])
    dataset = GENERATED[name](tmp_path / "a")
    state = state_after(iter(dataset), 3)
    elements = iter(dataset)
    at = [0, 0, 0, count] if name == "parsed" else count
    elements.load_state_dict({**state, "at": at, "given": 0})
    with pytest.raises(ValueError, match=r"elements before .* are missing"):
        next(elements)


@pytest.mark.parametrize("given", [1, 255, 256, 257, 2**62])
@pytest.mark.parametrize("shuffle", [False, True])
def test_more_records_than_a_file_has_cannot_be_left_out(tmp_path, given, shuffle):
    tfw.write_records(tmp_path / "a", [b"x"] * 700)
    dataset = TFRecordDataset(tmp_path / "a")
    place = [0, 0, 0, given]
    state = {**state_after(iter(dataset), 0), "at": place}
    if shuffle:
        dataset = dataset.shuffle(5, seed=1).batch(2).parse_example(SPEC)
        state = state_after(iter(dataset), 0)
        shuffled(state)["place"][1] = place
    elements = iter(dataset)
    if given > 700:
        with pytest.raises(ValueError, match=r"elements before .* are missing"):
            elements.load_state_dict(state)
    else:
        elements.load_state_dict(state)
        assert shuffle or 700 - given == len(list(elements))


@pytest.mark.parametrize(
    "edits",
    [
        {"next": 5},
        {"next": 3, "files": [[0, 0, 0, 0], [2, 0, 0, 0]]},
        {"files": [[0, 0, 0, 0], [0, 0, 0, 0]]},
        {"files": [None, None]},
        {"files": [[0, 0, 0, 0], None]},
        {"files": [[0, 0, 0, 0], [4, 0, 0, 0]]},
        {"files": [[0, 0, 0, 0]] * 3},
        {"turn": 2},
    ],
)
def test_no_file_is_read_twice_or_left_out(tmp_path, edits):
    paths = [tmp_path / name for name in "abcd"]
    for path in paths:
        tfw.write_records(path, [b"1", b"2"])
    dataset = TFRecordDataset(paths, num_parallel_reads=2)
    state = state_after(iter(dataset), 1)
    state["at"].update(edits)
    refused = {"next": 3, "files": [[0, 0, 0, 0], [2, 0, 0, 0]]} != edits
    elements = iter(dataset)
    if refused:
        with pytest.raises(ValueError, match="state is damaged"):
            elements.load_state_dict(state)
    else:  # as if the second had ended, which only reading it could tell
        elements.load_state_dict(state)


@pytest.mark.parametrize("part", ["pipeline", "at", "given", "epoch", "version"])
def test_depth_and_length_out_of_proportion_are_refused(part):
    dataset = Dataset.range(30).shuffle(9, seed=1)
    state = state_after(iter(dataset), 3)
    for wrong in (edited_states.nested(100_000), [0] * 10**5, {"a": 1}, np.arange(3), 10**4000):
        with pytest.raises(ValueError, match="state") as raised:
            iter(dataset).load_state_dict({**state, part: wrong})
        assert len(str(raised.value)) < 1000


def test_records_after_damage_are_not_looked_for(tmp_path):
    tfw.write_records(tmp_path / "a", [b"one", b"two"])
    flip_byte(tmp_path / "a", -1)
    dataset = TFRecordDataset([tmp_path / "a"])
    state = iter(dataset).state_dict()
    state["at"][-1] = 2**40  # records that were given
    resumed = iter(dataset)
    resumed.load_state_dict(state)
    with pytest.raises(tfw.DataLossError):
        next(resumed)
