"""Records that come a second time when the search for the next gzip member goes back.

Deflate stores what it cannot shrink as it is. Where a member was torn within such a block, the
block runs on into the next members, and if those are stored, too, their records are seen, verify
and are delivered, behind a gap where the member's header is. Then inflating fails, the search goes
back and finds the member that hides there: from its beginning the same records come again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire._core import ffi, lib
from tfwire._records.batch import position_behind, position_of, shorten, table_of
from tfwire._records.packing import FRAME

__all__ = ["Repeats"]

# A stored block holds 65,535 bytes, and a record takes 16 at least.
_MOST = 65535 // FRAME

Array = np.ndarray[Any, Any]


class Repeats:
    """The records that were delivered last, which may come again."""

    def __init__(self) -> None:
        self._end = 0  # of the last record
        self._again = np.empty(0, np.uint64)  # what comes again, by length and checksum
        self._went_back = 0  # bytes of the file, and what comes again is not known yet
        self._forget()

    def expect(self, num_bytes: int) -> None:
        """The search went back by so many bytes of the file."""
        self._went_back = num_bytes

    def take_off(self, batch: Any, damaged: bool) -> bool:
        """Takes what comes again off the beginning of a ``tfw_batch *``.

        Args:
            batch: Some records.
            damaged: Whether anything was left out so far.

        Returns:
            Whether any are left.
        """
        if damaged:
            keys = _keys_of(batch)
            if self._went_back:
                self._again = self._beginning_with(keys[0])
                self._forget()
            self._note(keys, _begin_runs(batch, self._end))
        self._end = position_behind(batch).offset
        if len(self._again):
            shorten(batch, self._num_again(keys))
        return bool(batch.count)

    def _forget(self) -> None:
        self._went_back = 0
        self._keys = np.empty(0, np.uint64)
        self._begins = np.empty(0, bool)  # whether they lie behind a gap

    def _note(self, keys: Array, begins: Array) -> None:
        self._keys = np.concatenate([self._keys, keys])[-_MOST:]
        self._begins = np.concatenate([self._begins, begins])[-_MOST:]

    def _beginning_with(self, key: Any) -> Array:
        """What was delivered last, from a gap on, behind which that record lies. The bytes that
        the search went back held it all, stored as it is: records that take more only look like
        those to come."""
        sizes = FRAME + (self._keys >> np.uint64(32))
        fits = np.cumsum(sizes[::-1])[::-1] <= self._went_back
        found = np.flatnonzero(self._begins & fits & (self._keys == key))
        return self._keys[found[0] :] if len(found) else self._keys[:0]

    def _num_again(self, keys: Array) -> int:
        """How many records at the beginning of a batch come again."""
        count = min(len(keys), len(self._again))
        other = np.flatnonzero(keys[:count] != self._again[:count])
        self._again = self._again[len(keys) :] if not len(other) else self._again[:0]
        return int(other[0]) if len(other) else count


def _keys_of(batch: Any) -> Array:
    """Length and checksum of every record in a number."""
    offsets, lengths = table_of(batch).T
    data = np.frombuffer(ffi.buffer(batch.data, batch.data_len), np.uint8)
    footers = data[(offsets + lengths)[:, None] + np.arange(lib.TFW_FOOTER_SIZE)]
    keys: Array = lengths.astype(np.uint64) << np.uint64(32) | footers.view(np.uint32)[:, 0]
    return keys


def _begin_runs(batch: Any, end: int) -> Array:
    """Whether each record lies behind a gap; the one before the first ends there."""
    offsets, lengths = table_of(batch).T
    begins = np.empty(len(offsets), bool)
    begins[0] = position_of(batch, 0).offset != end
    begins[1:] = offsets[1:] != (offsets + lengths)[:-1] + FRAME
    return begins
