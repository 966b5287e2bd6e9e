"""Worker threads that prefetch results for an iterator."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import get_ident
from types import SimpleNamespace
from typing import Any

from tfwire._base import system
from tfwire._base.iterator_threads import EXECUTING, Service, services

# Seconds that close() waits for a busy thread: a read of a pipe or a user's function may never
# return.
PATIENCE = 1.0
# Permissions to read that are given out at first. The others follow as units are read: there may be
# any number.
_ROOM_AT_FIRST = 1024
_CLOSED = "the iterator is closed"


class Workers:
    """Threads that compute ``work(unit)`` for every unit that ``read`` returns; results in order.

    One thread at a time reads; then they work side by side. They end after the last unit, after an
    error of ``read``, when this object is stopped, and with the interpreter.

    No thread waits in a Condition, only in ``SimpleQueue.get`` and for plain locks, each one call
    into C: a signal handler that raises there leaves no lock in a wrong state. ``put`` is safe in
    signal handlers and finalizers. Each flag is set by one side only, so no thread can undo what
    another one asked for.

    Args:
        read: Returns the next unit, whose ``last`` says whether it is the last one. One thread at
            a time calls it.
        work: Turns a unit into a result; any thread calls it. None: units are the results.
        num_threads: How many threads to start.
        most: Largest number of units in progress, including results not yet taken. None: the
            number of threads plus one.
        owner: An object that the threads hold no reference to. They end when it is dropped.

    Attributes:
        stopped: Whether ``stop`` was called, or ``next`` was interrupted.
        service: What the threads work for.

    Raises:
        RuntimeError: No thread can be started.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        work: Callable[[Any], Any] | None,
        num_threads: int,
        most: int | None = None,
        *,
        owner: Any,
    ) -> None:
        self._read = read
        self._work = work
        self._reading = threading.Lock()  # held while a thread reads
        self._room: SimpleQueue[bool] = SimpleQueue()  # True: read a unit; False: end
        self._units: SimpleQueue[Any] = SimpleQueue()  # a queue per result; None: no more
        self._awaited: SimpleQueue[Any] | None = None  # that of the result that next waits for
        self._exits: SimpleQueue[None] = SimpleQueue()  # an entry per thread that has ended
        self.stopped = False
        self.service = Service(owner)
        self._read_all = False
        self._release: Callable[[], None] | None = None
        self._counting = threading.Lock()
        self._inside = 1 + num_threads  # threads that have not ended, and the owner until it closes
        self._getpid = os.getpid  # module globals may be gone when a finalizer calls stop()
        self._pid = os.getpid()
        self._threads: list[threading.Thread] = []
        self._dropped = weakref.finalize(owner, self.stop)
        most = most or num_threads + 1
        self._more_room = max(0, most - _ROOM_AT_FIRST)
        for _ in range(most - self._more_room):
            self._room.put(True)
        try:
            for i in range(num_threads):
                self._start(f"tfwire-{i}")
        except BaseException:
            self.stop()
            # A thread that was interrupted while it started stays in a list of Python's: it must
            # not keep what is read.
            self._read, self._work = _last_unit, None
            raise

    def _start(self, name: str) -> None:
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        before = sys.exc_info()[1]
        _running[thread] = self
        try:
            thread.start()
        except RuntimeError as error:
            _running.pop(thread, None)
            # start() waits in a Condition, which a raising signal handler may leave unlocked.
            if (cause := error.__context__) is not None and cause is not before:
                raise cause from None
            self._leave()
            if not self._threads:
                raise
            return  # at a limit of the system: go on with fewer
        self._threads.append(thread)

    # ---- The consumer -------------------------------------------------------------------------

    def next(self) -> Any:
        """Waits for the next result and returns it.

        Raises:
            RuntimeError: There is none: the last one was returned, this object was stopped
                (perhaps during the wait), or the process forked and the threads are in the parent.
            ValueError: The threads wait for the one that calls this.
            BaseException: What ``read`` or ``work`` raised.
        """
        if self.forked:
            raise RuntimeError("the threads of this iterator did not survive the fork; start again")
        service = self.service
        service.consumer = thread = get_ident()
        try:
            if thread in services and service.needs(thread):
                raise ValueError(EXECUTING)
            # In this order: stop() sets its flag before it looks for what is waited for.
            self._awaited = unit = self._units.get()
            if unit is None or self.stopped:
                self._units.put(None)
                raise RuntimeError(_CLOSED)
            result, error = unit.get()
        except BaseException:  # also an interrupt: it may have lost a result, so none may follow
            self.stop()
            raise
        finally:
            self._awaited, service.consumer = None, 0
        self._room.put(True)
        if error is not None:
            try:
                raise error
            finally:
                del error  # whose traceback has this frame: no collection is waited for
        return result

    @property
    def ready(self) -> bool:
        """Whether a unit was read for ``next``, or reading has ended."""
        return not self._units.empty()

    @property
    def forked(self) -> bool:
        """Whether the threads are in the parent process. What they were using, including locks,
        stays forever in the state that it had at the fork."""
        return self._getpid() != self._pid

    def stop(self) -> None:
        """Makes the threads end after their current step, and ``next`` raise. Never waits."""
        if not self.forked:
            self.stopped = True
            self._room.put(False)
            self._units.put(None)
            awaited = self._awaited
            if awaited is not None:  # the work may take long, or never end
                awaited.put((None, RuntimeError(_CLOSED)))
        # Python loses an interrupt that arrives in a finalizer. Last, so that an interrupt of this
        # method leaves the finalizer.
        self._dropped.detach()

    def close(self, release: Callable[[], None] | None = None) -> None:
        """Stops the threads and waits for them, but not forever, and not where they wait for the
        thread that calls this.

        Args:
            release: Called once when all threads have ended: before this method returns or, if a
                thread does not end within a second, by that thread when it ends. Never called in a
                forked child.
        """
        if self.forked:
            return
        self._release = release
        self.stop()
        try:
            if not self.service.needs(get_ident()):
                self._wait()
        finally:
            self._leave()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        self.service.consumer = get_ident()  # what this thread is inside of refuses the others
        try:
            for _ in self._threads:
                self._exits.get(timeout=max(0.0, deadline - time.monotonic()))
            for thread in self._threads:  # about to end
                thread.join(PATIENCE)
        except Empty:
            pass
        finally:
            self.service.consumer = 0

    # ---- The threads --------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            with self.service:
                while self._room.get() and self._do_one():
                    pass
        finally:
            self._room.put(False)  # the next thread must see the end too
            self._units.put(None)
            self._leave()
            self._exits.put(None)
            _running.pop(threading.current_thread(), None)

    def _do_one(self) -> bool:
        """Reads a unit and makes its result; False at the end."""
        result: SimpleQueue[Any] = SimpleQueue()
        with self._reading:
            if self.stopped or self._read_all:
                return False
            unit, error = _attempt(self._read)
            self._read_all = error is not None or unit.last
            self._units.put(result)
            if self._more_room:
                self._more_room -= 1
                self._room.put(True)
        if error is None and self._work is not None:
            unit, error = _attempt(self._work, unit)
        result.put((unit, error))
        del error  # as in next()
        return True

    def _leave(self) -> None:
        with self._counting:
            self._inside -= 1
            last = self._inside == 0
        if last and self._release is not None:
            self._release()


# The threads that run, and whose they are.
_running: dict[threading.Thread, Workers] = {}
system.after_fork(_running.clear)


@atexit.register
def _end_all() -> None:
    """Ends the threads before the interpreter does. It would stop them where they come back from a
    call to C; where that is C++, as in torch, the process aborts."""
    deadline = time.monotonic() + PATIENCE
    for workers in set(_running.values()):
        workers.stop()
    for thread in filter(threading.Thread.is_alive, list(_running)):
        thread.join(max(0.0, deadline - time.monotonic()))


def _last_unit() -> Any:
    """Replaces ``read`` when it is no longer needed: an empty unit, which is the last."""
    return SimpleNamespace(last=True)


def _attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """What a function returns, and what it raises."""
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error


def acquirable(lock: threading.Lock) -> bool:
    """Whether a lock can be acquired now, or very soon. In a forked child, ``locked()`` may be
    False for a lock that nobody can acquire: another thread was about to return from it."""
    if not lock.acquire(timeout=0.01):
        return False
    lock.release()
    return True
