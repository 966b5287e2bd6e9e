"""Large blocks of memory, used again when no array shows them any more."""

from __future__ import annotations

import math
import sys
from collections import deque
from typing import Any

import numpy as np

from tfwire._base.native import adopt, ffi, lib

__all__ = ["IDLE_LIMIT", "LARGE", "Spare"]

Array = np.ndarray[Any, Any]
# Fresh memory comes page by page, with a page fault each: for a batch of images that costs more
# than parsing. A loop over batches needs the memory of two batches, again and again.

# The allocator itself reuses smaller blocks.
LARGE = 1 << 15
# Largest block that a parser keeps while it is not reading files.
IDLE_LIMIT = 1 << 24
# One that the user has, one being filled, one between them.
_MAX_BLOCKS = 3


def _references(blocks: list[Array], i: int) -> int:
    return sys.getrefcount(blocks[i])


# References to an array that only a list holds. Every view holds the array that it shows.
_UNSEEN = _references([np.empty(0)], 0)


def _over(block: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array: Array = np.ndarray(shape, dtype, block)
    return array


class Spare:
    """Blocks of memory for the results of one column.

    Attributes:
        limit: Size of the largest block that is kept.
    """

    def __init__(self) -> None:
        self.limit = IDLE_LIMIT
        self._blocks: list[Array] = []
        self._grown: deque[tuple[Any, int]] = deque(maxlen=2)  # given back by any thread

    def limit_to(self, size: int) -> None:
        """Keeps only blocks of at most this size, now and from now on."""
        self.limit = size
        self._blocks = [block for block in self._blocks if block.nbytes <= size]
        if any(capacity > size for _, capacity in self._grown):
            self._grown.clear()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """As ``np.empty``. For one thread at a time."""
        size = math.prod(shape) * dtype.itemsize
        # More than needed: the next batch may be a little larger.
        capacity = size + size // 8
        if size < LARGE or capacity > self.limit:
            return np.empty(shape, dtype)
        for i in range(len(self._blocks)):
            if _references(self._blocks, i) == _UNSEEN and self._blocks[i].nbytes >= size:
                return _over(self._blocks[i], shape, dtype)
        block = np.empty(capacity, np.uint8)
        self._blocks = [*self._blocks[1 - _MAX_BLOCKS :], block]
        return _over(block, shape, dtype)

    def adopt(self, memory: Any, count: int, dtype: Any, capacity: int) -> Array:
        """As ``native.adopt``, for memory that goes back to C through ``grown_block``."""
        if not LARGE <= capacity <= self.limit:
            return adopt(memory, count, dtype)

        def release(memory: Any) -> None:
            owner = ffi.gc(memory, lib.tfw_free, capacity)
            if capacity <= self.limit:
                self._grown.append((owner, capacity))

        owner = ffi.gc(memory, release, capacity)
        return np.frombuffer(ffi.buffer(owner, count * np.dtype(dtype).itemsize), dtype)

    def grown_block(self) -> tuple[Any, int]:
        """A block that ``adopt`` took, and its size, for C to use again; NULL if there is none. It
        belongs to the caller."""
        try:
            memory, size = self._grown.pop()
        except IndexError:
            return ffi.NULL, 0
        ffi.gc(memory, None)
        return memory, size

    def give_back(self, memory: Any, size: int) -> None:
        """Takes back what ``grown_block`` gave."""
        self._grown.append((ffi.gc(memory, lib.tfw_free, size), size))
