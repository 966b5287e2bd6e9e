"""Datasets that parse and map in several threads: the same elements, states, errors and ends."""

from __future__ import annotations

import gc
import pickle
import shutil
import threading
import warnings
from functools import partial

import numpy as np
import pytest

import tfwire as tfw
from helpers.data.named_pipelines import goes_on_everywhere
from helpers.reading import flip_byte
from helpers.threads import threads_of_tfwire, wait_for
from tfwire import Dataset, TFRecordDataset
from tfwire._data.batching import Parse, threaded
from tfwire._records.reading import records_ahead

SPEC = {
    "n": tfw.FixedLenFeature([], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
    "x": tfw.VarLenFeature(tfw.float32),
}
COUNT = 300
THREADS = [2, 8]


@pytest.fixture(autouse=True)
def no_garbage():
    """Iterators that other tests have dropped are gone, and their threads."""
    gc.collect()


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("records"), []
    for ids in np.array_split(np.arange(COUNT), 3):
        rows = [{"n": i, "name": b"%d" % i, "x": [i / 2] * (i % 3)} for i in ids.tolist()]
        found.append(str(folder / f"from-{ids[0]}"))
        tfw.write_records(found[-1], rows)
    return found


# Pipelines with a given number of threads.
PIPELINES = {
    "files": lambda paths, n: TFRecordDataset(paths).batch(7).parse_example(SPEC, num_threads=n),
    "parsed first": lambda paths, n: (
        TFRecordDataset(paths).parse_example(SPEC, num_threads=n).batch(64, True)
    ),
    "shuffled": lambda paths, n: (
        TFRecordDataset(paths).shuffle(90, 3).batch(7).parse_example(SPEC, num_threads=n)
    ),
    "in turn": lambda paths, n: (
        TFRecordDataset(paths, num_parallel_reads=2)
        .batch(50, drop_remainder=True)
        .parse_example(SPEC, num_threads=n)
    ),
    "by number": lambda paths, n: (
        TFRecordDataset(paths, indexed=True)
        .shuffle(COUNT, 3)
        .repeat(2)
        .batch(40)
        .parse_example(SPEC, num_threads=n)
    ),
    "shuffled batches": lambda paths, n: (
        TFRecordDataset(paths).batch(20).shuffle(9, 3).parse_example(SPEC, num_threads=n)
    ),
    "a user's function": lambda paths, n: (
        TFRecordDataset(paths).map(bytes).batch(30).parse_example(SPEC, num_threads=n)
    ),
    "one batch": lambda paths, n: (
        TFRecordDataset(paths).shuffle(9, 3).batch(2000).parse_example(SPEC, num_threads=n)
    ),
    "mapped": lambda paths, n: (
        TFRecordDataset(paths[:1]).parse_example(SPEC).map(number_of, n).shuffle(30, 3).batch(20)
    ),
}


def number_of(example):
    return example["n"]


def shown(batches):
    """Batches in a form that compares."""
    return [pickle.dumps(batch) for batch in batches]


@pytest.mark.parametrize("name", PIPELINES)
def test_batches_and_states_do_not_depend_on_the_number_of_threads(name, paths):
    def make(num_threads):
        return PIPELINES[name](paths, num_threads)

    one = shown(make(1))
    assert len(one) > 0
    for number in THREADS:
        assert one == shown(make(number))
    # Among the places are some inside what a thread made at once.
    step, most = -(-len(one) // 5), len(one) + 1
    for before, after in ((1, 2), (2, 1), (2, 3)):
        other = partial(make, after)
        goes_on_everywhere(partial(make, before), other, pickle.dumps, step, most)
    assert wait_for(lambda: not threads_of_tfwire())


def test_stages_that_parse_do_not_take_the_position_of_another(tmp_path):
    """Each record is an Example that holds another one."""
    inner = [tfw.encode_example({"n": n}) for n in range(400)]
    tfw.write_records(tmp_path / "nested", [{"inner": message} for message in inner])

    def make(num_threads):
        outer = (
            TFRecordDataset(tmp_path / "nested")
            .shuffle(4, seed=1)
            .batch(2)
            .parse_example({"inner": tfw.FixedLenFeature([], tfw.string)}, num_threads=num_threads)
        )
        messages = outer.map(lambda batch: batch["inner"][0])
        return iter(messages.batch(3).parse_example({"n": tfw.FixedLenFeature([], tfw.int64)}))

    one = shown(make(1))
    for given in range(1, 12):
        elements = make(2)
        for _ in range(given):
            next(elements)
        resumed = make(2)
        resumed.load_state_dict(elements.state_dict())
        assert one[given:] == shown(resumed)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gets_its_threads_later(name, paths):
    """As tfwire.torch and tfwire.grain do; the order of a seed stays."""
    dataset = PIPELINES[name](paths, 1)
    one = shown(dataset)
    assert one == shown(PIPELINES[name](paths, 1))
    elements = iter(threaded(PIPELINES[name](paths, 1), 2))
    assert one == [pickle.dumps(next(elements)), *shown(elements)]
    assert threaded(dataset, 1) is dataset


def test_all_stages_of_a_zip_get_threads(paths):
    pairs = Dataset.zip(
        PIPELINES["files"](paths, 1), PIPELINES["shuffled"](paths, 1), Dataset.range(COUNT)
    )
    with_threads = threaded(pairs, 2)
    parsing = [stage for stage in with_threads._stage.chain() if isinstance(stage, Parse)]
    assert [2, 2] == [stage.arguments[2] for stage in parsing]
    assert shown(pairs) == shown(with_threads)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("bad", [0, 1, 99, 155, COUNT - 1])
@pytest.mark.parametrize("kind", ["parse", "corrupt"])
def test_what_comes_before_an_error_does_not_depend_on_threads(paths, tmp_path, kind, bad, shuffle):
    records = list(tfw.read_records(paths))
    if kind == "parse":
        records[bad] = tfw.encode_example({"n": 1})
    damaged = tmp_path / "damaged"
    tfw.write_records(damaged, records)
    if kind == "corrupt":
        flip_byte(damaged, sum(len(record) + 16 for record in records[:bad]) + 12)

    def outcome(num_threads):
        dataset = TFRecordDataset([damaged])
        dataset = dataset.shuffle(20, seed=1) if shuffle else dataset
        found = []
        elements = iter(dataset.batch(10).parse_example(SPEC, num_threads=num_threads))
        try:
            for batch in elements:
                found.append(pickle.dumps(batch))
        except tfw.Error as error:
            assert [] == list(elements)
            return found, type(error), str(error)
        raise AssertionError("no error")

    assert outcome(1) == outcome(2) == outcome(3)
    assert wait_for(lambda: not threads_of_tfwire())


def test_a_function_runs_in_several_threads_at_once():
    together = threading.Barrier(3, timeout=60)
    dataset = Dataset.range(30).map(lambda x: together.wait() * 0 + x, num_parallel_calls=3)
    assert list(range(30)) == [int(x) for x in dataset]


@pytest.mark.parametrize("calls", [None, 1, -1])
def test_a_function_is_called_by_the_caller(calls):
    dataset = Dataset.range(5).map(lambda x: threading.get_ident(), calls)
    assert {threading.get_ident()} == set(dataset)


def test_wrong_numbers_of_threads_are_refused(paths):
    for number in (0, -1):
        with pytest.raises(ValueError, match="num_threads"):
            threaded(TFRecordDataset(paths), number)
    with pytest.raises(TypeError, match="found list"):
        threaded(paths, 2)


@pytest.mark.parametrize("given", [0, -1, 2**40, "1", None])
def test_a_damaged_state_is_refused(paths, given):
    dataset = PIPELINES["shuffled"](paths, 2)
    state = iter(dataset).state_dict()
    depth = dataset._stage.source.depth
    for place in ({"before": None, "given": given}, {"before": 3, "given": 1}):
        at = {"depth": depth, **place}
        with pytest.raises(ValueError, match="damaged"):
            iter(PIPELINES["shuffled"](paths, 2)).load_state_dict({**state, "at": at})


# ---- Records that are read ahead ---------------------------------------------------------------


RECORDS = {
    "records": lambda records: records,
    "batches": lambda records: records.batch(7),
    "a function": lambda records: records.map(len).batch(20),
    "shuffled": lambda records: records.shuffle(20, 3).batch(7),
    "repeated": lambda records: records.take(250).repeat(2).batch(30),
}


@pytest.fixture
def small_reads(monkeypatch):
    """Threads read a few records at a time, as they start at once."""
    monkeypatch.setattr(records_ahead, "_AT_A_TIME", 1000)


def outcome(elements):
    """All elements, and the error that ends them."""
    found, error = [], None
    try:
        found.extend(repr(element) for element in elements)
    except tfw.DataLossError as raised:
        error = str(raised), vars(raised)
    return found, error


def reads_ahead(elements):
    """Whether native threads read for a pass, which has begun."""
    cursors = [elements._pieces._cursor]
    for cursor in cursors:
        cursors.extend(cursor.parts())
    threads = [getattr(cursor, "_ahead", None) for cursor in cursors]
    return any(isinstance(each, records_ahead.RecordsAhead) for each in threads)


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_records_that_are_read_ahead_are_those_of_one_thread(name, shuffled, paths, small_reads):
    def make(num_threads):
        options = {"shuffle_files": True, "seed": 2} if shuffled else {}
        return threaded(RECORDS[name](TFRecordDataset(paths, **options)), num_threads)

    expected = outcome(make(1))
    for num_threads in (2, 3, 8):
        elements = iter(make(num_threads))
        first = repr(next(elements))
        assert reads_ahead(elements)
        assert expected == ([first, *outcome(elements)[0]], None)
    for before, after in ((1, 2), (3, 1)):
        goes_on_everywhere(partial(make, before), partial(make, after), repr, len(expected[0]) // 5)


@pytest.mark.parametrize("on_corrupt", ["raise", "skip", "stop"])
@pytest.mark.parametrize("name", RECORDS)
def test_damage_is_that_of_one_thread(name, on_corrupt, paths, tmp_path, small_reads):
    copies = [shutil.copy(path, tmp_path) for path in paths]
    for record in (30, 31, 90):
        flip_byte(copies[1], int(tfw.RecordIndex.build(paths[1]).offsets[record]) + 14)

    def found(num_threads):
        dataset = RECORDS[name](TFRecordDataset(copies, on_corrupt=on_corrupt))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return outcome(threaded(dataset, num_threads))

    expected = found(1)
    assert (expected[1] is not None) == (on_corrupt == "raise")
    for num_threads in (2, 3, 8):
        assert expected == found(num_threads)


def test_epochs_are_counted_together(paths):
    """Those of copies that threads read for are those of the dataset."""
    records = TFRecordDataset(paths, shuffle_files=True, seed=2)
    epochs = [list(records) for _ in range(4)]
    assert epochs[0] != epochs[1] or epochs[1] != epochs[2]
    records.set_epoch(0)
    parsed = records.batch(1).map(list).parse_example(SPEC, num_threads=2)
    passes = [list(records), [element["n"].tolist() for element in parsed], list(records)]
    assert [passes[0], passes[2]] == [epochs[0], epochs[2]]
    assert passes[1] == tfw.parse_example(epochs[1], SPEC)["n"].reshape(-1, 1).tolist()
