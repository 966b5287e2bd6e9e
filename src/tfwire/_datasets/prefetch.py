"""Elements made by a thread while those before them are being used."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from tfwire._ahead import Ahead
from tfwire._datasets.stage import Cursor, Derived, Gathering, Stage

__all__ = ["Prefetch"]


class Prefetch(Derived):
    """The elements, prefetched by a thread, up to count of them."""

    def __init__(self, source: Stage, count: int) -> None:
        super().__init__(source, count)
        self.count = count

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _PrefetchCursor(self.source.open(epoch, at), self.count)


class _Drawn(NamedTuple):
    """What a draw gave: an element, and where the source stands after it; or no element at the end.

    Attributes:
        elements: One, or none.
        place: A snapshot of the source.
        unplaced: What taking the snapshot raised, or None.
    """

    elements: list[Any]
    place: Any = None
    unplaced: Exception | None = None

    @property
    def last(self) -> bool:
        return not self.elements


class _PrefetchCursor(Gathering):
    def __init__(self, below: Cursor, count: int) -> None:
        self._ahead: Ahead | None = None
        self._below = below
        self._given = _Drawn([], below.snapshot())  # the draw that was given away last
        self._count = count
        self._ended = False

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        if self._ended:
            return None
        if self._ahead is None:  # not before somebody asks for elements
            self._ahead = Ahead(partial(_draw, self._below), None, 1, self._count, owner=self)
        drawn = self._ahead.next()
        if drawn.last:
            self._ended = True
            return None
        self._given = drawn._replace(elements=[])
        elements: list[Any] = drawn.elements
        return elements

    def place(self) -> Any:
        if self._given.unplaced is not None:
            raise self._given.unplaced
        return self._given.place

    def stop(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()
        self._below.stop()

    def close(self) -> None:
        if self._ahead is None:
            self._below.close()
        else:
            self._ahead.close(self._below.close)


def _draw(below: Cursor) -> _Drawn:
    elements = below.take(1)
    if not elements:
        return _Drawn([])
    try:
        return _Drawn(elements, below.snapshot())
    except Exception as error:
        return _Drawn(elements, None, error)
