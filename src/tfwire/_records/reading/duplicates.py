"""Records of gzip files that are found twice, because the search for the next member goes back.

Deflate stores what it cannot compress. If a member is torn inside a stored block, the block seems
to continue into the next members. If their records are stored too, they verify and are delivered,
after a gap for the member's header. Then inflating fails, the search goes back and finds the real
member, and its records are read a second time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._records.frames import FRAME
from tfwire._records.reading.native_batches import (
    drop_first,
    position_after,
    record_keys,
    record_position,
    span_table,
)

# A stored block holds 65,535 bytes, and a record takes at least 16.
_REMEMBERED_RECORDS = 65535 // FRAME
Array = np.ndarray[Any, Any]


class DuplicateFilter:
    """Remembers the last records delivered, and drops them from batches that repeat them."""

    def __init__(self) -> None:
        self._end = 0  # of the last record
        self._again = np.empty(0, np.uint64)  # the keys of the records that are repeated
        self._went_back = 0  # bytes of the file; the next record shows which records are repeated
        self._forget()

    def expect(self, num_bytes: int) -> None:
        """Notes that the search went back by this many bytes of the file."""
        self._went_back = num_bytes

    def drop(self, batch: Any, damaged: bool) -> bool:
        """Drops repeated records from the beginning of a ``tfw_batch *``.

        Args:
            batch: Some records.
            damaged: True if anything was skipped so far.

        Returns:
            Whether any records are left.
        """
        if damaged:
            keys = record_keys(batch)
            if self._went_back:
                self._again = self._beginning_with(keys[0])
                self._forget()
            self._note(keys, _begin_runs(batch, self._end))
        self._end = position_after(batch).offset
        if len(self._again):
            drop_first(batch, self._num_again(keys))
        return bool(batch.count)

    def _forget(self) -> None:
        self._went_back = 0
        self._keys = np.empty(0, np.uint64)
        self._begins = np.empty(0, bool)  # True: bytes are missing before the record

    def _note(self, keys: Array, begins: Array) -> None:
        self._keys = np.concatenate([self._keys, keys])[-_REMEMBERED_RECORDS:]
        self._begins = np.concatenate([self._begins, begins])[-_REMEMBERED_RECORDS:]

    def _beginning_with(self, key: Any) -> Array:
        """The last records delivered, from the one with this key that follows a gap. All of them
        were stored in the bytes that the search went back; a record that takes more is another."""
        sizes = FRAME + (self._keys >> np.uint64(32))
        fits = np.cumsum(sizes[::-1], dtype=np.int64)[::-1] <= self._went_back
        found = np.flatnonzero(self._begins & fits & (self._keys == key))
        return self._keys[found[0] :] if len(found) else self._keys[:0]

    def _num_again(self, keys: Array) -> int:
        """The number of repeated records at the beginning of a batch."""
        count = min(len(keys), len(self._again))
        other = np.flatnonzero(keys[:count] != self._again[:count])
        self._again = self._again[len(keys) :] if not len(other) else self._again[:0]
        return int(other[0]) if len(other) else count


def _begin_runs(batch: Any, end: int) -> Array:
    """Whether there is a gap before each record; ``end`` is where the last batch ended."""
    offsets, lengths = span_table(batch).T
    begins = np.empty(len(offsets), bool)
    begins[0] = record_position(batch, 0).offset != end
    begins[1:] = offsets[1:] != (offsets + lengths)[:-1] + FRAME
    return begins
