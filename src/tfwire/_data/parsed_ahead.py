"""Batches of records in memory, which native threads parse ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from tfwire._base.strings import StringTable
from tfwire._data.prefetch import Drawn, made
from tfwire._parsing.fetched_batches import FetchedBatches


class ParsedAhead:
    """Pieces of a pass whose batches native threads parse, in place of Workers: the caller draws
    them. Where a record does not fit, the caller parses, too, to find what is wrong.

    Args:
        draw: Draws the records of a piece, as StringTable.
        collate: Makes batches of the records of a piece, for the caller.
        parser: A Parser, by which others are made.
        size: Records of a batch.
        drop_remainder: Leave out an incomplete last batch.
        num_threads: How many threads parse, the caller's included.
    """

    def __init__(
        self,
        draw: Callable[[], Drawn],
        collate: Callable[[Any], Iterable[Any]],
        parser: Any,
        size: int,
        drop_remainder: bool,
        num_threads: int,
    ) -> None:
        self._draw = draw
        self._collate = collate
        self._batches = FetchedBatches(parser, None, size, num_threads)
        self._size = size
        self._drop_remainder = drop_remainder
        self._most = num_threads  # pieces that are drawn ahead
        self._pieces: deque[tuple[Drawn, int] | Exception] = deque()  # with what is ordered of each
        self._ended = False
        self._careful = False  # the pipeline has failed

    def next(self) -> Drawn:
        """The next piece.

        Raises:
            Exception: What ``draw`` raised, after the pieces before it.
            RuntimeError: It was stopped, or its threads are in the parent process.
        """
        while len(self._pieces) <= self._most and not self._ended:
            self._pieces.append(self._send())
        first = self._pieces.popleft()
        if isinstance(first, Exception):
            raise first
        piece, ordered = first
        if ordered and not self._careful:
            found = self._batches.take(ordered)
            if found is not None:
                return piece._replace(elements=found)
            self._careful = True
        return made(self._collate, piece)

    def _send(self) -> tuple[Drawn, int] | Exception:
        """Draws a piece, and orders its records."""
        try:
            piece = self._draw()
        except Exception as error:
            self._ended = True
            return error
        self._ended = piece.last
        count = len(piece.elements)
        if self._drop_remainder:
            count -= count % self._size
        if self._careful or not count or not isinstance(piece.elements, StringTable):
            return piece, 0
        self._batches.order(piece.elements[:count])
        return piece, count

    def stop(self) -> None:
        """Has ``next`` raise an error, also while it waits. Any thread may call this."""
        self._batches.cancel()

    def close(self, release: Callable[[], None]) -> None:
        """Ends the threads, and then calls a function."""
        self._pieces.clear()
        self._batches.close()
        release()
