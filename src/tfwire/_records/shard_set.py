"""Giving several files their names, all or none.

A file system renames one file at a time. So that nobody takes a set that is half old and half new
for a whole one, a marker stands in the folder meanwhile, with all that is needed to put the old
files back. Whoever finds the marker of a process that is gone does that.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfwire._records.drafts import check_replaceable, grant, named, open_draft, remove, sync_folder
from tfwire._records.file_locks import wait_for_lock
from tfwire._records.file_sinks import write_all
from tfwire._records.markers import MARKER, Step, read_marker

__all__ = ["Renaming", "publish_set", "restore_set"]

_OPEN = os.O_NOFOLLOW | os.O_CLOEXEC


class Renaming(NamedTuple):
    """A file and the name that it will take, both in the folder of the set.

    Attributes:
        draft: Its temporary name.
        name: The name.
        mode: Its permissions, unless a file of that name has some.
    """

    draft: str
    name: str
    mode: int


def publish_set(folder: str, renamings: Sequence[Renaming]) -> None:
    """Gives files that are complete and on disk their names.

    Raises:
        OSError: The set is as it was before, with its old files. If they cannot be put back, the
            marker stays.
    """
    for renaming in renamings:
        check_replaceable(os.path.join(folder, renaming.name))
    steps = [_prepare(folder, renaming) for renaming in renamings]
    with _marked(folder) as marker:
        try:
            _keep_old_files(folder, steps)
            _write_marker(folder, marker, steps)
            _rename(folder, steps)
            os.ftruncate(marker, 0)  # from here on there is nothing to undo
            os.fsync(marker)
        except BaseException:
            with contextlib.suppress(OSError):  # the first failure says more
                _undo(folder, steps)
            raise
        remove(os.path.join(folder, MARKER))
    for step in steps:
        if step.backup is not None:
            remove(os.path.join(folder, step.backup))


def restore_set(folder: str) -> list[str]:
    """Puts the old files back where a process was killed while it published a set. Where a process
    is publishing one, waits for its end.

    Args:
        folder: The folder of the set.

    Returns:
        The names in the set; empty if there was nothing to do.

    Raises:
        PermissionError: The set is another user's.
        OSError: The old files cannot be put back.
    """
    names: list[str] = []
    path = os.path.join(folder, MARKER)
    while True:
        try:
            marker = _open_marker(path)
        except FileNotFoundError:
            return names
        try:
            if not wait_for_lock(marker, path):
                raise OSError(errno.ENOLCK, "no locks here: a process may be publishing", path)
            if _is_at(marker, path):
                names += _restore(folder, marker)
        finally:
            os.close(marker)


# ---- The marker -------------------------------------------------------------------------------


@contextlib.contextmanager
def _marked(folder: str) -> Iterator[int]:
    """Holds the marker of a folder, which is empty at first."""
    path = os.path.join(folder, MARKER)
    while True:
        restore_set(folder)
        try:
            marker = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, 0o666)
        except FileExistsError:
            continue
        try:
            wait_for_lock(marker, path)
            if _is_at(marker, path):  # else somebody took it for one of a process that is gone
                yield marker
                return
        except BaseException:
            if os.fstat(marker).st_size == 0:
                remove(path)
            raise
        finally:
            with contextlib.suppress(OSError):  # the set is old or new by now
                os.close(marker)


def _open_marker(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | _OPEN)
    except PermissionError:  # another user's, to wait for
        return os.open(path, os.O_RDONLY | _OPEN)


def _is_at(fd: int, path: str) -> bool:
    """Whether a path is still the name of an open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _write_marker(folder: str, marker: int, steps: Sequence[Step]) -> None:
    """Has on disk what ``_undo`` needs, before anything is renamed."""
    write_all(marker, [json.dumps(steps).encode()])
    os.fsync(marker)
    sync_folder(folder)


def _restore(folder: str, marker: int) -> list[str]:
    """Puts back what the marker of a process that is gone tells."""
    owner = os.fstat(marker).st_uid
    if owner != os.geteuid():
        text = f"user {owner} left a set half published, and must begin a writer or remove this"
        raise PermissionError(errno.EPERM, text, os.path.join(folder, MARKER))
    steps = read_marker(marker)
    _undo(folder, steps)
    return [step.name for step in steps]


# ---- The steps --------------------------------------------------------------------------------


def _prepare(folder: str, renaming: Renaming) -> Step:
    """Gives a file its permissions, and notes what undoing its renaming takes."""
    draft, name, mode = renaming
    target = os.path.join(folder, name)
    with named(target):
        fd = open_draft(os.path.join(folder, draft), os.O_RDONLY)
    try:
        grant(fd, target, mode)
        identity = _identity_of(os.fstat(fd))
    finally:
        os.close(fd)
    backup = None if _identity(target) is None else f".tfwire-{secrets.token_hex(8)}.tmp"
    return Step(draft, name, identity, backup)


def _keep_old_files(folder: str, steps: Sequence[Step]) -> None:
    """Gives the old files a second name, where the file system allows that."""
    for step in steps:
        if step.backup is not None:
            with contextlib.suppress(OSError):
                os.link(
                    os.path.join(folder, step.name),
                    os.path.join(folder, step.backup),
                    follow_symlinks=False,
                )


def _rename(folder: str, steps: Sequence[Step]) -> None:
    for draft, name, _, backup in steps:
        target = os.path.join(folder, name)
        if backup is not None and _identity(os.path.join(folder, backup)) is None:
            os.replace(target, os.path.join(folder, backup))
        os.replace(os.path.join(folder, draft), target)
    sync_folder(folder)


def _undo(folder: str, steps: Sequence[Step]) -> None:
    """Puts the old files back, whatever has been done of the steps. A file that is neither the old
    nor the new one was written by somebody else since, and stays."""
    for _, name, identity, backup in steps:
        target = os.path.join(folder, name)
        found = _identity(target)
        if found in (None, identity):
            if backup is None:
                _unlink(target)
            elif _identity(os.path.join(folder, backup)) is not None:
                os.replace(os.path.join(folder, backup), target)
    with contextlib.suppress(OSError):  # where it fails, what can be seen is right all the same
        sync_folder(folder)
    _unlink(os.path.join(folder, MARKER))
    for step in steps:
        remove(os.path.join(folder, step.draft))
        if step.backup is not None:
            remove(os.path.join(folder, step.backup))


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _identity(path: str) -> list[int] | None:
    """As of a Step; None: there is no such file."""
    try:
        return _identity_of(os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _identity_of(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_mtime_ns]
