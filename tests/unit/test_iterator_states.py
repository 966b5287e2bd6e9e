"""Every state of an iterator with threads, and all that may happen to it there."""

import dis
import functools
import gc
import itertools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress

import pytest

import iterators_with_threads as kinds
import tfwire
from command import ENVIRONMENT
from iterators_with_threads import DATASETS, FILES, ITERATORS, PIPES, Gate, within_limit
from tfwire import Dataset
from tfwire._base import shared_iterator, workers
from tfwire._records import inflate_thread

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def wait_for(condition):
    end = time.monotonic() + kinds.LIMIT
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def threads_of_tfwire():
    return [thread for thread in threading.enumerate() if thread.name.startswith("tfwire")]


class Consumer:
    """A thread that draws elements until there are none."""

    def __init__(self, elements):
        self.found, self.error = [], None
        self._thread = threading.Thread(target=self._run, args=(elements,), daemon=True)
        self._thread.start()

    def _run(self, elements):
        try:
            self.found.extend(elements)
        except BaseException as error:
            self.error = error

    def join(self):
        self._thread.join(kinds.LIMIT)
        assert not self._thread.is_alive(), "the consumer hangs"


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
UNWAKEABLE = "no thread", "parsed, 1 thread", "verified, 1 thread"
NO_ERRORS = set(PIPES)  # a pipe that breaks off ends


@pytest.fixture(autouse=True)
def little_patience(monkeypatch):
    """Not to wait a second each time."""
    monkeypatch.setattr(workers, "PATIENCE", 0.1)
    monkeypatch.setattr(shared_iterator, "_WAITS", (0.01, 0.1))


@pytest.fixture
def path(tmp_path):
    return kinds.write(tmp_path / "records")


def brought(name, state, path):
    """An iterator in a state, its gate, and the consumer that waits."""
    if state is failed and name in NO_ERRORS:
        pytest.skip("a pipe that breaks off ends")
    gate = Gate(3)
    gate.fails = state is failed
    elements = ITERATORS[name](gate, path)
    return elements, gate, state(elements, gate)


def opened(gate, consumer):
    """Opens the gate, after which everything must end."""
    gate.opened.set()
    if consumer is not None:
        consumer.join()
    assert wait_for(lambda: not threads_of_tfwire())


everywhere = [
    pytest.mark.parametrize("name", ITERATORS),
    pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__),
]


def in_every_state(test):
    for mark in everywhere:
        test = mark(test)
    return test


@in_every_state
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


@in_every_state
def test_threads_end_when_it_is_dropped(name, state, path):
    elements, gate, consumer = brought(name, state, path)
    del elements
    gc.collect()
    opened(gate, consumer)
    if consumer is not None:
        assert 40 == len(consumer.found)


@pytest.mark.parametrize("name", ITERATORS)
def test_a_signal_handler_may_close_it(name, path):
    """While the thread that the handler interrupts is inside."""
    gate = Gate(3)
    elements = ITERATORS[name](gate, path)

    def close(number, frame):
        elements.close()
        gate.opened.set()

    def send():
        assert gate.reached.wait(kinds.LIMIT)
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, close)
    try:
        sender = threading.Thread(target=send)
        sender.start()
        assert len(list(elements)) <= 4
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    opened(gate, None)


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


@pytest.mark.unsanitized("forks beside threads, which hangs in ASan's allocator")
@in_every_state
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
    if name in DATASETS:
        assert in_child(lambda: elements.close() or list(elements) == [])
    assert in_child(lambda: elements.close() is None)
    gate.opened.set()
    if state in (new, running):
        assert len(within_limit(list, elements)) == (40 if state is new else 39)
    elements.close()
    opened(gate, consumer)


@pytest.mark.parametrize("state", [new, running, waiting, closed], ids=lambda state: state.__name__)
@pytest.mark.parametrize("name", DATASETS)
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


@pytest.mark.parametrize("threads", [0, 2])
def test_a_signal_handler_that_draws_gets_an_error_and_no_element_is_lost(threads):
    """Other threads get their elements in the meantime."""
    errors = []

    def interrupted(x):
        if threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGUSR1)
        return x

    def draw(number, frame):
        with pytest.raises(ValueError, match="already executing") as raised:
            next(elements)
        errors.append(raised)

    elements = iter(Dataset.range(200).map(interrupted))
    before = signal.signal(signal.SIGUSR1, draw)
    try:
        consumers = [Consumer(elements) for _ in range(threads)]
        found = list(elements)
        for consumer in consumers:
            consumer.join()
            assert consumer.error is None
            found += consumer.found
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert list(range(200)) == sorted(found)
    assert errors or threads


@pytest.mark.parametrize("name", ["prefetch", "parsed, 2 threads"])
def test_an_interrupt_while_a_thread_starts_is_nothing_but_an_interrupt(name, path, monkeypatch):
    """Thread.start() waits in a Condition; what it raises may hide the interrupt."""
    start = threading.Thread.start

    def interrupted(thread):
        start(thread)
        try:
            raise KeyboardInterrupt
        finally:
            threading.Lock().release()  # as Condition.__exit__ does it

    gate = Gate()
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(ITERATORS[name](gate, path))
    monkeypatch.undo()
    opened(gate, None)


def test_a_thread_that_was_interrupted_while_it_started_keeps_nothing(monkeypatch):
    """Python keeps such a thread for ever: threading.enumerate() has it."""

    class Owner:
        def read(self):
            raise AssertionError

    def interrupted(thread):
        kept.append(thread)
        raise KeyboardInterrupt

    kept, owner = [], Owner()
    left = weakref.ref(owner)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workers.Workers(owner.read, None, 1, owner=Gate())
    monkeypatch.undo()
    del owner
    gc.collect()
    assert kept
    assert left() is None
    kept[0]._target()  # if it runs after all, it ends


