"""Temporary files that are renamed when complete: permissions, durability."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator

from tfwire._base import system
from tfwire._records.files.paths import Path

OPEN_FLAGS = system.BINARY | system.NO_FOLLOW
NO_DESCRIPTORS = errno.EMFILE, errno.ENFILE


class Draft:
    """A new file with a temporary name.

    The name is hidden, random and short, so that it is valid wherever a file name is. Until the
    file is complete, only its owner may read it. A killed process leaves the file there.

    Args:
        folder: Where the file is created.

    Attributes:
        path: The temporary name.
        fd: A file descriptor to write to, or -1 after ``release``.
        mode: The permissions of a new file in this folder, by the umask.

    Raises:
        OSError: The file cannot be created.
    """

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, f".tfwire-{secrets.token_hex(8)}.tmp")
        self.fd = self._create(0o666)
        try:
            self.mode = stat.S_IMODE(os.fstat(self.fd).st_mode)
            if self.mode & 0o077:  # others may already have it open, and could read it
                self.discard()
                self.fd = self._create(0o600)
        except BaseException:
            self.discard()
            raise

    def _create(self, mode: int) -> int:
        try:
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, mode)
        except KeyboardInterrupt:  # it may have come after the file was created
            try_remove(self.path)
            raise

    @contextlib.contextmanager
    def opened(self) -> Iterator[int]:
        """Opens the released file to append to it."""
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
        """Syncs the complete file to disk and renames it.

        Args:
            target: The new path, in the same folder.
            like: As for ``grant``.

        Raises:
            OSError: The file still has its temporary name, unless only syncing the folder failed.
        """
        os.fsync(self.fd)
        grant(self.fd, target, self.mode, like)
        self.release()
        os.replace(self.path, target)
        system.sync_folder(os.path.dirname(target))

    def discard(self) -> None:
        """Removes the file."""
        with contextlib.suppress(OSError):
            self.release()
        try_remove(self.path)


def open_draft(path: str, flags: int) -> int:
    """Opens a temporary file by its name. Where other users may write to the folder, they may have
    replaced it.

    Raises:
        OSError: It is a symbolic link, or has another hard link.
    """
    fd = os.open(path, flags | OPEN_FLAGS)
    try:
        if os.fstat(fd).st_nlink > 1:
            raise OSError(errno.EMLINK, "the temporary file has another name", path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def grant(fd: int, target: str, mode: int, like: Path | None = None) -> None:
    """Gives a new file the permissions of the file that it will replace, and its owner and group
    if this process may set them. A group that cannot be kept gets the permissions of others.

    Args:
        fd: The new file.
        target: The path that it will get.
        mode: Its permissions if there is no such file.
        like: A file whose permissions it must not exceed in that case.
    """
    try:
        old = os.stat(target)
    except FileNotFoundError:
        _change_mode(fd, mode & _permissions(like))
        return
    mode = old.st_mode & 0o777
    if not _change_owner(fd, old):
        mode = mode & ~0o070 | (mode & mode << 3 & 0o070)
    _change_mode(fd, mode)


def _permissions(path: Path | None) -> int:
    """The permissions of a file; all of them if there is no such file."""
    with contextlib.suppress(FileNotFoundError):
        if path is not None:
            return os.stat(path).st_mode & 0o777
    return 0o777


def _change_mode(fd: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(fd).st_mode) != mode:
        system.change_mode(fd, mode)


def _change_owner(fd: int, old: os.stat_result) -> bool:
    """Tries to give a file the owner and group of another, or at least the group; returns whether
    it has the group."""
    for owner in (old.st_uid, -1):
        new = os.fstat(fd)
        if (new.st_uid, new.st_gid) == (old.st_uid, old.st_gid):
            break
        with contextlib.suppress(OSError):  # only root may change both
            system.change_owner(fd, owner, old.st_gid)
    return os.fstat(fd).st_gid == old.st_gid


@contextlib.contextmanager
def errors_naming(path: str, *numbers: int) -> Iterator[None]:
    """Makes an OSError name the file that the caller asked for, and not a temporary one.

    Args:
        path: The file.
        numbers: The errno of the errors to change, such as ``NO_DESCRIPTORS``; none: all errors.
    """
    try:
        yield
    except OSError as error:
        if not numbers or error.errno in numbers:
            error.filename = path
        raise


def check_replaceable(path: str) -> None:
    """Refuses to replace anything but a regular file, in particular devices such as /dev/null.

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


def try_remove(path: str) -> None:
    """Removes a file, if it exists and can be removed."""
    with contextlib.suppress(OSError):
        os.unlink(path)
