"""parse_file: batches of whole files, parsed by one thread or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import length_hint
from typing import Any

from tfwire._base.errors import ParseError, warn
from tfwire._base.native import objects
from tfwire._base.shared_iterator import RUNNING, SharedIterator
from tfwire._base.system import process
from tfwire._parsing.failure import warn_of
from tfwire._parsing.file_chunks import (
    Batch,
    FileChunks,
    FileParser,
    ParsingOptions as ParsingOptions,
)
from tfwire._records.reading.damage import RecordPosition, SkippedRegions
from tfwire._records.reading.pipeline import FilePlace, place_of
from tfwire._records.reading.receipts import Receipt

# Bytes of a file read at a time where C does not read it by itself.
_BUFFER_SIZE = 1 << 21


class FileBatches(SharedIterator[Batch]):
    """The batches of files, from ``parse_file``. Threads take turns; a context manager.

    Every intact record is delivered before an error is raised: the batch before the error may be
    incomplete. After an error, and after ``close``, the iteration has ended.
    """

    def __init__(self, chunks: FileChunks, start: RecordPosition) -> None:
        super().__init__()
        self._chunks = chunks
        self._batches: Iterator[Batch] = iter(())
        # those, if each thread may take one of them at any time
        self._at_hand: Iterable[Batch] = ()
        self._num_at_hand = 0  # at first
        self._following: Batch | None = None  # the next batch, if an error comes after it
        self._error: BaseException | None = None  # comes after self._batches
        self._num_skipped = 0
        self._last = False
        # Where the records of self._batches begin, and how many of these were given.
        self._begin: Any = FilePlace(0, start)
        self._given = 0

    @property
    def skipped(self) -> SkippedRegions:
        """The regions of the files that were left out so far. At a ParseError, regions after it may
        be among them: the file was read ahead."""
        if not self._num_skipped:
            return SkippedRegions()
        return self.exclusively(self._chunks.skipped, self._num_skipped)

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records read so far, also of those left out because they do not fit.

        Raises:
            ValueError: ``parse_file`` was called without ``receipt=True``.
        """
        return self.exclusively(self._chunks.receipt)

    @property
    def parse_errors(self) -> list[ParseError]:
        """The errors of records left out by ``on_parse_error="skip"`` so far: the first 1000."""
        return list(self._chunks.left_out.errors)

    @property
    def num_parse_errors(self) -> int:
        """Number of records left out so far because they do not fit."""
        return self._chunks.left_out.count

    def __next__(self) -> Batch:
        # Nobody has to wait for what is at hand.
        if self._progress is RUNNING and not self._closed and self._pid == process.number:
            for batch in self._at_hand:
                return batch
        return super().__next__()

    def step(self) -> Batch:
        batch, self._following = self._following, None
        while batch is None and (batch := next(self._batches, None)) is None and not self._last:
            self._batches = self._at_hand = iter(())  # so that their memory serves the next ones
            outcome = self._chunks.next()
            self._batches, self._num_skipped, self._error, self._last, self._begin = outcome
            self._given = self._num_at_hand = 0
            if type(self._batches) is objects.Batches and self._error is None:
                self._num_at_hand = length_hint(self._batches)
                self._at_hand = self._batches
        if batch is None:
            error, self._error = self._error, None
            try:
                raise StopIteration if error is None else error
            finally:
                del error  # whose traceback has this frame: no collection is waited for
        if self._error is not None:
            self._look_ahead()
        self._given += 1
        return batch

    def _look_ahead(self) -> None:
        """Gets the batch before the error, if there is one. Its records are parsed already."""
        try:
            self._following = next(self._batches, None)
        except Exception as error:
            self._error = error

    @property
    def pending_error(self) -> BaseException | None:
        # For datasets: the error that comes next. The batch before it may be incomplete.
        return self._error if self._following is None else None

    @property
    def place(self) -> tuple[int, RecordPosition, int]:
        # For datasets: the number of a file, a position in it, and how many batches of the records
        # from there on were given. Only where no record is left out because it does not fit.
        begin, given = self._begin, self._given
        if not isinstance(begin, FilePlace):
            begin = place_of(begin.begin)
        if self._num_at_hand:
            given = self._num_at_hand - length_hint(self._at_hand)
        return (*begin, given)

    def close(self) -> None:
        """Ends the iteration, stops its threads and closes the current file.

        Another thread that waits for a batch gets StopIteration, also one that waits for a pipe.
        """
        super().close()

    def stop(self) -> None:
        self._chunks.interrupt()

    def over_now(self) -> None:
        self.close()

    def release(self) -> None:
        self._given = self.place[2]
        self._batches, self._at_hand, self._following = iter(()), (), None
        self._num_at_hand = 0
        self._chunks.close()
        if (left_out := self._chunks.left_out).count:
            warn(
                f"left out {left_out.count} record(s) that do not fit the specification, "
                f"the first: {left_out.errors[0]}"
            )
        if late := self._chunks.late:
            path, record, _, is_list, _ = late[0]
            warn_of(path, record, is_list, [one[2] for one in late], any(one[4] for one in late))

    def __reduce__(self) -> Any:
        raise TypeError("iterators over files cannot be pickled; pickle the parser")


def parse_from(
    parser: FileParser[Any],
    inputs: list[Any] | Iterator[Any],
    options: ParsingOptions,
    start: RecordPosition | None = None,
) -> FileBatches[Any]:
    """As ``parser.parse_file``, of files that ``input_paths`` has found, from a position in the
    first on."""
    start = start or RecordPosition()
    reading = options.reading._replace(buffer_size=_BUFFER_SIZE)
    chunks = FileChunks(parser, inputs, options._replace(reading=reading), start)
    return FileBatches(chunks, start)
