"""What differs between systems: POSIX, where all of this is tested, and Windows.

Other modules call what is here and nothing of ``os`` that Windows lacks; mypy holds them to it, by
``--platform win32``. What a system lacks is done in another way or left out, as each function says.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from collections.abc import Callable, Sequence
from typing import Any

from tfwire._base.native import call, ffi, lib

# Flags for os.open, which lets no child process inherit a file.
BINARY: int = getattr(os, "O_BINARY", 0)  # else Windows changes the ends of lines
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
NON_BLOCKING: int = getattr(os, "O_NONBLOCK", 0)
_FOLDER: int | None = getattr(os, "O_DIRECTORY", None)

# Whether a file that is open can be removed or replaced. On Windows it cannot, whoever opened it.
REMOVES_OPEN_FILES = _FOLDER is not None


# ---- Reading and writing ----------------------------------------------------------------------


def pread_into(fd: int, buffer: Any, offset: int) -> int:
    """Fills a writable buffer from an offset of a file; returns how many bytes, fewer only if the
    file ends."""
    got, room = ffi.new("size_t *"), ffi.from_buffer("uint8_t[]", buffer, require_writable=True)
    call(lib.tfw_read_at, fd, room, len(room), offset, got)
    return int(got[0])


def _pread(fd: int, size: int, offset: int, /) -> bytes:
    room = bytearray(size)
    del room[pread_into(fd, room, offset) :]
    return bytes(room)


def _readv(fd: int, buffers: Sequence[Any], /) -> int:
    (buffer,) = buffers
    piece = os.read(fd, len(buffer))
    buffer[: len(piece)] = piece
    return len(piece)


def _writev(fd: int, buffers: Sequence[Any], /) -> int:
    return os.write(fd, buffers[0])


# os.pread, os.readv of one buffer, and os.writev, which may write less.
pread: Callable[[int, int, int], bytes] = getattr(os, "pread", _pread)
readv: Callable[[int, Sequence[Any]], int] = getattr(os, "readv", _readv)
writev: Callable[[int, Sequence[Any]], int] = getattr(os, "writev", _writev)


_poll: Any = getattr(select, "poll", None)
_INPUT: int = getattr(select, "POLLIN", 1)


def wait_for_input(*fds: int) -> None:
    """Waits until one of some pipes or devices has input or has ended. Where there is no poll, the
    read that follows waits, and nothing wakes it."""
    if _poll:
        waiting = _poll()
        for fd in fds:
            waiting.register(fd, _INPUT)
        waiting.poll()


# ---- Locks ------------------------------------------------------------------------------------

_SECONDS_BETWEEN_TRIES = 0.02


def try_lock(fd: int, shared: bool = False) -> None:
    """Locks a file against other openings of it, until it is unlocked or closed.

    Args:
        fd: The file.
        shared: Others may share the lock.

    Raises:
        BlockingIOError: Another has the lock.
        OSError: There are no locks here.
    """
    os.fstat(fd)  # of no file, the C library of Windows would end the process
    while True:
        with contextlib.suppress(InterruptedError):  # a server of files was asked
            call(lib.tfw_lock_file, fd, lib.TFW_LOCK_SHARED if shared else 0)
            return


def lock(fd: int) -> None:
    """As ``try_lock``, not shared, but waits for the lock."""
    while True:
        with contextlib.suppress(BlockingIOError):
            return try_lock(fd)
        time.sleep(_SECONDS_BETWEEN_TRIES)


def unlock(fd: int) -> None:
    """Releases the lock of a file, if it has one, also if a forked process has the file open."""
    with contextlib.suppress(OSError):
        os.fstat(fd)
        call(lib.tfw_unlock_file, fd)


# ---- Names, owners and permissions ------------------------------------------------------------


def sync_folder(folder: str) -> None:
    """Makes new names in a folder durable, where the file system supports that. Windows cannot
    open a folder."""
    if _FOLDER is None:
        return
    fd = os.open(folder, os.O_RDONLY | _FOLDER)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


def link(path: str, name: str) -> None:
    """Gives a file a second name. A symbolic link is not followed, except on Windows."""
    if os.link in os.supports_follow_symlinks:
        os.link(path, name, follow_symlinks=False)
    else:
        os.link(path, name)


def is_own(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process. Windows does not say."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def is_null_device(status: os.stat_result) -> bool:
    """Whether a device is the one that holds nothing; False where devices have no number."""
    null = os.stat(os.devnull)
    return getattr(status, "st_rdev", None) == getattr(null, "st_rdev", -1)


def change_mode(fd: int, mode: int) -> None:
    """Sets the permissions of a file; on Windows they are those of its folder."""
    if hasattr(os, "fchmod"):
        os.fchmod(fd, mode)


def change_owner(fd: int, owner: int, group: int) -> None:
    """Sets the owner and group of a file, where it has them; -1: they stay."""
    if hasattr(os, "fchown"):
        os.fchown(fd, owner, group)


def set_attribute(path: str | os.PathLike[str], name: str, value: bytes) -> None:
    """Notes a value at a file, where the file system has extended attributes."""
    if hasattr(os, "setxattr"):
        with contextlib.suppress(OSError):
            os.setxattr(path, name, value)


def get_attribute(fd: int, name: str) -> bytes | None:
    """What ``set_attribute`` noted at an open file, or None."""
    if hasattr(os, "getxattr"):
        with contextlib.suppress(OSError):
            return bytes(os.getxattr(fd, name))
    return None


# ---- Processes --------------------------------------------------------------------------------


def num_cpus() -> int:
    """The number of CPUs that this process may use, where the system says, or of all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def after_fork(function: Callable[[], object]) -> None:
    """Has a function called in every child that is forked. Windows does not fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class Process:
    """This process.

    Attributes:
        number: Its number, which a forked child has another of: the system is not asked each time.
    """

    def __init__(self) -> None:
        self.renew()
        after_fork(self.renew)

    def renew(self) -> None:
        self.number = os.getpid()


process = Process()
