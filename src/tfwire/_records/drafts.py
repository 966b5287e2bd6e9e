"""Files that are written under a temporary name and take their own name when complete."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator

from tfwire._records.sources import Path

__all__ = [
    "Draft",
    "check_replaceable",
    "grant",
    "named",
    "open_draft",
    "remove",
    "spared",
    "sync_folder",
]

_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC


class Draft:
    """A new file under a temporary name.

    The name is hidden, random and short, so that it fits wherever a file name fits. Until the file
    is complete, only its owner may read it. A process that is killed leaves the file behind.

    Args:
        folder: Where the file will be.

    Attributes:
        path: The temporary name.
        fd: A file descriptor to write to, or -1 after ``release``.
        mode: The permissions that a new file has in this folder, by the umask.

    Raises:
        OSError: The file cannot be created.
    """

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, f".tfwire-{secrets.token_hex(8)}.tmp")
        self.fd = self._create(0o666)
        try:
            self.mode = stat.S_IMODE(os.fstat(self.fd).st_mode)
            if self.mode & 0o077:  # somebody may have it open already, and see what is written
                self.discard()
                self.fd = self._create(0o600)
        except BaseException:
            self.discard()
            raise

    def _create(self, mode: int) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, mode)

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """A file descriptor to append to the released file."""
        fd = open_draft(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            yield fd
        finally:
            os.close(fd)

    def release(self) -> None:
        """Closes the file descriptor."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def publish(self, target: str, like: Path | None = None) -> None:
        """Puts the complete file on disk under its own name.

        Args:
            target: The name, in the same folder.
            like: As for ``grant``.

        Raises:
            OSError: The file has its temporary name still, unless only the folder could not be
                synced.
        """
        os.fsync(self.fd)
        grant(self.fd, target, self.mode, like)
        self.release()
        os.replace(self.path, target)
        sync_folder(os.path.dirname(target))

    def discard(self) -> None:
        """Removes the file."""
        with contextlib.suppress(OSError):
            self.release()
        remove(self.path)


def open_draft(path: str, flags: int) -> int:
    """Opens a temporary file of ours. In a folder in which others may write, something else may
    have its name by now.

    Raises:
        OSError: It is a link to a file, by either kind of link.
    """
    fd = os.open(path, flags | _OPEN)
    try:
        if os.fstat(fd).st_nlink > 1:
            raise OSError(errno.EMLINK, "the temporary file has another name", path)
    except BaseException:
        os.close(fd)
        raise
    return fd


# ---- Permissions ------------------------------------------------------------------------------


def grant(fd: int, target: str, mode: int, like: Path | None = None) -> None:
    """Gives a new file the owner and the permissions of the file it will replace.

    The owner is kept as far as this process may do that. Where the group cannot be kept, its new
    group gets no more than everybody.

    Args:
        fd: The new file.
        target: The name that it will take.
        mode: Its permissions if there is no such file.
        like: A file whose permissions it must not exceed then.
    """
    try:
        old = os.stat(target)
    except FileNotFoundError:
        _change_mode(fd, mode & _mode_of(like))
        return
    mode = old.st_mode & 0o777
    if not _change_owner(fd, old):
        mode = mode & ~0o070 | (mode & mode << 3 & 0o070)
    _change_mode(fd, mode)


def _mode_of(path: Path | None) -> int:
    """The permissions of a file; all where there is none."""
    with contextlib.suppress(FileNotFoundError):
        if path is not None:
            return os.stat(path).st_mode & 0o777
    return 0o777


def _change_mode(fd: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        os.fchmod(fd, mode)


def _change_owner(fd: int, old: os.stat_result) -> bool:
    """Tries to give a file the owner of another, or at least its group. Whether it has the group
    then."""
    for owner in (old.st_uid, -1):
        new = os.fstat(fd)
        if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
            break
        with contextlib.suppress(OSError):  # only root may do all of it
            os.fchown(fd, owner, old.st_gid)
    return os.fstat(fd).st_gid == old.st_gid


# ---- Names ------------------------------------------------------------------------------------


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Makes an OSError name a file as the user knows it, and not its temporary name."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


@contextlib.contextmanager
def spared(path: str) -> Iterator[None]:
    """Makes an OSError for want of file descriptors name what the user wants to open, and not what
    that takes besides: no marker is in the way."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            error.filename = path
        raise


def check_replaceable(path: str) -> None:
    """Refuses to replace anything but a regular file. Replacing a device such as /dev/null would
    turn its name into a regular file.

    Raises:
        IsADirectoryError: It is a folder.
        FileExistsError: It is a device, a pipe or a socket.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(mode):
            raise FileExistsError(errno.EEXIST, "a device or pipe cannot be replaced", path)


def remove(path: str) -> None:
    """Removes a file, if it is there and can be removed."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def sync_folder(folder: str) -> None:
    """Makes new names in a folder durable, where the file system supports that."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)
