"""The records of files in blocks of memory, without a Python object for each."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np

from tfwire._base.errors import DataLossError
from tfwire._base.native import address, ffi
from tfwire._base.strings import StringTable, copy_strings
from tfwire._data.record_sources import Records
from tfwire._data.stages import GatheringPieces
from tfwire._data.state_checks import MISSING, state_or
from tfwire._records.index.random_access import TFRecordFiles
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import record_position, span_table
from tfwire._records.reading.publishing_markers import Markers

Array = np.ndarray[Any, Any]
NO_RECORDS: Array = np.empty((0, 2), np.uint64)  # the table of no records
_RECORDS_AT_ONCE = 4096
_READ_AT_ONCE = 1 << 20  # bytes that a thread reads ahead
_SLACK = 1 << 22  # bytes of unused records to keep, in addition to the bytes in use
# Of more blocks everything in use is copied: finding what lies in which would take longer.
_FEW_BLOCKS = 32


class _Held(NamedTuple):
    """Memory that holds records, and whose it is."""

    memory: Array
    owner: Any = None


class PackedRecords(GatheringPieces):
    """The records of files, one file after the other, in blocks of memory.

    Args:
        stage: The files.
        at: Where to begin: a snapshot of this or of the stage's own cursor.
    """

    def __init__(self, stage: Records, at: Any) -> None:
        self._stage = stage
        self._markers = Markers()
        self._number, *position, given = state_or(at, stage.place_form(), [0, 0, 0, 0])
        self._ahead = stage.records_ahead(range_bytes=_READ_AT_ONCE)
        self._reader = self._open(RecordPosition(*position))
        self._blocks: list[_Held] = []
        self._size = 0  # bytes in them
        self._limit = _SLACK
        self._block: _Held | None = None  # the last one that was read
        self._left = NO_RECORDS  # those of it that are left
        self._begin = RecordPosition()  # where the first of all its records begins
        self._given = 0  # how many of them were given
        while given > 0:
            if not (found := len(self.take(min(given, _RECORDS_AT_ONCE)))):
                raise ValueError(MISSING)
            given -= found
            self.settle(NO_RECORDS)

    def _open(self, start: RecordPosition) -> BatchReader | None:
        if self._number >= len(self._stage.paths):
            return None
        return self._stage.reader(self._number, start, self._markers, self._ahead)

    def piece(self, count: int) -> Any:
        """The next records, as StringTable."""
        if not len(self._left):
            if self._reader is None:
                return None
            batch = self._reader.next()
            if batch is None:
                self._reader.close()
                self._number += 1
                self._reader = self._open(RecordPosition())
                return []
            self._read(batch)
        block = self._block
        assert block is not None
        if not self._blocks or self._blocks[-1] is not block:
            self._blocks.append(block)
            self._size += len(block.memory)
        table, self._left = self._left[:count], self._left[count:]
        self._given += len(table)
        return self.placed(table)

    def _read(self, batch: Any) -> None:
        """Takes the records of a batch, in one piece, with their frames: a chunk that is read ahead
        as it is, others as a copy."""
        spans = span_table(batch)
        begin, end = int(spans[0, 0]), int(spans[-1].sum(dtype=np.uint64))
        block: Any = np.frombuffer(ffi.buffer(batch.data + begin, end - begin), np.uint8)
        chunk = None if self._ahead is None else self._ahead.chunk
        if chunk is None or chunk.info.data != batch.data:
            chunk, block = None, block.copy()
        table = spans.astype(np.uint64)
        table[:, 0] += np.uint64(address(ffi.from_buffer(block)) - begin)
        self._block, self._left = _Held(block, chunk), table
        self._begin, self._given = record_position(batch, 0), 0

    def placed(self, table: Array) -> StringTable:
        """Records that were taken here. The result keeps their memory alive."""
        return StringTable(table, self._blocks)

    def settle(self, table: Array) -> None:
        """Frees memory if unused records take most of it.

        Args:
            table: All records in use, except those in StringTable. They move; it is updated.
        """
        if self._size <= self._limit:
            return
        used = int(table[:, 1].sum(dtype=np.uint64))
        self._limit = 2 * used + _SLACK
        left = len(self._blocks) - 1  # the last one may be read on
        if left > _FEW_BLOCKS:
            self._blocks, self._size, left = [_Held(copy_strings(table, used))], used, 0
        while self._size > self._limit and left > 0:
            left -= self._leave_oldest(table)

    def _leave_oldest(self, table: Array) -> int:
        """Copies what is used of a third of the blocks to a new one: of the oldest, of which the
        fewest records are left. Returns how many they are."""
        count = (len(self._blocks) + 2) // 3
        left, self._blocks = self._blocks[:count], self._blocks[count:]  # others hold the old list
        places, used = table[:, 0].copy(), np.zeros(len(table), np.bool_)
        for memory, _ in left:
            begin = np.uint64(address(ffi.from_buffer(memory)))
            used |= places - begin <= len(memory)  # an empty record may lie at its end
        some = table[used]
        size = int(some[:, 1].sum(dtype=np.uint64))
        self._blocks.insert(-1, _Held(copy_strings(some, size)))
        table[used] = some
        self._size += size - sum(len(held.memory) for held in left)
        return count

    def place(self) -> Any:
        if self._reader is None:
            return [self._number, 0, 0, 0]
        if not len(self._left):
            return [self._number, *self._reader.position, 0]
        return [self._number, *self._begin, self._given]

    def stop(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
        if self._ahead is not None:
            self._ahead.close()


def size_in_memory(files: TFRecordFiles) -> int:
    """The bytes that ``in_memory`` would take, from the indexes."""
    return sum(int(index.offsets[-1]) + 16 * len(index) for index in files.indexes)


def in_memory(files: TFRecordFiles) -> StringTable:
    """All records of files, verified.

    Raises:
        DataLossError, OSError: The files cannot be read, or are not those of their indexes.
    """
    packed = PackedRecords(Records(files.paths, "auto", 1, max_record_size=None), None)
    tables, found = [NO_RECORDS], 0
    try:
        while len(piece := cast("StringTable", packed.take(_RECORDS_AT_ONCE))):
            tables.append(piece.table)
            found += len(piece)
    finally:
        packed.close()
    if found != len(files):
        raise DataLossError(
            f"the files hold {found} records, their indexes {len(files)}: an index is stale",
            reason="index",
        )
    return packed.placed(np.concatenate(tables))
