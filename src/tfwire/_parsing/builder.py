"""Records to batches: columns under construction that become results when a batch is full."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from tfwire._core import ffi
from tfwire._parsing.failure import Misfit, Place, parse_error
from tfwire._parsing.recycle import IDLE_LIMIT
from tfwire._parsing.session import Session
from tfwire._records.blocks import Block, Window
from tfwire.errors import ParseError

__all__ = ["Builder", "Builders", "LeftOut", "Outcome", "Parsing"]

_MAX_ERRORS_KEPT = 1000


class Parsing(Protocol):
    """What is needed of a parser."""

    _sessions: list[Session]
    _blocks: list[Block]

    def _acquire(self) -> Session: ...
    def _batches(self, parts: Any, count: int, size: int) -> Iterator[Any]: ...
    def _keys(self, message: Any, misfit: Misfit) -> Any: ...


class Outcome(NamedTuple):
    """One step of the iteration.

    Attributes:
        batches: The results, made one by one as they are drawn.
        num_skipped: How many regions of the files were left out up to their end.
        error: What ends the iteration behind them, or None.
        last: There is no batch behind these.
    """

    batches: Iterator[Any]
    num_skipped: int
    error: Exception | None
    last: bool


class LeftOut:
    """The records that were left out because they do not fit.

    Attributes:
        errors: What was wrong with the first of them.
        count: How many there are.
    """

    def __init__(self) -> None:
        self.errors: list[ParseError] = []
        self.count = 0

    def note(self, error: ParseError) -> None:
        self.count += 1
        if len(self.errors) < _MAX_ERRORS_KEPT:
            self.errors.append(error)


class Builders:
    """Builders that nobody is using; more are made as they are needed. For any thread.

    Args:
        parser: Whose results to make.
        batch_size: Records of a batch.
        left_out: Where to note records that do not fit; None: they are errors.
        drop_remainder: Leave out a batch of fewer records.
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
        """Gives the columns back to the parser; the builders are of no more use."""
        while self._unused:
            self._unused.pop().release()
        blocks = self.parser._blocks
        blocks[:] = [block for block in blocks if block.capacity <= IDLE_LIMIT]


class Builder:
    """Puts the records of windows together to batches.

    Attributes:
        count: Records at hand.
    """

    def __init__(self, home: Builders) -> None:
        self._home = home
        self._session = home.parser._acquire()
        self._session.keep(sys.maxsize)
        self._room = 0
        self.count = 0

    def begin(self, room: int) -> None:
        """Begins batches with room for so many records, which may grow."""
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
                error = self._error(misfit, window, first)
                if self._home.left_out is None:
                    raise error from None
                self._home.left_out.note(error)
                first += 1

    def finish(self, num_skipped: int, error: Exception | None, last: bool) -> Outcome:
        """The batches of the records at hand, and the error that ended them. The builder is free
        for other records when they have been drawn."""
        last = last or error is not None
        count, self.count = self.count, 0
        if self._home.drop_remainder:
            count -= count % self._home.batch_size
        try:
            self._session.truncate(count)  # also what an allocation that failed left behind
            self._session.trim(count)
            columns = self._session.take(count) if count else None
        except Exception as found:
            return Outcome(iter(()), num_skipped, found, True)
        return Outcome(self._draw(columns, count), num_skipped, error, last)

    def _draw(self, columns: Any, count: int) -> Iterator[Any]:
        home = self._home
        try:
            if count:
                yield from home.parser._batches(columns, count, home.batch_size)
        except Misfit as misfit:  # of all records of a batch together
            raise parse_error(misfit, Place()) from None
        finally:
            home.put(self)

    def release(self) -> None:
        self._session.keep(IDLE_LIMIT)
        self._home.parser._sessions.append(self._session)

    def _error(self, misfit: Misfit, window: Window, index: int) -> ParseError:
        span = window.spans[index]
        message = ffi.buffer(window.data + span.offset, span.length)
        place = Place(window.path, window.number_of(index))
        return parse_error(misfit, place, self._home.parser._keys(message, misfit))
