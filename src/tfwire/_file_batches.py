"""Files to batches of columns: read, verified and parsed window by window.

No Python object exists per record. A window is what the reader has ready, verified records in its
buffer; C appends them to the columns under construction, which become results when a batch is full.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfwire._ahead import Ahead
from tfwire._core import ffi
from tfwire._failure import Misfit, Place, parse_error
from tfwire._session import Session
from tfwire._streams import BatchReader, SkippedRegion
from tfwire.errors import ParseError

__all__ = ["FileBatches"]

# Room for so many records at first; it grows as records come, so that a huge batch_size costs only
# what the files hold.
_ROOM = 4096

_MAX_ERRORS_KEPT = 1000


class Window(NamedTuple):
    """Records in a row of one file.

    Attributes:
        data, data_len: The buffer.
        spans: ``tfw_span *``.
        num_records: How many spans there are.
        path: The file.
        first_record: Number of the first record in the file.
    """

    data: Any
    data_len: int
    spans: Any
    num_records: int
    path: Any
    first_record: int


class Parsing(Protocol):
    """What is needed of a parser."""

    _sessions: list[Session]

    def _acquire(self) -> Session: ...
    def _results(self, parts: Any, count: int | None) -> Any: ...
    def _keys(self, message: Any, misfit: Misfit) -> Any: ...


class Outcome(NamedTuple):
    """One step of the iteration.

    Attributes:
        batch: The results, None where there is no record.
        num_records: How many records it holds.
        error: What ends the iteration behind the batch, or None.
    """

    batch: Any
    num_records: int
    error: Exception | None


class Builder:
    """Puts the records of windows together to batches.

    Args:
        parser: Whose results to make.
        skip: Leave out records that do not fit, and count them.

    Attributes:
        count: Records of the batch at hand.
        errors: What was wrong with the first records left out.
        num_errors: How many were left out.
    """

    def __init__(self, parser: Parsing, skip: bool = False) -> None:
        self._parser = parser
        self._session = parser._acquire()
        self._skip = skip
        self._room = 0
        self.count = 0
        self.errors: list[ParseError] = []
        self.num_errors = 0

    def begin(self, room: int) -> None:
        """Begins a batch with room for so many records, which may grow."""
        self._room = room
        self._session.begin(room)
        self.count = 0

    def add(self, window: Window) -> None:
        """Appends the records of a window.

        Raises:
            ParseError: A record does not fit; those before it were appended.
        """
        if self.count + window.num_records > self._room:
            self._room = max(self.count + window.num_records, 2 * self._room)
            self._session.grow(self._room, self.count)
        first = 0
        while first < window.num_records:
            spans, left = window.spans + first, window.num_records - first
            try:
                self._session.append(window.data, window.data_len, spans, left, self.count)
                self.count += left
                return
            except Misfit as misfit:
                done = int(self._session.done[0])
                self.count += done
                first += done
                if not self._skip:
                    raise self._error(misfit, window, first) from None
                self._leave_out(misfit, window, first)
                first += 1

    def finish(self, error: Exception | None) -> Outcome:
        """The batch at hand, and the error that ended it."""
        if not self.count:
            return Outcome(None, 0, error)
        self._session.truncate(self.count)  # also what an allocation that failed left behind
        self._session.trim(self.count)
        try:
            batch = self._parser._results(self._session.take(self.count), self.count)
        except Misfit as misfit:  # of all records together
            return Outcome(None, 0, parse_error(misfit, Place()))
        except Exception as found:
            return Outcome(None, 0, found)
        return Outcome(batch, self.count, error)

    def release(self) -> None:
        """Gives the columns back to the parser; the builder is of no more use."""
        self._parser._sessions.append(self._session)

    def _leave_out(self, misfit: Misfit, window: Window, index: int) -> None:
        self.num_errors += 1
        if len(self.errors) < _MAX_ERRORS_KEPT:
            self.errors.append(self._error(misfit, window, index))

    def _error(self, misfit: Misfit, window: Window, index: int) -> ParseError:
        span = window.spans[index]
        message = ffi.buffer(window.data + span.offset, span.length)
        place = Place(window.path, window.first_record + index)
        return parse_error(misfit, place, self._parser._keys(message, misfit))


class Sequential:
    """Batches one after the other, parsed where the reader's buffer is."""

    def __init__(self, builder: Builder, reader: BatchReader, batch_size: int) -> None:
        self._builder = builder
        self._reader = reader
        self._batch_size = batch_size
        self._room = _ROOM

    def step(self) -> tuple[Outcome, bool]:
        """The next batch, incomplete at the end or before an error, and whether it is the last."""
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
        outcome = builder.finish(error)
        return outcome, outcome.error is not None or outcome.num_records < self._batch_size


class Units:
    """The records of whole batches copied out of the reader, for threads to parse."""

    def __init__(self, parser: Parsing, reader: BatchReader, batch_size: int) -> None:
        self._parser = parser
        self._reader = reader
        self._batch_size = batch_size

    def read(self) -> tuple[tuple[list[Window], bool, Exception | None], bool]:
        """The windows of the next batch, whether it is the last, and the error that ends it."""
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
        return (windows, missing > 0, error), missing > 0

    def parse(self, unit: tuple[list[Window], bool, Exception | None]) -> tuple[Outcome, bool]:
        """The batch of a unit, and whether it is the last."""
        windows, last, error = unit
        builder = Builder(self._parser)
        try:
            builder.begin(sum(window.num_records for window in windows))
            for window in windows:
                builder.add(window)
        except Exception as found:
            error = found
        outcome = builder.finish(error)
        builder.release()
        return outcome, last or outcome.error is not None


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
        sequential = Sequential(self._builder, reader, batch_size)
        self._step: Callable[[], tuple[Outcome, bool]] = sequential.step
        if num_threads > 1:
            # What a batch holds depends on the records left out before it: where some may be, one
            # thread goes through them all.
            units = Units(parser, reader, batch_size)
            read, work = (sequential.step, _same) if skip else (units.read, units.parse)
            self._ahead = Ahead(read, work, 1 if skip else num_threads)
            self._step = self._ahead.next
            weakref.finalize(self, self._ahead.stop)

    @property
    def skipped(self) -> list[SkippedRegion]:
        """The regions of the files that were left out so far."""
        with nullcontext() if self._ahead is None else self._ahead.reading:
            return self._reader.skipped

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
            (batch, num_records, self._error), self._last = self._step()
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
        try:
            if self._ahead is not None:
                self._ahead.close()
            self._reader.close()
        finally:
            self._builder.release()
        if self._builder.num_errors:
            warnings.warn(
                f"left out {self._builder.num_errors} record(s) that do not fit the "
                f"specification, the first: {self._builder.errors[0]}",
                UserWarning,
                stacklevel=4,
            )

    def __enter__(self) -> FileBatches:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators over files cannot be pickled; pickle the parser")


def _same(value: Any) -> Any:
    return value
