"""The standard streams of the command, also where they are closed, full, or nobody reads them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["OutputError", "silence_output", "standard_streams"]


class OutputError(Exception):
    """Standard output takes no more. Not an OSError: no file that is read or written is at fault.

    Attributes:
        broken_pipe: Its reader has left.
    """

    def __init__(self, cause: OSError) -> None:
        super().__init__(f"standard output: {cause.strerror or cause}")
        self.broken_pipe = cause.errno in (errno.EPIPE, errno.ESHUTDOWN)


class _Output:
    """Standard output: what cannot be written is an OutputError."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: Any) -> int:
        return int(self._call(self._stream.write, data))

    def flush(self) -> None:
        self._call(self._stream.flush)

    @property
    def buffer(self) -> Any:
        """Takes bytes."""
        return type(self)(self._stream.buffer)

    def _call(self, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except OSError as error:
            raise OutputError(error) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Complaints(_Output):
    """Standard error: what cannot be written there cannot be told anywhere."""

    def _call(self, function: Any, *arguments: Any) -> Any:
        with contextlib.suppress(OSError):
            return function(*arguments)
        return 0


@contextlib.contextmanager
def standard_streams() -> Iterator[None]:
    """Puts streams into ``sys`` that are there and blame nobody else."""
    before = sys.stdin, sys.stdout, sys.stderr
    _occupy_descriptors()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names may be any bytes
    streams: Any = sys
    streams.stdin = before[0] or os.fdopen(0, closefd=False)
    streams.stdout = _Output(before[1] or os.fdopen(1, "w", closefd=False))
    streams.stderr = _Complaints(before[2] or os.fdopen(2, "w", closefd=False))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def _occupy_descriptors() -> None:
    """Opens those of the first three descriptors that are closed, so that no file gets their
    numbers. Reading from standard input, and writing to standard output, stay errors."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_WRONLY)


def silence_output() -> None:
    """Sends what is still buffered nowhere: the interpreter flushes it at its end."""
    with contextlib.suppress(OSError, ValueError):  # a stream of a test has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
