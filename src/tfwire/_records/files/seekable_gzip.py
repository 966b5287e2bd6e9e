"""Gzip files inflated by several threads, and from the middle, by rapidgzip where it is installed.

rapidgzip (extra "gzip") notes places in the compressed file from which it can inflate, as it comes
to them. Where it meets damage, or an end that is none, it does not say exactly what is wrong: then
the reader of inflate.py goes over the file again, and does.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from importlib import import_module
from typing import Any

from tfwire._records.files.byte_sources import FileSource, Source
from tfwire._records.files.paths import Path

try:
    _rapidgzip: Any = import_module("rapidgzip")
except ImportError:
    _rapidgzip = None

# Smaller files are inflated from their beginning about as fast.
_LEAST_BYTES = 1 << 20


class NotReadable(Exception):
    """rapidgzip cannot read on: the file is damaged, or was cut."""


class SeekableGzip:
    """A gzip file whose content can be read from any place on.

    Args:
        fd: The file, which this object closes.
        num_threads: How many threads inflate.

    Raises:
        NotReadable: It does not begin as a gzip file does.
    """

    def __init__(self, fd: int, num_threads: int) -> None:
        self._size = os.fstat(fd).st_size
        self._pid = os.getpid()
        try:
            self._file = _rapidgzip.open(fd, parallelization=num_threads)
        except Exception as error:
            os.close(fd)
            raise NotReadable(str(error)) from None
        # An object that is alive when the interpreter ends would end the process by a signal.
        self.close = weakref.finalize(self, _close, self._file, fd, self._pid)

    def seek(self, offset: int) -> None:
        """Goes to a place of the content.

        Raises:
            NotReadable: It cannot be reached.
        """
        self._call(self._file.seek, offset)

    def readinto(self, buffer: Any) -> int:
        """Fills some of a buffer; 0 at the end.

        Raises:
            NotReadable: The file is damaged or cut, or this is a forked child.
        """
        got = int(self._call(self._file.readinto, buffer))
        if not got and len(buffer) and -(-self._file.tell_compressed() // 8) != self._size:
            raise NotReadable("the file ends within a stream")
        return got

    def _call(self, function: Any, argument: Any) -> Any:
        if os.getpid() != self._pid:
            raise NotReadable("its threads are in the parent process")
        try:
            return function(argument)
        except (ValueError, RuntimeError, OSError, EOFError) as error:
            raise NotReadable(str(error)) from None


class GzipContent(Source):
    """The content of a SeekableGzip, which stays open. Only one is read at a time."""

    rewindable = True
    seekable = True

    def __init__(self, file: SeekableGzip, path: Path) -> None:
        super().__init__()
        self.path = path
        self._file = file

    def rewind(self, offset: int) -> None:
        self._file.seek(offset)

    def _readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer)


def open_seekable(source: FileSource, num_threads: int = 1) -> SeekableGzip | None:
    """The content of a gzip file that is open already; None where rapidgzip is not installed, the
    file is short, or something else has its name by now."""
    size = source.size() or 0
    if _rapidgzip is None or size < _LEAST_BYTES or not source.path:
        return None
    try:
        fd = os.open(source.path, os.O_RDONLY)  # a position of its own
    except OSError:
        return None
    if not os.path.samestat(os.fstat(fd), os.fstat(source.fd)):
        os.close(fd)
        return None
    try:
        return SeekableGzip(fd, num_threads)
    except NotReadable:
        return None


def _close(file: Any, fd: int, pid: int) -> None:
    if os.getpid() == pid:
        file.close()
        os.close(fd)
    else:
        # The threads that its end would wait for are in the parent: it must not end here.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(file))
