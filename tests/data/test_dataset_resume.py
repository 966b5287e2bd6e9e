"""Iterators over datasets that go on where others stood."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT
from helpers.data.files import NumberedFiles
from helpers.data.named_pipelines import PIPELINES, goes_on_everywhere
from helpers.products import diagonals
from tfwire import Dataset, TFRecordDataset

SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}
SIZES = (10, 0, 5, 6, 1)  # a shuffle of 10 holds not all, and a file more than half
TOTAL = sum(SIZES)
SEED = 77777


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return NumberedFiles(tmp_path_factory.mktemp("files"), SIZES)


ERROR = "cannot be batched"


def some(iterator, count=200):
    """The next elements, as text; batches of different shapes cannot be batched."""
    found = []
    try:
        found.extend(map(repr, itertools.islice(iterator, count)))
    except ValueError:
        found.append(ERROR)
    return found


def test_an_error_of_what_is_left_comes_with_the_next_element():
    """And not from the state, before anything is asked for."""

    def make():
        return iter(Dataset.from_tensor_slices(np.arange(3)).batch(2).batch(2).skip(1))

    resumed = make()
    resumed.load_state_dict(make().state_dict())
    with pytest.raises(ValueError, match="different shapes"):
        next(resumed)


WAYS = {
    "as it is": lambda dataset: dataset,
    "repeated": lambda dataset: dataset.repeat(2),
    "ahead": lambda dataset: dataset.shuffle(3, 1).prefetch(2),
}


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")  # of damaged records
@pytest.mark.parametrize(("step", "most"), [(2, 20), pytest.param(1, 60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "way"), diagonals(0, 3, PIPELINES, WAYS))
def test_every_place_is_gone_on_from(files, name, way, step, most):
    goes_on_everywhere(lambda: WAYS[way](PIPELINES[name](files)), None, repr, step, most)


def test_another_process_goes_on(files):
    """Also where the seed was drawn by the first one."""
    code = (
        "import json, sys, tfwire as tfw\n"
        "ds = tfw.TFRecordDataset(sys.argv[1:]).shuffle(20).repeat(2)\n"
        "elements = iter(ds)\n"
        "elements.load_state_dict(json.load(sys.stdin))\n"
        "print(json.dumps([e.hex() for e in elements]))\n"
    )
    elements = iter(TFRecordDataset(files.plain).shuffle(20).repeat(2))
    given = [next(elements) for _ in range(30)]
    command = [sys.executable, "-c", code, *files.plain]
    state = json.dumps(elements.state_dict())
    output = subprocess.run(
        command, input=state, capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    rest = list(elements)
    assert rest == list(map(bytes.fromhex, json.loads(output.stdout)))
    assert 2 * TOTAL == len(given + rest)


def test_iterators_do_not_disturb_each_other(files):
    """Of two over one dataset, each goes its own way through the epochs."""
    dataset = TFRecordDataset(files.plain).shuffle(50, seed=1).repeat(3)
    first = iter(dataset)
    some(first, 10)
    state = first.state_dict()
    second = some(iter(dataset))
    assert second[:10] != some(iter(dataset), 10)
    rest = some(first)
    resumed = iter(TFRecordDataset(files.plain).shuffle(50, seed=1).repeat(3))
    resumed.load_state_dict(state)
    assert rest == some(resumed)


def test_states_are_small(files):
    dataset = TFRecordDataset(files.plain).batch(4).parse_example(SPEC).repeat()
    elements = iter(dataset)
    some(elements, 5)
    assert len(json.dumps(elements.state_dict())) < 600


def test_the_state_of_another_pipeline_or_file_is_refused(files, tmp_path):
    paths = files.plain
    state = iter(TFRecordDataset(paths).batch(3)).state_dict()
    others = [
        TFRecordDataset(paths),
        TFRecordDataset(paths).batch(4),
        TFRecordDataset(paths).batch(3).take(1),
        TFRecordDataset(paths[1:]).batch(3),
        TFRecordDataset(files.gzip, "GZIP").batch(3),
    ]
    for dataset in others:
        with pytest.raises(ValueError, match="another pipeline"):
            iter(dataset).load_state_dict(state)
    for wrong in ({}, {**state, "version": 9}, None, "state"):
        with pytest.raises(ValueError, match="version"):
            iter(TFRecordDataset(paths).batch(3)).load_state_dict(wrong)


TAMPERED = {
    "zip of ranges": lambda files: Dataset.zip(Dataset.range(9).take(5), Dataset.range(9).skip(1)),
    "zip of a shuffle": lambda files: Dataset.zip(
        Dataset.range(TOTAL).shuffle(9, seed=SEED), TFRecordDataset(files.plain)
    ),
    "taken": lambda files: Dataset.from_generator(lambda: range(TOTAL)).take(50).repeat(2),
    "buffer": lambda files: Dataset.range(TOTAL).shuffle(5, seed=SEED),
    "none skipped": lambda files: Dataset.range(TOTAL).shard(2, 1).batch(2).prefetch(2),
}
SOURCES = ["range", "arrays", "generator", "files", "files in turn", "indexed", "one by one"]
SOURCES += ["parsed gzip", "damaged", "damaged in turn"]


def tampered(state):
    """A state with one of its parts replaced, for every part."""
    for wrong in (-3, 2**63, "x", 1.5, None, [], {}, [-3]):
        other_seed = state == SEED and isinstance(wrong, int)
        fewer_elements = isinstance(state, list) and wrong == []
        if not (other_seed or fewer_elements):
            yield wrong
    if isinstance(state, dict):
        yield from ({**state, key: part} for key in state for part in tampered(state[key]))
    if isinstance(state, list):
        for i, item in enumerate(state):
            optional = isinstance(item, list)  # None: the end of a file, or of a repetition
            parts = (part for part in tampered(item) if not (optional and part is None))
            yield from ([*state[:i], part, *state[i + 1 :]] for part in parts)


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")  # of damaged records
@pytest.mark.parametrize("name", [*TAMPERED, *SOURCES])
def test_damaged_states_are_refused(files, name):
    """Whatever part of it is something else. The iterator is not changed by the attempt."""
    dataset = (PIPELINES | TAMPERED)[name](files)
    elements = iter(dataset)
    some(elements, 3)
    state = json.loads(json.dumps(elements.state_dict()))
    damaged = [
        {**state, part: wrong}
        for part in ("at", "epoch", "given")
        for wrong in tampered(state[part])
    ]
    assert len(damaged) > 20
    for wrong in damaged:
        with pytest.raises(ValueError, match="state"):
            elements.load_state_dict(wrong)
    elements.load_state_dict(state)


def test_files_may_have_moved(files, tmp_path):
    elements = iter(TFRecordDataset(files.plain[0]))
    some(elements, 13)
    moved = tmp_path / "plain-0"
    shutil.copy(files.plain[0], moved)
    resumed = iter(TFRecordDataset(moved))
    resumed.load_state_dict(elements.state_dict())
    assert some(elements) == some(resumed)


def test_what_cannot_be_read_again_is_named(files, tmp_path):
    with open(files.plain[0], "rb") as file:
        elements = iter(TFRecordDataset([file]).batch(3))
        next(elements)
        with pytest.raises(ValueError, match="BufferedReader cannot be resumed"):
            elements.state_dict()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe, not a regular file, cannot be resumed"):
        iter(TFRecordDataset(tmp_path / "pipe")).state_dict()


def test_an_error_comes_after_the_elements_before_it(tmp_path):
    """And where the iterator stood before can be saved and resumed."""
    tfw.write_records(tmp_path / "cut", [b"%d" % i for i in range(10)])
    data = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(data[:-1])
    found = []
    elements = iter(TFRecordDataset(tmp_path / "cut").batch(4))
    with pytest.raises(tfw.DataLossError):
        found.extend(batch.tolist() for batch in elements)
    assert [[b"0", b"1", b"2", b"3"], [b"4", b"5", b"6", b"7"], [b"8"]] == found


def test_an_error_to_come_is_kept():
    """Elements are taken many at a time: the error after them must not get lost with a state."""

    def make():
        dataset = Dataset.range(7)
        for _ in range(2):
            dataset = dataset.shuffle_batch(2, 5, 1, seed=0, allow_smaller_final_batch=True)
        return iter(dataset)

    expected = some(make())
    assert ERROR == expected[-1]
    for place in range(len(expected)):
        whole, resumed = make(), make()
        some(whole, place)
        resumed.load_state_dict(json.loads(json.dumps(whole.state_dict())))
        assert expected[place:] == some(resumed)


def spoil(part):
    """Changes everything in a state."""
    if isinstance(part, dict):
        for key in part:
            spoil(part[key])
            part[key] = "spoilt"
    elif isinstance(part, list):
        for item in part:
            spoil(item)
        part[:] = ["spoilt"] * len(part)


@pytest.mark.parametrize(
    "pipeline",
    [
        lambda files: Dataset.range(60).shuffle(7, seed=1).map(int).shuffle(5, seed=2),
        lambda files: TFRecordDataset(files).shuffle(9, seed=1),
        lambda files: TFRecordDataset(files, num_parallel_reads=2).shuffle(9, seed=1).batch(4),
        lambda files: TFRecordDataset(files, indexed=True).shuffle(99, seed=1),
    ],
    ids=["shuffles", "records", "cycle", "indexed"],
)
def test_a_state_may_be_changed_once_it_was_saved_or_loaded(files, pipeline):
    def begin():
        return iter(pipeline(files.plain))

    expected, elements = list(map(str, begin())), begin()
    given = [str(next(elements)) for _ in range(6)]
    saved = elements.state_dict()
    resumed = begin()
    resumed.load_state_dict(copy.deepcopy(saved))
    loaded = copy.deepcopy(saved)
    again = begin()
    again.load_state_dict(loaded)
    spoil(saved)
    spoil(loaded)
    for iterator in (elements, resumed, again):
        last = begin()
        last.load_state_dict(iterator.state_dict())
        assert given + list(map(str, last)) == expected
        assert given + list(map(str, iterator)) == expected


def test_an_iterator_closes_itself_at_the_end_of_with():
    """Also when the block fails; what it held is not given any more."""
    dataset = Dataset.range(3).prefetch(2)
    with iter(dataset) as elements:
        assert 0 == next(elements)
    assert [] == list(elements)
    elements = iter(dataset)
    with contextlib.suppress(KeyError), elements as same:
        assert same is elements
        raise KeyError
    assert [] == list(elements)


def test_a_state_after_an_error_has_the_error_as_its_cause():
    elements = iter(tfw.Dataset.range(3).map(lambda x: 1 // (1 - int(x))))
    before = elements.state_dict()
    next(elements)
    with pytest.raises(ZeroDivisionError):
        next(elements)
    with pytest.raises(ValueError, match="interrupted") as raised:
        elements.state_dict()
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    again = iter(tfw.Dataset.range(3).map(lambda x: 1 // (1 - int(x))))
    again.load_state_dict(before)
    assert 1 == next(again)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_state_is_known_until_the_next_element_is_an_error(tmp_path, indexed, threads):
    """Threads are past it long before."""
    numbered = NumberedFiles(tmp_path, (40,))
    numbered.flip(39)
    path = numbered.plain[0]

    def batches():
        dataset = TFRecordDataset(path, indexed=indexed).batch(3)
        return iter(dataset.parse_example(SPEC, num_threads=threads))

    elements, given = batches(), 0
    while given < 36:
        given += len(next(elements)["n"])
        state = elements.state_dict()
    resumed = batches()
    resumed.load_state_dict(json.loads(json.dumps(state)))
    assert [36, 37, 38] == next(resumed)["n"].tolist()
    with pytest.raises(tfw.DataLossError):
        list(resumed)
