"""Records as bytes objects, a batch at a time, for an iterator that hands them out one by one."""

from __future__ import annotations

import itertools
import operator
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

from tfwire._core import ffi, lib
from tfwire._records import longreads
from tfwire._records.batch import numbers_of, position_of, table_of
from tfwire._records.regions import RecordPosition, SkippedRegions, TornTail
from tfwire._records.streams import BatchReader
from tfwire._records.tally import Tally
from tfwire._turns import SharedIterator, State
from tfwire.receipts import Receipt

__all__ = ["CLOSED", "RecordBatches"]

CLOSED = "the record iterator is closed"

# Below this mean length a pickle stream makes bytes objects faster than slices do.
_SHORT = 2048


class RecordBatches(SharedIterator):
    """The records of a reader, as one iterator per batch.

    Two threads may find in the common chain that a batch is used up, and both come here for the
    next. The second one then gets the same iterator again, so that none is dropped half-used.
    """

    def __init__(self, reader: BatchReader) -> None:
        super().__init__()
        self._reader = reader
        self._batch: Any = None
        self._long: longreads.LongRecord | None = None  # instead of a batch
        self._expect_long = False
        self._current: Iterator[bytes] = iter(())
        self._before = reader.position  # of the batch that was asked for last
        self._dropped = Receipt()  # of the records that close took back
        self._closed_at: RecordPosition | None = None
        self._stream = ffi.new("uint8_t[]", 1)
        self._stream_len = ffi.new("size_t *")

    def __next__(self) -> Iterator[bytes]:
        """The next batch, or what is left of the current one.

        Raises:
            StopIteration: There is none.
            ValueError: The iterator is closed, perhaps since this thread waits.
        """
        try:
            batch: Iterator[bytes] = super().__next__()
            return batch
        except StopIteration:
            if self.state is State.CLOSED:
                raise ValueError(CLOSED) from None
            raise

    def step(self) -> Iterator[bytes]:
        if not operator.length_hint(self._current):
            self._before = self._reader.position
            self._current = iter(self._load())
        return self._current

    def _load(self) -> Sequence[bytes]:
        """The records that come next."""
        self._long = None  # its memory may serve the next record
        if self._expect_long:
            self._long = self._reader.read_long()
            if self._long is not None:
                return (self._long.payload,)
        self._batch = self._reader.next()
        if self._batch is None:
            raise StopIteration
        self._expect_long = self._batch.payload_bytes >= longreads.LONG * self._batch.count
        return self._strings(self._batch)

    def _strings(self, batch: Any) -> Sequence[bytes]:
        """The records of a batch as bytes objects."""
        count, size = batch.count, batch.payload_bytes
        if size < _SHORT * count:
            capacity = lib.tfw_pickle_bound(count, size)
            if capacity > len(self._stream):
                self._stream = ffi.new("uint8_t[]", capacity)
            status = lib.tfw_pickle_spans(
                batch.data,
                batch.data_len,
                batch.spans,
                count,
                self._stream,
                capacity,
                self._stream_len,
            )
            assert status == lib.TFW_OK
            strings: tuple[bytes, ...] = pickle.loads(ffi.buffer(self._stream, self._stream_len[0]))
            return strings
        data = ffi.buffer(batch.data, batch.data_len)
        return [data[begin : begin + length] for begin, length in table_of(batch).tolist()]

    def positions(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """All that is left, with positions."""
        for _ in self:
            yield from self.exclusively(self._take)

    def _take(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """What is left of the current batch; nobody else gets it."""
        records = list(self._current)
        if not records:  # closed just now
            return iter(())
        numbers: Sequence[int]
        if self._long is not None:
            numbers, offsets = [self._long.position[0]], [self._long.position[1]]
        else:
            numbers = numbers_of(self._batch)
            header = self._batch.offset - lib.TFW_HEADER_SIZE
            offsets = (table_of(self._batch)[:, 0] + header).tolist()
        done = len(offsets) - len(records)
        path = itertools.repeat(self._reader.path, len(records))
        self._current = iter(records)
        return zip(path, numbers[done:], offsets[done:], self._current, strict=True)

    @property
    def skipped(self) -> SkippedRegions:
        return self.exclusively(lambda: self._reader.skipped)

    @property
    def tail(self) -> TornTail | None:
        return self.exclusively(lambda: self._reader.tail)

    @property
    def position(self) -> RecordPosition:
        """Where the record begins that is handed out next."""
        return self.exclusively(self._position)

    def _position(self) -> RecordPosition:
        if self._closed_at is not None:
            return self._closed_at
        if self.error is not None and not isinstance(self.error, Exception):
            return self._before  # an interrupt: the batch may be read, but it is lost
        left = operator.length_hint(self._current)
        if not left:
            return self._reader.position
        if self._long is not None:
            return self._long.position
        return position_of(self._batch, self._batch.count - left)

    @property
    def receipt(self) -> Receipt:
        """That of the records handed out."""
        return self.exclusively(lambda: self._reader.receipt - self._dropped - self._waiting())

    @property
    def file_crc32c(self) -> int | None:
        return self.exclusively(lambda: self._reader.file_crc32c)

    def _waiting(self) -> Receipt:
        """The receipt of what is left of the current batch."""
        count, tally = operator.length_hint(self._current), Tally()
        if count and self._long is not None:
            tally.add_record(self._long.crc, len(self._long.payload))
        elif count:
            tally.add_batch(self._batch, self._batch.count - count)
        return tally.receipt

    def stop(self) -> None:
        self._reader.interrupt()  # a wait for a pipe

    def release(self) -> None:
        self._closed_at = self._position()
        self._dropped += self._waiting()
        for _ in self._current:  # the chain holds it too
            pass
        self._reader.close()
