"""Threads that draw from iterators, threads of iterators, and switches between threads."""

import gc
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from helpers.data import iterators_with_threads as kinds
from helpers.reading import open_files


def wait_for(condition):
    end = time.monotonic() + kinds.LIMIT
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def threads_of_tfwire():
    """Those that run. Python keeps one that was interrupted while it started in its list."""
    threads = threading.enumerate()
    return [each for each in threads if each.name.startswith("tfwire") and each.is_alive()]


@contextmanager
def nothing_left():
    """Soon no thread of tfwire is left, and no file open, that was not there before."""
    before = open_files()
    yield

    def is_nothing_left():
        return not threads_of_tfwire() and not open_files() - before

    def is_nothing_left_but_cycles():
        gc.collect()  # a thread that ends with an error leaves one, of the error and its frame
        return is_nothing_left()

    assert is_nothing_left() or wait_for(is_nothing_left_but_cycles)


def together(*works):
    """Runs functions in threads, and waits for all; none may hang."""
    threads = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * kinds.LIMIT)  # also on a busy machine
        assert not thread.is_alive(), "a thread hangs"


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


def opened(gate, consumer):
    """Opens the gate, after which everything must end."""
    gate.opened.set()
    if consumer is not None:
        consumer.join()
    assert wait_for(lambda: not threads_of_tfwire())


def at_once(function, count=4):
    """What a function of a number gives in so many threads at once; an error of one is raised."""
    begin = threading.Barrier(count)

    def run(number):
        begin.wait()
        return function(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@contextmanager
def quick_switches():
    """Switches between threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
