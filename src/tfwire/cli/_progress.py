"""A progress line on a terminal."""

from __future__ import annotations

import sys
import threading
import time

_INTERVAL = 0.1  # seconds between two prints


class Progress:
    """How far work on files has come, as one line on stderr; silent when that is no terminal.

    Args:
        total: Bytes of all files, 0 where that is not known.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done: dict[str, int] = {}
        self._begin = self._printed = time.monotonic()
        self._lock = threading.Lock()
        self._visible = sys.stderr.isatty()

    def update(self, name: str, done: int) -> None:
        """Says how many bytes of a file are done. Threads may call it."""
        if not self._visible:
            return
        with self._lock:
            self._done[name] = done
            now = time.monotonic()
            if now - self._printed >= _INTERVAL:
                self._printed = now
                print(f"\r\033[K{self._line(now)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Takes the line away, before something else is printed or at the end."""
        if self._visible:
            with self._lock:
                print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _line(self, now: float) -> str:
        done = sum(self._done.values())
        rate = done / (now - self._begin) / 1e6
        share = (
            f"{min(done / self._total, 1):4.0%} of {self._total / 1e6:,.0f} MB"
            if self._total
            else ""
        )
        return f"{share or f'{done / 1e6:,.0f} MB'}, {rate:,.0f} MB/s"
