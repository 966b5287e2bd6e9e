"""Batches of records by number, parsed without an object for each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tfwire._data.stages import Cursor
from tfwire._parsing.fetched_batches import FetchedBatches

# What a thread fetches and parses at once. Of short records many: some share reads where files are
# small, and columns cost the same for any number. Long ones should stay in its cache.
_ORDER_RECORDS = 1 << 13
_ORDER_BYTES = 1 << 23
_LONG_RECORD_BYTES = 1 << 12
_LONG_ORDER_BYTES = 1 << 20


class _Order(NamedTuple):
    """Some whole batches that are on their way.

    Attributes:
        first: How many records come before.
        num_records: How many records they have.
        num_batches: How many there are, without one that is left out.
        begin: The position of the source before the first of them.
        end: After the last one.
    """

    first: int
    num_records: int
    num_batches: int
    begin: Any
    end: Any


class FetchingCursor(Cursor):
    """Batches of the records that a cursor gives the numbers of.

    Where a record is damaged or does not fit, a careful cursor goes on: it reads objects, and says
    what is wrong with which.

    Args:
        below: Gives RecordNumbers.
        batches: Makes batches of them.
        size: Records of a batch.
        mean: Bytes of a record.
        drop_remainder: Leave out an incomplete last batch.
        num_threads: How many threads make batches; 1: the caller's.
        reopen: Opens a cursor such as ``below`` at a position of it.
        careful: Opens the careful cursor there.
        depth: The number of stages of the pass, as for AheadCursor.
    """

    def __init__(
        self,
        below: Cursor,
        batches: FetchedBatches,
        size: int,
        mean: int,
        drop_remainder: bool,
        num_threads: int,
        reopen: Callable[[Any], Cursor],
        careful: Callable[[Any], Cursor],
        depth: int,
    ) -> None:
        self._below = below
        self._batches = batches
        self._size = size
        most = _ORDER_BYTES if mean < _LONG_RECORD_BYTES else _LONG_ORDER_BYTES
        self._most = min(most // mean, _ORDER_RECORDS)  # records of an order, if some fit
        self._drop_remainder = drop_remainder
        self._ahead = num_threads if num_threads > 1 else 0  # orders, beside the next one
        self._reopen = reopen
        self._open_careful = careful
        self._careful: Cursor | None = None
        self._orders: deque[_Order] = deque()
        self._depth = depth
        begin = below.snapshot()
        self._order = _Order(0, 0, 0, begin, begin)  # whose batches are given
        self._left: list[Any] = []
        # Goes through the numbers again, when somebody asks for a position between two orders, and
        # how many records it has gone through.
        self._behind: tuple[Cursor | None, int] = None, 0
        self._error: Exception | None = None  # of the source, after the orders
        self._ended = False

    def take(self, count: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < count and self._careful is None:
            if not self._left and not self._next_order():
                break
            some = count - len(found)
            found += self._left[:some]
            self._left = self._left[some:]
        return found if found or self._careful is None else self._careful.take(count)

    def _next_order(self) -> bool:
        """Goes on to the next order. False: there is none, or the careful cursor goes on."""
        while len(self._orders) <= self._ahead and self._send():
            pass
        if not self._orders:
            if self._error is not None:
                raise self._error
            return False
        batches = self._batches.take(self._orders[0].num_records)
        if batches is None:
            self._careful = self._open_careful(self._orders[0].begin)
            return False
        self._order = self._orders.popleft()
        self._left = batches[: self._order.num_batches]  # those left out were verified, too
        return True

    def _send(self) -> bool:
        """Orders some batches. False: there are no more."""
        size = self._size
        wanted = max(self._most // size, 1) * size
        elements: Any = ()
        if not self._ended:
            last = self._orders[-1] if self._orders else self._order
            try:
                elements = self._below.take(wanted)
            except Exception as error:
                self._error = error
        count = len(elements)
        self._ended = count < wanted
        if not count:
            return False
        self._batches.order(elements.draw)
        num_batches = (count if self._drop_remainder else count + size - 1) // size
        first, end = last.first + last.num_records, self._below.snapshot()
        self._orders.append(_Order(first, count, num_batches, last.end, end))
        return True

    def snapshot(self) -> Any:
        """The position of the source, in one form always."""
        if self._careful is not None:
            return self._careful.snapshot()
        order = self._order
        if not self._left:
            return order.end
        below, done = self._behind
        if below is None or order.first - done > self._most:
            below, done = self._reopen(order.begin), order.first
        now = order.first + (order.num_batches - len(self._left)) * self._size
        if now > done:
            below.take(now - done)
        self._behind = below, now
        return below.snapshot()

    def parts(self) -> Iterable[Cursor]:
        return (self._below if self._careful is None else self._careful,)

    def stop(self) -> None:
        self._batches.cancel()
        super().stop()

    def close(self) -> None:
        self._batches.close()
        self._below.close()
        if self._careful is not None:
            self._careful.close()
