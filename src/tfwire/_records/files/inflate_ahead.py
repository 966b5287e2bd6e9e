"""A compressed file that a thread of its own inflates ahead of the reader.

isal and zlib release the GIL while they work, so inflating costs the reader nothing if another core
is free. Small files, pipes and file objects (whose owner may not expect a thread) are inflated by
the reader itself; on a single core, everything is.
"""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from tfwire._base import system
from tfwire._base.aliases import Compression
from tfwire._base.workers import Workers
from tfwire._records.files.byte_sources import Source
from tfwire._records.files.inflate import InflatedSource, StreamDamage

# Bytes to inflate at a time, and before a thread is started.
_UNIT = 1 << 20


class InflatedUnit(NamedTuple):
    """Some inflated bytes.

    Attributes:
        pieces: The bytes, last piece first.
        offset: How much of the compressed source was used for them.
        last: True if they are the last ones.
        error: What the source raised after them, or None.
    """

    pieces: list[bytes]
    offset: int
    last: bool
    error: Exception | None = None


class ThreadedInflater:
    """The same bytes, and the same damage after them, as from an InflatedSource.

    After a fork, parent and child may both go on reading. The child, which has no thread, inflates
    the file once more up to where it was.

    Args:
        source: The compressed bytes; this object closes it.
        name: "GZIP" or "ZLIB".

    Attributes:
        source, name: The arguments.
        offset: How much of the compressed source has been used.
    """

    def __init__(self, source: Source, name: Compression) -> None:
        self.offset = 0
        self.source = source
        self.name: Compression = name
        self._inflated = InflatedSource(source, name)
        self._threaded = getattr(source, "regular", False) and system.num_cpus() > 1
        self._workers: Workers | None = None
        self._pieces: list[bytes] = []  # ready, last piece first
        self._given = 0  # bytes inflated, up to the end of these
        self._alone = _UNIT  # those that the reader itself inflated
        self._resumed = 0  # times
        self._lost = False  # True: bytes inflated after _given are lost
        self._error: Exception | None = None  # of the source, after the pieces

    def readinto(self, buffer: Any) -> int:
        """Fills some of a buffer; 0 at the end.

        Raises:
            StreamDamage: As InflatedSource.read.
        """
        if not self._pieces:
            self._load(len(buffer))
        size, filled = len(buffer), 0
        while self._pieces and filled < size:  # short members give small pieces
            piece = self._pieces.pop()
            if len(piece) > size - filled:
                self._pieces.append(piece[size - filled :])
                piece = piece[: size - filled]
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)
        return filled

    def resume(self) -> int | None:
        """As InflatedSource.resume, after damage that ``readinto`` raised."""
        # More damage may come soon, and each would end a thread.
        self._alone = self._given + _UNIT
        self._resumed += 1
        found = self._inflated.resume()
        self.offset = self._inflated.offset
        return found

    def size(self) -> int | None:
        """Bytes of the compressed source, where known."""
        return self.source.size()

    @property
    def crc32c(self) -> int | None:
        """At the end: the CRC-32C of the source; None if some of it was read twice."""
        return self._inflated.crc32c

    def close(self) -> None:
        self._stop()
        self._inflated.close()

    # ---- The thread ---------------------------------------------------------------------------

    def _load(self, size: int) -> None:
        """Gets more pieces: from the thread if there is one, else about ``size`` bytes."""
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        if self._lost or (self._workers is not None and self._workers.forked):
            self._workers = None
            self._inflate_again()
            self._lost = False
        if self._workers is None and self._given >= self._alone:
            self._start()
        try:
            workers = self._workers
            unit = workers.next() if workers is not None else _read(self._inflated, size)
        except StreamDamage:
            self._stop()
            self.offset = self._inflated.offset
            raise
        except BaseException:  # what is lost by an interrupt or an error is inflated again
            self._lost = self.source.rewindable
            self._stop()
            raise
        self._pieces = unit.pieces
        self._error = unit.error
        self._lost = unit.error is not None and self.source.rewindable
        self._given += sum(map(len, unit.pieces))
        self.offset = unit.offset
        if unit.last:
            self._stop()
            self._threaded = False

    def _start(self) -> None:
        """Starts the thread, where there may be one."""
        inflated = self._inflated
        if not self._threaded:
            return
        with contextlib.suppress(RuntimeError):  # no thread can start: at exit, or at a limit
            self._workers = Workers(lambda: _read(inflated, _UNIT), None, 1, owner=self)

    def _stop(self) -> None:
        workers, self._workers = self._workers, None
        if workers is not None:
            workers.close()

    def _inflate_again(self) -> None:
        """Inflates what was given once more. The thread may have changed the inflater since, and
        after a fork the child has it in an unknown state."""
        self.source.rewind(0)
        self._inflated = InflatedSource(self.source, self.name)
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


def _read(inflated: InflatedSource, size: int) -> InflatedUnit:
    """Inflates up to this many bytes; the next call raises the damage after them."""
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
            return InflatedUnit(pieces[::-1], inflated.offset, True, error)
        last = not piece
        size -= len(piece)
        if piece:
            pieces.append(piece)
    pieces.reverse()
    return InflatedUnit(pieces, inflated.offset, last)
