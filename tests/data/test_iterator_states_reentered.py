"""Functions and file objects of an iterator or a writer that use it themselves, in whichever thread
they run: a clear error for both sides, and nobody waits for himself. Random access just works."""

from __future__ import annotations

import gc
import io
import threading

import pytest

import tfwire as tfw
from helpers.data import iterators_with_threads as kinds
from helpers.data.iterators_with_threads import DATASETS, FILES, GatedFile, within_limit
from helpers.threads import Consumer, threads_of_tfwire, wait_for
from tfwire import Dataset
from tfwire._base import shared_iterator, workers
from tfwire._records.index import fetched_records, local_records, random_access

MESSAGE = "already executing"


@pytest.fixture(autouse=True)
def endless_patience(monkeypatch):
    """So that one which waits for itself for a second only is noticed too. No thread is left."""
    monkeypatch.setattr(workers, "PATIENCE", 2 * kinds.LIMIT)
    monkeypatch.setattr(shared_iterator, "_WAITS", (2 * kinds.LIMIT,))
    yield
    if threads_of_tfwire():
        gc.collect()
    assert wait_for(lambda: not threads_of_tfwire())


class Using:
    """In the place of a gate: from the third element on, uses the iterator that calls it."""

    def __init__(self, use, swallows=False):
        self._use, self._swallows = use, swallows
        self._made = threading.Event()
        self.met = []  # the errors of the uses

    def on(self, elements):
        """Says which iterator, which may have threads already."""
        self._elements = elements
        self._made.set()
        return elements

    def __call__(self, number):
        assert self._made.wait(kinds.LIMIT)
        if number >= 2:
            try:
                self._use(self._elements)
            except ValueError as error:
                self.met.append(str(error))
                if not self._swallows:
                    raise
        return number


def ask(elements):
    return next(elements, None)


def drawn(elements):
    """The elements up to an error, and the error."""
    consumer = Consumer(elements)
    consumer.join()
    return consumer.found, consumer.error


def assert_refused(error):
    assert isinstance(error, ValueError), error
    assert MESSAGE in str(error)


KINDS = {**DATASETS, **FILES}
OF_RECORDS = ["records", "dataset, 2 threads", "shuffled, 2 threads"]  # datasets over a file


@pytest.mark.parametrize("name", KINDS)
def test_it_cannot_be_asked_for_its_next_result(name, path):
    using = Using(ask)
    elements = using.on(KINDS[name](using, path))
    found, error = drawn(elements)
    assert_refused(error)
    assert len(found) <= 3
    assert using.met
    assert [] == within_limit(list, elements)


@pytest.mark.parametrize("name", KINDS)
def test_an_error_that_is_swallowed_harms_datasets_only_little(name, path):
    """A step of a dataset goes on; others fail, since they may have lost a result."""
    using = Using(ask, swallows=True)
    found, error = drawn(using.on(KINDS[name](using, path)))
    if name in DATASETS or name in OF_RECORDS:
        assert (40, None) == (len(found), error)
    else:
        assert_refused(error)
    assert all(MESSAGE in message for message in using.met)
    assert using.met


@pytest.mark.parametrize("name", KINDS)
def test_it_can_be_closed(name, path):
    """It waits neither for itself nor for the thread that waits for it."""
    using = Using(lambda elements: elements.close())
    elements = using.on(KINDS[name](using, path))
    found, error = drawn(elements)
    assert error is None
    assert len(found) <= 3
    assert [] == within_limit(list, elements)


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize("use", ["state_dict", "load_state_dict"])
def test_it_can_neither_be_saved_nor_loaded(name, path, use):
    state = DATASETS[name](Using(None), path).state_dict()
    arguments = [state] if use == "load_state_dict" else []
    using = Using(lambda elements: getattr(elements, use)(*arguments), swallows=True)
    found, error = drawn(using.on(DATASETS[name](using, path)))
    assert (40, None) == (len(found), error)
    assert len(using.met) >= 36
    assert all(MESSAGE in message for message in using.met)


def test_the_receipt_of_what_its_threads_read_has_to_wait(path):
    using = Using(lambda batches: batches.receipt)
    batches = using.on(kinds.parsed(using, path, num_threads=2, receipt=True))
    found, error = drawn(batches)
    assert_refused(error)
    assert len(found) <= 3


