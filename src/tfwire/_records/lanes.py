"""Work on several files side by side, and on each of them in order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore
from typing import Any

from tfwire._records.guarded import again

__all__ = ["Lanes"]

_MOST = 8  # pieces of work that may wait in a lane, some hundred KiB of records each


class Lanes:
    """Threads, each with a queue of its own: what is given for one number is done by one thread,
    in the order in which it was given.

    After a piece of work that failed none is begun, in any lane.

    Args:
        count: How many threads; 1: none, work is done at once by the thread that gives it.
    """

    def __init__(self, count: int) -> None:
        pools = range(count) if count > 1 else ()
        self._pools = [ThreadPoolExecutor(1, "tfwire-shard") for _ in pools]
        self._rooms = [Semaphore(_MOST) for _ in pools]
        self._failure: Exception | None = None

    def submit(self, number: int, work: Callable[..., Any], *arguments: Any) -> None:
        """Has work done; waits while its lane is full.

        Raises:
            Exception: What this or earlier work raised.
        """
        self._check()
        if not self._pools:
            work(*arguments)
            return
        lane = number % len(self._pools)
        self._rooms[lane].acquire()
        self._pools[lane].submit(self._run, lane, work, arguments)

    def wait(self) -> None:
        """Waits until all work is done.

        Raises:
            Exception: What some of it raised.
        """
        for future in [pool.submit(int) for pool in self._pools]:
            future.result()
        self._check()

    def close(self) -> None:
        """Ends the threads when they have done what they were given."""
        for pool in self._pools:
            pool.shutdown()

    def _run(self, lane: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            if self._failure is None:
                work(*arguments)
        except BaseException as error:
            self.fail(error)
        finally:
            self._rooms[lane].release()

    def fail(self, error: BaseException) -> None:
        """Begins no more work: every further call raises."""
        interrupted = RuntimeError("writing was interrupted")
        self._failure = again(error) if isinstance(error, Exception) else interrupted

    def _check(self) -> None:
        if self._failure is not None:
            raise again(self._failure)
