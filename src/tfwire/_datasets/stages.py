"""The stages of a Dataset that need no memory of their own, or little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from tfwire._datasets.arguments import integer, shard_of
from tfwire._datasets.sources import Records
from tfwire._datasets.stage import Cursor, Derived, Gathering, Stage
from tfwire._datasets.structure import describe, map_structure, pad_and_stack, stack
from tfwire.errors import ParseError

__all__ = ["Batch", "Filter", "Map", "Parse", "Repeat", "Shard", "Skip", "Take", "Zip"]

_AT_ONCE = 256  # elements passed over at a time

# Elements become batches of so many; the last of them may have fewer.
Collate = Callable[[list[Any], int], Iterable[Any]]


class _Through(Gathering):
    """A cursor that stands where the one below stands."""

    def __init__(self, below: Cursor) -> None:
        self._below = below

    def snapshot(self) -> Any:
        self.raise_pending()
        return self._below.snapshot()

    def close(self) -> None:
        self._below.close()


# ---- One by one -------------------------------------------------------------------------------


class Map(Derived):
    """A function of every element."""

    def __init__(self, source: Stage, function: Callable[[Any], Any]) -> None:
        super().__init__(source, function)
        self.spec = None
        self.quiet = False

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _MapCursor(self.source.open(epoch, at), self.arguments[0])


class _MapCursor(_Through):
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


class _FilterCursor(_Through):
    def __init__(self, below: Cursor, predicate: Callable[[Any], Any]) -> None:
        super().__init__(below)
        self._predicate = predicate

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        piece = self._below.take(count)
        # By a generator, as in map.
        return list(e for e in piece if self._predicate(e)) if piece else None  # noqa: C400


class Parse(Derived):
    """Serialized Examples parsed: one by one or, when they come in batches, batch by batch.

    Args:
        source: Of records, or of batches of records.
        parser: A Parser.
        features: Its specification.
    """

    def __init__(self, source: Stage, parser: Any, features: Mapping[Any, Any]) -> None:
        super().__init__(source, parser, features)
        self.batched = any(isinstance(below, Batch) for below in source.chain())
        self.spec = {key: _describe_feature(feature) for key, feature in features.items()}

    def open(self, epoch: str, at: Any = None) -> Cursor:
        parser = self.arguments[0]
        if not self.batched:
            return _MapCursor(self.source.open(epoch, at), parser.parse_single)
        if not isinstance(self.source, Batch):  # something that gives on the batches of one below
            return _MapCursor(self.source.open(epoch, at), parser.parse)
        records = self.source.source
        if isinstance(records, Records) and records.cycle <= 1:
            return records.open_parsed(parser, self.source.count, self.source.drop_remainder, at)
        return self.source.open_collated(partial(_parse, parser), epoch, at)

    def describe(self) -> str:
        return f"parse_example({', '.join(map(str, self.arguments[1]))})"


def _parse(parser: Any, records: list[bytes], size: int) -> Iterable[Any]:
    """Batches of a size, at the price of one."""
    try:
        found: list[Any] = parser._parse_batches(records, size)
        return found
    except ParseError:  # one by one: those before it, then the error as one batch tells it
        return map(parser.parse, _cut(records, size))


def _describe_feature(feature: Any) -> str:
    if hasattr(feature, "shape") and hasattr(feature.dtype, "as_numpy_dtype"):
        return describe(feature.dtype.as_numpy_dtype, feature.shape)
    return type(feature).__name__


# ---- Batches ----------------------------------------------------------------------------------


class Batch(Derived):
    """Elements stacked, count at a time.

    Args:
        source: Of the elements.
        count: Elements of a batch.
        drop_remainder: Leave out a last batch of fewer.
        padding: None, or padded_shapes and padding_values.
    """

    def __init__(
        self,
        source: Stage,
        count: int,
        drop_remainder: bool = False,
        padding: tuple[Any, Any] | None = None,
    ) -> None:
        count = integer("batch_size", count, 1)
        super().__init__(source, count, drop_remainder, padding)
        self.count = count
        self.drop_remainder = drop_remainder
        self.padding = padding
        self.spec = source.spec and map_structure(self._with_batch_axis, source.spec)
        if source.length is not None:
            self.length = source.length // count
            self.length += bool(source.length % count) and not drop_remainder

    def _with_batch_axis(self, leaf: str | None) -> str | None:
        if leaf is None or not leaf.endswith("]"):
            return leaf
        dtype, shape = leaf[:-1].split("[")
        if self.padding is not None:
            shape = ", ".join("?" for _ in shape.split(", ") if shape)
        return f"{dtype}[?, {shape}]" if shape else f"{dtype}[?]"

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return self.open_collated(self._collate, epoch, at)

    def _collate(self, elements: list[Any], size: int) -> Iterable[Any]:
        if self.padding is None:
            return map(stack, _cut(elements, size))
        return (pad_and_stack(some, *self.padding) for some in _cut(elements, size))

    def open_collated(self, collate: Collate, epoch: str, at: Any) -> Cursor:
        """A pass whose batches are made by another function than stacking."""
        return _BatchCursor(self.source.open(epoch, at), self, collate)

    def describe(self) -> str:
        return f"batch({self.count}, {self.drop_remainder})"


class _BatchCursor(_Through):
    def __init__(self, below: Cursor, stage: Batch, collate: Collate) -> None:
        super().__init__(below)
        self._size = stage.count
        self._drop_remainder = stage.drop_remainder
        self._collate = collate

    def take(self, count: int) -> list[Any]:
        return self.gather(self._batches(count), count)

    def _batches(self, count: int) -> Iterator[Any]:
        size = self._size
        while count > 0 and (elements := self._below.take(count * size)):
            if self._drop_remainder:
                del elements[len(elements) // size * size :]
                if not elements:
                    continue
            yield from self._collate(elements, size)
            count -= -(-len(elements) // size)


def _cut(elements: list[Any], size: int) -> Iterator[list[Any]]:
    return (elements[i : i + size] for i in range(0, len(elements), size))


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


class _TakeCursor(_Through):
    def __init__(self, below: Cursor, count: int, given: int) -> None:
        super().__init__(below)
        self._count = count
        self._given = given

    def take(self, count: int) -> list[Any]:
        wanted = min(count, self._count - self._given)
        found = self._below.take(wanted) if wanted else []
        self._given += len(found)
        return found

    def snapshot(self) -> Any:
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


class _SkipCursor(_Through):
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

    def snapshot(self) -> Any:
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


class _ShardCursor(_Through):
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

    def snapshot(self) -> Any:
        self.raise_pending()
        below = None if self._below is None else self._below.snapshot()
        return [self._epoch, self._empty, below]

    def close(self) -> None:
        if self._below is not None:
            self._below.close()


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
        parts = at or [None] * len(self.sources)
        pairs = zip(self.sources, parts, strict=True)
        return _ZipCursor([source.open(epoch, part) for source, part in pairs])

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        if rule != "even":
            raise ValueError(f"rule={rule!r} needs a source of known length, not a zip")
        return Shard(self, num_shards, index)

    def chain(self) -> Iterator[Stage]:
        yield self
        for source in self.sources:
            yield from source.chain()


class _ZipCursor(Gathering):
    def __init__(self, below: list[Cursor]) -> None:
        self._below = below

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        columns: list[list[Any]] = []
        for cursor in self._below:
            columns.append(cursor.take(count))
            count = min(count, len(columns[-1]))
        return list(zip(*(column[:count] for column in columns), strict=True)) or None

    def snapshot(self) -> Any:
        self.raise_pending()
        return [cursor.snapshot() for cursor in self._below]

    def close(self) -> None:
        for cursor in self._below:
            cursor.close()
