"""Files to batches of columns: read, verified and parsed window by window.

No Python object exists per record. A window is what the reader has ready, verified records in its
buffer; C appends them to the columns under construction, which become results when a batch is full.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from tfwire._ahead import Ahead
from tfwire._core import ffi
from tfwire._parsing.builder import Builders, LeftOut, Outcome, Parsing, Window
from tfwire._records.regions import SkippedRegions
from tfwire._records.streams import BatchReader, warn
from tfwire.errors import ParseError
from tfwire.receipts import Receipt

__all__ = ["FileBatches"]

# Room for so many records at first; it grows as records come, so that a huge batch_size costs only
# what the files hold.
_ROOM = 4096


# Units of work are whole batches of so many bytes together: what costs per batch and not per record
# is shared, and a batch that is kept holds little memory of others.
_UNIT_BYTES = 1 << 20


class Unit(NamedTuple):
    """The records of some batches, copied out of the reader, for a thread to parse.

    Attributes:
        windows: The records.
        error: What ended the reading, or None.
        last: There is no unit behind this one.
    """

    windows: list[Window]
    error: Exception | None
    last: bool


class Sizes:
    """How many records to put into a unit: known from the size of those before it.

    Batches of pipes and the like must not wait for others.
    """

    def __init__(self, reader: BatchReader, batch_size: int) -> None:
        self._reader = reader
        self._batch_size = batch_size
        self._num_batches = 1

    def num_records(self) -> int:
        return self._batch_size * (self._num_batches if self._reader.at_hand else 1)

    def note(self, num_records: int, num_bytes: int) -> None:
        """Notes what was read of a unit."""
        if num_records:
            batch_bytes = self._batch_size * (num_bytes // num_records + 16)
            self._num_batches = -(-_UNIT_BYTES // batch_bytes)


class Sequential:
    """Batches one after the other, parsed where the reader's buffer is."""

    def __init__(self, builders: Builders, reader: BatchReader) -> None:
        self._builders = builders
        self._reader = reader
        self._sizes = Sizes(reader, builders.batch_size)
        self._room = _ROOM

    def step(self) -> Outcome:
        """The next batches, the last of them incomplete at the end or before an error."""
        builder = self._builders.get()
        goal = self._sizes.num_records()
        num_records = num_bytes = 0
        error = None
        try:
            builder.begin(min(goal, self._room))
            while builder.count < goal:
                batch = self._reader.next(goal - builder.count)
                if batch is None:
                    break
                num_records += batch.count
                num_bytes += batch.payload_bytes
                builder.add(
                    Window(
                        batch.data,
                        batch.data_len,
                        batch.spans,
                        batch.count,
                        self._reader.path,
                        batch.first_record,
                    )
                )
        except Exception as found:
            error = found
        self._room = max(_ROOM, builder.count)
        self._sizes.note(num_records, num_bytes)
        return builder.finish(error, last=builder.count < goal)


class Parallel:
    """Batches that threads read one after the other and parse side by side."""

    def __init__(self, builders: Builders, reader: BatchReader) -> None:
        self._builders = builders
        self._reader = reader
        self._sizes = Sizes(reader, builders.batch_size)

    def read(self) -> Unit:
        """The records of the next batches; fewer at the end or before an error."""
        windows: list[Window] = []
        missing, error = self._sizes.num_records(), None
        try:
            while missing:
                batch = self._reader.next(missing)
                if batch is None:
                    break
                windows.append(copy_window(batch, self._reader.path))
                missing -= batch.count
        except Exception as found:
            error = found
        self._sizes.note(
            sum(window.num_records for window in windows),
            sum(window.data_len for window in windows),
        )
        return Unit(windows, error, missing > 0)

    def parse(self, unit: Unit) -> Outcome:
        """The batches of a unit; in any thread."""
        windows, error, last = unit
        builder = self._builders.get()
        try:
            builder.begin(sum(window.num_records for window in windows))
            for window in windows:
                builder.add(window)
        except Exception as found:
            error = found
        return builder.finish(error, last)


