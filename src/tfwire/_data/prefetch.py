"""Elements that threads make ahead: the stage Prefetch, and others; and generator functions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from tfwire._base.errors import copied
from tfwire._base.workers import Workers
from tfwire._data.resuming.positions import advanced
from tfwire._data.stages import (
    Cursor,
    Derived,
    GatheringElements,
    GatheringPieces,
    Map,
    MapCursor,
    Stage,
)
from tfwire._data.state_checks import COUNT, after, check_state, state_or
from tfwire._data.structure import joined_specs


class Prefetch(Derived):
    """The elements, prefetched by a thread, up to count of them."""

    one_to_one = True
    passes_errors = True

    def __init__(self, source: Stage, count: int) -> None:
        super().__init__(source, count)
        self.count = count

    def open(self, epoch: str, at: Any = None) -> Cursor:
        below = self.source.open(epoch, at)
        return AheadCursor(below, partial(draw, below, 1), None, 1, count=self.count)


class MapAhead(Map):
    """A function of every element, called by several threads; the order is kept."""

    def __init__(self, source: Stage, function: Callable[[Any], Any], num_threads: int) -> None:
        super().__init__(source, function)
        self.arguments = (function, num_threads)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return mapped(self.source.open(epoch, at), *self.arguments)

    def describe(self) -> str:
        return "Map()"  # threads change no element


def mapped(below: Cursor, function: Callable[[Any], Any], num_threads: int) -> Cursor:
    """A pass of a function of every element, in the caller's thread or in several."""
    if num_threads <= 1:
        return MapCursor(below, function)
    return AheadCursor(below, partial(draw, below, 1), partial(_map, function), num_threads)


def _map(function: Callable[[Any], Any], elements: Any) -> Iterator[Any]:
    return (function(element) for element in elements)  # in map, StopIteration would be the end


class Drawn(NamedTuple):
    """Elements and the position of the source after them; at the end, no elements.

    Attributes:
        elements: Those of the source, or what was made of them.
        place: A snapshot of the source.
        unknown: The error that taking the snapshot raised, or None.
        deferred: The same, if the source gives other elements because of it.
        last: True if these are none, because the source has ended.
        error: The error that comes after the elements, or None.
    """

    elements: Any
    place: Any = None
    unknown: Exception | None = None
    deferred: Exception | None = None
    last: bool = False
    error: Exception | None = None

    def known_place(self) -> Any:
        if self.unknown is not None:
            raise copied(self.unknown)
        return self.place


def draw(below: Cursor, count: int) -> Drawn:
    """The next count elements of a cursor; fewer as ``take`` gives fewer. An error that the cursor
    can go on after is part of the result."""
    error: Exception | None = None
    elements: Any = []
    try:
        elements = below.take(count)
    except Exception as raised:
        if not below.recover():
            raise
        error = raised
    if not elements and error is None:
        return Drawn([], last=True)
    try:
        return Drawn(elements, below.snapshot(), error=error)
    except Exception as unknown:
        return Drawn(elements, None, unknown, _deferred(below), error=error)


def _deferred(cursor: Cursor) -> Exception | None:
    try:
        cursor.raise_deferred()
    except Exception as error:
        return error
    return None


def made(work: Callable[[Any], Iterable[Any]], drawn: Drawn) -> Drawn:
    """What is made of drawn elements, up to an error."""
    if drawn.last or drawn.error is not None:
        return drawn
    found: list[Any] = []
    try:
        found.extend(work(drawn.elements))
    except Exception as error:
        return drawn._replace(elements=found, error=error)
    return drawn._replace(elements=found)


