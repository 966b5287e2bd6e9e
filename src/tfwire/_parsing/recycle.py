"""Large memory that comes back when the last array over it is gone.

The system hands out fresh memory page by page, at a fault each: for a batch of images that costs
as much as parsing it. A loop over batches needs the memory of two of them, again and again.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

from tfwire._core import adopt, ffi, lib

__all__ = ["Spare"]

Array = np.ndarray[Any, Any]

# Below this the allocator keeps memory by itself.
_LARGE = 1 << 17


class Spare:
    """A block of memory that is not in use, or none. Any thread may give it back."""

    def __init__(self) -> None:
        self._blocks: deque[Any] = deque(maxlen=1)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """As ``np.empty``."""
        size = math.prod(shape) * dtype.itemsize
        if size < _LARGE:
            return np.empty(shape, dtype)
        block = self._pop()
        if block is None or block.nbytes < size:
            # Some more than is needed, since the next batch is seldom of exactly this size.
            block = np.empty(size + size // 8, np.uint8)
        owner = ffi.gc(ffi.from_buffer(block), lambda _: self._blocks.append(block))
        return np.frombuffer(ffi.buffer(owner, size), dtype).reshape(shape)

    def adopt(self, memory: Any, count: int, dtype: Any, capacity: int) -> Array:
        """As ``_core.adopt``, for memory of some capacity that ``donate`` may give back to C."""
        if capacity < _LARGE:
            return adopt(memory, count, dtype)

        def release(memory: Any) -> None:
            self._blocks.append((ffi.gc(memory, lib.tfw_free, capacity), capacity))

        owner = ffi.gc(memory, release, capacity)
        return np.frombuffer(ffi.buffer(owner, count * np.dtype(dtype).itemsize), dtype)

    def donate(self, columns: Any, feature: int) -> None:
        """Gives a block that ``adopt`` took back to the column it came from."""
        block = self._pop()
        if block is not None:
            memory, capacity = block
            if lib.tfw_columns_donate(columns, feature, memory, capacity, ffi.NULL) == lib.TFW_OK:
                ffi.gc(memory, None)

    def _pop(self) -> Any:
        try:
            return self._blocks.pop()
        except IndexError:
            return None