def copy_window(batch: Any, path: Any) -> Window:
    """A reader's batch with memory of its own."""
    spans = np.frombuffer(ffi.buffer(batch.spans, batch.count * 16), np.uint64).copy()
    begin, end = int(spans[0]), int(spans[-2] + spans[-1])
    data = np.frombuffer(ffi.buffer(batch.data + begin, end - begin), np.uint8).copy()
    spans[::2] -= np.uint64(begin)
    pointers = ffi.from_buffer("uint8_t[]", data), ffi.from_buffer("tfw_span[]", spans)
    return Window(pointers[0], len(data), pointers[1], batch.count, path, batch.first_record)


class FileBatches(Iterator[Any]):
    """The batches of files, from ``parse_file``. For one thread at a time; a context manager.

    Every intact record is delivered before an error is raised: the batch before the error may be
    incomplete. After an error, and after ``close``, the iteration has ended.
    """

    def __init__(
        self,
        parser: Parsing,
        reader: BatchReader,
        batch_size: int,
        *,
        skip: bool,
        num_threads: int,
        drop_remainder: bool,
    ) -> None:
        self._reader = reader
        self._batches: Iterator[Any] = iter(())
        self._error: BaseException | None = None
        self._last = self._closed = False
        self._lock = threading.Lock()
        self._left_out = LeftOut()
        self._builders = Builders(
            parser, batch_size, self._left_out if skip else None, drop_remainder
        )
        self._ahead: Ahead | None = None
        self._warnings: deque[str] = deque()  # of other threads
        sequential = Sequential(self._builders, reader)
        self._step: Callable[[], Outcome] = sequential.step
        if num_threads > 1:
            # What a batch holds depends on the records left out before it: where some may be, one
            # thread goes through them all.
            reader.warn = self._warnings.append
            if skip:
                self._ahead = Ahead(sequential.step, _same, 1)
            else:
                parallel = Parallel(self._builders, reader)
                self._ahead = Ahead(parallel.read, parallel.parse, num_threads)
            self._step = self._ahead.next
            weakref.finalize(self, self._ahead.stop)

    @property
    def skipped(self) -> SkippedRegions:
        """The regions of the files that were left out so far."""
        with nullcontext() if self._ahead is None else self._ahead.reading:
            return self._reader.skipped

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records read so far; of all records of all files at the end, those
        included that were left out because they do not fit.

        Raises:
            ValueError: ``parse_file`` was not asked for it.
        """
        with nullcontext() if self._ahead is None else self._ahead.reading:
            return self._reader.receipt

    @property
    def parse_errors(self) -> list[ParseError]:
        """Why records were left out so far, by ``on_parse_error="skip"``; the first thousand."""
        return list(self._left_out.errors)

    @property
    def num_parse_errors(self) -> int:
        """How many records were left out so far because they do not fit."""
        return self._left_out.count

    def __next__(self) -> Any:
        if not self._lock.acquire(blocking=False):
            raise RuntimeError("two threads iterate over the same files at the same time")
        try:
            return self._next()
        except BaseException:  # also KeyboardInterrupt: what was read of a batch is lost
            self._close()
            raise
        finally:
            self._lock.release()

    def _next(self) -> Any:
        while (batch := next(self._batches, None)) is None and not (self._last or self._closed):
            self._batches, self._error, self._last = self._step()
            self._warn()
        if batch is not None:
            return batch
        error, self._error = self._error, None
        raise StopIteration if error is None else error

    def close(self) -> None:
        """Ends the iteration, stops its threads and closes the file at hand."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._batches = iter(())
        if self._ahead is not None and self._ahead.forked:
            return
        try:
            if self._ahead is not None:
                self._ahead.close()
            self._reader.close()
        finally:
            self._builders.release()
        if self._left_out.count:
            self._warnings.append(
                f"left out {self._left_out.count} record(s) that do not fit the specification, "
                f"the first: {self._left_out.errors[0]}"
            )
        self._warn()

    def _warn(self) -> None:
        while self._warnings:
            warn(self._warnings.popleft())

    def __enter__(self) -> FileBatches:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators over files cannot be pickled; pickle the parser")


def _same(value: Any) -> Any:
    return value
