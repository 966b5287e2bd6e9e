"""Files to batches of columns: read, verified and parsed window by window.

No Python object exists per record. A window is what the reader has ready, verified records in its
buffer; C appends them to the columns under construction, which become results when a batch is full.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from tfwire._ahead import Ahead
from tfwire._parsing.builder import Builders, LeftOut, Outcome, Parsing
from tfwire._parsing.units import Parallel, Sequential
from tfwire._records.regions import SkippedRegions
from tfwire._records.streams import BatchReader
from tfwire._turns import SharedIterator
from tfwire._warnings import warn
from tfwire.errors import ParseError
from tfwire.receipts import Receipt

__all__ = ["FileBatches"]


class FileBatches(SharedIterator):
    """The batches of files, from ``parse_file``. Threads take turns; a context manager.

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
        verify: bool,
        drop_remainder: bool,
    ) -> None:
        super().__init__()
        self._reader = reader
        self._batches: Iterator[Any] = iter(())
        self._following: Any = None  # the batch that comes next, if an error comes after it
        self._error: BaseException | None = None  # at the end of the batches at hand
        self._num_skipped = 0
        self._last = False
        self._left_out = LeftOut()
        self._builders = Builders(
            parser, batch_size, self._left_out if skip else None, drop_remainder
        )
        self._ahead: Ahead | None = None
        self._warnings: deque[str] = deque()  # of other threads
        sequential = Sequential(self._builders, reader)
        self._more: Callable[[], Outcome] = sequential.step
        if num_threads > 1:
            # What a batch holds depends on the records left out before it: where some may be, one
            # thread goes through them all.
            reader.warn = self._warnings.append
            if skip:
                self._ahead = Ahead(sequential.step, None, 1, owner=self)
            else:
                parallel = Parallel(self._builders, reader, verify)
                self._ahead = Ahead(parallel.read, parallel.parse, num_threads, owner=self)
            self._more = self._ahead.next

    @property
    def skipped(self) -> SkippedRegions:
        """The regions of the files that were left out so far."""
        if not self._num_skipped:
            return SkippedRegions()
        with self._between_reads():
            return self._reader.skipped.first(self._num_skipped)

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records read so far; of all records of all files at the end, those
        included that were left out because they do not fit.

        Raises:
            ValueError: ``parse_file`` was not asked for it.
        """
        with self._between_reads():
            return self._reader.receipt

    def _between_reads(self) -> Any:
        return nullcontext() if self._ahead is None else self._ahead.between_reads()

    @property
    def parse_errors(self) -> list[ParseError]:
        """Why records were left out so far, by ``on_parse_error="skip"``; the first thousand."""
        return list(self._left_out.errors)

    @property
    def num_parse_errors(self) -> int:
        """How many records were left out so far because they do not fit."""
        return self._left_out.count

    def step(self) -> Any:
        batch, self._following = self._following, None
        while batch is None and (batch := next(self._batches, None)) is None and not self._last:
            self._batches, self._num_skipped, self._error, self._last = self._more()
            self._warn()
        if batch is None:
            error, self._error = self._error, None
            raise StopIteration if error is None else error
        if self._error is not None:
            self._look_ahead()
        return batch

    def _look_ahead(self) -> None:
        """Finds out whether a batch comes before the error. All records before it are parsed."""
        try:
            self._following = next(self._batches, None)
        except Exception as error:
            self._error = error

    @property
    def pending_error(self) -> BaseException | None:
        """The error that comes next, before which a batch may be incomplete."""
        return self._error if self._following is None else None

    def close(self) -> None:
        """Ends the iteration, stops its threads and closes the file at hand.

        Another thread that waits for a batch gets StopIteration. A thread that is in the middle of
        a read of a pipe closes it when the read returns.
        """
        super().close()

    def stop(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()

    def over_now(self) -> None:
        self.close()

    def release(self) -> None:
        self._batches, self._following = iter(()), None
        if self._ahead is None:
            self._let_go()
        else:
            self._ahead.close(self._let_go)
        if self._left_out.count:
            self._warnings.append(
                f"left out {self._left_out.count} record(s) that do not fit the specification, "
                f"the first: {self._left_out.errors[0]}"
            )
        self._warn()

    def _let_go(self) -> None:
        try:
            self._reader.close()
        finally:
            self._builders.release()

    def _warn(self) -> None:
        while self._warnings:
            warn(self._warnings.popleft())

    def __enter__(self) -> FileBatches:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators over files cannot be pickled; pickle the parser")
