"""Records that come a second time when the search for the next gzip member goes back.

Deflate stores what it cannot shrink as it is. Where a member was torn within such a block, the
block runs on into the next member, and if that is stored, too, its records are seen, verify and
are delivered. Then inflating fails, the search goes back and finds the member that hides there:
from its beginning the same records come again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from tfwire._core import ffi, lib
from tfwire._records.batch import shorten

__all__ = ["Repeats"]

# A stored block holds 65,535 bytes, and a record takes 16 at least.
FRAME = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE
_MOST = 65535 // FRAME

Key = tuple[int, bytes]  # a record's length and checksum


class Repeats:
    """The records that were delivered without a gap since the last damage, and may come again."""

    def __init__(self) -> None:
        self._end = 0  # of the last record
        self._recent: list[Key] | None = None  # None: no damage yet
        self._again: list[Key] = []

    def expect(self, num_bytes: int) -> None:
        """The search went back by so many bytes of the file. What they gave, stored as it is, was
        no more than that: records that take more only look like those to come."""
        recent = self._recent or []
        may = len(recent) <= _MOST and sum(FRAME + key[0] for key in recent) <= num_bytes
        self._again = recent if may else []
        self._recent = None

    def take_off(self, batch: Any, damaged: bool) -> bool:
        """Takes what comes again off the beginning of a ``tfw_batch *``.

        Args:
            batch: Some records.
            damaged: Whether anything was left out so far.

        Returns:
            Whether any are left.
        """
        if not damaged:
            last = batch.spans[batch.count - 1]
            self._end = batch.offset + last.offset + last.length + lib.TFW_FOOTER_SIZE
            return True
        count = 0
        for begin, key in _records(batch):
            if begin != self._end:
                self._recent = []
            self._end = begin + FRAME + key[0]
            if self._again and key == self._again[0]:
                self._again.pop(0)
                count += 1
                continue
            self._again = []
            if self._recent is not None and len(self._recent) <= _MOST:
                self._recent.append(key)
        shorten(batch, count)
        return bool(batch.count)


def _records(batch: Any) -> Iterator[tuple[int, Key]]:
    """Where each record begins, and its key."""
    data = ffi.buffer(batch.data, batch.data_len)
    spans = ffi.buffer(batch.spans, ffi.sizeof("tfw_span") * batch.count)
    for offset, length in struct.iter_unpack("=QQ", spans):
        begin = batch.offset + offset - lib.TFW_HEADER_SIZE
        footer = offset + length
        yield begin, (length, data[footer : footer + lib.TFW_FOOTER_SIZE])