# ---- Several iterators ------------------------------------------------------------------------


def parsed_by_threads(using, path):
    return kinds.parsed(using, path, num_threads=2)


def parsing_in_a_function(using, path):
    return Dataset.range(5).map(lambda _: len(list(parsed_by_threads(using, path))))


def verifying_in_a_function(using, path):
    files = [GatedFile(using, path) for _ in range(2)]
    return Dataset.range(5).map(lambda _: str(list(tfw.verify_files(files, num_threads=2))))


def generating_from_another(using, path):
    return Dataset.from_generator(lambda: Dataset.range(40).map(using).prefetch(3))


CHAINS = {
    "parser": parsing_in_a_function,
    "files": verifying_in_a_function,
    "generator": generating_from_another,
    "prefetch of parser": lambda *a: parsing_in_a_function(*a).prefetch(1),
    "prefetch of files": lambda *a: verifying_in_a_function(*a).prefetch(1).prefetch(2),
    "prefetch of generator": lambda *a: generating_from_another(*a).prefetch(2),
    "batches of generator": lambda *a: generating_from_another(*a).prefetch(1).batch(3).prefetch(1),
}


@pytest.mark.parametrize("swallows", [False, True], ids=["raised", "swallowed"])
@pytest.mark.parametrize("name", CHAINS)
def test_it_cannot_be_used_by_threads_that_its_functions_start(name, swallows, path):
    using = Using(ask, swallows)
    elements = using.on(iter(CHAINS[name](using, path)))
    _, error = drawn(elements)
    assert (error is None) == swallows
    assert using.met
    assert all(MESSAGE in message for message in using.met)


@pytest.mark.parametrize("swallows", [False, True], ids=["raised", "swallowed"])
@pytest.mark.parametrize("num_prefetched", [0, 1, 5])
def test_iterators_that_wait_for_each_other_do_not_wait_for_ever(num_prefetched, swallows, path):
    """A parser whose file draws from a dataset that draws from the parser. Where neither of them
    waits for the other one yet, an element may come."""
    using = Using(ask, swallows)
    batches = parsed_by_threads(using, path)
    dataset = Dataset.range(40).map(lambda _: ask(batches) is None)
    elements = using.on(iter(dataset.prefetch(num_prefetched) if num_prefetched else dataset))
    _, error = drawn(elements)
    assert error is None or MESSAGE in str(error)
    within_limit(batches.close)
    within_limit(elements.close)


@pytest.mark.parametrize("swallows", [False, True], ids=["raised", "swallowed"])
def test_parsers_that_wait_for_each_other_are_told(swallows, path):
    """The file of each draws from the other one."""
    usings = [Using(ask, swallows) for _ in range(2)]
    parsers = [parsed_by_threads(using, path) for using in usings]
    for i in (0, 1):
        usings[i].on(parsers[1 - i])
    errors = [drawn(parser)[1] for parser in parsers]
    assert all(error is None or MESSAGE in str(error) for error in errors)
    for parser in parsers:
        within_limit(parser.close)
    told = any(MESSAGE in message for using in usings for message in using.met)
    assert told or errors == [None, None]  # each may always have found an element ready


@pytest.mark.parametrize("name", ["prefetch", "no thread", "parsed, 2 threads", "parsed, 1 thread"])
def test_threads_may_draw_from_iterators_that_do_not_wait_for_them(name, path):
    """Also while others draw from the same one: each element comes once."""
    shared = KINDS[name](kinds.Gate(), path)
    ended = object()
    elements = iter(Dataset.range(60).map(lambda _: next(shared, ended)).prefetch(2))
    others = [Consumer(shared) for _ in range(2)]
    found, error = drawn(elements)
    assert error is None
    for other in others:
        other.join()
        assert other.error is None
        found += other.found
    shared.close()
    values = [
        each["n"].item() if isinstance(each, dict) else int(each)
        for each in found
        if each is not ended
    ]
    first = 1000 if name.startswith("parsed") else 0
    assert list(range(first, first + 40)) == sorted(values)


# ---- Writers ------------------------------------------------------------------------------------


class Drawing(io.RawIOBase):
    """A file that draws one element when it is written to."""

    def __init__(self):
        self.written = bytearray()
        self.draw = int

    def writable(self):
        return True

    def write(self, data):
        draw, self.draw = self.draw, int
        draw()
        self.written += data
        return len(data)


