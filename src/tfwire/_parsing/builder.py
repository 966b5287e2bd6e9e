"""Records to batches: columns under construction that become results when a batch is full."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from tfwire._core import ffi
from tfwire._parsing.failure import Misfit, Place, parse_error
from tfwire._parsing.session import Session
from tfwire.errors import ParseError

__all__ = ["Builder", "Outcome", "Parsing", "Window"]

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
        last: There is no batch behind this one.
    """

    batch: Any
    num_records: int
    error: Exception | None
    last: bool


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
        self._session.recycle(True)
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

    def finish(self, error: Exception | None, last: bool) -> Outcome:
        """The batch at hand, and the error that ended it."""
        last = last or error is not None
        count, self.count = self.count, 0
        if not count:
            return Outcome(None, 0, error, last)
        try:
            self._session.truncate(count)  # also what an allocation that failed left behind
            self._session.trim(count)
            batch = self._parser._results(self._session.take(count), count)
        except Misfit as misfit:  # of all records together
            return Outcome(None, 0, parse_error(misfit, Place()), True)
        except Exception as found:
            return Outcome(None, 0, found, True)
        return Outcome(batch, count, error, last)

    def release(self) -> None:
        """Gives the columns back to the parser; the builder is of no more use."""
        self._session.recycle(False)
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
