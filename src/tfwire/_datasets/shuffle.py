"""Shuffling: by a buffer, or all records of indexed files at once."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from tfwire._arguments import integer
from tfwire._datasets.buffer import Buffer, Numbered
from tfwire._datasets.numbered import IndexedRecords, NumberedCursor
from tfwire._datasets.packed import NONE, PackedRecords
from tfwire._datasets.random import draws, key_of, permuted, randrange
from tfwire._datasets.sources import Records
from tfwire._datasets.stage import Cursor, Derived, Gathering, Stage

__all__ = ["Shuffle"]

Array = np.ndarray[Any, Any]

_AT_ONCE = 1024  # elements drawn at a time, of which a snapshot of the source is kept


class Shuffle(Derived):
    """A buffer that gives a random one of its elements and takes the next into its place. Indexed
    records that would all fit are put in a random order instead, without being held.

    Args:
        source: Of the elements.
        buffer_size: Of the buffer.
        seed: None: another in every process.
        reshuffle_each_iteration: Another order in every pass.
        min_after_dequeue: Give elements as soon as the buffer keeps so many; None: when it is
            full.
    """

    def __init__(
        self,
        source: Stage,
        buffer_size: int,
        seed: int | None,
        reshuffle_each_iteration: bool,
        min_after_dequeue: int | None = None,
    ) -> None:
        buffer_size = integer("buffer_size", buffer_size, 1)
        if buffer_size >= 1 << 31:
            raise ValueError(f"buffer_size must be below 2**31, found {buffer_size}")
        seed = None if seed is None else integer("seed", seed)
        super().__init__(source, buffer_size, seed, reshuffle_each_iteration, min_after_dequeue)
        self.buffer_size = buffer_size
        self.min_held = buffer_size if min_after_dequeue is None else min_after_dequeue
        self.seed = random.randrange(2**63) if seed is None else seed
        self.reshuffle = reshuffle_each_iteration
        self.passes = 0  # that were begun by iterators, to tell one from another
        self._packs = False

    def over(self, source: Stage) -> Shuffle:
        found = Shuffle(source, *self.arguments)
        found.seed = self.seed
        found._packs = self._packs
        return found

    def packing(self) -> Shuffle:
        """The same, but that records may be given as a Placed instead of a list."""
        found = self.over(self.source)
        found._packs = True
        return found

    def open(self, epoch: str, at: Any = None) -> Cursor:
        seed, at = at or (self.seed, None)
        if self.arguments[1] is None:
            self.seed = seed  # the epochs to come are those of the process that saved the state
        key = key_of(seed, epoch) if self.reshuffle else key_of(seed)
        source = self.source
        if isinstance(source, IndexedRecords) and self.buffer_size >= source.length:
            return _OrderCursor(source, seed, key, at or 0)
        packed = self._packs and isinstance(source, Records) and source.begins_short()
        return (_PackedCursor if packed else _BufferCursor)(self, seed, key, epoch, at)


class _OrderCursor(NumberedCursor):
    """Indexed records in a random order of all of them."""

    def __init__(self, source: IndexedRecords, seed: int, key: int, at: int) -> None:
        super().__init__(source, lambda places: permuted(key, source.length, places), at)
        self._seed = seed

    def place(self) -> Any:
        return [self._seed, super().place()]


class _BufferCursor(Gathering):
    """Elements in a buffer.

    A snapshot names their numbers and a place of the source before the first of them. To go on
    there, the source is read from that place up to where it was, and gives the elements once more:
    some ten times as many as the buffer holds.
    """

    _none: ClassVar[Array] = np.empty(0, object)

    def __init__(self, stage: Shuffle, seed: int, key: int, epoch: str, at: Any) -> None:
        self._stage = stage
        self._seed = seed
        self._key = key
        # Elements drawn ahead are held beside those in the buffer.
        ahead = min(_AT_ONCE, stage.buffer_size // 4) if stage.source.quiet else 1
        self._at_once = max(1, ahead)
        self._buffer = Buffer(stage.buffer_size, self._none)
        self._next = self._buffer.held()  # what is given next
        self._drawn = self._pulled = 0  # random numbers, and elements of the source
        self._places: deque[tuple[int, Any]] = deque()  # number of the next element, snapshot
        if at is None:
            self._source = self._open(epoch)
        else:
            self._restore(epoch, at)

    def _open(self, epoch: str, at: Any = None) -> Any:
        return self._stage.source.open(epoch, at)

    def _array(self, elements: Any) -> Array:
        """Elements of the source in an array."""
        return objects(elements)

    def _given(self, elements: Array) -> Any:
        """Elements as they are given away."""
        return elements.tolist()

    def _settle(self, elements: Array) -> None:
        """Lets go of what only other elements needed that were pulled."""

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        if not len(self._next.numbers):
            self._next = self._draw(max(count, self._at_once))
        given, self._next = self._next.split(count)
        return self._given(given.elements) if len(given.numbers) else None

    def _draw(self, count: int) -> Numbered:
        """The next elements in random order, not many more than count; none at the end."""
        self._settle(self._buffer.held().elements)
        self._fill()
        if self._buffer.size < self._stage.buffer_size:
            count = 1  # what is drawn depends on the size, so it must not on how much is asked
        incoming = self._pull(count)
        if not len(incoming.numbers):
            return self._buffer.empty(np.argsort(self._random(self._buffer.size), kind="stable"))
        random = self._random(len(incoming.numbers))
        self._buffer.exchange(incoming, randrange(random, self._buffer.size))
        return incoming

    def _random(self, count: int) -> Array:
        self._drawn += count
        return draws(self._key, self._drawn - count, count)

    def _fill(self) -> None:
        """Fills the buffer to what it must hold, and later to its limit, element by element."""
        size, stage = self._buffer.size, self._stage
        wanted = min(1 if size else stage.min_held, stage.buffer_size - size)
        while wanted > 0:
            piece = self._pull(wanted)
            if not len(piece.numbers):
                break
            self._buffer.add(piece)
            wanted -= len(piece.numbers)

    def _pull(self, count: int) -> Numbered:
        """The next elements of the source."""
        if not self._places or self._pulled - self._places[-1][0] >= _AT_ONCE:
            self._places.append((self._pulled, self._source.snapshot()))
            self._forget_places()
        elements = self._array(self._source.take(min(count, _AT_ONCE)))
        first, self._pulled = self._pulled, self._pulled + len(elements)
        return Numbered(elements, np.arange(first, self._pulled))

    def _forget_places(self) -> None:
        """Drops the places that no element needs."""
        numbers = (self._buffer.held().numbers, self._next.numbers)
        first = min(array.min(initial=self._pulled) for array in numbers)
        while len(self._places) > 1 and self._places[1][0] <= first:
            self._places.popleft()

    def place(self) -> Any:
        self._forget_places()
        place = self._places[0] if self._places else (self._pulled, self._source.snapshot())
        return [
            self._seed,
            {
                "next": self._next.numbers.copy(),
                "held": self._buffer.held().numbers.copy(),
                "drawn": self._drawn,
                "pulled": self._pulled,
                "place": list(place),
            },
        ]

    def _restore(self, epoch: str, at: Any) -> None:
        self._drawn, self._pulled = at["drawn"], at["pulled"]
        number, place = at["place"]
        self._source = self._open(epoch, place)
        self._places.append((number, place))
        numbers = np.array([*at["next"], *at["held"]], np.int64)
        slots = np.argsort(numbers)
        wanted = numbers[slots]
        elements = np.zeros((len(numbers), *self._none.shape[1:]), self._none.dtype)
        while number < self._pulled:
            piece = self._array(self._source.take(min(self._pulled - number, _AT_ONCE)))
            if not len(piece):
                raise ValueError("the elements that a shuffle had drawn are not there any more")
            first, last = np.searchsorted(wanted, [number, number + len(piece)])
            elements[slots[first:last]] = piece[wanted[first:last] - number]
            number += len(piece)
            self._settle(elements)
        self._next, held = Numbered(elements, numbers).split(len(at["next"]))
        self._buffer.add(held)

    def parts(self) -> Iterable[Cursor]:
        return (self._source,)


class _PackedCursor(_BufferCursor):
    """Records in a buffer that stay where C put them."""

    _none = NONE
    _source: PackedRecords

    def _open(self, epoch: str, at: Any = None) -> PackedRecords:
        assert isinstance(self._stage.source, Records)
        return PackedRecords(self._stage.source, at)

    def _array(self, elements: Any) -> Array:
        table: Array = elements.table if len(elements) else NONE
        return table

    def _given(self, elements: Array) -> Any:
        return self._source.placed(elements)

    def _settle(self, elements: Array) -> None:
        self._source.settle(elements)


def objects(elements: Sequence[Any]) -> Array:
    """Elements, whatever they are, in an array of rank 1."""
    return np.fromiter(elements, object, len(elements))
