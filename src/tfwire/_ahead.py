"""Work done by threads ahead of the one that asks for it, its results in order."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Ahead"]


class Ahead:
    """The results of ``work(unit)`` for every unit that ``read`` gives, in order.

    Threads take turns at reading and then work side by side. They stop when the source has ended,
    when this object is closed, and with the interpreter.

    Args:
        read: Gives the next unit, whose ``last`` says whether it is the last one; one thread at a
            time calls it.
        work: Makes a result of a unit; any thread calls it.
        num_threads: How many threads to start.
        most: Units under way at most, those included whose results wait; None: one more than
            there are threads.
    """

    def __init__(
        self,
        read: Callable[[], Any],
        work: Callable[[Any], Any],
        num_threads: int,
        most: int | None = None,
    ) -> None:
        self._read = read
        self._work = work
        self.reading = threading.Lock()  # held while a thread reads
        self._room = threading.Semaphore(most or num_threads + 1)
        self._news = threading.Condition()
        self._results: dict[int, tuple[Any, BaseException | None]] = {}
        self._num_read = 0
        self._num_given = 0
        self._ended = False
        self._pid = os.getpid()
        self._threads = [
            threading.Thread(target=self._run, name=f"tfwire-{i}", daemon=True)
            for i in range(num_threads)
        ]
        for thread in self._threads:
            thread.start()

    def next(self) -> Any:
        """The next result; waits for it. Not to be asked again behind the last, or an error.

        Raises:
            RuntimeError: The process has forked, and the threads are in the other one.
            BaseException: What ``read`` or ``work`` raised.
        """
        if self.forked:
            raise RuntimeError("the threads of this iterator did not survive the fork; begin anew")
        with self._news:
            self._news.wait_for(lambda: self._num_given in self._results)
            result, error = self._results.pop(self._num_given)
            self._num_given += 1
        self._room.release()
        if error is not None:
            raise error
        return result

    @property
    def forked(self) -> bool:
        """Whether the threads are in another process. What they were using, their locks too, is
        here for ever as it was at that moment."""
        return os.getpid() != self._pid

    def stop(self) -> None:
        """Lets the threads end after what they are doing."""
        if self.forked:
            return
        self._ended = True
        self._room.release()

    def close(self) -> None:
        """Stops the threads and waits for them."""
        self.stop()
        if not self.forked:
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        while True:
            self._room.acquire()
            with self.reading:
                if self._ended:
                    break
                number = self._num_read
                self._num_read += 1
                unit, error = _attempt(self._read)
                self._ended = self._ended or error is not None or unit.last
            result = None
            if error is None:
                result, error = _attempt(self._work, unit)
            with self._news:
                self._results[number] = result, error
                self._news.notify_all()
        self._room.release()  # the next thread shall see the end, too


def _attempt(function: Callable[..., Any], *arguments: Any) -> tuple[Any, BaseException | None]:
    """What a function returns, or raises: a thread must not end without saying so."""
    try:
        return function(*arguments), None
    except BaseException as error:
        return None, error
