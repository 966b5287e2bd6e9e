"""What the stages of a Dataset have in common.

A stage describes; a cursor is one pass through it. Cursors are pulled: ``take(n)`` consumes of the
stages below exactly what n elements need, so that where a pipeline stands is told by where each of
its cursors stands, and nothing is under way. Whatever looks ahead (Prefetch, and the iterator that
users hold) keeps the snapshot that belongs to what it gave away last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

__all__ = ["Cursor", "Derived", "Gathering", "Stage"]


class Cursor:
    """One pass through a stage."""

    def take(self, count: int) -> list[Any]:
        """The next elements: count of them, fewer only at the end or before an error, which the
        next call raises."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """Where the pass stands, for ``Stage.open``: dicts, lists, numbers and strings, and arrays
        of integers."""
        raise NotImplementedError

    def parts(self) -> Iterable[Cursor]:
        """The cursors below."""
        return ()

    def stop(self) -> None:
        """Wakes the thread that waits in ``take``, which raises something then. Does not wait; any
        thread may call it at any time."""
        for cursor in self.parts():
            cursor.stop()

    def close(self) -> None:
        """Releases files and threads."""
        for cursor in self.parts():
            cursor.close()


class Stage:
    """A sequence of elements that can be gone through again and again.

    Attributes:
        source: The stage below, None for a source.
        length: Number of elements where it is known without reading, else None.
        spec: The structure of an element with a description ("int64[28, 28]") per leaf, or None.
        quiet: Whether no function of the user's runs here or below, so that nobody notices when
            elements are made ahead of time.
    """

    source: Stage | None = None
    length: int | None = None
    spec: Any = None
    quiet = True

    def open(self, epoch: str, at: Any = None) -> Cursor:
        """A pass from the beginning, or from where the snapshot ``at`` was taken.

        Args:
            epoch: Tells one pass from another, for those who draw random numbers.
            at: What ``snapshot`` gave, or the same after a way through JSON.
        """
        raise NotImplementedError

    def describe(self) -> str:
        """The stage and what it was told, to compare a pipeline with that of a saved state."""
        return type(self).__name__

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """This stage over a share of the records at its source."""
        raise NotImplementedError

    def chain(self) -> Iterator[Stage]:
        """This stage and those below."""
        yield self
        if self.source is not None:
            yield from self.source.chain()


class Derived(Stage):
    """A stage on another one.

    Args:
        source: The stage below.
        arguments: What else the stage was made of; ``over`` makes it again.
    """

    def __init__(self, source: Stage, *arguments: Any) -> None:
        self.source: Stage = source
        self.arguments = arguments
        self.length = source.length
        self.spec = source.spec
        self.quiet = source.quiet

    def over(self, source: Stage) -> Stage:
        """The same on another stage."""
        return type(self)(source, *self.arguments)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        return self.over(self.source.sharded(num_shards, index, rule))

    def describe(self) -> str:
        told = ", ".join(str(a) for a in self.arguments if isinstance(a, (int, type(None))))
        return f"{type(self).__name__}({told})"


class Gathering(Cursor):
    """A cursor whose errors come after the elements before them, and then again and again.

    Subclasses define ``take``, by ``gather`` or ``collect``, and ``place``.
    """

    _error: Exception | None = None

    def place(self) -> Any:
        """Where the pass stands, if no error was met."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """Where the pass stands.

        Raises:
            Exception: The error that was met. The stages below stand after it, so to go on there
                would pass over what the error kept from being given.
        """
        self.raise_pending()
        return self.place()

    def raise_pending(self) -> None:
        """Raises the error that was met."""
        if self._error is not None:
            raise self._error

    def gather(self, iterator: Iterator[Any], count: int) -> list[Any]:
        """count elements of an iterator."""
        self.raise_pending()
        found: list[Any] = []
        try:
            found.extend(islice(iterator, count))
        except Exception as error:
            self._error = error
            if not found:
                raise
        return found

    def collect(self, some: Callable[[int], list[Any] | None], count: int) -> list[Any]:
        """count elements of a function that gives some of those asked for, or none for now, and
        None at the end."""
        self.raise_pending()
        found: list[Any] = []
        try:
            while len(found) < count and (piece := some(count - len(found))) is not None:
                if piece:  # perhaps a Placed, to which only another one can be added
                    found = found + piece if found else piece
        except Exception as error:
            self._error = error
            if not found:
                raise
        return found