class AheadCursor(GatheringPieces):
    """Elements that threads make ahead of time, piece by piece; the order is kept.

    Args:
        below: The cursor that pieces are drawn from.
        draw: Draws a piece; one thread at a time.
        work: Makes elements of what was drawn; any thread. None: they are the elements.
        num_threads: How many threads.
        depth: The number of stages of the pass, where pieces have several elements: a position in
            the middle of a piece says whose it is.
        count: How many pieces to make ahead; None: one more than threads.
        ahead: Starts what makes them, instead of Workers.
    """

    goes_on = True

    def __init__(
        self,
        below: Cursor,
        draw: Callable[[], Drawn],
        work: Callable[[Any], Iterable[Any]] | None,
        num_threads: int,
        *,
        depth: int = 0,
        count: int | None = None,
        ahead: Callable[[], Any] | None = None,
    ) -> None:
        self._depth = depth
        self._below = below
        self._draw = draw
        self._work = None if work is None else partial(made, work)
        self._num_threads = num_threads
        self._count = count
        self._make_ahead = ahead
        self._ahead: Any = None
        # The positions before and after the last piece, how many of its elements were given, and
        # the others.
        self._before = self._piece = Drawn([], below.snapshot())
        self._given = 0
        self._left: list[Any] = []
        self._ended = False

    def recover(self) -> bool:
        """Below, the threads go on by themselves; where they cannot, they have ended."""
        if self._error is None or self.is_to_raise:
            return True
        if self._piece.error is None or self._depth:  # or more elements of the piece are lost
            return False
        self._piece = self._piece._replace(error=None)
        self._error, self._raised = None, False
        return True

    def piece(self, count: int) -> list[Any] | None:
        if not self._left and not self._next_piece():
            return None
        elements, self._left = self._left[:count], self._left[count:]
        self._given += len(elements)
        return elements

    def _next_piece(self) -> bool:
        if self._piece.error is not None:
            raise self._piece.error
        if self._ended:
            return False
        if self._ahead is None:  # once the first element is asked for
            self._ahead = self._start()
        piece: Drawn = self._ahead.next()
        if piece.last:
            self._ended = True
            return False
        self._before, self._piece = self._piece, piece._replace(elements=[])
        self._given, self._left = 0, piece.elements
        return True

    def _start(self) -> Any:
        if self._make_ahead is not None:
            return self._make_ahead()
        return Workers(self._draw, self._work, self._num_threads, self._count, owner=self)

    def place(self) -> Any:
        """The position of the source, or one before it and how many elements to drop there."""
        self.raise_deferred()
        if self._left:
            before = self._before.known_place()
            return {"depth": self._depth, "before": before, "given": self._given}
        if self._piece.error is not None:
            raise copied(self._piece.error)
        return self._piece.known_place()

    def raise_deferred(self) -> None:
        if self._piece.deferred is not None:  # not of the source: threads are past this place
            raise copied(self._piece.deferred)

    def stop(self) -> None:
        if self._ahead is not None:
            self._ahead.stop()
        self._below.stop()

    def close(self) -> None:
        if self._ahead is None:
            self._below.close()
        else:
            self._ahead.close(self._below.close)


MOST_GIVEN = 256  # elements of a piece


def resumed(open_at: Callable[[Any], Cursor], depth: int, at: Any) -> Cursor:
    """A cursor at a position of an AheadCursor, or of a cursor that makes the same elements.

    Args:
        open_at: Opens a cursor at a position of the source.
        depth: That of the AheadCursor; another position is one of the source.
        at: The position.
    """
    before, given = split_place(at, depth)
    return advanced(open_at(before), given)


def split_place(at: Any, depth: int) -> tuple[Any, int]:
    """A position of an AheadCursor as one of the source and how many elements to drop there."""
    own = isinstance(at, dict) and at.keys() == {"depth", "before", "given"}
    if not own or at["depth"] != depth:
        return at, 0
    check_state(at["given"], range(1, MOST_GIVEN))
    return at["before"], at["given"]


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
    except Exception:
        # The cursor is closed now: keep what it says of the elements before the error.
        try:
            cursor.raise_deferred()
        except Exception as deferred:
            defer(deferred)
        raise
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
        endless: True if it is known that they never end.
        spec: The structure of an element, as for every stage.
        quiet: False if ``generate`` calls user functions.
        given: The stages whose elements it gives as they are, if so: these tell the spec.
        redraws: As for every stage.
    """

    def __init__(
        self,
        name: str,
        sources: tuple[Stage, ...],
        generate: Callable[..., Iterator[Any]],
        *,
        length: int | None = None,
        endless: bool = False,
        spec: Any = None,
        quiet: bool = False,
        given: tuple[Stage, ...] = (),
        redraws: bool = False,
    ) -> None:
        self.name = name
        self.redraws = redraws
        self.given = given
        self.sources = sources
        self.length = length
        self.endless = endless
        self.spec = joined_specs([stage.spec for stage in given]) if given else spec
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
        for cursor in self.opened:  # raises the error that comes next below, if any
            cursor.snapshot()
        return self._count

    def parts(self) -> Iterable[Cursor]:
        return self.opened.copy()  # in one step: the thread inside may open and close some

    def close(self) -> None:
        for iterator in (self._generated, *self._below):
            if hasattr(iterator, "close"):
                iterator.close()
