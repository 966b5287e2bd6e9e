"""Whether the records of a file lie where an index says, and so have the numbers that it says.

A record at the offset of an index may verify and yet have another number: where the file was
replaced by one of the same size, in which a record before is longer and another one shorter. So the
headers before a record are compared with the index, once, unless the file is the very one that was
indexed, unchanged.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import numpy as np

from tfwire._core import lib
from tfwire._records.offsets import Walk
from tfwire._records.sources import FileSource, Path

__all__ = ["Layout", "identity_of", "identity_saved", "save_identity"]

Array = np.ndarray[Any, Any]

# Two changes within so many nanoseconds may leave the same time: the clock of files ticks every
# 1 to 10 ms.
_TICK = 50_000_000

# The extended attribute of an index that names the file it was saved for.
_ATTRIBUTE = "user.tfwire.indexed"


class Layout:
    """How far the records of a plain file are known to lie where an index says.

    Args:
        source: The file.
        offsets: Of all records, and the end of the last.
        known: Whether the offsets were found in this very file.
    """

    def __init__(self, source: FileSource, offsets: Array, known: bool) -> None:
        self._source = source
        self._offsets = offsets
        self.checked = len(offsets) - 1 if known else 0  # so many records
        self._wrong: int | None = None  # the first record of another length

    def first_wrong(self, number: int) -> int | None:
        """The first record up to one that does not lie where the index says; None: all do."""
        if self._wrong is None and self.checked <= number:
            walk = Walk(self._source, int(self._offsets[-1]))
            while self._wrong is None and self.checked <= number:
                self._step(walk, self.checked)
        wrong = self._wrong
        return wrong if wrong is not None and wrong <= number else None

    def _step(self, walk: Walk, first: int) -> None:
        """Compares some records with the index. Where a header is damaged, the index is trusted
        on where its record ends: there is nothing else to go by."""
        begins, end, status = walk.steps(int(self._offsets[first]))
        found = np.append(begins, end)
        expected = self._offsets[first : first + len(found)]
        other = np.flatnonzero(found[: len(expected)] != expected)
        if len(other):
            self._wrong = first + int(other[0]) - 1
        elif len(found) > len(expected) or status in (lib.TFW_E_TRUNCATED, lib.TFW_E_TOO_LARGE):
            self._wrong = first + len(expected) - 1
        else:
            self.checked = first + len(begins) + (status == lib.TFW_E_LENGTH_CRC)


def identity_of(status: os.stat_result) -> str | None:
    """What tells a file from any other one, and from itself after a change: nobody can set the
    time that is used. None: it was changed so lately that a further change might not show."""
    if time.time_ns() - status.st_ctime_ns < _TICK:
        return None
    return f"{status.st_dev}:{status.st_ino}:{status.st_ctime_ns}"


def save_identity(index_path: Path, identity: str | None) -> None:
    """Notes beside a saved index which file it is for. Not all file systems can."""
    if identity is not None and hasattr(os, "setxattr"):
        with contextlib.suppress(OSError):
            os.setxattr(index_path, _ATTRIBUTE, identity.encode())


def identity_saved(fd: int) -> str | None:
    """What ``save_identity`` noted beside an index that is open."""
    if not hasattr(os, "getxattr"):
        return None
    try:
        return os.getxattr(fd, _ATTRIBUTE).decode("ascii", "replace")
    except OSError:
        return None
