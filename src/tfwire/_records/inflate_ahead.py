"""Compressed files inflated by a thread, ahead of the one that reads the records.

isal and zlib let the GIL go while they work, so that inflating costs the reader nothing where there
is another core for it. Small files, pipes and file objects, whose owner may not expect a thread,
are inflated by the reader itself; so is everything where there is but one core.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, NamedTuple

from tfwire._ahead import Ahead
from tfwire._records.inflate import InflatedSource, StreamDamage
from tfwire._records.sources import Source

__all__ = ["InflatedAhead"]

# Bytes inflated at a time, and before a thread is worth while.
_UNIT = 1 << 20


class Unit(NamedTuple):
    """Some of what a stream holds.

    Attributes:
        pieces: Its bytes, the last ones first.
        offset: How far the compressed source has been used for them.
        last: Whether nothing comes after them.
        error: What the source raised after them, if it did.
    """

    pieces: list[bytes]
    offset: int
    last: bool
    error: Exception | None = None


class InflatedAhead:
    """What InflatedSource makes of a source, and as it does: the same bytes, and the same damage
    behind them.

    A process that forks may go on reading on both sides: the one that the thread is not in inflates
    the file once more up to where it was.

    Args:
        source: The compressed bytes; this object takes it over.
        name: "GZIP" or "ZLIB".

    Attributes:
        offset: How far the compressed source has been used.
    """

    def __init__(self, source: Source, name: str) -> None:
        self.offset = 0
        self._source = source
        self._name = name
        self._inflated = InflatedSource(source, name)
        self._threaded = getattr(source, "regular", False) and _num_cores() > 1
        self._ahead: Ahead | None = None
        self._pieces: list[bytes] = []  # ready, the last ones first
        self._given = 0  # bytes that were inflated, up to those
        self._alone = _UNIT  # so many of them without a thread
        self._resumed = 0  # times
        self._lost = False  # whether what was inflated after _given has not come here
        self._error: Exception | None = None  # of the source, after the pieces

    def readinto(self, buffer: Any) -> int:
        """Fills some of a buffer; 0 at the end.

        Raises:
            StreamDamage: As InflatedSource.readinto.
        """
        if not self._pieces:
            self._load(len(buffer))
        size, filled = len(buffer), 0
        while self._pieces and filled < size:  # members of one record each give small pieces
            piece = self._pieces.pop()
            if len(piece) > size - filled:
                self._pieces.append(piece[size - filled :])
                piece = piece[: size - filled]
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def resume(self) -> int | None:
        """As InflatedSource.resume, behind damage that ``readinto`` has met. There may be more
        soon, of which each would end a thread."""
        self._alone = self._given + _UNIT
        self._resumed += 1
        found = self._inflated.resume()
        self.offset = self._inflated.offset
        return found

    def size(self) -> int | None:
        """Bytes of the compressed source, where known."""
        return self._source.size()

    @property
    def crc32c(self) -> int | None:
        """At the end, the CRC-32C of the source; None where some of it was taken twice."""
        return self._inflated.crc32c

    def close(self) -> None:
        self._stop()
        self._inflated.close()

    # ---- The thread ---------------------------------------------------------------------------

    def _load(self, size: int) -> None:
        """Gets more pieces: of the thread, where there is one; else about size bytes."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._lost or (self._ahead is not None and self._ahead.forked):
            self._ahead = None
            self._repeat()
            self._lost = False
        if self._ahead is None and self._threaded and self._given >= self._alone:
            self._start()
        try:
            unit = self._ahead.next() if self._ahead is not None else _read(self._inflated, size)
        except StreamDamage:
            self._stop()
            self.offset = self._inflated.offset
            raise
        except BaseException:  # what an interrupt or an error kept from coming is inflated again
            self._lost = self._source.rewindable
            self._stop()
            raise
        self._pieces = unit.pieces
        self._error = unit.error
        self._lost = unit.error is not None and self._source.rewindable
        self._given += sum(map(len, unit.pieces))
        self.offset = unit.offset
        if unit.last:
            self._stop()
            self._threaded = False

    def _start(self) -> None:
        inflated = self._inflated
        with contextlib.suppress(RuntimeError):  # no more threads: at exit, or at some limit
            self._ahead = Ahead(lambda: _read(inflated, _UNIT), _same, 1, owner=self)

    def _stop(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def _repeat(self) -> None:
        """Inflates once more what was given; in the thread of the other process it went on from
        there, and is here for ever in the midst of that."""
        self._source.rewind(0)
        self._inflated = InflatedSource(self._source, self._name)
        left, resumes = self._given, self._resumed
        while left or resumes:
            try:
                piece = self._inflated.read(min(left, _UNIT) or 1)
                if not piece:
                    size = self._inflated.offset
                    raise StreamDamage("the file changed while it was read", size, cut=True)
                left -= len(piece)
            except StreamDamage:
                if not resumes or self._inflated.resume() is None:
                    raise
                resumes -= 1


def _read(inflated: InflatedSource, size: int) -> Unit:
    """Inflates so many bytes or somewhat less; damage after them is met by the next call."""
    pieces: list[bytes] = []
    last = False
    while size > 0 and not last:
        try:
            piece = inflated.read(size)
        except StreamDamage:
            if not pieces:
                raise
            break
        except Exception as error:
            if not pieces:
                raise
            return Unit(pieces[::-1], inflated.offset, True, error)
        last = not piece
        size -= len(piece)
        if piece:
            pieces.append(piece)
    pieces.reverse()
    return Unit(pieces, inflated.offset, last)


def _same(unit: Unit) -> Unit:
    return unit


def _num_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
