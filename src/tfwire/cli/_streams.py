"""The standard streams of the command, their errors, and the progress line."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

_COLORS = {"bold": 1, "dim": 2, "red": 31, "green": 32, "cyan": 36}  # of ECMA-48


class OutputError(Exception):
    """Writing to standard output failed. Not an OSError: those are about the command's files.

    Attributes:
        broken_pipe: Its reader has ended.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"standard output: {cause.strerror or cause}")
        self.broken_pipe = cause.errno in (errno.EPIPE, errno.ESHUTDOWN)


class _Output:
    """Standard output; failed writes raise OutputError."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._call(self._stream.write, data))

    def flush(self) -> None:
        self._call(self._stream.flush)

    @property
    def buffer(self) -> Any:
        """The binary stream."""
        return type(self)(self._stream.buffer)

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except OSError as error:
            raise OutputError(error) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _ErrorOutput(_Output):
    """Standard error; failed writes are ignored, as they can be reported nowhere."""

    def _call(self, function: Any, *arguments: Any) -> Any:
        with contextlib.suppress(OSError):
            return function(*arguments)
        return 0


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Replaces the streams in ``sys`` with open ones whose errors are OutputErrors."""
    before = sys.stdin, sys.stdout, sys.stderr
    _occupy_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names may be any bytes
    streams: Any = sys
    streams.stdin = before[0] or os.fdopen(0, closefd=False)
    streams.stdout = _Output(before[1] or os.fdopen(1, "w", closefd=False))
    streams.stderr = _ErrorOutput(before[2] or os.fdopen(2, "w", closefd=False))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """Opens those of the first three file descriptors that are closed, so that no file gets their
    numbers. Reading from standard input and writing to standard output remain errors."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_WRONLY)


def silence_output() -> None:
    """Discards what is still buffered: the interpreter flushes it at exit."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor, in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def colored(text: str, color: str, stream: Any) -> str:
    """Text for a stream: in a color if that is a terminal, unless NO_COLOR is set
    (https://no-color.org) or the terminal is dumb."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not stream.isatty():
        return text
    return f"\033[{_COLORS[color]}m{text}\033[m"


_INTERVAL = 0.1  # seconds between two prints


class Progress:
    """A progress line on stderr; silent if stderr is not a terminal.

    Args:
        total: Bytes of all files, 0 if unknown.
    """

    def __init__(self, total: int) -> None:
        import threading

        self._total = total
        self._done: dict[str, int] = {}
        self._begin = self._printed = time.monotonic()
        self._lock = threading.Lock()
        self._visible = sys.stderr.isatty()

    def update(self, name: str, done: int) -> None:
        """Reports how many bytes of a file are done. Thread-safe."""
        if not self._visible:
            return
        with self._lock:
            self._done[name] = done
            now = time.monotonic()
            if now - self._printed >= _INTERVAL:
                self._printed = now
                print(f"\r\033[K{self._line(now)}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Removes the line, before other output or at the end."""
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
