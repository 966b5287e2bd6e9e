"""Locks between writers of one file. They are advisory: other programs may ignore them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from tfwire._base import system

# Errors of file systems without locks. There only the checks of FileSink remain.
_UNSUPPORTED = errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EBADF


def lock_to_append(fd: int, path: str) -> None:
    """Locks a file that is appended to against every other writer.

    Raises:
        BlockingIOError: Another writer has the file open.
    """
    _locked(lambda: system.try_lock(fd), path)


def lock_to_write(fd: int, path: str) -> None:
    """Locks a file that is overwritten against writers that append.

    Raises:
        BlockingIOError: A writer is appending to the file.
    """
    _locked(lambda: system.try_lock(fd, shared=True), path)


def wait_for_lock(fd: int, path: str) -> bool:
    """Waits for the exclusive lock of a file.

    Returns:
        False if the file system has no locks.
    """
    return _locked(lambda: system.lock(fd), path)


def _locked(lock: Callable[[], None], path: str) -> bool:
    """Whether there are locks here; then the file has one now."""
    try:
        lock()
        return True
    except BlockingIOError:
        raise BlockingIOError(
            errno.EWOULDBLOCK, "another writer has the file open", os.fspath(path)
        ) from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
