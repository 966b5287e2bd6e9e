"""Waiting for the input of a pipe, a socket or a device, until another thread ends the wait."""

from __future__ import annotations

import os
import threading
import weakref

from tfwire._base import system

__all__ = ["Waiting"]


class Waiting:
    """Waits for the input of a pipe, a socket or a device."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may call end() during wait()
        self._ended = False
        self._pipe: tuple[int, int] | None = None  # a byte written to it ends a wait

    def wait(self, fd: int) -> None:
        """Waits until a file has input or has ended.

        Raises:
            ValueError: ``end`` was called.
        """
        with self._lock:
            if not self._ended and self._pipe is None:
                self._pipe = os.pipe()
                self._dropped = weakref.finalize(self, _close_both, self._pipe)
            pipe = self._pipe
        if pipe is not None and not self._ended:
            system.wait_for_input(fd, pipe[0])
        if self._ended:
            raise ValueError("the reader was closed while it waited for input")

    def end(self) -> None:
        """Ends the current wait and all later ones. Any thread may call it."""
        with self._lock:
            self._ended = True
            if self._pipe is not None:
                os.write(self._pipe[1], b"\0")

    def close(self) -> None:
        """Closes what ``wait`` has opened. No thread may be waiting."""
        with self._lock:
            pipe, self._pipe, self._ended = self._pipe, None, True
        if pipe is not None:
            self._dropped()


def _close_both(pipe: tuple[int, int]) -> None:
    for fd in pipe:
        os.close(fd)
