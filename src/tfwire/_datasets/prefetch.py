"""Elements made by a thread while those before them are being used."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from tfwire._ahead import Ahead
from tfwire._datasets.stage import Cursor, Derived, Stage

__all__ = ["Prefetch"]


class Prefetch(Derived):
    """The elements, drawn by a thread up to count ahead of whom they are for."""

    def __init__(self, source: Stage, count: int) -> None:
        super().__init__(source, count)
        self.count = count

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _PrefetchCursor(self.source.open(epoch, at), self.count)


class _Drawn(NamedTuple):
    """What a draw gave: an element, or the end, perhaps by an error; where the source stands."""

    elements: list[Any]
    place: Any = None
    error: Exception | None = None

    @property
    def last(self) -> bool:
        return not self.elements


class _PrefetchCursor(Cursor):
    def __init__(self, below: Cursor, count: int) -> None:
        self._ahead: Ahead | None = None
        self._below = below
        self._place = below.snapshot()  # behind the element that was given last
        self._count = count
        self._end: _Drawn | None = None

    def take(self, count: int) -> list[Any]:
        if self._ahead is None:  # not before somebody asks for elements
            self._ahead = Ahead(partial(_draw, self._below), lambda drawn: drawn, 1, self._count)
        found: list[Any] = []
        while len(found) < count and self._end is None:
            drawn = self._ahead.next()
            if drawn.last:
                self._end = drawn
                break
            found += drawn.elements
            self._place = drawn.place
        if self._end is not None and self._end.error is not None and not found:
            raise self._end.error
        return found

    def snapshot(self) -> Any:
        return self._place

    def close(self) -> None:
        if self._ahead is not None and not self._ahead.forked:
            self._ahead.close()
        self._below.close()

    def __del__(self) -> None:  # its thread does not know it
        if self._ahead is not None:
            self._ahead.stop()


def _draw(below: Cursor) -> _Drawn:
    try:
        return _Drawn(below.take(1), below.snapshot())
    except Exception as error:
        return _Drawn([], error=error)
