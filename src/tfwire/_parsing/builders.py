"""Records of files to batches.

There is no Python object per record. C reads stretches of regular files, verifies and parses them
in one call, into columns that become results when a batch is full. Of everything else (compressed
files, pipes, what follows damage) the reader gives windows: verified records in its buffer.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from tfwire._base.errors import ParseError
from tfwire._base.native import check, ffi, lib
from tfwire._parsing.failure import ParseFailure, Place, parse_error
from tfwire._parsing.memory_pool import IDLE_LIMIT, Spare
from tfwire._parsing.native_session import Schema, Session
from tfwire._parsing.spec import Plan
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import Stretch, Window
from tfwire._records.reading.unit_block import Block

_MAX_ERRORS_KEPT = 1000


class Parsing(Protocol):
    """What this module needs of a parser."""

    _plans: Sequence[Plan | None]
    _schemas: tuple[Schema | None, ...]
    _sessions: list[Session]
    _blocks: deque[Block]
    _needs_windows: bool

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
        place: Where the records after them begin: the number of a file, and the position in it.
    """

    batches: Iterator[Any]
    num_skipped: int
    error: Exception | None
    last: bool
    place: tuple[int, RecordPosition] = (0, RecordPosition())


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


class BuilderPool:
    """A pool of Builders, for any number of threads.

    Args:
        parser: Makes the results.
        batch_size: Records of a batch.
        left_out: Notes records that do not fit; None: they are errors.
        drop_remainder: Leave out a last batch of fewer records.
        num_threads: How many threads use them.
    """

    def __init__(
        self,
        parser: Parsing,
        batch_size: int,
        left_out: LeftOut | None,
        drop_remainder: bool,
        num_threads: int,
    ) -> None:
        self.parser = parser
        self.batch_size = batch_size
        self.left_out = left_out
        self.drop_remainder = drop_remainder
        # Where columns are compared after C has parsed them, it does not know where to go on.
        self.needs_windows = parser._needs_windows or (
            left_out is not None
            and any(
                field.checked
                for plan in parser._plans
                if plan is not None
                for field in plan.fields.values()
            )
        )
        self._unused: list[Builder] = []
        self._lent: list[Block] = []
        self._spares = [
            s for schema in parser._schemas if schema is not None for s in schema.spares
        ]
        for spare in self._spares:
            spare.begin(self, num_threads)
        self._dropped = weakref.finalize(self, _trim, self._spares)
        self._dropped.atexit = False

    def get(self) -> Builder:
        try:
            return self._unused.pop()
        except IndexError:
            return Builder(self)

    def put(self, builder: Builder) -> None:
        self._unused.append(builder)

    def block(self) -> Block:
        """A block of the parser's, until ``release``."""
        self._lent.append(unused_block(self.parser._blocks))
        return self._lent[-1]

    def release(self) -> None:
        """Gives sessions and blocks back to the parser. No builder is used after that."""
        while self._unused:
            self._unused.pop().release()
        self._dropped.detach()
        for spare in self._spares:
            spare.end(self)
        blocks = self.parser._blocks
        blocks += self._lent
        self._lent = []
        # Other iterators of the parser take blocks meanwhile: one is looked at by its taker alone.
        with suppress(IndexError):
            for _ in range(len(blocks)):
                block = blocks.popleft()
                if block.capacity <= IDLE_LIMIT:
                    blocks.append(block)


def unused_block(blocks: deque[Block]) -> Block:
    """One of the blocks that no thread uses, or a new one."""
    try:
        return blocks.pop()
    except IndexError:
        return Block()


def _trim(spares: list[Spare]) -> None:
    for spare in spares:
        spare.trim()


class Builder:
    """Collects the records of windows and makes batches of them.

    Attributes:
        count: Number of records collected.
    """

    def __init__(self, home: BuilderPool) -> None:
        self._home = home
        self._session = home.parser._acquire()
        self._room = 0
        self.count = 0

    def begin(self, room: int, goal: int) -> None:
        """Starts an empty unit, with room for a number of records, which may grow.

        Args:
            room: A number of records.
            goal: The number of records of the unit, unless the files end before.
        """
        self._room = room
        whole = not self._home.drop_remainder or goal % self._home.batch_size == 0
        self._session.begin_unit(room, goal if whole else 0)
        self.count = 0

    def add(self, window: Window) -> None:
        """Appends the records of a window.

        Raises:
            ParseError: A record does not fit; those before it were appended.
        """
        self._session.window = window
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

    def read(self, stretch: Stretch, most: int) -> None:
        """Appends at most this many records of a stretch: those that C can read by itself.

        Raises:
            ParseError: A record does not fit; those before it were appended.
        """
        goal = self.count + most
        while self.count < goal and stretch.status == lib.TFW_OK:
            if self.count == self._room:
                self._room = min(goal, 2 * self._room)
                self._session.grow(self._room, self.count)
            try:
                wanted = min(goal, self._room) - self.count
                stretch.status = self._session.read(stretch, wanted, self.count)
                self._pass(stretch)
            except ParseFailure as failure:
                self._pass(stretch)
                message = stretch.message if failure.reason == "missing" else b""
                place = Place(stretch.path, stretch.record)
                error = parse_error(failure, place, self._home.parser._keys(message, failure))
                if self._home.left_out is None:
                    raise error from None
                self._home.left_out.note(error)
                stretch.leave_out()

    def read_all(self, stretch: Stretch, num_records: int) -> None:
        """Appends all records of a stretch, which others have found.

        Raises:
            ParseError, DataLossError, OSError: The next record does not fit, or is damaged.
        """
        before = self.count
        self.read(stretch, num_records)
        if self.count - before < num_records:
            status, error = stretch.status, self._session.error
            error.record = stretch.record
            if status >= 0:
                status, error.offset = lib.TFW_E_TRUNCATED, stretch.native.offset
                error.text = b"the file was cut or replaced while it was read"
            check(status, error, stretch.path)

    def _pass(self, stretch: Stretch) -> None:
        done = int(self._session.done[0])
        self.count += done
        stretch.record += done

    def finish(self, num_skipped: int, error: Exception | None, last: bool) -> Outcome:
        """The batches of the collected records, and the error after them. When the last batch was
        made, the builder goes back to its pool."""
        last = last or error is not None
        counted = count = self.count
        self.count = 0
        self._session.settle()
        if self._home.drop_remainder:
            count -= count % self._home.batch_size
        try:
            if count != counted or error is not None:
                self._session.truncate(count)  # also after an allocation failed
            for part in self._session.parts:
                part.trim(count)
            columns = self._session.take(count) if count else None
        except Exception as found:
            return Outcome(iter(()), num_skipped, found, True)
        return Outcome(self._draw(columns, count), num_skipped, error, last)

    def _draw(self, columns: Any, count: int) -> Iterator[Any]:
        home, failures = self._home, ParseFailure  # at exit, a module is emptied before this ends
        try:
            if count:
                yield from home.parser._batches(columns, count, home.batch_size)
        except failures as failure:  # of a batch, not of one record
            raise parse_error(failure, Place()) from None
        finally:
            home.put(self)

    def release(self) -> None:
        self._home.parser._sessions.append(self._session)

    def _error(self, failure: ParseFailure, window: Window, index: int) -> ParseError:
        span = window.spans[index]
        message = ffi.buffer(window.data + span.offset, span.length)
        place = Place(window.path, window.number_of(index))
        return parse_error(failure, place, self._home.parser._keys(message, failure))
