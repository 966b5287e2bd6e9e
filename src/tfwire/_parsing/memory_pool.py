"""Large blocks of memory, used again when no array shows them any more."""

from __future__ import annotations

import math
import sys
from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np

from tfwire._base.native import adopt, ffi, lib

Array = np.ndarray[Any, Any]
# Fresh memory comes page by page, with a page fault each: for a batch of images that costs more
# than parsing. A loop over batches needs the memory of two batches, again and again.

# The allocator itself reuses smaller blocks.
LARGE = 1 << 15
# Largest block that a parser keeps.
LIMIT = 1 << 24
# A block in the user's hands, one being filled, one in between.
_NUM_BLOCKS = 3


def _references(held: list[Array]) -> int:
    return sys.getrefcount(held[0])


# References to an array that only a list holds. Every view holds the array that it shows.
_UNSEEN = _references([np.empty(0, np.uint8)])


def _over(block: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array: Array = np.ndarray(shape, dtype, block)
    return array


class Spare:
    """Blocks of memory for the results of one column, shared by the threads that fill it."""

    def __init__(self) -> None:
        # A thread takes a block out before it looks at it: no two find the same block unused.
        self._blocks: deque[Array] = deque()
        self._grown: deque[tuple[Any, int]] = deque()

    def _keep(self, block: Array) -> None:
        if block.nbytes <= LIMIT:
            self._blocks.append(block)
            if len(self._blocks) > _NUM_BLOCKS:
                with suppress(IndexError):
                    self._blocks.popleft()

    def _keep_grown(self, owner: Any, size: int) -> None:
        if size <= LIMIT:
            self._grown.append((owner, size))
            if len(self._grown) >= _NUM_BLOCKS:  # the user has one more
                with suppress(IndexError):
                    self._grown.popleft()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """As ``np.empty``."""
        size = math.prod(shape) * dtype.itemsize
        # More than needed: the next batch may be a little larger.
        capacity = size + size // 8
        if size < LARGE or capacity > LIMIT:
            return np.empty(shape, dtype)
        for _ in range(len(self._blocks)):
            try:
                held = [self._blocks.popleft()]
            except IndexError:  # other threads look too
                break
            fits = _references(held) == _UNSEEN and held[0].nbytes >= size
            block = held[0]
            array = _over(block, shape, dtype) if fits else None
            self._keep(block)
            if array is not None:
                return array
        block = np.empty(capacity, np.uint8)
        array = _over(block, shape, dtype)
        self._keep(block)
        return array

    def adopt(self, memory: Any, count: int, dtype: Any, capacity: int) -> Array:
        """As ``native.adopt``, for memory that goes back to C through ``grown_block``."""
        if not LARGE <= capacity <= LIMIT:
            return adopt(memory, count, dtype)

        def release(memory: Any) -> None:
            self._keep_grown(ffi.gc(memory, lib.tfw_free, capacity), capacity)

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
