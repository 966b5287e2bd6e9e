"""The offsets of the records of files, found by a pipeline of C, and what is made of them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Literal

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.native import ffi, lib
from tfwire._base.parallel_map import Check
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.paths import Path
from tfwire._records.index.find_offsets import with_room
from tfwire._records.index.index_files import open_regular_file
from tfwire._records.index.offset_checks import file_identity, is_unchanged
from tfwire._records.reading.file_passes import FilePass, PlainFile, Result, regular_status
from tfwire._records.reading.pipeline import Chunk


class PlainOffsets(PlainFile[Result]):
    """The offsets of a file's records and its end, as a pipeline finds them.

    Args:
        status: Of the file.
        finished: Takes the offsets, and returns the result.
    """

    def __init__(self, status: os.stat_result, finished: Callable[[Array], Result | None]) -> None:
        super().__init__(status)
        self._offsets = np.empty(0, np.int64)
        self._count = self._end = 0
        self._finished = finished

    def add(self, chunk: Chunk) -> None:
        info, first = chunk.info, self._count
        self._count, self._end = first + info.records, info.end.offset
        if self._count >= len(self._offsets):
            known = self._offsets[:first]
            self._offsets = with_room(known, self._count, self.status.st_size, self._end)
        ffi.memmove(self._offsets[first:], info.offsets, info.records * self._offsets.itemsize)

    def finish(self) -> Result | None:
        if self._end != self.status.st_size:
            return None
        if self._count >= len(self._offsets):
            self._offsets = np.empty(1, np.int64)
        self._offsets[self._count] = self._end
        self._offsets.resize(self._count + 1, refcheck=False)
        return self._finished(self._offsets)


class OffsetsOfFiles(FilePass[Path, Result]):
    """A pass over files that finds the offsets of their records.

    Args:
        is_plain: Whether the files may be without compression.
        make: Makes a result of an open file, its offsets, its compression, its status, and its
            identity before it was read.
        other: Makes a result of a file by itself.
    """

    mode = lib.TFW_PIPELINE_OFFSETS

    def __init__(
        self,
        is_plain: bool,
        make: Callable[[FileSource, Array, Literal[""], os.stat_result, str | None], Result],
        other: Callable[[Path, Check], Result],
    ) -> None:
        self._is_plain = is_plain
        self._make = make
        self._other = other

    def begin(self, item: Path) -> PlainOffsets[Result] | None:
        status = regular_status(item) if self._is_plain else None
        if status is None:
            return None
        identity = file_identity(status)

        def finished(offsets: Array) -> Result | None:
            try:
                source = open_regular_file(item)
            except (OSError, ValueError):
                return None
            with contextlib.closing(source):
                # The pipeline has opened it by its name: it may have read another one.
                is_same = is_unchanged(os.fstat(source.fd), status)
                return self._make(source, offsets, "", status, identity) if is_same else None

        return PlainOffsets(status, finished)

    def read(self, item: Path, check: Check, begun: object = None) -> Result:
        return self._other(item, check)