@pytest.mark.parametrize("name", ["prefetch", "parsed, 2 threads"])
def test_where_no_thread_can_be_started_the_error_says_so(name, path, monkeypatch):
    def refused(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    try:
        raise KeyError("in the handler of which the iterator begins")
    except KeyError:
        with pytest.raises(RuntimeError, match="can't start"):
            next(ITERATORS[name](Gate(), path))


class InterruptAt:
    """A trace function that raises KeyboardInterrupt at the number-th point of the package where
    CPython may run a signal handler: after a call, and where a function begins."""

    def __init__(self, number):
        self.left = number

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(os.path.dirname(tfwire.__file__)):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode" and frame.f_lasti in points_of(frame.f_code):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


@functools.cache
def points_of(code):
    names = [(at.offset, at.opname) for at in dis.get_instructions(code)]
    pairs = itertools.pairwise(names)
    return {offset for (_, before), (offset, _) in pairs if before in ("CALL", "RESUME")}


UNTHREADED = {
    "parsed": lambda path: kinds.PARSER.parse_file(path, 20),
    "records": lambda path: tfwire.read_records(path),
    "mapped": lambda path: iter(tfwire.Dataset.range(2).map(abs)),
}


@pytest.mark.parametrize("name", UNTHREADED)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of finalizers
@pytest.mark.skipif(sys.version_info < (3, 11), reason="older CPython has other instructions")
def test_an_interrupt_at_any_point_leaves_an_iterator_that_can_be_closed(name, path):
    number, interrupted = 0, True
    while interrupted:
        elements, number, interrupted = UNTHREADED[name](path), number + 1, False
        trace = InterruptAt(number)
        sys.settrace(trace)
        try:
            for _element in elements:
                pass
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        interrupted |= trace.left == 0  # in a finalizer, which only warns
        within_limit(elements.close)
        within_limit(elements.close)
    assert number > 20


@pytest.mark.parametrize("name", ["prefetch", "parsed, 2 threads", "pipe"])
def test_a_busy_one_closes_at_once_again_and_again(name, path):
    for i in range(100):
        elements = ITERATORS[name](Gate(), path)
        next(elements)
        time.sleep(i % 10 * 1e-4)
        within_limit(elements.close)
    assert wait_for(lambda: not threads_of_tfwire())


@pytest.mark.unsanitized("starts processes")
@pytest.mark.parametrize("name", [*FILES, *PIPES, "prefetch", "prefetch of prefetch", "no thread"])
def test_an_interrupt_is_nothing_but_an_interrupt(name, tmp_path):
    run_interrupts(name, 12, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ITERATORS)
def test_very_many_interrupts_are_nothing_but_interrupts(name, tmp_path):
    run_interrupts(name, int(os.environ.get("TFWIRE_INTERRUPTS", "20")), 2, tmp_path)


def run_interrupts(name, tries, seed, folder):
    words = ["interrupt", name, tries, seed, folder]
    done = program(*map(str, words), timeout=kinds.LIMIT + 2 * tries)
    assert "" == done.stderr
    assert 0 == done.returncode
    assert int(done.stdout) >= tries // 2  # a few come while there is no iterator


PLACES = os.path.dirname(tfwire.__file__), weakref.__file__


def calls_during(function):
    """The functions of the package and of weakref that run while another one does."""
    found = []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PLACES):
            found.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        function()
        gc.collect()
    finally:
        sys.setprofile(None)
    return found


def fifo(path):
    """A pipe that has a name, with the records of a file."""
    name = pathlib.Path(f"{path}.fifo")
    os.mkfifo(name)
    threading.Thread(
        target=name.write_bytes, args=(pathlib.Path(path).read_bytes(),), daemon=True
    ).start()
    return name


def gzipped(path):
    name = f"{path}.gz"
    tfwire.write_records(name, tfwire.read_records(path), "GZIP")
    return name


READERS = {
    **ITERATORS,
    "records of a file": lambda gate, path: tfwire.read_records(path),
    "records of a gzip file": lambda gate, path: tfwire.read_records(gzipped(path)),
    "batches of a gzip file": lambda gate, path: kinds.PARSER.parse_file(gzipped(path), 9),
    "records of a FIFO": lambda gate, path: tfwire.read_records(fifo(path)),
    "followed": lambda gate, path: tfwire.follow_records(path, timeout=0),
}


@pytest.mark.parametrize("name", READERS)
def test_an_iterator_at_its_end_has_no_finalizer_to_run(name, path, monkeypatch):
    """Python loses an interrupt that arrives in a finalizer."""
    monkeypatch.setattr(inflate_thread, "_UNIT", 100)
    held = [READERS[name](Gate(), path)]
    assert "__del__" not in calls_during(lambda: held.append(list(held[0])))
    assert len(held[1]) > 1
    assert wait_for(lambda: not threads_of_tfwire())
    gc.collect()
    assert [] == calls_during(held.clear)


@pytest.mark.unsanitized("starts processes")
def test_iterators_that_are_in_use_at_exit_say_nothing(tmp_path):
    done = program("exit", str(tmp_path))
    assert ("left\n", "", 0) == (done.stdout, done.stderr, done.returncode)


def program(*words, timeout=kinds.LIMIT):
    command = [sys.executable, "-X", "dev", "-W", "ignore", kinds.__file__, *words]
    run = functools.partial(subprocess.run, capture_output=True, text=True, env=ENVIRONMENT)
    return run(command, timeout=timeout)
