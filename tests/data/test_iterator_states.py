"""Every state of an iterator with threads, and all that may happen to it there."""

import gc
import os
import threading
import time
from contextlib import nullcontext, suppress
from types import SimpleNamespace

import pytest

import tfwire as tfw
from helpers.data import iterators_with_threads as kinds
from helpers.data.iterators_with_threads import DATASETS, ITERATORS, PIPES, Gate, within_limit
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.paths import DOCS
from helpers.products import diagonals
from helpers.reading import open_files
from helpers.records.gated_files import REGULAR_FILES
from helpers.reference import file_of
from helpers.threads import Consumer, opened, threads_of_tfwire, wait_for
from tfwire._base import shared_iterator, workers

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.usefixtures("little_patience"),
]


# Functions that bring an iterator into a state, and give the consumer that waits in it, if any.


def new(elements, gate):
    pass


def running(elements, gate):
    next(elements)


def waiting(elements, gate):
    consumer = Consumer(elements)
    assert gate.reached.wait(kinds.LIMIT)
    time.sleep(0.02)  # until it waits, most probably; where it is must not matter
    return consumer


def ended(elements, gate):
    gate.opened.set()
    assert 40 == len(within_limit(list, elements))


def failed(elements, gate):
    with pytest.raises(OSError, match="of the gate"):
        within_limit(list, elements)


def closed(elements, gate):
    next(elements)
    elements.close()


STATES = [new, running, waiting, ended, failed, closed]
# Where the consumer itself is inside a function or a read.
UNWAKEABLE = {"no thread", "dataset, 2 threads", "pipe", "pipe, skip", *REGULAR_FILES}
UNWAKEABLE |= {name for name in ITERATORS if name.endswith(", 1 thread") or name[:7] == "parsed,"}
NO_ERRORS = set(PIPES)  # a pipe that breaks off ends


def brought(name, state, path):
    """An iterator in a state, its gate, and the consumer that waits."""
    if state is failed and name in NO_ERRORS:
        pytest.skip("a pipe that breaks off ends")
    gate = Gate(3)
    gate.fails = state is failed
    elements = ITERATORS[name](gate, path)
    return elements, gate, state(elements, gate)


# What happens by day in a third of the states, another one for each event, happens by night in all.
def in_states(event):
    return pytest.mark.parametrize(("name", "state"), diagonals(event, 3, ITERATORS, STATES))


@in_states(0)
def test_closing_ends_it_and_never_waits_for_ever(name, state, path):
    """By another thread, twice; a consumer that waits is woken, if it is not inside a read or a
    function of the user's itself."""
    elements, gate, consumer = brought(name, state, path)
    begin = time.monotonic()
    within_limit(elements.close)
    within_limit(elements.close)
    assert time.monotonic() - begin < kinds.LIMIT / 2
    if consumer is not None and name not in UNWAKEABLE:
        consumer.join()
    assert [] == within_limit(list, elements)
    opened(gate, consumer)
    if consumer is not None:
        assert consumer.error is None
        assert len(consumer.found) <= 3


@in_states(1)
def test_threads_end_when_it_is_dropped(name, state, path):
    elements, gate, consumer = brought(name, state, path)
    del elements
    gc.collect()
    opened(gate, consumer)
    if consumer is not None:
        assert 40 == len(consumer.found)


def in_child(function):
    """Whether function gives True in a process that is forked here."""
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = function()
        finally:  # whatever happens: the child must not go on with the tests
            os._exit(0 if good else 1)
    assert wait_for(lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT))
    return 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def told_or_right(elements, left):
    """Whether next gives what it should, or says that it cannot in this process."""
    try:
        return len(list(elements)) in left
    except RuntimeError as error:
        return "fork" in str(error)


@FORKS_BESIDE_THREADS
@in_states(2)
def test_a_fork_is_safe(name, state, path):
    """In the child next is right or an error, and closing and dropping are no error; the parent
    goes on."""
    elements, gate, consumer = brought(name, state, path)
    threads = bool(threads_of_tfwire())
    left = {new: {40}, running: {39}, waiting: set()}.get(state, {0})
    if not threads and state in (new, running):
        gate.passes = 40  # the child has a gate of its own; pipes are shared, and used up there
        left |= set(range(40)) if name in PIPES else set()
    if name not in PIPES or threads:
        assert in_child(lambda: told_or_right(elements, left))
    assert in_child(lambda: elements.close() or name not in DATASETS or list(elements) == [])
    gate.opened.set()
    if state in (new, running):
        assert len(within_limit(list, elements)) == (40 if state is new else 39)
    elements.close()
    opened(gate, consumer)


@pytest.mark.parametrize(
    ("name", "state"), diagonals(0, 2, DATASETS, [new, running, waiting, closed])
)
def test_a_state_can_be_loaded_while_threads_are_at_work(name, state, path):
    elements, gate, consumer = brought(name, state, path)
    other = DATASETS[name](Gate(), path)
    for _ in range(30):
        next(other)
    saved = other.state_dict()
    gate.passes = None
    gate.opened.set()
    if consumer is None:
        within_limit(elements.load_state_dict, saved)
        assert 10 == len(within_limit(list, elements))
    else:
        with suppress(ValueError):  # the consumer was faster, and it is at its end
            within_limit(elements.load_state_dict, saved)
        consumer.join()
        assert consumer.error is None
        assert consumer.found[-1] == list(other)[-1]
    other.close()
    elements.close()
    opened(gate, consumer)


