"""The stages Prefetch, and Replayed for generator functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tfwire._base.errors import copied
from tfwire._base.workers import Workers
from tfwire._data.stages import Cursor, Derived, GatheringElements, GatheringPieces, Stage
from tfwire._data.states import COUNT, after, state_or

__all__ = ["Prefetch", "Replayed", "defer", "stage_elements"]


class Prefetch(Derived):
    """The elements, prefetched by a thread, up to count of them."""

    def __init__(self, source: Stage, count: int) -> None:
        super().__init__(source, count)
        self.count = count

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _PrefetchCursor(self.source.open(epoch, at), self.count)


class _Drawn(NamedTuple):
    """An element and the position of the source after it; at the end, no element.

    Attributes:
        elements: One, or none.
        place: A snapshot of the source.
        error: The error that taking the snapshot raised, or None.
    """

    elements: list[Any]
    place: Any = None
    error: Exception | None = None

    @property
    def last(self) -> bool:
        return not self.elements


class _PrefetchCursor(GatheringPieces):
    def __init__(self, below: Cursor, count: int) -> None:
        self._ahead: Workers | None = None
        self._below = below
        self._given = _Drawn([], below.snapshot())  # the last element given
        self._count = count
        self._ended = False

    def piece(self, count: int) -> list[Any] | None:
        if self._ended:
            return None
        if self._ahead is None:  # once the first element is asked for
            self._ahead = Workers(partial(_draw, self._below), None, 1, self._count, owner=self)
        drawn = self._ahead.next()
        if drawn.last:
            self._ended = True
            return None
        self._given = drawn._replace(elements=[])
        elements: list[Any] = drawn.elements
        return elements

    def place(self) -> Any:
        if self._given.error is not None:
            raise copied(self._given.error)
        return self._given.place

    def raise_deferred(self) -> None:
        self.place()

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


# ---- Stages of generator functions ------------------------------------------------------------

# The cursor whose function runs in this thread.
_running = threading.local()


def defer(error: Exception) -> None:
    """Says that the function that runs gives what it holds before it raises an error."""
    cursor: _ReplayedCursor | None = getattr(_running, "cursor", None)
    if cursor is not None:
        cursor.deferred = error


def stage_elements(stage: Stage, epoch: str) -> Iterator[Any]:
    """The elements of one pass through a stage. Closing the generator closes the pass."""
    cursor = stage.open(epoch)
    running: _ReplayedCursor | None = getattr(_running, "cursor", None)
    opened: set[Cursor] = set() if running is None else running.opened
    opened.add(cursor)
    del running  # it holds this generator, and a cycle would keep files open
    try:
        while piece := cursor.take(1):
            yield from piece
    finally:
        opened.discard(cursor)
        cursor.close()


class Replayed(Stage):
    """The elements that a generator function makes from those of other stages.

    The state of a pass is the number of elements that it gave. Loading a state runs the function
    again from the beginning and drops that many elements.

    Args:
        name: The name of the stage in the description of a pipeline.
        sources: The stages below.
        generate: Called for every pass with the epoch and an iterator over the elements of each
            source; returns an iterator. It must give the same elements for the same epoch.
        length: The number of elements, if known.
        spec: The structure of an element, as for every stage.
        quiet: False if ``generate`` calls user functions.
    """

    def __init__(
        self,
        name: str,
        sources: tuple[Stage, ...],
        generate: Callable[..., Iterator[Any]],
        *,
        length: int | None = None,
        spec: Any = None,
        quiet: bool = False,
    ) -> None:
        self.name = name
        self.sources = sources
        self.length = length
        self.spec = spec
        self.quiet = quiet and all(source.quiet for source in sources)
        self._generate = generate

    def open(self, epoch: str, at: Any = None) -> Cursor:
        count = state_or(at, COUNT, 0)
        below = [stage_elements(source, epoch) for source in self.sources]
        return _ReplayedCursor(self._generate(epoch, *below), below, count)

    def describe(self) -> str:
        return self.name


class _ReplayedCursor(GatheringElements):
    """Elements of a function.

    Attributes:
        opened: The cursors that the function opened, for another thread to stop.
    """

    def __init__(self, elements: Iterator[Any], below: list[Iterator[Any]], count: int) -> None:
        self._below = below
        self._generated = elements
        self._elements = after(elements, count)
        self._count = count
        self.opened: set[Cursor] = set()

    def elements(self, count: int) -> Iterator[Any]:
        return self._elements

    def take(self, count: int) -> list[Any]:
        outer = getattr(_running, "cursor", None)
        _running.cursor = self
        try:
            found = super().take(count)
        finally:
            _running.cursor = outer
        self._count += len(found)
        return found

    def place(self) -> Any:
        self.raise_deferred()
        return self._count

    def parts(self) -> Iterable[Cursor]:
        return tuple(self.opened)

    def close(self) -> None:
        for iterator in (self._generated, *self._below):
            if hasattr(iterator, "close"):
                iterator.close()
