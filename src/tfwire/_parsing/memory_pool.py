"""Large blocks of memory, used again when no array shows them any more."""

from __future__ import annotations

import math
import sys
import weakref
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
# Largest block that a parser keeps while it is not reading files.
IDLE_LIMIT = 1 << 24
# Kept for one thread: a block in the user's hands, one being filled, one in between. Each further
# thread adds one.
_NUM_BLOCKS = 3


def _references(held: list[Array]) -> int:
    return sys.getrefcount(held[0])


# References to an array that only a list holds. Every view holds the array that it shows.
_UNSEEN = _references([np.empty(0, np.uint8)])


def _over(block: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    array: Array = np.ndarray(shape, dtype, block)
    return array


class Spare:
    """Blocks of memory for the results of one column, shared by the threads that fill it.

    Attributes:
        limit: Size of the largest block that is kept.
    """

    def __init__(self) -> None:
        self.limit = IDLE_LIMIT
        self._most = _NUM_BLOCKS
        # By their ids: all are looked at in one step, while threads add others.
        self._readers: weakref.WeakValueDictionary[int, object] = weakref.WeakValueDictionary()
        # A thread takes a block out before it looks at it: no two find the same block unused.
        self._blocks: deque[Array] = deque()
        self._grown: deque[tuple[Any, int]] = deque()

    def begin(self, reader: object, num_threads: int) -> None:
        """Keeps blocks of any size, until ``end``.

        Args:
            reader: What reads files.
            num_threads: How many threads fill columns for it.
        """
        self._readers[id(reader)] = reader
        self.limit = sys.maxsize
        if num_threads > 1:
            self._most = max(self._most, _NUM_BLOCKS + num_threads)

    def end(self, reader: object) -> None:
        """Ends what ``begin`` began."""
        self._readers.pop(id(reader), None)
        self.trim()

    def trim(self) -> None:
        """Keeps only what an idle parser may, unless a reader goes on. For readers that were
        dropped."""
        if self._is_idle():
            self.limit, self._most = IDLE_LIMIT, _NUM_BLOCKS
            if not self._is_idle():  # a reader has begun just now
                self.limit = sys.maxsize
            with suppress(IndexError):  # a batch that is being parsed looks too
                for _ in range(len(self._blocks)):
                    self._keep(self._blocks.popleft())
            with suppress(IndexError):
                for _ in range(len(self._grown)):
                    self._keep_grown(*self._grown.popleft())

    def _is_idle(self) -> bool:
        return all(reader() is None for reader in self._readers.valuerefs())

    def _keep(self, block: Array) -> None:
        if block.nbytes <= self.limit:
            self._blocks.append(block)
            if len(self._blocks) > self._most:
                with suppress(IndexError):
                    self._blocks.popleft()

    def _keep_grown(self, owner: Any, size: int) -> None:
        if size <= self.limit:
            self._grown.append((owner, size))
            if len(self._grown) >= self._most:  # the user has one more
                with suppress(IndexError):
                    self._grown.popleft()

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """As ``np.empty``."""
        size = math.prod(shape) * dtype.itemsize
        # More than needed: the next batch may be a little larger.
        capacity = size + size // 8
        if size < LARGE or capacity > self.limit:
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
        if not LARGE <= capacity <= self.limit:
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
