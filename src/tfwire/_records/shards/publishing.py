"""Sets of files that appear together: publishing them, and restoring the old ones.

A file system renames one file at a time. Meanwhile a marker file in the folder says that the set
may be partly old and partly new, and holds what is needed to restore the old files. A writer that
finds the marker of a process that no longer runs restores them.

A store completes or copies one object at a time. There the marker is an object. Stores have no
locks: nobody can see whether the process that put a marker still runs.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, NoReturn, TypeVar

from tfwire._base import system
from tfwire._records.files.byte_sinks import lock_file, write_all
from tfwire._records.files.temporary_files import (
    OPEN_FLAGS,
    check_replaceable,
    errors_naming,
    grant,
    open_draft,
    try_remove,
)
from tfwire._records.files.urls import INDEX_SUFFIX, ObjectPath, raise_naming
from tfwire._records.reading.publishing_markers import MARKER, Step, read_marker, steps_of

_REQUESTS_AT_ONCE = 16

Item = TypeVar("Item")


class Renaming(NamedTuple):
    """A file in the folder of the set and its new name.

    Attributes:
        draft: Its temporary name.
        name: Its new name.
        mode: Its permissions, unless it replaces a file.
    """

    draft: str
    name: str
    mode: int


def publish_set(folder: str, renamings: Sequence[Renaming]) -> None:
    """Renames files that are complete and on disk.

    Raises:
        OSError: The old files are restored. If that fails, the marker stays. All files are the new
            ones if only the end could not be recorded, and the marker not be written again.
    """
    for renaming in renamings:
        check_replaceable(os.path.join(folder, renaming.name))
    steps = [_prepare(folder, renaming) for renaming in renamings]
    with _marked(folder) as marker:
        renamed = False
        try:
            _keep_old_files(folder, steps)
            _write_marker(folder, marker, steps)
            _rename(folder, steps)
            renamed = True
            os.ftruncate(marker, 0)  # the set is complete: nothing to undo from here on
            os.fsync(marker)
        except BaseException:
            with contextlib.suppress(OSError):  # the first failure says more
                if renamed:  # The marker may be empty. If this fails, the new set stays.
                    _write_marker(folder, marker, steps)
                _undo(folder, marker, steps)
            raise
        if system.REMOVES_OPEN_FILES:
            try_remove(os.path.join(folder, MARKER))
    for step in steps:
        if step.backup is not None:
            try_remove(os.path.join(folder, step.backup))


def restore_set(folder: str) -> list[str]:
    """Restores the old files if a process was killed while it published a set. Waits if a process
    is publishing one now.

    Args:
        folder: The folder of the set.

    Returns:
        The names in the set; empty if there was nothing to restore.

    Raises:
        PermissionError: The set belongs to another user.
        OSError: The old files cannot be restored.
    """
    names: list[str] = []
    path = os.path.join(folder, MARKER)
    while True:
        try:
            marker = _open_marker(path)
        except FileNotFoundError:
            return names
        try:
            if not lock_file(marker, path, wait=True):
                raise OSError(errno.ENOLCK, "no locks here: a process may be publishing", path)
            if _is_at(marker, path):
                names += _restore(folder, marker)
        finally:
            _close_marker(marker, path)


@contextlib.contextmanager
def _marked(folder: str) -> Iterator[int]:
    """Creates the marker of a folder, empty, and locks it."""
    path = os.path.join(folder, MARKER)
    while True:
        restore_set(folder)
        try:
            marker = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o666)
        except FileExistsError:
            continue
        try:
            lock_file(marker, path, wait=True)
            if _is_at(marker, path):  # else another process removed it as left over
                yield marker
                return
        except BaseException:
            if system.REMOVES_OPEN_FILES and os.fstat(marker).st_size == 0:
                try_remove(path)
            raise
        finally:
            with contextlib.suppress(OSError):  # the set is complete, old or new
                _close_marker(marker, path)


def _open_marker(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | OPEN_FLAGS)
    except PermissionError:  # another user's: its lock can be waited for
        return os.open(path, os.O_RDONLY | OPEN_FLAGS)


def _close_marker(marker: int, path: str) -> None:
    """Closes a marker. One that is empty, and could not be removed while it was open, goes now,
    unless another process has it open."""
    try:
        empty = not system.REMOVES_OPEN_FILES and os.fstat(marker).st_size == 0
    finally:
        os.close(marker)
    if empty:
        try_remove(path)


def _is_at(fd: int, path: str) -> bool:
    """Whether a path still refers to an open file."""
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _write_marker(folder: str, marker: int, steps: Sequence[Step]) -> None:
    """Writes what ``_undo`` needs to disk, before anything is renamed, and again
    before anything is undone once the marker was emptied."""
    os.lseek(marker, 0, os.SEEK_SET)
    write_all(marker, [json.dumps(steps).encode()])
    os.fsync(marker)
    system.sync_folder(folder)


def _restore(folder: str, marker: int) -> list[str]:
    """Restores the old files as the marker of a killed process says."""
    status = os.fstat(marker)
    if not system.is_own(status):
        text = "left a set half published, and must begin a writer or remove this"
        raise PermissionError(
            errno.EPERM, f"user {status.st_uid} {text}", os.path.join(folder, MARKER)
        )
    steps = read_marker(marker)
    _undo(folder, marker, steps)
    return [step.name for step in steps]


def _prepare(folder: str, renaming: Renaming) -> Step:
    """Gives a file its permissions, and records what it takes to undo its renaming."""
    draft, name, mode = renaming
    target = os.path.join(folder, name)
    with errors_naming(target):
        fd = open_draft(os.path.join(folder, draft), os.O_RDONLY)
    try:
        grant(fd, target, mode)
        identity = _inode_and_time(os.fstat(fd))
    finally:
        os.close(fd)
    backup = None if _identity(target) is None else f".tfwire-{secrets.token_hex(8)}.tmp"
    return Step(draft, name, identity, backup)


def _keep_old_files(folder: str, steps: Sequence[Step]) -> None:
    """Gives the old files a second name, if the file system has hard links."""
    for step in steps:
        if step.backup is not None:
            with contextlib.suppress(OSError):
                system.link(os.path.join(folder, step.name), os.path.join(folder, step.backup))


def _rename(folder: str, steps: Sequence[Step]) -> None:
    for draft, name, _, backup in steps:
        target = os.path.join(folder, name)
        if backup is not None and _identity(os.path.join(folder, backup)) is None:
            os.replace(target, os.path.join(folder, backup))
        os.replace(os.path.join(folder, draft), target)
    system.sync_folder(folder)


def _undo(folder: str, marker: int, steps: Sequence[Step]) -> None:
    """Restores the old files, however many steps were done. A file that is neither the old nor the
    new one was written by another program since, and stays."""
    for _, name, identity, backup in steps:
        target = os.path.join(folder, name)
        found = _identity(target)
        if found in (None, identity):
            if backup is None:
                _unlink(target)
            elif _identity(os.path.join(folder, backup)) is not None:
                os.replace(os.path.join(folder, backup), target)
    with contextlib.suppress(OSError):  # the names are right even if they are not durable yet
        system.sync_folder(folder)
    if system.REMOVES_OPEN_FILES:
        _unlink(os.path.join(folder, MARKER))
    else:
        os.ftruncate(marker, 0)
    for step in steps:
        try_remove(os.path.join(folder, step.draft))
        if step.backup is not None:
            try_remove(os.path.join(folder, step.backup))


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _identity(path: str) -> list[int] | None:
    """The identity of a file as in Step; None if there is no such file."""
    try:
        return _inode_and_time(os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _inode_and_time(status: os.stat_result) -> list[int]:
    return [status.st_ino, status.st_mtime_ns]


# ---- Objects of a store -------------------------------------------------------------------------


def restore_objects(folder: ObjectPath) -> list[str]:
    """Restores the old objects if a process was killed while it published a set.

    Args:
        folder: The URL of the folder.

    Returns:
        The names in the set; empty if there was nothing to restore.

    Raises:
        OSError: The marker cannot be read, or the old objects cannot be restored.
        ValueError: The marker names objects of another folder.
    """
    fs, path = folder.locate()
    try:
        fs.invalidate_cache(path)
        if not fs.exists(marker := posixpath.join(path, MARKER)):
            return []
        steps = steps_of(fs.cat_file(marker))
        undo_objects(fs, path, steps)
    except ValueError:
        raise
    except Exception as error:
        raise_naming(folder, "the old objects cannot be restored", error)
    return [step.name for step in steps if not step.name.endswith(INDEX_SUFFIX)]


def refuse_set(url: str) -> NoReturn:
    """Raises FileExistsError: the marker at this URL is that of another writer."""
    text = (
        "another ShardedWriter is publishing a set here, or was killed while it did: if none runs, "
        "tfwire.sharding.recover_shards of the folder restores the old objects"
    )
    raise FileExistsError(errno.EEXIST, text, url)


def put_marker(fs: Any, marker: str) -> None:
    """Puts an empty marker, unless there is one. Where the store has no such request, two writers
    at the same moment may both put it.

    Raises:
        FileExistsError: There is one.
    """
    fs.invalidate_cache(posixpath.dirname(marker))
    if fs.exists(marker):
        raise FileExistsError(marker)
    try:
        fs.pipe_file(marker, b"[]", mode="create")
    except (TypeError, ValueError, NotImplementedError):  # as filesystems say that they lack it
        fs.pipe_file(marker, b"[]")


def undo_objects(fs: Any, folder: str, steps: Sequence[Step]) -> None:
    """Restores the old objects, however many steps were done."""
    each_at_once(partial(_undo_one, fs, folder), steps)
    with contextlib.suppress(FileNotFoundError):
        fs.rm_file(posixpath.join(folder, MARKER))
    remove_backups(fs, folder, steps)


def _undo_one(fs: Any, folder: str, step: Step) -> None:
    """Restores an old object. One that has not the size of the new one was written by another
    program since, and stays; so does one whose backup is gone."""
    path = posixpath.join(folder, step.name)
    fs.invalidate_cache(folder)
    if step.backup is None:
        with contextlib.suppress(FileNotFoundError):
            if step.identity[0] in (-1, fs.info(path)["size"]):
                fs.rm_file(path)
    elif fs.exists(backup := posixpath.join(folder, step.backup)):
        fs.cp_file(backup, path)
    if step.draft != step.name:
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(posixpath.join(folder, step.draft))


def remove_backups(fs: Any, folder: str, steps: Sequence[Step]) -> None:
    """Removes the copies of old objects."""

    def remove(step: Step) -> None:
        with contextlib.suppress(Exception):
            if step.backup is not None:
                fs.rm_file(posixpath.join(folder, step.backup))

    each_at_once(remove, steps)


def each_at_once(call: Callable[[Item], Any], items: Iterable[Item]) -> list[Any]:
    """Calls a function for every item, several at a time. After a failure those that have begun
    are completed, and no more begin."""
    from concurrent.futures import ThreadPoolExecutor  # imports much that files do not need

    with ThreadPoolExecutor(_REQUESTS_AT_ONCE, "tfwire-publish") as threads:
        futures = [threads.submit(call, item) for item in items]
        try:
            return [future.result() for future in futures]
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
