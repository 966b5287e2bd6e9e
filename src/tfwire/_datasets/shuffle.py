"""Shuffling: by a buffer, or all records of indexed files at once."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire._datasets.arguments import integer
from tfwire._datasets.numbered import IndexedRecords, NumberedCursor
from tfwire._datasets.random import draws, key_of, permuted, randrange
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

    def over(self, source: Stage) -> Stage:
        found = Shuffle(source, *self.arguments)
        found.seed = self.seed
        return found

    def open(self, epoch: str, at: Any = None) -> Cursor:
        seed, at = at or (self.seed, None)
        if self.arguments[1] is None:
            self.seed = seed  # the epochs to come are those of the process that saved the state
        key = key_of(seed, epoch) if self.reshuffle else key_of(seed)
        source = self.source
        if isinstance(source, IndexedRecords) and self.buffer_size >= source.length:
            return _OrderCursor(source, seed, key, at or 0)
        return _BufferCursor(self, seed, key, epoch, at)


class _OrderCursor(NumberedCursor):
    """Indexed records in a random order of all of them."""

    def __init__(self, source: IndexedRecords, seed: int, key: int, at: int) -> None:
        super().__init__(source, lambda places: permuted(key, source.length, places), at)
        self._seed = seed

    def snapshot(self) -> Any:
        return [self._seed, super().snapshot()]


class _BufferCursor(Gathering):
    """Elements in a buffer, with the number that each had in the source.

    A snapshot names the numbers and a place of the source before the first of them. To go on there,
    the source is read from that place up to where it was, and gives the elements once more: some
    ten times as many as the buffer holds.
    """

    def __init__(self, stage: Shuffle, seed: int, key: int, epoch: str, at: Any) -> None:
        self._stage = stage
        self._seed = seed
        self._key = key
        self._elements = np.empty(0, object)
        self._numbers = np.empty(0, np.int64)
        self._drawn = self._pulled = 0  # random numbers, and elements of the source
        self._ended = False  # the source, and the buffer is in its last order
        self._places: deque[tuple[int, Any]] = deque()  # number of the next element, snapshot
        if at is None:
            self._source = stage.source.open(epoch)
        else:
            self._restore(epoch, at)

    def take(self, count: int) -> list[Any]:
        return self.collect(self._some, count)

    def _some(self, count: int) -> list[Any] | None:
        given = self._give(min(count, _AT_ONCE))
        return given.tolist() if len(given) else None

    def _give(self, count: int) -> Array:
        if not self._ended:
            self._fill()
            if len(self._elements) < self._stage.buffer_size:
                count = 1  # what is drawn depends on the size, so it must not on how much is asked
            incoming = self._pull(count)
            if len(incoming):
                return self._exchange(incoming)
            self._end()
        given = self._elements[:count]
        self._elements, self._numbers = self._elements[count:], self._numbers[count:]
        return given

    def _fill(self) -> None:
        """Fills the buffer to what it must hold, and later to its limit, element by element."""
        size, stage = len(self._elements), self._stage
        wanted = min(1 if size else stage.min_held, stage.buffer_size - size)
        pieces = []
        while wanted > 0:
            piece = self._pull(min(wanted, _AT_ONCE))
            if not len(piece):
                break
            pieces.append(piece)
            wanted -= len(piece)
        if pieces:
            added = sum(map(len, pieces))
            self._elements = np.concatenate([self._elements, *pieces])
            numbers = np.arange(self._pulled - added, self._pulled)
            self._numbers = np.concatenate([self._numbers, numbers])

    def _pull(self, count: int) -> Array:
        """The next elements of the source."""
        if not self._places or self._pulled - self._places[-1][0] >= _AT_ONCE:
            self._places.append((self._pulled, self._source.snapshot()))
            self._forget_places()
        elements = objects(self._source.take(count))
        self._pulled += len(elements)
        return elements

    def _forget_places(self) -> None:
        """Drops the places that no element needs."""
        first = self._first_number()
        while len(self._places) > 1 and self._places[1][0] <= first:
            self._places.popleft()

    def _first_number(self) -> int:
        return int(self._numbers.min()) if len(self._numbers) else self._pulled

    def _exchange(self, incoming: Array) -> Array:
        """Gives elements of random slots and puts others there, one after the other.

        Of the draws of one slot, each gives what the one before put there.
        """
        count = len(incoming)
        slots = randrange(draws(self._key, self._drawn, count), len(self._elements))
        self._drawn += count
        order = np.argsort(slots, kind="stable")
        again = slots[order[1:]] == slots[order[:-1]]
        given = self._elements[slots]
        given[order[1:][again]] = incoming[order[:-1][again]]
        last = order[np.append(~again, True)]
        self._elements[slots[last]] = incoming[last]
        self._numbers[slots[last]] = self._pulled - count + last
        return given

    def _end(self) -> None:
        """Puts what is left in the order in which it will be given."""
        self._ended = True
        order = np.argsort(draws(self._key, self._drawn, len(self._elements)), kind="stable")
        self._elements, self._numbers = self._elements[order], self._numbers[order]

    def snapshot(self) -> Any:
        self.raise_pending()
        self._forget_places()
        places = self._places[0] if self._places else (self._pulled, self._source.snapshot())
        return [
            self._seed,
            {
                "numbers": self._numbers.copy(),
                "drawn": self._drawn,
                "pulled": self._pulled,
                "ended": self._ended,
                "place": list(places),
            },
        ]

    def _restore(self, epoch: str, at: Any) -> None:
        self._drawn, self._pulled, self._ended = at["drawn"], at["pulled"], at["ended"]
        self._numbers = np.array(at["numbers"], np.int64)
        number, place = at["place"]
        self._source = self._stage.source.open(epoch, place)
        self._places.append((number, place))
        slots = np.argsort(self._numbers)
        wanted = self._numbers[slots]
        self._elements = np.empty(len(wanted), object)
        while number < self._pulled:
            piece = objects(self._source.take(min(self._pulled - number, _AT_ONCE)))
            if not len(piece):
                raise ValueError("the elements that a shuffle had drawn are not there any more")
            first, last = np.searchsorted(wanted, [number, number + len(piece)])
            self._elements[slots[first:last]] = piece[wanted[first:last] - number]
            number += len(piece)

    def close(self) -> None:
        self._source.close()


def objects(elements: Sequence[Any]) -> Array:
    """Elements, whatever they are, in an array of rank 1."""
    return np.fromiter(elements, object, len(elements))
