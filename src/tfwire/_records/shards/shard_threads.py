"""Threads that write to several files side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event, Semaphore
from typing import Any

from tfwire._base.errors import copied

_MAX_TASKS = 8  # tasks that may wait for a thread, some hundred KiB of records each


class ShardThreads:
    """Threads that write to several files side by side. The tasks of one file are done by one
    thread, in the order of submission. After a task that failed, no further task is begun.

    Args:
        count: The number of threads, which start with the files for them; with 1, or where the
            system lets none start, ``submit`` runs the task itself.
    """

    def __init__(self, count: int) -> None:
        self._most = count if count > 1 else 0
        self._pools: list[ThreadPoolExecutor] = []  # of a thread each
        self._free: list[Semaphore] = []
        self._failure: Exception | None = None

    def begin(self, num_files: int) -> None:
        """Starts a thread for each file, as far as there may be so many. One thread at a time calls
        this and ``submit``, and no signal handler in between.

        Raises:
            Exception: Raised by a task.
        """
        self._check()
        while len(self._pools) < min(num_files, self._most):
            pool = ThreadPoolExecutor(1, "tfwire-shard")
            try:
                pool.submit(int)
            except RuntimeError:  # at a limit of the system: go on with fewer
                self._most = len(self._pools)
                return
            self._free.append(Semaphore(_MAX_TASKS))
            self._pools.append(pool)

    def submit(self, number: int, task: Callable[..., Any], *arguments: Any) -> None:
        """Submits a task for a file; waits while too many are waiting for its thread.

        Raises:
            Exception: Raised by this task or an earlier one.
        """
        self.begin(number + 1)
        if not self._pools:
            task(*arguments)
            return
        thread = number % len(self._pools)
        self._free[thread].acquire()
        self._pools[thread].submit(self._run, thread, task, arguments)

    def for_each(self, count: int, function: Callable[[int], None]) -> None:
        """Calls a function with the numbers of files below a count, for which threads have begun,
        each in the thread of its file and after the tasks of that. No call is running when this
        returns or raises.

        Raises:
            Exception: Raised by a task, or a call.
        """
        self._check()
        if not self._pools:
            self._call(function, range(count))
            return
        futures: list[Future[None]] = []
        stopped = Event()
        try:
            for thread, pool in enumerate(self._pools):
                numbers = range(thread, count, len(self._pools))
                futures.append(pool.submit(self._call, function, numbers, stopped))
            wait(futures)
        except BaseException as error:
            stopped.set()
            self._join_calls()
            if isinstance(error, RuntimeError):  # closed meanwhile
                self._check()
            raise
        for future in futures:
            future.result()

    @staticmethod
    def _call(
        function: Callable[[int], None], numbers: Iterable[int], stopped: Event | None = None
    ) -> None:
        for number in numbers:
            if stopped is None or not stopped.is_set():
                function(number)

    def _join_calls(self) -> None:
        """Waits until all tasks have ended, however many interrupts come: C uses memory in them
        that is freed next. Of a task whose submission was interrupted nobody has a future."""
        interrupt: BaseException | None = None
        pools = list(self._pools)
        while pools:
            try:
                try:
                    pools[-1].submit(int).result()
                except RuntimeError:  # closed meanwhile
                    pools[-1].shutdown()
                pools.pop()
            except BaseException as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def wait(self) -> None:
        """Waits until all tasks are done.

        Raises:
            Exception: Raised by one of them.
        """
        for future in [pool.submit(int) for pool in self._pools]:
            future.result()
        self._check()

    def close(self) -> None:
        """Ends the threads once all tasks are done."""
        for pool in self._pools:
            pool.shutdown()

    def _run(self, thread: int, task: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            if self._failure is None:
                task(*arguments)
        except BaseException as error:
            self.fail(error)
        finally:
            self._free[thread].release()

    def fail(self, error: BaseException) -> None:
        """Makes every further call raise, and begins no more tasks."""
        if not isinstance(error, Exception):
            error = RuntimeError("writing was interrupted")
        self._failure = copied(error, traceback=False)

    def _check(self) -> None:
        if self._failure is not None:
            raise copied(self._failure, traceback=False)
