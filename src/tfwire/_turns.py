"""Iterators that threads share: whose turn it is, what state they are in, and how they end.

An iterator is in one of these states:

    new      nothing was asked of it; no thread of its own runs
    running  it has given something; its threads, if it has some, work ahead
    ended    everything was given
    failed   an error was raised, or an interrupt came: what it was about to give is lost
    closed   close() was called
    forked   in a process that was forked while another thread was inside: half done forever

    new, running -> running   a step gives something
    new, running -> ended     a step raises StopIteration
    new, running -> failed    a step raises anything else, also KeyboardInterrupt; or asks the
                              iterator for its next result, and so gets a ValueError itself (a
                              step of a dataset goes on)
    any          -> closed    close(), by any thread, at any time, also in a signal handler
    any          -> forked    in the child
    new, running, closed -> new    a state is loaded

``next`` raises StopIteration when the iterator is ended, failed or closed, and RuntimeError when it
is forked. A step that waits while another thread closes the iterator is woken and raises
StopIteration. What the iterator holds (files, threads) is released once, with no thread inside: by
``close``, or by the thread inside when it leaves. A process that forked with no thread inside goes
on by itself; if the iterator has threads of its own, its next step fails with a RuntimeError.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any, TypeVar

from tfwire._ahead import PATIENCE, acquirable

__all__ = ["EXECUTING", "SharedIterator", "State"]


T = TypeVar("T")


class State(Enum):
    """The states of an iterator; see the module."""

    NEW = "new"
    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"
    CLOSED = "closed"
    FORKED = "forked"


# Seconds that close() waits for a thread inside, which may be in a read that never returns.
_WAITS = (0.01, 0.1, PATIENCE)

EXECUTING = "the iterator is already executing, in this very thread"
_FORKED = "a thread was using this iterator during the fork; begin anew"


_GOING = (State.RUNNING, State.NEW)


class SharedIterator(Iterator[Any]):
    """The states of an iterator, one thread inside at a time.

    Subclasses define ``step``, ``stop`` and ``release``, and ``over_now`` if they need it.

    Attributes:
        error: What made it fail, or None.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._progress = State.NEW
        self._closed = False  # apart from it, so that no thread inside can undo a close
        self._unreleased: SimpleQueue[None] = SimpleQueue()  # whoever gets the entry releases
        self._unreleased.put(None)
        self._lock = threading.Lock()
        self._inside = 0  # the thread that holds the lock and is at work
        self._reentered = False  # by the thread inside, during its step
        self._exits: SimpleQueue[None] = SimpleQueue()
        self._pid = os.getpid()

    def step(self) -> Any:
        """The next result, with no other thread inside.

        Raises:
            StopIteration: There is none.
        """
        raise NotImplementedError

    def stop(self) -> None:
        """Makes threads of its own end, and wakes the thread that waits inside, if any: its step
        raises something. Must not wait; any thread may call it at any time."""

    def release(self) -> None:
        """Releases files and threads. Called once, with no thread inside."""

    def reentered(self) -> Any:
        """The answer to the thread inside, which asks for a result in the middle of a step: in a
        function that the step calls, or in a signal handler. The step fails, too: a chain that
        drew on this iterator would be at its end, and lose what the step gives."""
        self._reentered = True
        raise ValueError(EXECUTING)

    def entered(self) -> bool:
        """Whether this thread is inside."""
        return self._inside == get_ident()

    def over_now(self) -> None:
        """Called after the step by which the iterator ended or failed, with no thread inside."""

    @property
    def state(self) -> State:
        if self._forked():
            return State.FORKED
        return State.CLOSED if self._closed else self._progress

    def __next__(self) -> Any:
        thread = get_ident()
        if self._inside == thread:
            return self.reentered()
        if self._closed:  # nobody needs to wait for a thread inside to know that
            self._end(StopIteration())
            raise StopIteration
        if self._pid != os.getpid() and self._forked():
            raise RuntimeError(_FORKED)
        try:
            with self._lock:
                self._inside = thread
                try:
                    if self._closed or self._progress not in _GOING:
                        raise StopIteration
                    self._reentered = False
                    result = self.step()
                    if self._closed:
                        raise StopIteration
                    if self._reentered:
                        raise ValueError(EXECUTING)
                    self._progress = State.RUNNING
                    return result
                finally:
                    self._inside = 0
        except BaseException as error:  # an interrupt, too, wherever it comes
            closed = self._closed
            self._end(error)
            if closed and isinstance(error, Exception):  # the close may be its cause
                raise StopIteration from None
            raise
        finally:
            self._leave()

    def _end(self, error: BaseException) -> None:
        """Notes how the iterator ended, if it did so just now."""
        if self._progress not in _GOING:
            return
        if isinstance(error, StopIteration):
            self._progress = State.ENDED
        else:
            self._progress, self.error = State.FAILED, error
        self.stop()
        self.over_now()

    def exclusively(self, function: Callable[..., T], *arguments: Any) -> T:
        """function(*arguments) with no other thread inside."""
        thread = get_ident()
        if self._inside == thread:
            raise ValueError(EXECUTING)
        if self._forked():
            raise RuntimeError(_FORKED)
        try:
            with self._lock:
                self._inside = thread
                try:
                    return function(*arguments)
                finally:
                    self._inside = 0
        finally:
            self._leave()

    def _leave(self) -> None:
        """Ends what a close in the meantime has left to the thread inside."""
        if self._closed and not self._unreleased.empty():
            self._exits.put(None)
            self._release_once()

    def close(self) -> None:
        """Ends the iteration. Waits for a thread inside, but not forever."""
        self._closed = True
        if self._forked():
            return
        for seconds in _WAITS:
            self.stop()  # again each time: a step may have begun to wait just after the last
            if self._inside in (0, get_ident()):
                break
            with suppress(Empty):
                self._exits.get(timeout=seconds)
        self._release_once()

    @contextmanager
    def reopening(self) -> Iterator[None]:
        """The thread inside makes the iterator new again: it is, unless an exception is raised.

        Raises:
            ValueError: The iterator is ended or failed.
        """
        if self._progress not in _GOING:
            raise ValueError("the iterator is at its end; load the state into a new one")
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
        # A thread that comes in now sees that the iterator is closed, and leaves.
        if self._inside:  # that thread does it when it leaves
            return
        try:
            self._unreleased.get_nowait()
        except Empty:
            return
        self.release()

    def _forked(self) -> bool:
        """Whether this process was forked while another thread was inside."""
        if self._pid == os.getpid() or self._inside == get_ident():
            return False
        if not acquirable(self._lock):
            return self._pid != os.getpid()  # or a thread of this process has come in just now
        self._pid = os.getpid()
        return False
