"""The marker file of a set of shards that is being published, and how readers find it.

``publishing`` writes markers. Readers look for one beside every file, so this module stays small.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container
from typing import Any, NamedTuple

from tfwire._base import system
from tfwire._base.text import show_path
from tfwire._records.files.paths import is_path
from tfwire._records.files.urls import ObjectPath, is_url

MARKER: str = ".tfwire-publishing"
"""The name of the file that is in a folder while a ShardedWriter replaces files there."""

_MARKER_BYTES = 1 << 26  # readers read no longer one; a file of a set takes a few hundred


class Step(NamedTuple):
    """One renaming in a marker.

    Attributes:
        draft: The temporary name of the new file.
        name: Its final name.
        identity: Inode and time of modification, in ns, of the new file. Inodes are reused.
        backup: A name that keeps the old file until the set is complete; None: there is none.
    """

    draft: str
    name: str
    identity: list[int]
    backup: str | None


def read_marker(marker: int) -> list[Step]:
    """The steps in a marker. There are none before the first renaming, when the marker may be
    incomplete, and after the last, when it is empty.

    Raises:
        ValueError: It names files of another folder.
    """
    with os.fdopen(os.dup(marker), "rb") as file:
        return steps_of(file.read())


def steps_of(text: bytes) -> list[Step]:
    """As read_marker, of its content."""
    import json

    try:
        steps = [Step(*step) for step in json.loads(text)]
        names = [name for step in steps for name in (step.draft, step.name, step.backup or "x")]
        elsewhere = any(os.path.basename(name) != name for name in names)
    except (ValueError, TypeError, RecursionError):
        return []
    if elsewhere:
        raise ValueError(f"{MARKER} names files of another folder")
    return steps


class Markers:
    """Finds files that belong to a half-published set. Looks once into every folder, also of
    a store, and reports every set once.
    """

    def __init__(self) -> None:
        self._names: dict[str, Container[str]] = {}

    def find_problem(self, path: Any) -> str | None:
        """What is wrong with the set of a file; None: nothing, or it was reported before.

        Args:
            path: The file, which may be missing, or an input of another kind. Of URLs, only those
                of a list or a pattern are looked at: this takes one request for every folder.
        """
        if isinstance(path, ObjectPath):
            return self._find_remote_problem(path) if path.listed else None
        if not is_path(path) or is_url(path):
            return None
        whole = os.fsdecode(path).replace(os.sep, "/")  # os.path.split is slow
        folder, slash, name = whole.rpartition("/")
        folder += slash
        names = self._names.get(folder)
        if names is None:
            names = self._names[folder] = _half_published(folder)
        if name not in names:
            return None
        self._names[folder] = ()
        remedy = f"tfwire.sharding.recover_shards({os.path.dirname(folder) or os.curdir!r})"
        return (
            f"{show_path(path)}: belongs to a set of shards that is half published: some of its "
            f"files may be new, others old or missing; {remedy} puts the old files back, and waits "
            "for a writer that is still publishing them"
        )

    def _find_remote_problem(self, path: ObjectPath) -> str | None:
        key, _, name = path.partition("?")[0].rpartition("/")
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = _half_published_objects(path)
        if name not in names:
            return None
        self._names[key] = ()
        return (
            f"{show_path(path)}: belongs to a set of shards that is being published, or is half "
            "published: some of its objects may be new, others old or missing; if no writer runs, "
            "tfwire.sharding.recover_shards of the folder puts the old objects back"
        )


class _Everything:
    """A container of every name."""

    def __contains__(self, name: object) -> bool:
        return True


def _half_published_objects(path: ObjectPath) -> Container[str]:
    """The names of the objects that belong to a half-published set, in the folder of an object: no
    name, if the marker cannot be read. Many stores forbid to look for what is not there."""
    from tfwire._records.remote.objects import RemoteObject  # local files are read without it

    try:
        fs, file = path.locate()
        folder, slash, _ = file.rpartition("/")
        marker = ObjectPath(f"{folder}{slash}{MARKER}", None, fs, folder + slash + MARKER)
        data = RemoteObject.read_small(marker, 0, _MARKER_BYTES, fresh=True)
        return frozenset(step.name for step in steps_of(data))
    except Exception:  # of any library; opening the object raises it again
        return ()


def _half_published(folder: str) -> Container[str]:
    """The names of the files in a folder that belong to a half-published set: every name, if its
    marker is too long or cannot be read.

    Args:
        folder: Empty, or with a slash at the end.
    """
    path = folder + MARKER
    try:
        if not os.access(path, os.F_OK):
            return ()
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return ()
    except (OSError, ValueError):  # ValueError: a null character in the path
        return ()
    if status.st_size > _MARKER_BYTES:
        return _Everything()
    try:
        fd = os.open(path, os.O_RDONLY | system.BINARY | system.NO_FOLLOW | system.NON_BLOCKING)
    except FileNotFoundError:
        return ()
    except OSError:
        return _Everything()
    try:
        return frozenset(step.name for step in read_marker(fd))
    except ValueError:
        return ()
    except OSError:
        return _Everything()
    finally:
        os.close(fd)
