"""Iterators that several threads share: one thread inside at a time, their states, how they end.

An iterator is in one of these states:

    new      no result was asked for; none of its own threads runs
    running  it has returned something; its own threads, if any, prefetch
    ended    everything was returned
    failed   an error was raised, or an interrupt came: the result in progress is lost
    closed   close() was called
    forked   in a child that was forked while another thread was inside: stays so forever

    new, running -> running   a step returns something
    new, running -> ended     a step raises StopIteration
    new, running -> failed    a step raises anything else, also KeyboardInterrupt; or the step
                              itself asks the iterator for its next result, or a thread does that
                              the step may wait for, which raises ValueError (a step of a dataset
                              goes on)
    any          -> closed    close(), by any thread, at any time, also in a signal handler
    any          -> forked    in the child
    new, running, closed -> new    a state is loaded

``next`` raises StopIteration when the iterator is ended or failed, ``closed_error()`` when it is
closed, and RuntimeError when it is forked. A step that waits while another thread closes the
iterator is woken. What the iterator holds (files, threads) is released once, with no thread
inside: by ``close``, or by the thread inside when it leaves. A child that was forked with no
thread inside goes on by itself; if the iterator has threads of its own, its next step fails with
a RuntimeError.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import Enum
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any, TypeVar

from tfwire._base.iterator_threads import EXECUTING, register, services, services_of, turn_at
from tfwire._base.system import process
from tfwire._base.workers import PATIENCE, acquirable

T = TypeVar("T")
Item = TypeVar("Item")
Iter = TypeVar("Iter", bound="SharedIterator[Any]")


class State(Enum):
    """The states of an iterator; the docstring of this module says what they mean."""

    NEW = "new"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    CLOSED = "closed"
    FORKED = "forked"


# The times in seconds that close() waits for a thread inside, whose read may never return.
_WAITS = (0.01, 0.1, PATIENCE)
# The threads that may wait in close().
_MOST_WAITING = 64
_FORKED = "a thread was using this iterator during the fork; start again"
RUNNING = State.RUNNING  # found faster than in the class, for each result
_GOING = (RUNNING, State.NEW)


class SharedIterator(Iterator[Item]):
    """Base of iterators that threads share: their states, and one thread inside at a time.

    Subclasses define ``step``, ``stop`` and ``release``, and where they need it ``closed_error``
    and ``over_now``.

    Attributes:
        error: What made it fail, or None.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._progress = State.NEW
        self._closed = False  # a flag of its own, so that no thread inside can undo a close
        self._to_stop = False  # it has just ended or failed
        # The thread that takes the entry releases.
        self._unreleased: SimpleQueue[None] = SimpleQueue()
        self._unreleased.put(None)
        self._lock = threading.Lock()
        self._inside = 0  # the thread that holds the lock; 0: none
        self._reentered = False  # by a step of its own; see reentered
        self._exits: SimpleQueue[None] = SimpleQueue()
        self._pid = process.number
        register(self)

    @abstractmethod
    def step(self) -> Item:
        """The next result, with no other thread inside.

        Raises:
            StopIteration: There is none.
        """

    def stop(self) -> None:
        """Makes the iterator's own threads end, and wakes the thread that waits inside, if any: its
        step raises something. Must not wait; any thread may call it at any time."""

    def release(self) -> None:
        """Releases files and threads. Called once, with no thread inside."""

    def reentered(self) -> Item:
        """Called when a step asks for the next result: in a function that it calls, in a signal
        handler, or in a thread that it may wait for. The step fails too: a chain over this iterator
        would be at its end, and lose the step's result."""
        self._reentered = True
        raise ValueError(EXECUTING)

    def executing(self) -> bool:
        """Whether this thread is inside, or works for this iterator or for the thread inside."""
        thread = get_ident()
        return self._inside == thread or any(
            service.serves(self) or 0 != self._inside == service.consumer
            for service in services_of(thread)
        )

    def closed_error(self) -> Exception:
        """What ``next`` raises when the iterator is closed."""
        return StopIteration()

    def over_now(self) -> None:
        """Called after the step that ended or failed, and again by each thread that asks for more;
        no thread is inside a step. Releases by ``close`` or ``_release_once``, if at all."""

    @property
    def state(self) -> State:
        if self._forked():
            return State.FORKED
        return State.CLOSED if self._closed else self._progress

    def __next__(self) -> Item:
        thread = get_ident()
        if self._inside == thread:
            return self.reentered()
        if self._closed:  # known without waiting for a thread inside
            raise self.closed_error()
        if self._pid != process.number and self._forked():
            raise RuntimeError(_FORKED)
        turn: AbstractContextManager[object] = self._lock
        if services and thread in services:
            if (own := turn_at(self._lock, self.executing)) is None:
                return self.reentered()
            turn = own
        try:
            with turn:
                self._inside = thread
                try:
                    if self._closed or self._progress not in _GOING:
                        raise StopIteration
                    result = self.step()
                    if self._closed:
                        raise StopIteration
                    if self._reentered:
                        raise ValueError(EXECUTING)
                    self._progress = RUNNING
                    return result
                except BaseException as error:
                    self._note_end(error)  # before the next thread enters, which would step again
                    raise
                finally:
                    self._inside = 0
        except BaseException as error:  # also an interrupt, at any point
            closed = self._closed
            self._end(error)
            if closed and isinstance(error, Exception):  # the close may have caused it
                raise self.closed_error() from None
            raise
        finally:
            if self._closed:
                self._leave()

    def _note_end(self, error: BaseException) -> None:
        """Notes how the iterator ended, if it is not at its end already."""
        if self._progress not in _GOING:
            return
        self._to_stop = True
        if isinstance(error, StopIteration):
            self._progress = State.ENDED
        else:
            self._progress, self.error = State.FAILED, error

    def _end(self, error: BaseException) -> None:
        """After a step that ended or failed, and in each thread that finds the iterator at its end:
        what the first one cannot release while another is inside, that one releases."""
        self._note_end(error)
        if self._to_stop:
            self.stop()
            self._to_stop = False
        self.over_now()

    def exclusively(self, function: Callable[..., T], *arguments: object) -> T:
        """function(*arguments) with no other thread inside."""
        thread = get_ident()
        if self._inside == thread:
            raise ValueError(EXECUTING)
        if self._forked():
            raise RuntimeError(_FORKED)
        turn = turn_at(self._lock, self.executing)
        if turn is None:
            raise ValueError(EXECUTING)
        try:
            with turn:
                self._inside = thread
                try:
                    return function(*arguments)
                finally:
                    self._inside = 0
        finally:
            if self._closed:
                self._leave()

    def _leave(self) -> None:
        """After a close while this thread was inside: releases what the iterator holds, and wakes
        the threads that wait in close. Another thread may have released it without waking them."""
        if self._exits.qsize() < _MOST_WAITING:
            self._exits.put(None)
        self._release_once()

    def close(self) -> None:
        """Ends the iteration. Waits for a thread inside, but not forever, and not where that one
        may wait for this thread."""
        self._closed = True
        if self._forked():
            return
        for seconds in _WAITS:
            self.stop()  # every time: a step may have begun to wait since the last call
            if not self._inside or self.executing():
                break
            with suppress(Empty):
                self._exits.get(timeout=seconds)
        self._release_once()

    def __enter__(self: Iter) -> Iter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @contextmanager
    def reopening(self) -> Iterator[None]:
        """The thread inside resets the iterator: it is new then, unless an exception is raised.

        Raises:
            ValueError: The iterator is ended or failed.
        """
        if self._progress not in _GOING:
            raise ValueError("the iterator is at its end; load the state into a new one")
        with suppress(Empty):
            while True:
                self._exits.get_nowait()  # of those that have left since it was closed
        closed, self._closed = self._closed, False  # first, so that a close from here on counts
        try:
            yield
        except BaseException:
            self._closed |= closed
            raise
        self._progress = State.NEW
        if self._unreleased.empty():
            self._unreleased.put(None)

    def _release_once(self) -> None:
        # A thread that enters now sees that the iterator is closed, and leaves.
        if self._inside:  # that thread does it when it leaves
            return
        try:
            self._unreleased.get_nowait()
        except Empty:
            return
        self.release()

    def _forked(self) -> bool:
        """Whether this process was forked while another thread was inside."""
        if self._pid == process.number or self._inside == get_ident():
            return False
        if not acquirable(self._lock):
            return self._pid != process.number  # or a thread of this process has just entered
        self._pid = process.number
        return False
