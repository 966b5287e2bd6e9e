"""Batches of the native reader."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.native import ffi, lib
from tfwire._records.reading.damage import RecordPosition


def span_table(batch: Any) -> np.ndarray[Any, Any]:
    """Offset and length of every record: int64 of shape (n, 2), a view of the memory of C."""
    size = batch.count * ffi.sizeof("tfw_span")
    return np.frombuffer(ffi.buffer(batch.spans, size), np.int64).reshape(-1, 2)


def record_keys(batch: Any) -> Array:
    """One uint64 per record: its length and its checksum."""
    offsets, lengths = span_table(batch).T
    data = np.frombuffer(ffi.buffer(batch.data, batch.data_len), np.uint8)
    footers = data[(offsets + lengths)[:, None] + np.arange(lib.TFW_FOOTER_SIZE, dtype=np.int64)]
    keys: Array = lengths.astype(np.uint64) << np.uint64(32) | footers.view(np.uint32)[:, 0]
    return keys


def number_of(batch: Any, index: int) -> int:
    """The number of a record in its file."""
    return int(batch.numbers[index] if batch.numbers else batch.first_record + index)


def record_numbers(batch: Any) -> Sequence[int]:
    """The numbers of all records."""
    if not batch.numbers:
        return range(batch.first_record, batch.first_record + batch.count)
    numbers: list[int] = ffi.unpack(batch.numbers, batch.count)
    return numbers


def record_position(batch: Any, index: int) -> RecordPosition:
    """Where a record begins."""
    offset = batch.offset + batch.spans[index].offset - lib.TFW_HEADER_SIZE
    return RecordPosition(number_of(batch, index), offset)


def position_after(batch: Any) -> RecordPosition:
    """Where the last record ends."""
    number, begin = record_position(batch, batch.count - 1)
    length = batch.spans[batch.count - 1].length
    return RecordPosition(number + 1, begin + lib.TFW_HEADER_SIZE + length + lib.TFW_FOOTER_SIZE)


def drop_first(batch: Any, count: int) -> None:
    """Drops this many records from the beginning."""
    is_all = count == batch.count
    lengths = span_table(batch)[:count, 1]
    batch.payload_bytes -= batch.payload_bytes if is_all else int(lengths.sum(dtype=np.int64))
    batch.spans += count
    batch.count -= count
    batch.first_record += count
    if batch.numbers:
        batch.numbers += count
        batch.first_record = batch.numbers[0] if batch.count else batch.first_record


def split(batch: Any, count: int) -> Any:
    """Moves at most this many records from the beginning to a batch of their own."""
    taken = ffi.new("tfw_batch *", batch[0])
    taken.count = min(count, batch.count)
    drop_first(batch, taken.count)
    taken.payload_bytes -= batch.payload_bytes
    return taken
