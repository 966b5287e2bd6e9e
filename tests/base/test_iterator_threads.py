"""The iterators that exist, which any thread may add to at any time."""

import gc

import pytest

from tfwire._base import iterator_threads


class Iterator:
    _inside = 0


@pytest.fixture
def at_allocations():
    """Calls a function at every collection of garbage, and lets most allocations start one."""
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)

    def start(function):
        gc.callbacks.append(lambda phase, info: function())
        gc.set_threshold(1)

    yield start
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks


def test_iterators_may_be_made_while_the_others_are_looked_through(at_allocations):
    """A collection runs finalizers, in which other threads get their turn."""
    before = [Iterator() for _ in range(4000)]  # CPython keeps 2,000 tuples for reuse
    for iterator in before:
        iterator_threads.register(iterator)
    made = []

    def make():
        made.append(Iterator())
        iterator_threads._iterators[-len(made)] = iterator_threads.ref(made[-1])

    at_allocations(make)
    living = iterator_threads._living()
    assert set(before) <= set(living)
