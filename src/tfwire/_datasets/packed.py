"""Records in memory without an object for each: what a shuffle of short ones holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._core import ffi
from tfwire._datasets.sources import Records
from tfwire._datasets.stage import Gathering
from tfwire._records.batch import table_of
from tfwire._records.markers import Markers
from tfwire._records.regions import RecordPosition
from tfwire._records.streams import BatchReader
from tfwire._spans import Placed, gather

__all__ = ["NONE", "PackedRecords"]

Array = np.ndarray[Any, Any]

NONE: Array = np.empty((0, 2), np.uint64)  # the table of no records

_SLACK = 1 << 20  # bytes of records that are gone, beyond those of as many that are not


class PackedRecords(Gathering):
    """The records of files, one file after the other, in blocks as they were read.

    Args:
        stage: The files.
        at: Where to begin: what ``snapshot`` gave, here or of the stage's own cursor.
    """

    def __init__(self, stage: Records, at: Any) -> None:
        self._stage = stage
        self._markers = Markers()
        self._number, *position, given = at or [0, 0, 0, 0]
        self._reader = self._open(RecordPosition(*position))
        self._blocks: list[Array] = []
        self._size = 0  # bytes in them
        self._limit = _SLACK
        self.take(given)

    def _open(self, start: RecordPosition) -> BatchReader | None:
        if self._number >= len(self._stage.paths):
            return None
        return self._stage.reader(self._number, start, self._markers)

    def take(self, count: int) -> Any:
        """The next records, a Placed."""
        return self.collect(self._some, count)

    def _some(self, count: int) -> Any:
        if self._reader is None:
            return None
        batch = self._reader.next(count)
        if batch is not None:
            return self.placed(self._keep(batch))
        self._reader.close()
        self._number += 1
        self._reader = self._open(RecordPosition())
        return []

    def _keep(self, batch: Any) -> Array:
        """Where the records of a batch are, copied with their frames, which is one copy of all."""
        spans = table_of(batch)
        begin, end = int(spans[0, 0]), int(spans[-1].sum())
        block = np.frombuffer(ffi.buffer(batch.data + begin, end - begin), np.uint8).copy()
        self._blocks.append(block)
        self._size += len(block)
        table = spans.astype(np.uint64)
        table[:, 0] += np.uint64(_address(block) - begin)
        return table

    def placed(self, table: Array) -> Placed:
        """Records that were taken here, as long as somebody needs them."""
        return Placed(table, self._blocks)

    def settle(self, table: Array) -> None:
        """Gives memory back where most of it is of records that are gone.

        Args:
            table: Of all that are needed and not in a Placed. They move: it says where to.
        """
        if self._size <= self._limit:
            return
        self._size = int(table[:, 1].sum())
        self._limit = 2 * self._size + _SLACK
        self._blocks = [gather(table, self._size)]

    def place(self) -> Any:
        if self._reader is None:
            return [self._number, 0, 0, 0]
        return [self._number, *self._reader.position, 0]

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def _address(block: Array) -> int:
    return int(ffi.cast("uintptr_t", ffi.from_buffer(block)))