USES_OF_WRITERS = {
    "write": lambda writer: writer.write(bytes(300_000)),
    "write_many": lambda writer: writer.write_many([b"x"] * 5000),
    "write_columns": lambda writer: writer.write_columns({"a": [1]}),
    "flush": lambda writer: writer.flush(),
    "close": lambda writer: writer.close(),
}
DRAWN_BY_WRITERS = {
    "prefetch": lambda using: Dataset.range(10).map(using).prefetch(1),
    "map, 2 threads": lambda using: Dataset.range(10).map(using, num_parallel_calls=2),
    "generator": lambda using: Dataset.from_generator(lambda: map(using, range(9))).prefetch(2),
}


@pytest.mark.parametrize("use", USES_OF_WRITERS)
@pytest.mark.parametrize("name", DRAWN_BY_WRITERS)
def test_a_writer_whose_file_waits_for_a_thread_refuses_that_thread(name, use):
    file = Drawing()
    writer = tfw.TFRecordWriter(file)
    elements = iter(DRAWN_BY_WRITERS[name](lambda _: USES_OF_WRITERS[use](writer)))
    file.draw = lambda: next(elements)
    writer.write(b"first")
    met = []
    within_limit(lambda: met.append(raised_by(writer.flush)))
    assert isinstance(met[0], RuntimeError)
    assert "in use by a thread that waits for this one" in str(met[0])
    within_limit(elements.close)
    assert isinstance(raised_by(writer.close), RuntimeError)


def test_a_writer_takes_records_of_threads_that_its_file_does_not_wait_for():
    file = Drawing()
    writer = tfw.TFRecordWriter(file)
    elements = iter(Dataset.range(20).map(lambda i: writer.write(b"%d" % i * 5000)).prefetch(3))
    within_limit(lambda: [(writer.flush(), next(elements)) for _ in range(20)])
    writer.close()
    found = list(tfw.read_records(io.BytesIO(file.written), compression_type=None))
    assert [b"%d" % i * 5000 for i in range(20)] == found


def test_what_a_refused_call_collected_is_removed_and_nothing_else():
    """Also if the first of its records waits already, as the same object."""
    file = Drawing()
    writer = tfw.TFRecordWriter(file)
    twice = b"twice"
    others = [twice, b"other"]

    def use():
        within_limit(lambda: [writer.write(record) for record in others])
        with pytest.raises(RuntimeError):  # a piece of one record comes first
            writer.write_many([b"taken", twice, bytes(300_000)])

    file.draw = use
    writer.write_columns({"a": [1]})
    writer.close()
    found = list(tfw.read_records(io.BytesIO(file.written), compression_type=None))
    assert [*others, b"taken"] == found[1:]


def raised_by(function):
    try:
        function()
    except Exception as error:
        return error


# ---- Random access ------------------------------------------------------------------------------


def threaded(records):
    """Reads a record in a thread that a signal handler, or a finalizer, waits for."""
    with iter(Dataset.range(1).map(lambda _: records[3]).prefetch(1)) as elements:
        return next(elements)


@pytest.mark.parametrize("read", [lambda records: records[3], threaded], ids=["here", "thread"])
@pytest.mark.parametrize("kind", ["one file", "files", "compressed"])
def test_a_record_may_be_read_in_the_midst_of_reading_another(kind, read, tmp_path, monkeypatch):
    """As a signal handler does, or a finalizer."""
    path = tmp_path / "data"
    written = [b"%d" % i for i in range(9)]
    tfw.write_records(path, written, "GZIP" if kind == "compressed" else None)
    records = tfw.TFRecordFiles([path]) if kind == "files" else tfw.TFRecordFile(path)
    owner, name = {
        "one file": (fetched_records, "_next"),
        "files": (random_access, "_open_at"),
        "compressed": (local_records.StreamAccess, "_batch_with"),
    }[kind]
    function, found = getattr(owner, name), []

    def reading_another(*arguments):
        monkeypatch.undo()
        found.append(read(records))
        return function(*arguments)

    monkeypatch.setattr(owner, name, reading_another)
    within_limit(lambda: found.append(records[[5, 7] * 20]))
    assert [b"3", [b"5", b"7"] * 20] == found
    assert written == list(records)
