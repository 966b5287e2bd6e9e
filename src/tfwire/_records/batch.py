"""What a ``tfw_batch *`` holds, for those who look at its records one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfwire._core import ffi, lib
from tfwire._records.regions import RecordPosition

__all__ = [
    "number_of",
    "numbers_of",
    "position_behind",
    "position_of",
    "runs_of",
    "shorten",
    "split",
    "table_of",
]


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


def position_of(batch: Any, index: int) -> RecordPosition:
    """Where one of the records begins."""
    offset = batch.offset + batch.spans[index].offset - lib.TFW_HEADER_SIZE
    return RecordPosition(number_of(batch, index), offset)


def position_behind(batch: Any) -> RecordPosition:
    """Where the last record ends."""
    number, begin = position_of(batch, batch.count - 1)
    length = batch.spans[batch.count - 1].length
    return RecordPosition(number + 1, begin + lib.TFW_HEADER_SIZE + length + lib.TFW_FOOTER_SIZE)


def runs_of(batch: Any) -> Iterator[tuple[int, int]]:
    """The records that lie one behind the other: first and end of every such run."""
    if not batch.numbers:
        return iter([(0, batch.count)])
    breaks = np.flatnonzero(np.diff(numbers_of(batch)) != 1) + 1
    ends = [*breaks.tolist(), batch.count]
    return iter(zip([0, *ends[:-1]], ends, strict=True))


def shorten(batch: Any, count: int) -> None:
    """Takes so many records off the beginning."""
    batch.payload_bytes -= sum(batch.spans[i].length for i in range(count))
    batch.spans += count
    batch.count -= count
    batch.first_record += count
    if batch.numbers:
        batch.numbers += count
        batch.first_record = batch.numbers[0] if batch.count else batch.first_record


def split(batch: Any, count: int) -> Any:
    """Takes so many records off the beginning, or all if there are no more, as a batch."""
    taken = ffi.new("tfw_batch *", batch[0])
    taken.count = min(count, batch.count)
    shorten(batch, taken.count)
    taken.payload_bytes -= batch.payload_bytes
    return taken
