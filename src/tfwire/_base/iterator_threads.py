"""Which threads work for which iterators: those that an iterator may wait for.

A function or a file object of the user's that runs in such a thread may ask the iterator for a
result, or for a state. The iterator must not wait then: it would wait for itself. Other objects
with a lock, like a writer whose file object draws from the iterator, must not make such a thread
wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from itertools import count
from threading import get_ident
from typing import Any
from weakref import ref

from tfwire._base import system

EXECUTING = "the iterator is already executing: a function or a read of its own asked it for more"

# Seconds after which a thread that works for iterators looks again whether it is waited for.
_TURN = 0.02

# The iterators that exist, by a number of their own. Without callbacks: Python loses an interrupt
# that arrives in one.
_iterators: dict[int, ref[Any]] = {}
_numbers = count()
# With so many, those that were dropped are looked for.
_most_iterators = _FEW = 64


class Service:
    """The iterators that some threads work for: their owner, those that the starting thread is
    inside of, and those that it works for itself.

    Args:
        owner: What starts them: an iterator, or a part of one.

    Attributes:
        consumer: The thread that waits for a result, or for their end; 0: none.
    """

    def __init__(self, owner: Any) -> None:
        self.consumer = 0
        self._served = [ref(each) for each in (owner, *_entered())]
        for service in services_of(get_ident()):
            self._served += service._served

    def __enter__(self) -> None:
        """Adds this thread to those that work for the iterators."""
        services[get_ident()] = self

    def __exit__(self, *exc_info: object) -> None:
        services.pop(get_ident(), None)

    def serves(self, iterator: object) -> bool:
        """Whether an iterator may wait for these threads at any time."""
        return any(each() is iterator for each in self._served)

    def needs(self, thread: int) -> bool:
        """Whether one of these threads may wait for what a thread does."""
        return self in services_of(thread)


# By thread. Most threads have none.
services: dict[int, Service] = {}
system.after_fork(services.clear)


def services_of(thread: int) -> Iterator[Service]:
    """The service of a thread, that of the thread which waits for it, and so on."""
    seen: set[int] = set()
    while thread not in seen and (service := services.get(thread)) is not None:
        yield service
        seen.add(thread)
        thread = service.consumer


def turn_at(
    lock: AbstractContextManager[Any], is_refused: Callable[[], bool]
) -> AbstractContextManager[object] | None:
    """The lock, which the caller enters; None if this thread must not wait for it.

    Args:
        lock: A Lock or RLock.
        is_refused: Whether the thread inside may wait for this one. It may begin to at any time.
    """
    if get_ident() not in services:
        return lock
    native: Any = lock
    while not is_refused():
        if native.acquire(timeout=_TURN):
            turn = ExitStack()
            turn.callback(native.release)
            return turn
    return None


def is_waited_for(thread: int) -> bool:
    """Whether another thread waits for this one, by waiting for an iterator."""
    return any(0 != thread == service.consumer for service in services_of(get_ident()))


def register(iterator: Any) -> None:
    """Makes an iterator known, which tells by ``_inside`` which thread is inside."""
    global _most_iterators
    _iterators[next(_numbers)] = ref(iterator)
    if len(_iterators) > _most_iterators:
        _most_iterators = max(_FEW, 2 * len(_living()))


def _entered() -> list[Any]:
    """The iterators that this thread is inside of. Noting them as it enters would cost every
    ``next`` something."""
    thread = get_ident()
    return [each for each in _living() if each._inside == thread]


def _living() -> list[Any]:
    found = []
    for number in list(_iterators):  # of items, it would let other threads run, and add theirs
        known = _iterators.get(number)
        iterator = None if known is None else known()
        if iterator is None:
            _iterators.pop(number, None)
        else:
            found.append(iterator)
    return found
