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
from tfwire._parsing.builder import Builder, Outcome, Parsing, Window
from tfwire._records.regions import SkippedRegions
from tfwire._records.streams import BatchReader, warn
from tfwire.errors import ParseError
from tfwire.receipts import Receipt

__all__ = ["FileBatches"]

# Room for so many records at first; it grows as records come, so that a huge batch_size costs only
# what the files hold.
_ROOM = 4096


class Unit(NamedTuple):
    """The records of a batch, copied out of the reader, for a thread to parse.

    Attributes:
        windows: The records.
        error: What ended the reading, or None.
        last: There is no unit behind this one.
    """

    windows: list[Window]
    error: Exception | None
    last: bool


class Sequential:
    """Batches one after the other, parsed where the reader's buffer is."""

    def __init__(self, builder: Builder, reader: BatchReader, batch_size: int) -> None:
        self._builder = builder
        self._reader = reader
        self._batch_size = batch_size
        self._room = _ROOM

    def step(self) -> Outcome:
        """The next batch, incomplete at the end or before an error."""
        builder = self._builder
        builder.begin(min(self._batch_size, self._room))
        error = None
        try:
            while builder.count < self._batch_size:
                batch = self._reader.next(self._batch_size - builder.count)
                if batch is None:
                    break
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
        return builder.finish(error, last=builder.count < self._batch_size)


class Parallel:
    """Batches that threads read one after the other and parse side by side."""

    def __init__(self, parser: Parsing, reader: BatchReader, batch_size: int) -> None:
        self._parser = parser
        self._reader = reader
        self._batch_size = batch_size
        self._builders: list[Builder] = []  # those that no thread is using

    def read(self) -> Unit:
        """The records of the next batch; fewer at the end or before an error."""
        windows: list[Window] = []
        missing, error = self._batch_size, None
        try:
            while missing:
                batch = self._reader.next(missing)
                if batch is None:
                    break
                windows.append(copy_window(batch, self._reader.path))
                missing -= batch.count
        except Exception as found:
            error = found
        return Unit(windows, error, missing > 0)

    def parse(self, unit: Unit) -> Outcome:
        """The batch of a unit; in any thread."""
        windows, error, last = unit
        try:
            builder = self._builders.pop()
        except IndexError:
            builder = Builder(self._parser)
        try:
            builder.begin(sum(window.num_records for window in windows))
            for window in windows:
                builder.add(window)
        except Exception as found:
            error = found
        outcome = builder.finish(error, last)
        self._builders.append(builder)
        return outcome

    def release(self) -> None:
        """Gives the columns back to the parser, once the threads have ended."""
        while self._builders:
            self._builders.pop().release()


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
        self._batch_size = batch_size
        self._drop_remainder = drop_remainder
        self._error: BaseException | None = None
        self._last = self._closed = False
        self._lock = threading.Lock()
        self._builder = Builder(parser, skip)
        self._ahead: Ahead | None = None
        self._warnings: deque[str] = deque()  # of other threads
        self._parallel = Parallel(parser, reader, batch_size)
        sequential = Sequential(self._builder, reader, batch_size)
        self._step: Callable[[], Outcome] = sequential.step
        if num_threads > 1:
            # What a batch holds depends on the records left out before it: where some may be, one
            # thread goes through them all.
            reader.warn = self._warnings.append
            if skip:
                self._ahead = Ahead(sequential.step, _same, 1)
            else:
                self._ahead = Ahead(self._parallel.read, self._parallel.parse, num_threads)
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
        return list(self._builder.errors)

    @property
    def num_parse_errors(self) -> int:
        """How many records were left out so far because they do not fit."""
        return self._builder.num_errors

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
        if not self._last and not self._closed:
            batch, num_records, self._error, self._last = self._step()
            self._warn()
            if batch is not None and not (self._drop_remainder and num_records < self._batch_size):
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
        if self._ahead is not None and self._ahead.forked:
            return
        try:
            if self._ahead is not None:
                self._ahead.close()
            self._reader.close()
        finally:
            self._builder.release()
            self._parallel.release()
        if self._builder.num_errors:
            self._warnings.append(
                f"left out {self._builder.num_errors} record(s) that do not fit the "
                f"specification, the first: {self._builder.errors[0]}"
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
