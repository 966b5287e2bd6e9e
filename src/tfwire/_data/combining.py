"""Stages of several datasets or of parts of elements: Concatenate, Sample, Zip, Enumerate,
Unbatch, Cache."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfwire._base.arguments import integer
from tfwire._base.errors import copied
from tfwire._data.indexed_records import Joined
from tfwire._data.permutations import as_key, draws
from tfwire._data.prefetch import Replayed, stage_elements
from tfwire._data.resuming.positions import Left
from tfwire._data.stages import (
    END,
    UNPLACED,
    Cursor,
    Derived,
    GatheringElements,
    GatheringPieces,
    Stage,
    Through,
)
from tfwire._data.state_checks import COUNT, INT64, MISSING, state_or
from tfwire._data.structure import count_rows, joined_specs, map_structure, row_text
from tfwire._examples.column_types import SparseTensor


class _OfMany(Stage):
    """The elements of several stages."""

    def __init__(self, sources: tuple[Stage, ...]) -> None:
        self.sources = self.given = sources
        self.quiet = all(source.quiet for source in sources)
        lengths = [source.length for source in sources]
        if None not in lengths:
            self.length = sum(length for length in lengths if length is not None)
        self.endless = any(source.endless for source in sources)
        self.spec = joined_specs([source.spec for source in sources])


class Concatenate(_OfMany):
    """The elements of one stage after those of another."""

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _ConcatenateCursor(self.sources, epoch, at)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        return Concatenate(tuple(s.sharded(num_shards, index, rule) for s in self.sources))

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        found: list[list[Left]] = [[] for _ in self.sources]
        for left in passes:
            place = left.place(epoch)
            begun, at = state_or(place, [range(len(found) + 1), None], (0, None))
            for number in range(begun, len(found)):
                source = left.stage.sources[number]
                found[number].append(Left(source, at if number == begun else None))
        parts = [each[0].stage.left(each, epoch) for each in found if each]
        return Concatenate(tuple(parts) or (Joined([]),))

    def origin(self, epoch: str, place: int) -> list[int]:
        for number, source in enumerate(self.sources):
            if source.length is None:
                break
            if place < source.length:
                return [number, *source.origin(epoch, place)]
            place -= source.length
        return super().origin(epoch, place)


class _ConcatenateCursor(GatheringPieces):
    goes_on = True

    def __init__(self, sources: tuple[Stage, ...], epoch: str, at: Any) -> None:
        self._sources = sources
        self._epoch = epoch
        self._number: int
        self._number, below = state_or(at, [range(len(sources) + 1), None], (0, None))
        self._below = self._open(below)

    def _open(self, at: Any = None) -> Cursor | None:
        if self._number == len(self._sources):
            return None
        return self._sources[self._number].open(self._epoch, at)

    def piece(self, count: int) -> list[Any] | None:
        if self._below is None:
            return None
        piece = self._below.take(count)
        if not piece:
            self._below.close()
            self._number += 1
            self._below = self._open()
        return piece

    def place(self) -> Any:
        return [self._number, None if self._below is None else self._below.snapshot()]

    def parts(self) -> Iterable[Cursor]:
        return () if self._below is None else (self._below,)


class Sample(_OfMany):
    """Elements of several stages in random turn.

    Args:
        sources: The stages.
        weights: How often each is drawn, as a part of their sum; above 0.
        seed: None: another one in every process.
        stop_on_empty: End with the first stage that ends, not with the last.
    """

    redraws = True

    def __init__(
        self,
        sources: tuple[Stage, ...],
        weights: tuple[float, ...],
        seed: int | None,
        stop_on_empty: bool,
    ) -> None:
        super().__init__(sources)
        self.weights = weights
        self.seeded = seed is not None
        self.seed = random.randrange(2**63) if seed is None else integer("seed", seed)
        self.stop_on_empty = stop_on_empty
        if stop_on_empty:
            self.length = None
            self.endless = all(source.endless for source in sources)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        form = [INT64, COUNT, {object}]
        seed, drawn, places = state_or(at, form, (self.seed, 0, [None] * len(self.sources)))
        if len(places) != len(self.sources):
            raise ValueError("the state is damaged: it has other datasets")
        if not self.seeded:
            self.seed = seed  # so that later epochs are those of the process that saved the state
        return _SampleCursor(self, seed, epoch, drawn, places)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        if self.stop_on_empty:
            return super().sharded(num_shards, index, rule)
        found = copy.copy(self)
        shares = tuple(s.sharded(num_shards, index, rule) for s in self.sources)
        _OfMany.__init__(found, shares)
        return found

    def describe(self) -> str:
        seed = self.seed if self.seeded else None
        return f"Sample({len(self.sources)}, {self.weights}, {seed}, {self.stop_on_empty})"


class _SampleCursor(GatheringElements):
    def __init__(self, stage: Sample, seed: int, epoch: str, drawn: int, places: list[Any]) -> None:
        self._seed = seed
        self._key = as_key(seed, epoch, "sample")
        self._drawn = drawn
        self._bounds = np.cumsum(stage.weights, dtype=np.float64) / sum(stage.weights)
        self._stop_on_empty = stage.stop_on_empty
        self._below: list[Cursor | None] = []  # None: it has ended
        try:
            for source, place in zip(stage.sources, places, strict=True):
                ended = place == END
                self._below.append(None if ended else source.open(epoch, place))
        except BaseException:
            self.close()
            raise

    def elements(self, count: int) -> Iterator[Any]:
        while self._more():
            numbers = draws(self._key, self._drawn, 1) >> np.uint64(11)
            at = np.searchsorted(self._bounds, float(numbers[0]) / 2.0**53, side="right")
            number = min(int(at), len(self._below) - 1)
            below = self._below[number]
            found = [] if below is None else below.take(1)
            self._drawn += 1
            if found:
                yield found[0]
            elif below is not None:
                below.close()
                self._below[number] = None

    def _more(self) -> bool:
        ended = [below is None for below in self._below]
        return not (any(ended) if self._stop_on_empty else all(ended))

    def place(self) -> Any:
        places = [END if below is None else below.snapshot() for below in self._below]
        return [self._seed, self._drawn, places]

    def parts(self) -> Iterable[Cursor]:
        return [below for below in self._below if below is not None]


class Zip(Stage):
    """Tuples of one element of every dataset; as many as the shortest has."""

    def __init__(self, sources: tuple[Stage, ...]) -> None:
        self.sources = sources
        lengths = [source.length for source in sources if not source.endless]
        self.endless = not lengths
        if lengths and None not in lengths:
            self.length = min(length for length in lengths if length is not None)
        self.spec = tuple(source.spec for source in sources)
        self.quiet = all(source.quiet for source in sources)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        if at == END:
            return _ZipCursor([])
        parts = state_or(at, [object] * len(self.sources), [None] * len(self.sources))
        below: list[Cursor] = []
        try:
            for source, part in zip(self.sources, parts, strict=True):
                below.append(source.open(epoch, part))
        except BaseException:
            for cursor in below:
                cursor.close()
            raise
        return _ZipCursor(below)


class _ZipCursor(GatheringPieces):
    """It may take more elements of the others than the shortest has. So the positions of the others
    mean nothing once the shortest has ended or failed."""

    def __init__(self, below: list[Cursor]) -> None:
        self._below = below
        self._held: list[list[Any]] = [[] for _ in below]  # elements of the others, after an error
        self._failed = 0  # the number of the one that failed
        self._ended = not below

    def piece(self, count: int) -> list[Any] | None:
        self.raise_pending()
        if self._ended:
            return None
        columns, least = self._held, count
        for i, cursor in enumerate(self._below):
            self._failed = i  # if take raises
            if len(columns[i]) < least:
                columns[i] = columns[i] + cursor.take(least - len(columns[i]))
            least = min(least, len(columns[i]))
        if least < count:
            self._meet_end(next(i for i, column in enumerate(columns) if len(column) == least))
        self._held = [column[least:] for column in columns]
        return list(zip(*(column[:least] for column in columns), strict=True))

    def _meet_end(self, number: int) -> None:
        """Finds out why a cursor gave too few elements: it has ended, or raises an error."""
        try:
            self._below[number].take(1)
            self._ended = True
        except Exception as error:
            self._error, self._failed = error, number

    def recover(self) -> bool:
        """The others go on by an element too, so that those that follow belong together."""
        if self._error is None or self.is_to_raise:
            return True
        for i, cursor in enumerate(self._below):
            if i == self._failed:
                if not cursor.recover():
                    return False
            elif not self._pass_over(self._held[i], cursor):
                return False
        self._error, self._raised = None, False
        return True

    def _pass_over(self, held: list[Any], cursor: Cursor) -> bool:
        """Drops the next element of a cursor; False if it cannot go on after its own error."""
        if held:
            del held[0]
            return True
        try:
            cursor.take(1)
        except Exception:
            return cursor.recover()
        return True

    def place(self) -> Any:
        self.raise_deferred()
        if any(self._held) and not self._ended:
            raise ValueError(UNPLACED)
        return END if self._ended else [cursor.snapshot() for cursor in self._below]

    def parts(self) -> Iterable[Cursor]:
        return self._below


class Enumerate(Derived):
    """Pairs of a number and an element."""

    def __init__(self, source: Stage, start: int) -> None:
        super().__init__(source, integer("start", start))
        self.spec = source.spec and ("int64[]", source.spec)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        number, below = state_or(at, [COUNT, object], (0, None))
        return NumberingCursor(self.source.open(epoch, below), self._pair, number)

    def _pair(self, place: int, element: Any) -> tuple[np.int64, Any]:
        return np.int64(self.arguments[0] + place), element

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        return Stage.sharded(self, num_shards, index, rule)  # each number occurs once


class NumberingCursor(Through):
    """A cursor that counts the elements.

    Args:
        below: Gives them.
        make: Makes an element of its place in the pass and what it was.
        given: How many were given before.
    """

    def __init__(self, below: Cursor, make: Callable[[int, Any], Any], given: int) -> None:
        super().__init__(below)
        self._make = make
        self._given = given
        self._failed = False

    def recover(self) -> bool:
        self._given += self._failed  # an element that is an error has its number, too
        self._failed = False
        return super().recover()

    def take(self, count: int) -> list[Any]:
        self._failed = True
        found = self._below.take(count)
        self._failed = False
        first, self._given = self._given, self._given + len(found)
        return list(map(self._make, range(first, self._given), found))

    def snapshot(self) -> Any:
        return [self._given, self._below.snapshot()]


# ---- Parts of elements --------------------------------------------------------------------------
class Unbatch(Derived):
    """The rows of every element."""

    batched = False

    def __init__(self, source: Stage, length: int | None = None, spec: Any = None) -> None:
        super().__init__(source)
        self.length = length
        self.spec = spec or (source.spec and map_structure(row_text, source.spec))

    def open(self, epoch: str, at: Any = None) -> Cursor:
        given, below = state_or(at, [COUNT, object], (0, None))
        return _UnbatchCursor(self.source.open(epoch, below), given)


class _UnbatchCursor(Through, GatheringElements):
    """Its position is that before the element whose rows are given, and how many were given."""

    goes_on = True

    def __init__(self, below: Cursor, given: int) -> None:
        super().__init__(below)
        self._rows: Iterator[Any] = iter(())
        self._left = 0
        self._given = 0
        self._before: Any = None
        self._unknown: Exception | None = None
        if given:
            self._begin()
            if given >= self._left:
                self.close()
                raise ValueError(MISSING)
            for _ in range(given):
                self._next()

    def _begin(self) -> bool:
        """Begins with the next element; False at the end."""
        self._before, self._unknown, before = None, None, None
        try:
            before = self._below.snapshot()
        except Exception as error:
            self._unknown = error
        if not (piece := self._below.take(1)):
            return False
        self._rows, self._left = rows_of(piece[0])
        self._before, self._given = before, 0
        return True

    def _next(self) -> Any:
        self._left -= 1
        self._given += 1
        return next(self._rows)

    def elements(self, count: int) -> Iterator[Any]:
        while self._left or self._begin():
            if self._left:
                yield self._next()

    def place(self) -> Any:
        self.raise_deferred()
        if not self._left:
            return [0, self._below.snapshot()]
        if self._unknown is not None:
            raise copied(self._unknown)
        return [self._given, self._before]


def rows_of(element: Any) -> tuple[Iterator[Any], int]:
    """The rows of an element, and their number."""
    count = count_rows(element)
    return (map_structure(partial(_row, row), element) for row in range(count)), count


def _row(row: int, leaf: Any) -> Any:
    if not isinstance(leaf, SparseTensor):
        return leaf[row]
    of_row = leaf.indices[:, 0] == row
    return SparseTensor(leaf.indices[of_row, 1:], leaf.values[of_row], leaf.dense_shape[1:])


# ---- In memory ----------------------------------------------------------------------------------
class Cache(Replayed):
    """The elements of a stage; the first whole pass keeps them in memory."""

    def __init__(self, source: Stage) -> None:
        generate = partial(_cached, [], source)
        super().__init__(
            "cache",
            (),
            generate,
            length=source.length,
            endless=source.endless,
            quiet=source.quiet,
            given=(source,),
        )
        self.kept = source

    @property
    def batched(self) -> bool:
        return self.kept.batched

    def chain(self) -> Iterator[Stage]:
        yield self
        yield from self.kept.chain()

    def origin(self, epoch: str, place: int) -> list[int]:
        return self.kept.origin(epoch, place)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        return Cache(self.kept.sharded(num_shards, index, rule))


def _cached(kept: list[list[Any]], stage: Stage, epoch: str) -> Iterator[Any]:
    if kept:
        yield from map(_copy, kept[0])
        return
    found = []
    for element in stage_elements(stage, "cache"):
        found.append(_copy(element))
        yield element
    kept[:] = [found]


def _copy(element: Any) -> Any:
    """The user may change what was given."""
    return map_structure(_copy_leaf, element)


def _copy_leaf(leaf: Any) -> Any:
    return leaf if isinstance(leaf, (bytes, np.generic)) else copy.deepcopy(leaf)
