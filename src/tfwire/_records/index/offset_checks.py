"""Do records have the offsets, and so the numbers, that an index says?

A record at an offset of the index may verify and still have another number, if the file was
replaced by one of the same size, in which one earlier record is longer and another one shorter, or
if somebody edited the index. So the headers before a record are compared with the index, once,
unless these offsets were certainly found in this very file.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from typing import Any

import numpy as np

from tfwire._base import system
from tfwire._base.native import lib
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.paths import Path
from tfwire._records.frames import FRAME
from tfwire._records.index.find_offsets import WALK_RECORDS, Walk

Array = np.ndarray[Any, Any]

# Two changes within this many nanoseconds may leave the same time: the clock of files ticks every
# 1 to 10 ms.
_TICK = 50_000_000
# The extended attribute of an index that names the file it was saved for, and its own checksum.
_ATTRIBUTE = "user.tfwire.indexed"


class Layout:
    """Compares the headers of plain records with the offsets of an index, as far as needed.

    Args:
        offsets: Of all records, and the end of the last. Anybody may change them.
        known: True if the offsets were found in this very file: nothing needs to be compared.

    Attributes:
        checked: How many records are known to lie where the index says.
    """

    def __init__(self, offsets: Array, known: bool) -> None:
        self._offsets = offsets
        self._end = int(offsets[-1])
        self.checked = len(offsets) - 1 if known else 0
        self._wrong: int | None = None  # the first record of another length

    def first_wrong(self, number: int) -> int | None:
        """The first record, up to ``number``, that is not where the index says; None: all are."""
        while self._wrong is None and self.checked <= number:
            first = self.checked
            if self._may_begin(first):
                self._step(first, number)
            if self._wrong is None and self.checked == first:
                self._wrong = first
        wrong = self._wrong
        return wrong if wrong is not None and wrong <= number else None

    def take_read(self, first: int, end: int) -> None:
        """Notes that these records were read one after the other, with the lengths that the index
        says: nothing else needs to be compared."""
        if first <= self.checked < end and self._may_begin(first):
            self.checked = end

    def _may_begin(self, number: int) -> bool:
        """Whether a record may have this offset, after the records that were compared."""
        begin, least = int(self._offsets[number]), 0
        if number:
            least = int(self._offsets[number - 1]) + int(FRAME)
        return least <= begin < self._end and (number > 0 or begin == 0)

    @abstractmethod
    def _step(self, first: int, number: int) -> None:
        """Compares some records from ``first`` on, at least up to ``number`` in the end: sets
        ``checked`` or ``_wrong``. If a header is damaged, the index is trusted for the end of its
        record: nothing else says where that is."""


class FileLayout(Layout):
    """A Layout of a local file, which is read in one stretch."""

    def __init__(self, source: FileSource, offsets: Array, known: bool) -> None:
        super().__init__(offsets, known)
        self._source = source

    def _step(self, first: int, number: int) -> None:
        walk, begins = Walk(self._source, self._end), np.empty(WALK_RECORDS, np.int64)
        walk.start(int(self._offsets[first]))
        count, status = walk.step(begins, 0)
        found = np.append(begins[:count], walk.offset)
        expected = self._offsets[first : first + len(found)]
        other = np.flatnonzero(found[: len(expected)] != expected)
        if len(other):
            self._wrong = max(first + int(other[0]) - 1, 0)
        elif len(found) > len(expected) or status in (lib.TFW_E_TRUNCATED, lib.TFW_E_TOO_LARGE):
            self._wrong = first + len(expected) - 1
        else:
            self.checked = first + count + (status == lib.TFW_E_LENGTH_CRC)


def file_identity(status: os.stat_result) -> str | None:
    """Identifies a file in its present state, by a time that nobody can set. None: it was changed
    so recently that another change might not show."""
    if time.time_ns() - status.st_ctime_ns < _TICK:
        return None
    return f"{status.st_dev}:{status.st_ino}:{status.st_ctime_ns}"


def save_identity(index_path: Path, identity: str | None, checksum: int) -> None:
    """Notes at a saved index which file it is for, if the file system allows it.

    Args:
        index_path: The index.
        identity: Of the file; None: unknown.
        checksum: Of the index: the note does not hold for one that is edited.
    """
    if identity is not None:
        system.set_attribute(index_path, _ATTRIBUTE, f"{identity} {checksum:08x}".encode())


def identity_saved(fd: int, checksum: int) -> str | None:
    """What ``save_identity`` noted at an open index with this checksum, or None."""
    noted = system.get_attribute(fd, _ATTRIBUTE)
    if noted is None:
        return None
    identity, _, noted_checksum = noted.decode("ascii", "replace").partition(" ")
    return identity if noted_checksum == f"{checksum:08x}" else None
