"""parse_file: batches of whole files, parsed by one thread or several.

There is no Python object per record. A window is what the reader has ready: verified records in its
buffer. C appends them to columns, which become results when a batch is full.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol, TypeVar

from tfwire._base.errors import ParseError, warn
from tfwire._base.native import ffi, lib
from tfwire._base.shared_iterator import SharedIterator
from tfwire._base.workers import Workers
from tfwire._parsing.failure import ParseFailure, Place, parse_error
from tfwire._parsing.session import IDLE_LIMIT, Session
from tfwire._records.batch_reader import BatchReader
from tfwire._records.blocks import Block, Window
from tfwire._records.damage import SkippedRegions
from tfwire._records.receipts import Receipt

__all__ = ["FileBatches"]

Batch = TypeVar("Batch")


class FileBatches(SharedIterator[Batch]):
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
        self._batches: Iterator[Batch] = iter(())
        self._following: Batch | None = None  # the next batch, if an error comes after it
        self._error: BaseException | None = None  # comes after self._batches
        self._num_skipped = 0
        self._last = False
        self._left_out = LeftOut()
        self._builders = Builders(
            parser, batch_size, self._left_out if skip else None, drop_remainder
        )
        self._ahead: Workers | None = None
        self._warnings: deque[str] = deque()  # from other threads
        sequential = Sequential(self._builders, reader)
        self._more: Callable[[], Outcome] = sequential.step
        if num_threads > 1:
            # The content of a batch depends on the records left out before it: where records may
            # be left out, one thread parses them all.
            reader.warn = self._warnings.append
            if skip:
                self._ahead = Workers(sequential.step, None, 1, owner=self)
            else:
                parallel = Parallel(self._builders, reader, verify)
                self._ahead = Workers(parallel.read, parallel.parse, num_threads, owner=self)
            self._more = self._ahead.next

    @property
    def skipped(self) -> SkippedRegions:
        """The regions of the files that were left out so far. At a ParseError, regions after it may
        be among them: the file was read ahead."""
        if not self._num_skipped:
            return SkippedRegions()
        with self._between_reads():
            return self._reader.skipped.first(self._num_skipped)

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records read so far, also of those left out because they do not fit.

        Raises:
            ValueError: ``parse_file`` was called without ``receipt=True``.
        """
        with self._between_reads():
            return self._reader.receipt

    def _between_reads(self) -> Any:
        return nullcontext() if self._ahead is None else self._ahead.between_reads()

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
            self._batches, self._num_skipped, self._error, self._last = self._more()
            self._warn()
        if batch is None:
            error, self._error = self._error, None
            raise StopIteration if error is None else error
        if self._error is not None:
            self._look_ahead()
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

    def close(self) -> None:
        """Ends the iteration, stops its threads and closes the current file.

        Another thread that waits for a batch gets StopIteration. A thread that is reading a pipe
        closes it when the read returns.
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

    def __enter__(self) -> FileBatches[Batch]:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators over files cannot be pickled; pickle the parser")


# ---- Records to batches ----------------------------------------------------------------------

_MAX_ERRORS_KEPT = 1000


class Parsing(Protocol):
    """What this module needs of a parser."""

    _sessions: list[Session]
    _blocks: list[Block]

    def _acquire(self) -> Session: ...
    def _batches(self, parts: Any, count: int, size: int) -> Iterator[Any]: ...
    def _keys(self, message: Any, failure: ParseFailure) -> Any: ...


class Outcome(NamedTuple):
    """One step of the iteration.

    Attributes:
        batches: The results, each made when it is asked for.
        num_skipped: Number of regions of the files skipped up to the end of these batches.
        error: The error after these batches, or None.
        last: True if no batch comes after these.
    """

    batches: Iterator[Any]
    num_skipped: int
    error: Exception | None
    last: bool


class LeftOut:
    """Records left out because they do not fit.

    Attributes:
        errors: The errors of the first 1000.
        count: Number of all of them.
    """

    def __init__(self) -> None:
        self.errors: list[ParseError] = []
        self.count = 0

    def note(self, error: ParseError) -> None:
        self.count += 1
        if len(self.errors) < _MAX_ERRORS_KEPT:
            self.errors.append(error)


class Builders:
    """A pool of Builders, for any number of threads.

    Args:
        parser: Makes the results.
        batch_size: Records of a batch.
        left_out: Notes records that do not fit; None: they are errors.
        drop_remainder: Leave out a last batch of fewer records.
    """

    def __init__(
        self, parser: Parsing, batch_size: int, left_out: LeftOut | None, drop_remainder: bool
    ) -> None:
        self.parser = parser
        self.batch_size = batch_size
        self.left_out = left_out
        self.drop_remainder = drop_remainder
        self._unused: list[Builder] = []

    def get(self) -> Builder:
        try:
            return self._unused.pop()
        except IndexError:
            return Builder(self)

    def put(self, builder: Builder) -> None:
        self._unused.append(builder)

    def release(self) -> None:
        """Gives the sessions back to the parser. No builder is used after that."""
        while self._unused:
            self._unused.pop().release()
        blocks = self.parser._blocks
        blocks[:] = [block for block in blocks if block.capacity <= IDLE_LIMIT]


class Builder:
    """Collects the records of windows and makes batches of them.

    Attributes:
        count: Number of records collected.
    """

    def __init__(self, home: Builders) -> None:
        self._home = home
        self._session = home.parser._acquire()
        self._session.limit_memory(sys.maxsize)
        self._room = 0
        self.count = 0

    def begin(self, room: int) -> None:
        """Begins anew, with room for a number of records, which may grow."""
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
            except ParseFailure as failure:
                done = int(self._session.done[0])
                self.count += done
                first += done
                error = self._error(failure, window, first)
                if self._home.left_out is None:
                    raise error from None
                self._home.left_out.note(error)
                first += 1

    def finish(self, num_skipped: int, error: Exception | None, last: bool) -> Outcome:
        """The batches of the collected records, and the error after them. When the last batch was
        made, the builder goes back to its pool."""
        last = last or error is not None
        count, self.count = self.count, 0
        if self._home.drop_remainder:
            count -= count % self._home.batch_size
        try:
            self._session.truncate(count)  # also after an allocation failed
            for part in self._session.parts:
                part.trim(count)
            columns = self._session.take(count) if count else None
        except Exception as found:
            return Outcome(iter(()), num_skipped, found, True)
        return Outcome(self._draw(columns, count), num_skipped, error, last)

    def _draw(self, columns: Any, count: int) -> Iterator[Any]:
        home = self._home
        try:
            if count:
                yield from home.parser._batches(columns, count, home.batch_size)
        except ParseFailure as failure:  # of a batch, not of one record
            raise parse_error(failure, Place()) from None
        finally:
            home.put(self)

    def release(self) -> None:
        self._session.limit_memory(IDLE_LIMIT)
        self._home.parser._sessions.append(self._session)

    def _error(self, failure: ParseFailure, window: Window, index: int) -> ParseError:
        span = window.spans[index]
        message = ffi.buffer(window.data + span.offset, span.length)
        place = Place(window.path, window.number_of(index))
        return parse_error(failure, place, self._home.parser._keys(message, failure))


# ---- Files to batches, in one thread or several ----------------------------------------------
#
# Work is cut into units of whole batches. Neither the number of threads nor the size of units
# changes what a batch holds.

# Room for records at first. It grows with the records, so that a huge batch_size costs only what
# the files hold.
_ROOM = 4096
# Bytes of a unit: large enough to share the cost per unit, small enough that one batch that is kept
# does not keep much memory of others.
_UNIT_BYTES = 1 << 20
# With threads, every unit also costs waiting for the GIL.
_PARALLEL_UNIT_BYTES = 1 << 21
_FRAME_SIZE = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE


class Sizes:
    """The number of records to put into a unit, from the size of those before it.

    From pipes and the like, every batch is a unit: it must not wait for others.
    """

    def __init__(self, reader: BatchReader, batch_size: int, unit_bytes: int) -> None:
        self._reader = reader
        self._batch_size = batch_size
        self._unit_bytes = unit_bytes
        self._num_batches = 1

    def num_records(self) -> int:
        return self._batch_size * (self._num_batches if self._reader.at_hand else 1)

    def note(self, num_records: int, num_bytes: int) -> None:
        """Notes the size of a unit that was read."""
        if num_records:
            batch_bytes = self._batch_size * (num_bytes // num_records)
            self._num_batches = -(-self._unit_bytes // batch_bytes)


class Sequential:
    """Units read and parsed in one thread, in the reader's buffer."""

    def __init__(self, builders: Builders, reader: BatchReader) -> None:
        self._builders = builders
        self._reader = reader
        self._sizes = Sizes(reader, builders.batch_size, _UNIT_BYTES)
        self._room = _ROOM

    def step(self) -> Outcome:
        """The next batches. The last is incomplete at the end or before an error."""
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
                num_bytes += batch.payload_bytes + batch.count * _FRAME_SIZE
                builder.add(
                    Window(
                        batch.data,
                        batch.data_len,
                        batch.spans,
                        batch.count,
                        self._reader.path,
                        batch.first_record,
                        batch.numbers,
                    )
                )
        except Exception as found:
            error = found
        self._room = max(_ROOM, builder.count)
        self._sizes.note(num_records, num_bytes)
        return builder.finish(self._reader.num_skipped, error, last=builder.count < goal)


