"""Large memory that is used again once nobody can see it any more.

The system hands out fresh memory page by page, at a fault each: for a batch of images that costs
more than parsing it. A loop over batches needs the memory of two of them, again and again.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from typing import Any

import numpy as np

from tfwire._core import adopt, ffi, lib

__all__ = ["IDLE_LIMIT", "Spare"]

Array = np.ndarray[Any, Any]

# Below this the allocator keeps memory by itself.
_LARGE = 1 << 15

# A parser that is not reading files keeps no larger block than this.
IDLE_LIMIT = 1 << 24

# One in the hands of the user, one in the making, one between them.
_MOST_BLOCKS = 3


def _references(blocks: list[Array], i: int) -> int:
    return sys.getrefcount(blocks[i])


# What an array has that nobody holds but a list: every view holds the array whose memory it shows.
_UNSEEN = _references([np.empty(0)], 0)


def _over(block: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array: Array = np.ndarray(shape, dtype, block)
    return array


class Spare:
    """The memory of the results of one column.

    Attributes:
        limit: Larger blocks are not kept.
    """

    def __init__(self) -> None:
        self.limit = IDLE_LIMIT
        self._blocks: list[Array] = []
        self._grown: deque[Any] = deque(maxlen=2)  # given back by any thread

    def limit_to(self, size: int) -> None:
        """Keeps only blocks of at most this size, now and from now on."""
        self.limit = size
        self._blocks = [block for block in self._blocks if block.nbytes <= size]
        if any(capacity > size for _, capacity in self._grown):
            self._grown.clear()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """As ``np.empty``. For one thread at a time."""
        size = math.prod(shape) * dtype.itemsize
        # Some more than is needed, since the next batch is seldom of exactly this size.
        capacity = size + size // 8
        if size < _LARGE or capacity > self.limit:
            return np.empty(shape, dtype)
        for i in range(len(self._blocks)):
            if _references(self._blocks, i) == _UNSEEN and self._blocks[i].nbytes >= size:
                return _over(self._blocks[i], shape, dtype)
        block = np.empty(capacity, np.uint8)
        self._blocks = [*self._blocks[1 - _MOST_BLOCKS :], block]
        return _over(block, shape, dtype)

    def adopt(self, memory: Any, count: int, dtype: Any, capacity: int) -> Array:
        """As ``_core.adopt``, for memory of some capacity that ``donate`` may give back to C."""
        if not _LARGE <= capacity <= self.limit:
            return adopt(memory, count, dtype)

        def release(memory: Any) -> None:
            owner = ffi.gc(memory, lib.tfw_free, capacity)
            if capacity <= self.limit:
                self._grown.append((owner, capacity))

        owner = ffi.gc(memory, release, capacity)
        return np.frombuffer(ffi.buffer(owner, count * np.dtype(dtype).itemsize), dtype)

    def donate(self, columns: Any, feature: int) -> None:
        """Gives a block that ``adopt`` took back to the column it came from."""
        try:
            memory, capacity = self._grown.pop()
        except IndexError:
            return
        if lib.tfw_columns_donate(columns, feature, memory, capacity, ffi.NULL) == lib.TFW_OK:
            ffi.gc(memory, None)
