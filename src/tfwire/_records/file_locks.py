"""Locks between writers of one file. They are advisory: other programs may ignore them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os

__all__ = ["lock_to_append", "lock_to_write", "unlock", "wait_for_lock"]

# Errors of file systems without locks. There only the checks of FileSink remain.
_UNSUPPORTED = errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EBADF


def lock_to_append(fd: int, path: str) -> None:
    """Locks a file that is appended to against every other writer.

    Raises:
        BlockingIOError: Another writer has the file open.
    """
    _lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path)


def lock_to_write(fd: int, path: str) -> None:
    """Locks a file that is overwritten against writers that append.

    Raises:
        BlockingIOError: A writer is appending to the file.
    """
    _lock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, path)


def unlock(fd: int) -> None:
    """Releases the lock of a file, also if a forked process still has the file open."""
    with contextlib.suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)


def wait_for_lock(fd: int, path: str) -> bool:
    """Waits for the exclusive lock of a file.

    Returns:
        False if the file system has no locks.
    """
    return _lock(fd, fcntl.LOCK_EX, path)


def _lock(fd: int, operation: int, path: str) -> bool:
    try:
        fcntl.flock(fd, operation)
        return True
    except BlockingIOError:
        raise BlockingIOError(
            errno.EWOULDBLOCK, "another writer has the file open", os.fspath(path)
        ) from None
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