@pytest.mark.parametrize("name", DATASETS)
def test_a_load_that_fails_late_changes_nothing(name, path):
    elements = DATASETS[name](Gate(), path)
    first = next(elements)
    state = elements.state_dict()
    for broken in ({}, [], {"next": 1}, "x"):
        with pytest.raises((TypeError, KeyError, IndexError, ValueError, AttributeError)):
            elements.load_state_dict({**state, "at": broken, "given": 10**6})
    assert [first, *elements] == list(DATASETS[name](Gate(), path))


def test_it_cannot_be_used_by_a_function_that_it_calls():
    """As a generator cannot. Nothing is lost where the function takes no notice of the error."""
    from tfwire import Dataset

    met = []

    def reenter(x):
        for use in (next, lambda it: it.state_dict(), lambda it: it.load_state_dict({})):
            try:
                use(elements)
            except ValueError as error:
                met.append(str(error))
        return x

    elements = iter(Dataset.range(10).map(reenter))
    assert list(range(10)) == list(elements)
    assert 30 == len(met)
    assert all("already executing" in message for message in met[0::3] + met[1::3])


@pytest.mark.parametrize("name", ["prefetch", "mapped by threads"])
def test_where_no_thread_can_be_started_the_error_says_so(name, path, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    try:
        raise KeyError("in the handler of which the iterator begins")
    except KeyError:
        with pytest.raises(RuntimeError, match="can't start"):
            next(ITERATORS[name](Gate(), path))


OF_A_PIPE = {
    "records": tfw.read_records,
    "followed": tfw.follow_records,
    "parsed": kinds.PARSER.parse_file,
    "parsed, 2 threads": lambda path: kinds.PARSER.parse_file(path, num_threads=2),
    "dataset": lambda path: iter(tfw.TFRecordDataset(path)),
    "dataset, prefetch": lambda path: iter(tfw.TFRecordDataset(path).prefetch(1)),
}


@pytest.mark.parametrize("written", [b"", file_of([b"one"])], ids=["empty", "one record"])
@pytest.mark.parametrize("name", OF_A_PIPE)
def test_closing_ends_a_wait_for_the_first_bytes(name, written, tmp_path):
    """Those that tell whether the input is compressed."""
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    os.write(end, written)
    before = open_files()
    elements = OF_A_PIPE[name](path)
    consumer = Consumer(elements)
    assert wait_for(lambda: open_files() - before)
    within_limit(elements.close)
    consumer.join()
    os.close(end)
    assert len(consumer.found) <= (written != b"")
    assert wait_for(lambda: not threads_of_tfwire())


@pytest.mark.parametrize("name", ["prefetch", "parsed, 2 threads", "pipe"])
def test_a_busy_one_closes_at_once_again_and_again(name, path):
    for i in range(30):
        elements = ITERATORS[name](Gate(), path)
        next(elements)
        time.sleep(i % 10 * 1e-4)
        within_limit(elements.close)
    assert wait_for(lambda: not threads_of_tfwire())


def test_the_number_of_kinds_is_documented():
    text = (DOCS / "internals" / "design.md").read_text(encoding="utf-8")
    assert f"{len(ITERATORS)} kinds of iterators" in text


class Stepping(shared_iterator.SharedIterator):
    """Is inside of its step until it may go on."""

    def __init__(self):
        super().__init__()
        self.inside, self.may_go = threading.Event(), threading.Event()

    def step(self):
        self.inside.set()
        assert self.may_go.wait(kinds.LIMIT)
        return 1


def test_close_waits_no_longer_than_for_the_thread_inside(monkeypatch):
    """Although a thread that was inside before has found the end, and released the iterator."""
    monkeypatch.setattr(shared_iterator, "_WAITS", (2 * kinds.LIMIT,))
    elements = Stepping()
    consumer = threading.Thread(target=lambda: next(elements, None))
    consumer.start()
    assert elements.inside.wait(kinds.LIMIT)
    elements._unreleased.get_nowait()
    closer = threading.Thread(target=elements.close, daemon=True)
    closer.start()
    assert wait_for(lambda: elements._closed)
    elements.may_go.set()
    closer.join(kinds.LIMIT)
    consumer.join(kinds.LIMIT)
    assert not closer.is_alive()


class Ending(shared_iterator.SharedIterator):
    """Ends or fails in its first step. A second one comes before anything follows the first."""

    def __init__(self, error):
        super().__init__()
        self.at_end, self.num_steps, self.num_stops, self.num_releases = error, 0, 0, 0
        self.second = None
        self._lock = self

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        if self.second is None:
            self.second = Consumer(self)
            self.second.join()

    def step(self):
        self.num_steps += 1
        raise self.at_end

    def stop(self):
        self.num_stops += 1

    def release(self):
        self.num_releases += 1

    def over_now(self):
        self._release_once()


@pytest.mark.parametrize("error", [StopIteration(), OSError("failed")], ids=["ended", "failed"])
def test_no_thread_steps_after_the_step_that_ended_it(error):
    elements = Ending(error)
    with pytest.raises(type(error)):
        next(elements)
    assert ([], None) == (elements.second.found, elements.second.error)
    assert None is next(elements, None)
    assert (1, 1, 1) == (elements.num_steps, elements.num_stops, elements.num_releases)


@pytest.mark.parametrize("error", [None, OSError("failed")], ids=["last unit", "error"])
def test_threads_read_nothing_after_the_end(error):
    """What is read then might wait, or be of another file."""
    num_reads = 0

    def read():
        nonlocal num_reads
        num_reads += 1
        if num_reads == 2 and error is not None:
            raise error
        return SimpleNamespace(last=num_reads == 2)

    owner = Gate()
    pool = workers.Workers(read, None, 3, 9, owner=owner)
    pool.next()
    with pytest.raises(OSError, match="failed") if error else nullcontext():
        pool.next()
    assert wait_for(lambda: not threads_of_tfwire())
    assert 2 == num_reads
