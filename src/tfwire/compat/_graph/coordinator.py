"""tf.train.Coordinator, which stops the user's threads."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tfwire.compat._errors import Explained, OutOfRangeError

__all__ = ["Coordinator"]


class Coordinator(Explained):
    """Asks threads to stop, and raises the error that one of them stopped for.

    Args:
        clean_stop_exception_types: Exceptions that stop the threads and are not errors; None:
            OutOfRangeError, which readers raise at their end.

    Example:
        >>> import tfwire.compat as tf
        >>> coordinator = tf.train.Coordinator()
        >>> coordinator.request_stop()
        >>> coordinator.should_stop()
        True
        >>> coordinator.join([])
    """

    _tf_name = "train.Coordinator"

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean = tuple(clean_stop_exception_types or (OutOfRangeError,))
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._threads: set[threading.Thread] = set()
        self._joined = False

    @property
    def joined(self) -> bool:
        return self._joined

    def should_stop(self) -> bool:
        """True once a stop was requested."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop.

        Args:
            ex: Why: an exception, or what ``sys.exc_info()`` returned; ``join`` raises the first.
        """
        error = ex[1] if isinstance(ex, tuple) else ex
        with self._lock:
            first = self._error is None and not self._stop.is_set()
            if first and error is not None and not isinstance(error, self._clean):
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Forgets that a stop was requested, and why."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until a stop is requested; False if that takes longer than ``timeout`` seconds."""
        return self._stop.wait(timeout)

    def raise_requested_exception(self) -> None:
        """Raises the exception that a stop was requested with, if there is one."""
        if self._error is not None:
            raise self._error

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Turns an exception of the ``with`` block into a request to stop."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that ``join`` waits for."""
        with self._lock:
            self._threads.add(thread)

    def join(
        self,
        threads: Iterable[Any] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits for the threads to end, then raises what a stop was requested with.

        Args:
            threads: Threads to wait for in addition to the registered ones.
            stop_grace_period_secs: How long threads may go on after a stop was requested.
            ignore_live_threads: Do not raise for threads that go on longer.

        Raises:
            RuntimeError: A thread did not end in time.
        """
        waiting = self._threads.union(threads or ())
        while any(thread.is_alive() for thread in waiting) and not self._stop.wait(0.05):
            pass
        deadline = monotonic() + stop_grace_period_secs
        for thread in waiting:
            thread.join(max(0.0, deadline - monotonic()))
        self._joined = True
        self._threads.clear()
        self.raise_requested_exception()
        alive = [thread.name for thread in waiting if thread.is_alive()]
        if alive and not ignore_live_threads:
            raise RuntimeError(
                f"Coordinator stopped with threads still running: {' '.join(sorted(alive))}"
            )
