"""parse_file: batches of whole files, parsed by one thread or several."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from tfwire._base.aliases import Input, StorageOptions
from tfwire._base.errors import ParseError, warn
from tfwire._base.native import lib
from tfwire._base.shared_iterator import SharedIterator
from tfwire._base.workers import Workers
from tfwire._parsing.builders import BuilderPool, LeftOut, Parsing
from tfwire._parsing.file_units import ParallelUnits, SequentialUnits
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition, SkippedRegions
from tfwire._records.reading.options import ReadOptions
from tfwire._records.reading.publishing_markers import Markers
from tfwire._records.reading.receipts import Receipt

Batch = TypeVar("Batch")
T = TypeVar("T")
# Bytes of a file read at a time. Less would fit the L2 cache, but every read costs some Python.
_BUFFER_SIZE = 1 << 21


class ParsingOptions(NamedTuple):
    """How to read and parse files, checked.

    Attributes:
        batch_size: Records of a batch.
        reading: How to read the files.
        num_threads: How many threads read and parse; 1: the caller's.
        drop_remainder: Leave out an incomplete last batch.
        skip: Leave out records that do not fit.
    """

    batch_size: int
    reading: ReadOptions
    num_threads: int = 1
    drop_remainder: bool = False
    skip: bool = False


class FileBatches(SharedIterator[Batch]):
    """The batches of files, from ``parse_file``. Threads take turns; a context manager.

    Every intact record is delivered before an error is raised: the batch before the error may be
    incomplete. After an error, and after ``close``, the iteration has ended.
    """

    def __init__(
        self,
        parser: Parsing,
        reader: BatchReader,
        options: ParsingOptions,
        verify: bool,
    ) -> None:
        super().__init__()
        batch_size, _, num_threads, drop_remainder, skip = options
        self._reader = reader
        self._batches: Iterator[Batch] = iter(())
        self._following: Batch | None = None  # the next batch, if an error comes after it
        self._error: BaseException | None = None  # comes after self._batches
        self._num_skipped = 0
        self._last = False
        # Where the records of self._batches begin and end, and how many of these were given.
        self._before = self._after = reader.place
        self._given = 0
        self._left_out = LeftOut()
        self._builders = BuilderPool(
            parser, batch_size, self._left_out if skip else None, drop_remainder, num_threads
        )
        self._ahead: Workers | None = None
        self._warnings: deque[str] = deque()  # from other threads
        read: Callable[[], Any]
        parse: Callable[[Any], Any] | None = None
        if num_threads > 1 and not skip:
            parallel = ParallelUnits(self._builders, reader, verify, num_threads)
            read, parse = parallel.read, parallel.parse
        else:
            read = SequentialUnits(self._builders, reader).step
        self._more: Callable[[], Any] = read
        if num_threads > 1:
            # The content of a batch depends on the records left out before it: where records may
            # be left out, one thread parses them all.
            reader.warn = self._warnings.append
            self._ahead = Workers(read, parse, 1 if skip else num_threads, owner=self)
            self._more = self._ahead.next

    @property
    def skipped(self) -> SkippedRegions:
        """The regions of the files that were left out so far. At a ParseError, regions after it may
        be among them: the file was read ahead."""
        if not self._num_skipped:
            return SkippedRegions()
        return self._between_reads(lambda: self._reader.skipped.first(self._num_skipped))

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records read so far, also of those left out because they do not fit.

        Raises:
            ValueError: ``parse_file`` was called without ``receipt=True``.
        """
        return self._between_reads(lambda: self._reader.receipt)

    def _between_reads(self, function: Callable[[], T]) -> T:
        if self._ahead is None:
            return self.exclusively(function)
        with self._ahead.between_reads():
            return function()

    @property
    def parse_errors(self) -> list[ParseError]:
        """The errors of records left out by ``on_parse_error="skip"`` so far: the first 1000."""
        return list(self._left_out.errors)

    @property
    def num_parse_errors(self) -> int:
        """Number of records left out so far because they do not fit."""
        return self._left_out.count

    def step(self) -> Batch:
        batch, self._following = self._following, None
        while batch is None and (batch := next(self._batches, None)) is None and not self._last:
            self._before, self._given = self._after, 0
            self._batches, self._num_skipped, self._error, self._last, self._after = self._more()
            self._warn()
        if batch is None:
            error, self._error = self._error, None
            raise StopIteration if error is None else error
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
        return (*self._before, self._given)

    def close(self) -> None:
        """Ends the iteration, stops its threads and closes the current file.

        Another thread that waits for a batch gets StopIteration, also one that waits for a pipe.
        """
        super().close()

    def stop(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()
        self._reader.interrupt()  # a wait for a pipe

    def over_now(self) -> None:
        self.close()

    def release(self) -> None:
        self._batches, self._following = iter(()), None
        if self._ahead is None:
            self._close_reader()
        else:
            self._ahead.close(self._close_reader)
        if self._left_out.count:
            self._warnings.append(
                f"left out {self._left_out.count} record(s) that do not fit the specification, "
                f"the first: {self._left_out.errors[0]}"
            )
        self._warn()

    def _close_reader(self) -> None:
        try:
            self._reader.close()
        finally:
            self._builders.release()

    def _warn(self) -> None:
        while self._warnings:
            warn(self._warnings.popleft())

    def __reduce__(self) -> Any:
        raise TypeError("iterators over files cannot be pickled; pickle the parser")


def parse_from(
    parser: Parsing,
    paths: Input | Iterable[Input],
    options: ParsingOptions,
    start: RecordPosition | None = None,
    storage_options: StorageOptions = None,
) -> FileBatches[Any]:
    """As ``parser.parse_file``, from a position in the first file on."""
    reading, num_threads = options.reading, options.num_threads
    # Threads verify payloads side by side, unless what is read depends on what is damaged.
    apart = num_threads > 1 and not (options.skip or reading.receipt)
    apart = apart and reading.on_corrupt in ("raise", "tail")
    reader = BatchReader(
        paths,
        reading._replace(buffer_size=_BUFFER_SIZE),
        start=start,
        markers=Markers(),
        num_inflated=num_threads,
        storage_options=storage_options,
    )
    verify = apart and not reading.flags & lib.TFW_NO_DATA_CRC
    return FileBatches(parser, reader, options, verify)
