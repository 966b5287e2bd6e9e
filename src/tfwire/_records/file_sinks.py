"""Sinks that are files: emptied, appended to, or replaced when complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tfwire._records.append import append_position
from tfwire._records.drafts import Draft, check_replaceable, named
from tfwire._records.file_locks import lock_to_append, lock_to_write, unlock
from tfwire._records.sinks import Sink
from tfwire._records.sources import Path

__all__ = [
    "DraftSink",
    "FileSink",
    "ShardSink",
    "open_to_append",
    "open_to_write",
    "write_all",
    "write_file",
]

# What Linux and macOS take at once; macOS refuses writev of 2 GiB, where write is merely short.
_IOV_MAX = 1024
_LARGEST_WRITEV = 2**31 - 1


class FileSink(Sink):
    """An open file.

    Before each write its size is compared, so that writers that do not know of each other fail
    instead of writing over each other's records.

    Args:
        path: Its name for messages.
        fd: The file, opened for writing; this object takes it over.
        position: Where in it the next write goes: its end.
    """

    def __init__(self, path: Path, fd: int, position: int = 0) -> None:
        self._path = os.fspath(path)
        self._fd = fd
        self._position = position
        self._regular = stat.S_ISREG(os.fstat(fd).st_mode)
        self._torn = False  # whether a write has begun and failed

    def write(self, buffers: Sequence[Any]) -> None:
        try:
            self._check_size()
            self._torn = True
            self._position += write_all(self._fd, buffers)
            self._torn = False
        except OSError as error:
            error.filename = self._path
            raise

    def _check_size(self) -> None:
        if not self._regular:
            return
        size = os.fstat(self._fd).st_size
        if size != self._position:
            raise OSError(
                errno.ESTALE,
                f"the file was changed by another writer: expected {self._position} bytes, "
                f"found {size}",
            )

    def salvage(self, ends: Sequence[int]) -> int:
        if not self._torn or not self._regular:
            return 0
        taken = os.fstat(self._fd).st_size - self._position
        kept = ends[bisect_right(ends, taken) - 1] if taken > 0 else 0
        os.ftruncate(self._fd, self._position + kept)
        self._position += kept
        return kept

    def close(self) -> None:
        try:
            if self._fd >= 0:
                unlock(self._fd)
            self.abandon()
        except OSError as error:
            error.filename = self._path
            raise

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self.close()

    def abandon(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class DraftSink(FileSink):
    """A file that replaces another when it is complete and on disk. It follows symbolic links.

    Args:
        path: The file to replace; it may be missing.
        like: A file whose permissions a new file must not exceed.

    Raises:
        OSError: It cannot be created, or not be replaced.
    """

    def __init__(self, path: Path, like: Path | None = None) -> None:
        self._target = os.path.realpath(path)
        self._like = like
        check_replaceable(self._target)
        try:
            self._draft = Draft(os.path.dirname(self._target))
        except OSError as error:
            error.filename = os.fspath(path)
            raise
        try:
            super().__init__(path, self._draft.fd)
        except BaseException:
            self._draft.discard()
            raise

    def close(self) -> None:
        try:
            self._draft.publish(self._target, self._like)
        except BaseException as error:
            self.discard()
            if isinstance(error, OSError):
                error.filename = self._path
            raise

    def discard(self) -> None:
        self._draft.discard()

    def abandon(self) -> None:
        self._draft.release()


class ShardSink(Sink):
    """A file that others publish together with its siblings. It is open only while it is written
    to, so that a set may have more files than a process may open.

    Args:
        folder: Where it will be.
        name: What errors call it.

    Attributes:
        draft: The file, still under a temporary name.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._name = name
        with named(name):
            self.draft = Draft(folder)
        try:
            self.draft.release()
        except BaseException:
            self.draft.discard()
            raise

    def write(self, buffers: Sequence[Any]) -> None:
        with named(self._name), self.draft.opened() as fd:
            write_all(fd, buffers)

    def close(self) -> None:
        with named(self._name), self.draft.opened() as fd:
            os.fsync(fd)

    def discard(self) -> None:
        self.draft.discard()


def open_to_write(path: Path) -> FileSink:
    """Creates or empties a file.

    Raises:
        OSError: It cannot be opened, or a writer is appending to it.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            lock_to_write(fd, os.fspath(path))
            if os.fstat(fd).st_size:
                os.ftruncate(fd, 0)
        return FileSink(path, fd)
    except BaseException as error:
        _give_up(fd, path, error)
        raise


def open_to_append(path: Path, compression: str, repair_tail: bool) -> tuple[FileSink, int]:
    """Opens a file to continue it, or creates it.

    Returns:
        The sink, and the CRC-32C of what the file holds already.

    Raises:
        OSError: It cannot be opened, or another writer has it open.
        DataLossError, ValueError: As ``append_position``.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise ValueError(f"{os.fspath(path)}: append needs a regular file")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    try:
        lock_to_append(fd, os.fspath(path))
        end, crc32c = append_position(path, fd, compression, repair_tail)
        if os.fstat(fd).st_size != end:
            os.ftruncate(fd, end)
        return FileSink(path, fd, end), crc32c
    except BaseException as error:
        _give_up(fd, path, error)
        raise


def _give_up(fd: int, path: Path, error: BaseException) -> None:
    with contextlib.suppress(OSError):
        os.close(fd)
    if isinstance(error, OSError):
        error.filename = os.fspath(path)


def write_file(path: Path, buffers: Sequence[Any], like: Path | None = None) -> None:
    """Writes a file at once: its name shows the old content or the new, never a part.

    Args:
        path: The file.
        buffers: Its content.
        like: A file whose permissions a new file must not exceed.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    sink = DraftSink(path, like)
    try:
        sink.write(buffers)
    except BaseException:
        sink.discard()
        raise
    sink.close()


def write_all(fd: int, buffers: Sequence[Any]) -> int:
    """Writes all bytes, however many calls that takes; their number."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    total = sum(map(len, views))
    at_once = _IOV_MAX if total <= _LARGEST_WRITEV else 1
    first = 0
    while first < len(views):
        if at_once == 1:
            written = os.write(fd, views[first])
        else:
            written = os.writev(fd, views[first : first + at_once])
        while first < len(views) and written >= len(views[first]):
            written -= len(views[first])
            first += 1
        if written:
            views[first] = views[first][written:]
    return total
