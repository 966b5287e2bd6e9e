"""What a ``tfw_batch *`` holds, for those who look at its records one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfwire._core import ffi

__all__ = ["number_of", "numbers_of", "runs_of", "table_of"]


def table_of(batch: Any) -> np.ndarray[Any, Any]:
    """Offset and length of every record, a view of the batch's memory."""
    size = batch.count * ffi.sizeof("tfw_span")
    return np.frombuffer(ffi.buffer(batch.spans, size), np.int64).reshape(-1, 2)


def number_of(batch: Any, index: int) -> int:
    """The number in its file of one of the records."""
    return int(batch.numbers[index] if batch.numbers else batch.first_record + index)


def numbers_of(batch: Any) -> Sequence[int]:
    """The numbers of all records."""
    if not batch.numbers:
        return range(batch.first_record, batch.first_record + batch.count)
    return ffi.unpack(batch.numbers, batch.count)  # type: ignore[no-any-return]


def runs_of(batch: Any) -> Iterator[tuple[int, int]]:
    """The records that lie one behind the other: first and end of every such run."""
    if not batch.numbers:
        return iter([(0, batch.count)])
    breaks = np.flatnonzero(np.diff(numbers_of(batch)) != 1) + 1
    ends = [*breaks.tolist(), batch.count]
    return iter(zip([0, *ends[:-1]], ends, strict=True))
