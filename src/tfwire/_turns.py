"""Threads that take turns at one iterator."""

from __future__ import annotations

import os
import threading

__all__ = ["Turns"]


class Turns:
    """A reentrant lock that tells a process when it was held by a thread at a fork: that thread is
    not there to release it, and what it guards is half done.

    Raises:
        RuntimeError: On entry, in such a process.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._pid = os.getpid()  # of who had it last

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            if self._pid != os.getpid():
                raise RuntimeError("a thread was using this iterator during the fork; begin anew")
            self._lock.acquire()
        self._pid = os.getpid()

    def __exit__(self, *exc_info: object) -> None:
        self._lock.release()
