"""Iterators with threads that are interrupted, at any point, and at exit."""

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

import pytest

import tfwire
from helpers.command import WITH_HELPERS
from helpers.data import iterators_with_threads as kinds
from helpers.data.iterators_with_threads import ITERATORS, Gate, within_limit
from helpers.processes.interrupts import NEVER, InterruptAt
from helpers.reading import open_files
from helpers.search import FIRST_SEED
from helpers.threads import Consumer, opened, threads_of_tfwire, wait_for
from tfwire import Dataset
from tfwire._base import workers
from tfwire._records.files import inflate_ahead

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.usefixtures("little_patience"),
]


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


@pytest.mark.parametrize("name", ["prefetch", "mapped by threads"])
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
    """Python keeps such a thread forever: threading.enumerate() has it."""

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


UNTHREADED = {
    "parsed": lambda path: kinds.PARSER.parse_file(path, 20),
    "records": lambda path: tfwire.read_records(path),
    "mapped": lambda path: iter(tfwire.Dataset.range(2).map(abs)),
}


@pytest.mark.parametrize("name", UNTHREADED)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of finalizers
@pytest.mark.skipif(sys.version_info < (3, 11), reason="older CPython has other instructions")
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_an_interrupt_at_any_point_leaves_an_iterator_that_can_be_closed(name, step, path):
    for number in itertools.chain([NEVER], itertools.count(1, step)):
        elements, interrupted = UNTHREADED[name](path), False
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
        if number != NEVER and not interrupted:
            break
    assert number > 20


@pytest.mark.unsanitized("starts a process")
def test_an_interrupt_is_nothing_but_an_interrupt(tmp_path):
    """A few times for each kind of iterator."""
    run_interrupts(list(ITERATORS), 3, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ITERATORS)
def test_very_many_interrupts_are_nothing_but_interrupts(name, tmp_path):
    tries = int(os.environ.get("TFWIRE_INTERRUPTS", "20"))
    run_interrupts([name], tries, FIRST_SEED + 2, tmp_path)


def run_interrupts(names, tries, seed, folder):
    words = ["interrupt", tries, seed, folder, *names]
    most = tries * len(names)
    done = program(*map(str, words), timeout=kinds.LIMIT + 2 * most)
    assert "" == done.stderr
    assert 0 == done.returncode
    assert int(done.stdout) >= most // 2  # a few come while there is no iterator


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
    monkeypatch.setattr(inflate_ahead, "_UNIT", 100)
    held = [READERS[name](Gate(), path)]
    assert "__del__" not in calls_during(lambda: held.append(list(held[0])))
    assert len(held[1]) > 1
    assert wait_for(lambda: not threads_of_tfwire())
    gc.collect()
    assert [] == calls_during(held.clear)


@pytest.mark.parametrize(
    "name", ["records of a file", "records of a gzip file", "records of a FIFO", "followed"]
)
def test_files_of_a_reader_that_is_dropped_are_closed_by_no_finalizer(name, path):
    """But by C: Python loses an interrupt that arrives in a finalizer."""
    before = open_files()
    held = [READERS[name](Gate(), path)]
    next(held[0])
    assert open_files() - before
    assert "__call__" not in calls_during(held.clear)
    assert wait_for(lambda: not open_files() - before)


@pytest.mark.unsanitized("starts processes")
def test_iterators_that_are_in_use_at_exit_say_nothing(tmp_path):
    done = program("exit", str(tmp_path))
    assert ("left\n", "", 0) == (done.stdout, done.stderr, done.returncode)


CALLED_AT_EXIT = """
import os, time
import tfwire

def slow(element):
    os.write(1, b"begin\\n")
    time.sleep(0.3)
    os.write(1, b"end\\n")

elements = iter(tfwire.Dataset.range(100).map(slow, num_parallel_calls=2))
next(elements)
{before}
"""


@pytest.mark.parametrize("before", ["", "elements.close()", "del elements"])
@pytest.mark.unsanitized("starts processes")
def test_functions_that_threads_are_in_at_exit_return(before):
    """Python ends a daemon thread as it comes back from C, and C++, as in torch, aborts then."""
    command = [sys.executable, "-c", CALLED_AT_EXIT.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, env=WITH_HELPERS, check=True)
    assert "" == done.stderr
    assert done.stdout.count("begin") == done.stdout.count("end") > 1


def program(*words, timeout=kinds.LIMIT):
    command = [sys.executable, "-X", "dev", "-W", "ignore", "-m", kinds.__name__, *words]
    run = functools.partial(subprocess.run, capture_output=True, text=True, env=WITH_HELPERS)
    return run(command, timeout=timeout)
