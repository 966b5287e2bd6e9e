"""The stages of a Dataset that need no memory of their own, or little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tfwire._arguments import integer
from tfwire._datasets.arguments import shard_of
from tfwire._datasets.stage import Cursor, Derived, Gathering, Stage

__all__ = ["Filter", "Map", "MapCursor", "Repeat", "Shard", "Skip", "Take", "Through", "Zip"]

_AT_ONCE = 256  # elements passed over at a time
_END = "end"  # the place of a cursor that has given everything


class Through(Gathering):
    """A cursor that stands where the one below stands."""

    def __init__(self, below: Cursor) -> None:
        self._below = below

    def place(self) -> Any:
        return self._below.snapshot()

    def parts(self) -> Iterable[Cursor]:
        return (self._below,)


# ---- One by one -------------------------------------------------------------------------------


class Map(Derived):
    """A function of every element."""

    def __init__(self, source: Stage, function: Callable[[Any], Any]) -> None:
        super().__init__(source, function)
        self.spec = None
        self.quiet = False

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return MapCursor(self.source.open(epoch, at), self.arguments[0])


class MapCursor(Through):
    def __init__(self, below: Cursor, function: Callable[[Any], Any]) -> None:
        super().__init__(below)
        self._function = function

    def take(self, count: int) -> list[Any]:
        # A generator turns the function's StopIteration, else taken for the end, into an error.
        return self.gather((self._function(e) for e in self._below.take(count)), count)


class Filter(Derived):
    """The elements for which a function is true."""

    def __init__(self, source: Stage, predicate: Callable[[Any], Any]) -> None:
        super().__init__(source, predicate)
        self.length = None
        self.quiet = False

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _FilterCursor(self.source.open(epoch, at), self.arguments[0])


class _FilterCursor(Through):
    def __init__(self, below: Cursor, predicate: Callable[[Any], Any]) -> None:
        super().__init__(below)
        self._predicate = predicate

    def take(self, count: int) -> list[Any]:
        # A generator, as in map.
        return self.gather(self._accepted(count), count)

    def _accepted(self, count: int) -> Iterator[Any]:
        while count and (piece := self._below.take(count)):
            for element in piece:
                if self._predicate(element):
                    count -= 1
                    yield element


# ---- Some of them, or more --------------------------------------------------------------------


class Take(Derived):
    """The first elements; all of them for a negative count."""

    def __init__(self, source: Stage, count: int) -> None:
        count = integer("count", count)
        super().__init__(source, count)
        self.count = count
        if source.length is not None:
            self.length = source.length if count < 0 else min(count, source.length)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        if self.count < 0:
            return self.source.open(epoch, at)
        given, below = at or (0, None)
        return _TakeCursor(self.source.open(epoch, below), self.count, given)


class _TakeCursor(Through):
    def __init__(self, below: Cursor, count: int, given: int) -> None:
        super().__init__(below)
        self._count = count
        self._given = given

    def take(self, count: int) -> list[Any]:
        wanted = min(count, self._count - self._given)
        found = self._below.take(wanted) if wanted else []
        self._given += len(found)
        return found

    def place(self) -> Any:
        return [self._given, self._below.snapshot()]


class Skip(Derived):
    """All but the first elements; none for a negative count."""

    def __init__(self, source: Stage, count: int) -> None:
        count = integer("count", count)
        super().__init__(source, count)
        self.count = count
        if source.length is not None:
            self.length = 0 if count < 0 else max(source.length - count, 0)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        left, below = at or (self.count, None)
        return _SkipCursor(self.source.open(epoch, below), left)


class _SkipCursor(Through):
    def __init__(self, below: Cursor, left: int) -> None:
        super().__init__(below)
        self._left = left  # elements to pass over; negative: all

    def take(self, count: int) -> list[Any]:
        if self._left < 0:
            return []
        while self._left:
            piece = self._below.take(min(self._left, _AT_ONCE))
            if not piece:
                return []
            self._left -= len(piece)
        return self._below.take(count)

    def place(self) -> Any:
        return [self._left, self._below.snapshot()]


class Shard(Derived):
    """Every num_shards-th element from index on."""

    def __init__(self, source: Stage, num_shards: int, index: int) -> None:
        num_shards, index = shard_of(num_shards, index)
        super().__init__(source, num_shards, index)
        self.num_shards = num_shards
        self.index = index
        if source.length is not None:
            self.length = max(source.length - index + num_shards - 1, 0) // num_shards

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _ShardCursor(self.source.open(epoch, at), self.num_shards, self.index)


class _ShardCursor(Through):
    """It takes whole rounds, so that every snapshot is of the beginning of one."""

    def __init__(self, below: Cursor, num_shards: int, index: int) -> None:
        super().__init__(below)
        self._num_shards = num_shards
        self._index = index

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        rounds = min(count, max(1, _AT_ONCE // self._num_shards))
        piece = self._below.take(rounds * self._num_shards)
        return piece[self._index :: self._num_shards] if piece else None


class Repeat(Derived):
    """The elements count times over; for ever when count is None or negative."""

    def __init__(self, source: Stage, count: int | None) -> None:
        count = None if count is None else integer("count", count)
        super().__init__(source, count)
        self.count = None if count is None or count < 0 else count
        self.length = None
        if self.count is not None and source.length is not None:
            self.length = source.length * self.count

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _RepeatCursor(self, epoch, at)


class _RepeatCursor(Gathering):
    def __init__(self, stage: Repeat, epoch: str, at: Any) -> None:
        self._stage = stage
        self._outer = epoch
        self._epoch: int
        self._empty: bool  # so far, this epoch
        self._epoch, self._empty, below = at or (0, True, None)
        self._below = self._open(below)

    def _open(self, at: Any = None) -> Cursor | None:
        if self._stage.count is not None and self._epoch >= self._stage.count:
            return None
        return self._stage.source.open(f"{self._outer}.{self._epoch}", at)

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        if self._below is None:
            return None
        piece = self._below.take(count)
        self._empty = self._empty and not piece
        if not piece:
            self._below.close()
            self._epoch += 1
            # An endless repetition of nothing would never return.
            self._below = None if self._empty else self._open()
            self._empty = True
        return piece

    def place(self) -> Any:
        below = None if self._below is None else self._below.snapshot()
        return [self._epoch, self._empty, below]

    def parts(self) -> Iterable[Cursor]:
        below = self._below
        return () if below is None else (below,)


class Zip(Stage):
    """Tuples, or another structure, of one element of every dataset; as many as the shortest has.

    Args:
        sources: A structure of stages.
    """

    def __init__(self, sources: tuple[Stage, ...]) -> None:
        self.sources = sources
        lengths = [source.length for source in sources]
        if None not in lengths:
            self.length = min(length for length in lengths if length is not None)
        self.spec = tuple(source.spec for source in sources)
        self.quiet = all(source.quiet for source in sources)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        if at == _END:
            return _ZipCursor([])
        parts = at or [None] * len(self.sources)
        below: list[Cursor] = []
        try:
            for source, part in zip(self.sources, parts, strict=True):
                below.append(source.open(epoch, part))
        except BaseException:
            for cursor in below:
                cursor.close()
            raise
        return _ZipCursor(below)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        if rule != "even":
            raise ValueError(f"rule={rule!r} needs a source of known length, not a zip")
        return Shard(self, num_shards, index)

    def chain(self) -> Iterator[Stage]:
        yield self
        for source in self.sources:
            yield from source.chain()


class _ZipCursor(Gathering):
    """Of the others it may draw more than the one that ends first has, so that where they stand
    means nothing any more when that one has met its end, or an error."""

    def __init__(self, below: list[Cursor]) -> None:
        self._below = below
        self._ended = not below

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        self.raise_pending()
        if self._ended:
            return None
        columns: list[list[Any]] = []
        least = count
        for cursor in self._below:
            columns.append(cursor.take(least))
            least = min(least, len(columns[-1]))
        if least < count:
            self._meet_end(next(i for i, column in enumerate(columns) if len(column) == least))
        return list(zip(*(column[:least] for column in columns), strict=True))

    def _meet_end(self, number: int) -> None:
        """Finds out what a cursor has met that gave fewer elements than it was asked for."""
        try:
            self._below[number].take(1)
            self._ended = True
        except Exception as error:
            self._error = error

    def place(self) -> Any:
        return _END if self._ended else [cursor.snapshot() for cursor in self._below]

    def parts(self) -> Iterable[Cursor]:
        return self._below
