"""The marker of a set of files that is being published: what it says, and how readers find it.

Readers import this for every file. What publishes is in ``shard_set``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container
from typing import NamedTuple

from tfwire._text import show_path

__all__ = ["MARKER", "Markers", "Step", "read_marker"]

MARKER = ".tfwire-publishing"

_LONGEST = 1 << 26  # bytes of a marker that readers read; a file of a set takes some hundred


class Step(NamedTuple):
    """A renaming as the marker has it.

    Attributes:
        draft: The temporary name of the new file.
        name: The name that it takes.
        identity: Of the new file: its inode and when it was modified, in ns. Inodes are used again.
        backup: A name that keeps the old file until the set is complete; None: there is none.
    """

    draft: str
    name: str
    identity: list[int]
    backup: str | None


def read_marker(marker: int) -> list[Step]:
    """The steps that a marker tells. There are none before anything is renamed, when it may be
    incomplete, and after everything is, when it is empty.

    Raises:
        ValueError: It names files of another folder.
    """
    import json

    with os.fdopen(os.dup(marker), "rb") as file:
        text = file.read()
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
    """Tells a reader of files which of them belong to a set that is half published. It looks once
    into every folder, and speaks once of every set.
    """

    def __init__(self) -> None:
        self._names: dict[str, Container[str]] = {}

    def problem_of(self, path: str | bytes | os.PathLike[str]) -> str | None:
        """What is wrong with the set of a file; None: nothing, or it was said before.

        Args:
            path: The file, which may be missing; not a URL.
        """
        folder, slash, name = os.fsdecode(path).rpartition("/")  # os.path.split takes its time
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


class _Everything:
    """A container of all names."""

    def __contains__(self, name: object) -> bool:
        return True


def _half_published(folder: str) -> Container[str]:
    """The names of the files in a folder that belong to a half-published set. Of a marker that
    cannot be read, or is too long, all do.

    Args:
        folder: It ends in a slash, or is empty.
    """
    path = folder + MARKER
    try:
        if not os.access(path, os.F_OK):
            return ()
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            return ()
    except (OSError, ValueError):  # a name with a zero byte
        return ()
    if status.st_size > _LONGEST:
        return _Everything()
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
