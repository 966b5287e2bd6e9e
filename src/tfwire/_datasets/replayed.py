"""Stages whose elements a generator function makes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from tfwire._datasets.stage import Cursor, Gathering, Stage

__all__ = ["Replayed", "elements_of"]


# What the function under way in this thread has opened, for the thread that wakes it.
_under_way = threading.local()


def elements_of(stage: Stage, epoch: str) -> Iterator[Any]:
    """The elements of one pass through a stage. Closing the generator closes the pass."""
    cursor = stage.open(epoch)
    opened: set[Cursor] | None = getattr(_under_way, "opened", None)
    if opened is not None:
        opened.add(cursor)
    try:
        while piece := cursor.take(1):
            yield from piece
    finally:
        if opened is not None:
            opened.discard(cursor)
        cursor.close()


class Replayed(Stage):
    """What a generator function makes of the elements of other stages.

    The state of a pass is the number of elements that it gave. Loading a state runs the function
    again from the beginning and drops that many elements.

    Args:
        name: What to call the stage where a pipeline is described.
        sources: The stages below.
        generate: Is called with the epoch and with an iterator over the elements of each source,
            and returns an iterator. It is called again for every pass and must then give the same
            elements.
        length: The number of elements, where it is known.
        spec: The structure of an element, as for every stage.
        quiet: False if ``generate`` calls functions of the user.
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
        below = [elements_of(source, epoch) for source in self.sources]
        return _ReplayedCursor(self._generate(epoch, *below), below, at or 0)

    def describe(self) -> str:
        return self.name

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        from tfwire._datasets.stages import Shard

        if rule != "even":
            raise ValueError(f"rule={rule!r} needs a source of known length, not {self.name}")
        return Shard(self, num_shards, index)

    def chain(self) -> Iterator[Stage]:
        yield self
        for source in self.sources:
            yield from source.chain()


class _ReplayedCursor(Gathering):
    def __init__(self, elements: Iterator[Any], below: list[Iterator[Any]], count: int) -> None:
        self._below = below
        self._generated = elements
        self._elements = islice(elements, count, None) if count else elements
        self._count = count
        self._opened: set[Cursor] = set()

    def take(self, count: int) -> list[Any]:
        outer = getattr(_under_way, "opened", None)
        _under_way.opened = self._opened
        try:
            found = self.gather(self._elements, count)
        finally:
            _under_way.opened = outer
        self._count += len(found)
        return found

    def snapshot(self) -> Any:
        self.raise_pending()
        return self._count

    def stop(self) -> None:
        for cursor in tuple(self._opened):
            cursor.stop()

    def close(self) -> None:
        for iterator in (self._generated, *self._below):
            if hasattr(iterator, "close"):
                iterator.close()