class Unit(NamedTuple):
    """The records of some batches, for a thread to verify and parse.

    Attributes:
        block: The records.
        marks: Pairs: after so many records of the block, so many regions were skipped.
        error: The error that ended the reading, or None.
        last: True if no unit comes after this one.
    """

    block: Block
    marks: list[tuple[int, int]]
    error: Exception | None
    last: bool


class Parallel:
    """Units read in turn and parsed by several threads at once.

    Args:
        builders: For the threads.
        reader: Of the files; it does not verify the checksums of payloads.
        verify: Verify them when parsing.
    """

    def __init__(self, builders: Builders, reader: BatchReader, verify: bool) -> None:
        self._builders = builders
        self._reader = reader
        self._flags = 0 if verify else lib.TFW_NO_DATA_CRC
        self._sizes = Sizes(reader, builders.batch_size, _PARALLEL_UNIT_BYTES)
        self._blocks = builders.parser._blocks

    def read(self) -> Unit:
        """The records of the next batches; fewer at the end or before an error."""
        block = self._blocks.pop() if self._blocks else Block()
        marks: list[tuple[int, int]] = []
        goal, error = self._sizes.num_records(), None
        try:
            while block.num_records < goal:
                if not self._reader.next_into(block, goal - block.num_records):
                    break
                marks.append((block.num_records, self._reader.num_skipped))
        except Exception as found:
            error = found
        marks.append((goal, self._reader.num_skipped))
        self._sizes.note(block.num_records, block.num_bytes)
        return Unit(block, marks, error, block.num_records < goal)

    def parse(self, unit: Unit) -> Outcome:
        """The batches of a unit; in any thread."""
        block, marks, error, last = unit
        num_skipped = marks[-1][1]
        builder = self._builders.get()
        try:
            builder.begin(block.num_records)
            for window in block.scan(self._flags):
                builder.add(window)
        except Exception as found:
            error = found
            num_skipped = next(skipped for count, skipped in marks if count > builder.count)
        block.clear()
        self._blocks.append(block)
        return builder.finish(num_skipped, error, last)
