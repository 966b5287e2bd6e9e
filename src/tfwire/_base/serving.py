"""Which threads work for which iterators, and which threads wait for which.

A function or a file object of the user's that runs in a thread of an iterator may ask the iterator
for a result, or for a state. The iterator must not wait then: it would wait for itself. Nor may two
threads wait for each other: each may be inside of an iterator, or of a writer, whose function or
file object uses that of the other one.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from threading import get_ident, main_thread
from types import CodeType, FrameType
from typing import Any
from weakref import ref

__all__ = [
    "EXECUTING",
    "Service",
    "methods_inside",
    "methods_waiting",
    "services",
    "services_of",
    "turn_at",
    "turns",
    "waits_for",
]

EXECUTING = "the iterator is already executing: a function or a read of its own asked it for more"

# Seconds after which a thread looks again whether the one that it waits for waits for it.
_TURN = 0.02

# The methods of iterators in which a thread is inside.
methods_inside: set[CodeType] = set()

# The methods that wait for a lock, and the attribute that names the thread which holds it, if any.
methods_waiting: dict[CodeType, str] = {}


class Service:
    """What some threads work for: their owner, the iterators that the starting thread is inside of,
    and what that thread works for itself.

    Args:
        owner: What starts them: an iterator, or a part of one.

    Attributes:
        consumer: The thread that waits for a result, or for their end; 0: none.
    """

    def __init__(self, owner: Any) -> None:
        self.consumer = 0
        # Without callbacks: Python loses an interrupt that arrives in one.
        self._served = [ref(each) for each in (owner, *_entered())]
        for service in services_of(get_ident()):
            self._served += service._served

    def __enter__(self) -> None:
        """This thread is one of them from now on."""
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
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=services.clear)


def services_of(thread: int) -> Iterator[Service]:
    """The service of a thread, that of the thread which waits for it, and so on."""
    seen: set[int] = set()
    while thread not in seen and (service := services.get(thread)) is not None:
        yield service
        seen.add(thread)
        thread = service.consumer


def turn_at(
    lock: AbstractContextManager[Any], holder: int, is_refused: Callable[[], bool]
) -> AbstractContextManager[object] | None:
    """A lock, to be entered; None for a thread that would wait for itself. One of
    ``methods_waiting`` calls this and enters the lock.

    Args:
        lock: A Lock or RLock.
        holder: The thread that holds it; 0: none.
        is_refused: Whether that thread waits for this one. It may begin to at any time.
    """
    thread = get_ident()
    key = (thread, id(lock))
    if key in turns:
        return None
    if not holder and thread not in services:
        return lock
    # Only with ``with`` does an interrupt leave no lock in a wrong state. If a thread begins to
    # wait for the main thread, that one looks again.
    if thread == main_thread().ident:
        return None if is_refused() else lock
    native: Any = lock
    turn, acquired = _Turn(native, key), False
    turns.add(key)
    try:
        while not acquired and not is_refused():
            acquired = native.acquire(timeout=_TURN)
        return turn if acquired else None
    finally:
        if not acquired:
            turns.discard(key)


# The threads that have a turn, or wait for it, and the ids of the locks. A finalizer that runs when
# a lock has been acquired, but the thread is not noted as its holder yet, would wait for itself.
turns: set[tuple[int, int]] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=turns.clear)


class _Turn:
    """A lock that a thread has acquired already, to be released by ``with``."""

    def __init__(self, lock: Any, key: tuple[int, int]) -> None:
        self._lock, self._key = lock, key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._lock.release()
        turns.discard(self._key)


def waits_for(waiting: int, thread: int) -> bool:
    """Whether a thread waits for another one, perhaps for a third one that waits for it.

    Args:
        waiting: The thread that may wait; 0: none.
        thread: The other one.
    """
    if not waiting:
        return False
    frames = _current_frames()
    frames.pop(get_ident(), None)  # a cycle
    seen, found = {0}, [waiting]
    while found:
        each = found.pop()
        if each == thread:
            return True
        if each not in seen:
            seen.add(each)
            found.append(_holder(frames.get(each)))
            found += [
                other for other, service in list(services.items()) if service.consumer == each
            ]
    return False


def _current_frames() -> dict[int, FrameType]:
    """The current frame of every thread."""
    if sys.version_info >= (3, 12):
        return sys._current_frames()
    # It holds a lock of Python's, and older ones collect garbage meanwhile: a finalizer that starts
    # a thread, or lets another one do so, would wait for ever.
    enabled = gc.isenabled()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        if enabled:
            gc.enable()


def _holder(frame: FrameType | None) -> int:
    """The thread that holds the lock for which a thread waits, by its current frame; 0: none."""
    if frame is not None and frame.f_code is turn_at.__code__:
        frame = frame.f_back
    if frame is None or (name := methods_waiting.get(frame.f_code)) is None:
        return 0
    holder: int = getattr(frame.f_locals["self"], name)
    return holder


def _entered() -> Iterator[Any]:
    """The iterators that this thread is inside of, from its stack. Noting them as it enters would
    cost every ``next`` something."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in methods_inside:
            yield frame.f_locals["self"]
        frame = frame.f_back
