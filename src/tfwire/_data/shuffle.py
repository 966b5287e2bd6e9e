"""The stage Shuffle, and the state that is saved."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tfwire._base.arguments import integer
from tfwire._base.errors import copied
from tfwire._base.native import call, ffi, lib
from tfwire._data.element_sources import Numbers
from tfwire._data.indexed_records import (
    ByNumber,
    Chosen,
    Joined,
    NumberedCursor,
    Permuted,
    Picked,
    share,
)
from tfwire._data.packed_records import NO_RECORDS, PackedRecords
from tfwire._data.permutations import as_key, random_order
from tfwire._data.record_sources import Records
from tfwire._data.resuming.from_buffers import ELEMENTS_PER_DRAW, check_buffer, left_of_streams
from tfwire._data.resuming.positions import Left
from tfwire._data.stages import UNPLACED, Cursor, Derived, GatheringPieces, Stage
from tfwire._data.state_checks import INT64, state_or

Array = np.ndarray[Any, Any]


class Shuffle(Derived):
    """Gives random elements of a buffer and replaces them by the next elements. If all elements
    of a numbered source would fit, they are read in random order instead, without a buffer.

    Args:
        source: Gives the elements.
        buffer_size: Elements in the buffer.
        seed: None: a different one in every process.
        reshuffle_each_iteration: Use a different order in every pass.
        min_after_dequeue: Give elements once the buffer keeps this many; None: when it is full.
    """

    passes_errors = True

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
        self.redraws = reshuffle_each_iteration
        self._packs = False
        self.seeded = seed is not None
        self._parts: tuple[range, ...] = ()  # of the order of all records, each of the one before

    def over(self, source: Stage) -> Shuffle:
        found = Shuffle(source, *self.arguments)
        found.seed = self.seed
        found.next_epoch = self.next_epoch
        found._packs = self._packs
        found._parts = self._parts
        if self._parts:
            found.length = self.length
        return found

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """A share of the order of all elements, if every process can compute this order: another
        one in each epoch. Else the order of a share of the source."""
        if self.is_by_number and self.seeded and self.length is not None:
            return self._part(share(self.length, num_shards, index, rule))
        if self._parts:
            return Stage.sharded(self, num_shards, index, rule)  # raises: there is no seed
        return super().sharded(num_shards, index, rule)

    def part(self, places: range) -> Stage | None:
        return self._part(places) if self.is_by_number else None

    def _part(self, places: range) -> Shuffle:
        found = self.over(self.source)
        found._parts = (*self._parts, places)
        found.length = len(places)
        return found

    def origin(self, epoch: str, place: int) -> list[int]:
        """Of numbered elements, their place in the order of all of them."""
        lengths = [self.source.length, *map(len, self._parts)]
        for places, length in reversed([*zip(self._parts, lengths, strict=False)]):
            place = (places.start + places.step * place) % (length or 1)
        return super().origin(epoch, place)

    def describe(self) -> str:
        return super().describe() + "".join(map(str, self._parts))

    @property
    def is_by_number(self) -> bool:
        """True if the order is one of record numbers, and needs no buffer."""
        source = self.source
        return isinstance(source, ByNumber) and self.buffer_size >= source.length

    def packing(self) -> Shuffle:
        """The same, but records may come as StringTable instead of a list, or as RecordNumbers."""
        found = self.over(self.source)
        found._packs = True
        return found

    def open(self, epoch: str, at: Any = None) -> Cursor:
        seed, at = self._seed_of(at)
        if self.arguments[1] is None:
            self.seed = seed  # so that later epochs are those of the process that saved the state
        key = self._key(seed, epoch)
        source = self.source
        if self.is_by_number:
            ordered = self._ordered(key)
            ordered = ordered.packing() if self._packs else ordered
            return _OrderCursor(ordered, seed, state_or(at, range(ordered.length + 1), 0))
        packed = self._packs and isinstance(source, Records) and source.begins_short()
        return (_PackedCursor if packed else _BufferCursor)(self, seed, key, epoch, at)

    def _seed_of(self, at: Any) -> tuple[int, Any]:
        """The parts of a position: the seed, and the position in its order."""
        seed, at = state_or(at, [INT64, object], (self.seed, None))
        return seed, at

    def _key(self, seed: int, epoch: str) -> int:
        return as_key(seed, epoch) if self.reshuffle else as_key(seed)

    def _ordered(self, key: int) -> ByNumber:
        """The elements in the order of a key, if it is one of their numbers."""
        assert isinstance(self.source, ByNumber)
        ordered: ByNumber = Permuted(self.source, key)
        for places in self._parts:
            ordered = Chosen(ordered, places)
        return ordered

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        """What a buffer held comes first, and all is shuffled again; an order of numbers stays."""
        stages = [left.stage for left in passes]
        if not isinstance(self.source, ByNumber):
            return self.over(left_of_streams(passes, epoch))
        parts = [part for left in passes for part in left.stage._numbered_left(left, epoch)]
        found = Joined(parts)
        return found if all(stage.is_by_number for stage in stages) else self.over(found)

    def _numbered_left(self, left: Left, epoch: str) -> list[ByNumber]:
        source = self.source
        assert isinstance(source, ByNumber)
        if self.is_by_number:
            seed, at = self._seed_of(left.at)
            return [self._ordered(self._key(seed, epoch)).after(at, left.given)]
        # The same order of places instead of elements, so that nothing is read.
        places = self.over(Numbers(range(source.length), ""))
        at = places.checked(left._replace(stage=places).place(epoch))
        if at is None:
            return [source]
        held = np.array([*at["next"], *at["held"]], np.int64)
        return [Picked(source, np.sort(held)), source.after(at["pulled"], 0)]

    def checked(self, at: Any) -> Any:
        """The position in the order of a buffer, with sensible numbers; None: the beginning."""
        _, at = self._seed_of(at)
        if at is not None:
            check_buffer(at, self.buffer_size)
        return at


class _OrderCursor(NumberedCursor):
    """Numbered elements in a random order of all of them."""

    def __init__(self, ordered: ByNumber, seed: int, at: int) -> None:
        super().__init__(ordered, at)
        self._seed = seed

    def place(self) -> Any:
        return [self._seed, super().place()]


class _BufferCursor(GatheringPieces):
    """Elements in a buffer.

    A snapshot holds their numbers and a snapshot of the source before the first of them. To go on
    there, the source is read again from that point up to its position: about ten times as many
    elements as the buffer holds.
    """

    _none: ClassVar[Array] = np.empty(0, object)
    goes_on = True

    def __init__(self, stage: Shuffle, seed: int, key: int, epoch: str, at: Any) -> None:
        self._stage = stage
        self._seed = seed
        self._key = key
        # Elements drawn ahead are kept in addition to those in the buffer.
        ahead = min(ELEMENTS_PER_DRAW, stage.buffer_size // 4) if stage.source.quiet else 1
        self._at_once = max(1, ahead)
        self._buffer = Buffer(stage.buffer_size, self._none)
        self._next = self._buffer.held()  # elements to give next
        self._drawn = self._pulled = 0  # random numbers, and elements of the source
        self._source_of: tuple[int, dict[str, Any]] = (-1, {})  # its position after as many
        # The number of the next element, a snapshot, and the error for which there is none.
        self._places: deque[tuple[int, Any, Exception | None]] = deque()
        self._most_places = 0  # before those that no element needs are dropped
        if at is None:
            self._source = self._open(epoch)
        else:
            self._restore(epoch, at)

    def recover(self) -> bool:
        failed = self._raised
        if not super().recover():
            return False
        if failed:  # from a place before the error, it would come again
            self.deferred = None
            self._places = deque(
                (number, None, ValueError(UNPLACED)) for number, *_ in self._places
            )
        return True

    def _open(self, epoch: str, at: Any = None) -> Any:
        return self._stage.source.open(epoch, at)

    def _array(self, elements: Any) -> Array:
        """Elements of the source as an array of rank 1, whatever their type."""
        return np.fromiter(elements, object, len(elements))

    def _given(self, elements: Array) -> Any:
        """Elements in the form that ``take`` gives."""
        return elements.tolist()

    def _settle(self, elements: Array) -> None:
        """Releases memory that these elements do not need."""

    def piece(self, count: int) -> list[Any] | None:
        if not len(self._next.numbers):
            self._next = self._draw(max(count, self._at_once))
        given, self._next = self._next.split(count)
        return self._given(given.elements) if len(given.numbers) else None

    def _draw(self, count: int) -> Numbered:
        """The next elements in random order, not many more than count; none at the end. An error of
        the source comes after the elements in the buffer."""
        if self.deferred is not None:
            raise self.deferred
        self._settle(self._buffer.held().elements)
        try:
            incoming = self._incoming(count)
        except Exception as error:
            if not self._buffer.size:
                raise
            self.deferred = error
            return self._rest()
        if not len(incoming.numbers):
            return self._rest()
        self._buffer.exchange(incoming, self._key, self._drawn)
        self._drawn += len(incoming.numbers)
        return incoming

    def _incoming(self, count: int) -> Numbered:
        """Fills the buffer, and takes the elements that are to be exchanged with some in it."""
        self._fill()
        if self._buffer.size < self._stage.buffer_size:
            count = 1  # draws depend on the buffer's size, and must not depend on count
        return self._pull(count)

    def _rest(self) -> Numbered:
        """All elements of the buffer in random order."""
        count = self._buffer.size
        self._drawn += count
        return self._buffer.empty(random_order(self._key, self._drawn - count, count))

    def _fill(self) -> None:
        """Fills the buffer to its minimum; then adds one element per draw, up to its limit."""
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
        last, _, unknown = self._places[-1] if self._places else (-ELEMENTS_PER_DRAW, None, None)
        if unknown is not None or self._pulled - last >= ELEMENTS_PER_DRAW:
            place, error = self._place_of_source()
            if error is None or unknown is None:
                self._places.append((self._pulled, place, error))
            # Finding those that no element needs looks at all elements.
            if len(self._places) > self._most_places:
                self._forget_places()
        elements = self._array(self._source.take(min(count, ELEMENTS_PER_DRAW)))
        first, self._pulled = self._pulled, self._pulled + len(elements)
        return Numbered(elements, np.arange(first, self._pulled, dtype=np.int64))

    def _place_of_source(self) -> tuple[Any, Exception | None]:
        """A snapshot of the source, or the error for which there is none."""
        try:
            return self._source.snapshot(), None
        except Exception as error:
            return None, error

    def _forget_places(self) -> None:
        """Drops the snapshots that no element needs."""
        numbers = (self._buffer.held().numbers, self._next.numbers)
        first = min(array.min(initial=self._pulled) for array in numbers)
        while len(self._places) > 1 and self._places[1][0] <= first:
            self._places.popleft()
        self._most_places = len(self._places) * 5 // 4

    def place(self) -> Any:
        self.raise_deferred()
        if self._places:
            if self._places[0][2] is not None:
                self._forget_places()
            number, place, unknown = self._places[0]
            if unknown is not None:
                raise copied(unknown)
        else:
            number, place = self._pulled, self._source.snapshot()
        return [
            self._seed,
            {
                "next": self._next.numbers.copy(),
                "held": self._buffer.numbers(),
                "drawn": self._drawn,
                "pulled": self._pulled,
                "place": [number, place],
                **self._source_key(),
            },
        ]

    def _source_key(self) -> dict[str, Any]:
        """The position of the source, where it is known: for other shards, which need not read the
        elements before it again."""
        if self._source_of[0] != self._pulled:  # it moves only there
            place, unknown = self._place_of_source()
            self._source_of = self._pulled, {} if unknown is not None else {"source": place}
        return self._source_of[1]

    def _restore(self, epoch: str, at: Any) -> None:
        check_buffer(at, self._stage.buffer_size)
        self._drawn, self._pulled = at["drawn"], at["pulled"]
        if "source" in at:
            self._open(epoch, at["source"]).close()  # checks it
        number, place = at["place"]
        self._source = self._open(epoch, place)
        self._places.append((number, place, None))
        numbers = np.array([*at["next"], *at["held"]], np.int64)
        slots = np.argsort(numbers)
        wanted = numbers[slots]
        elements = np.zeros((len(numbers), *self._none.shape[1:]), self._none.dtype)
        while number < self._pulled:
            piece = self._array(self._source.take(min(self._pulled - number, ELEMENTS_PER_DRAW)))
            if not len(piece):
                raise ValueError("elements that a shuffle had drawn are missing")
            first, last = np.searchsorted(wanted, [number, number + len(piece)])
            elements[slots[first:last]] = piece[wanted[first:last] - number]
            number += len(piece)
            self._settle(elements)
        self._next, held = Numbered(elements, numbers).split(len(at["next"]))
        self._buffer.add(held)

    def parts(self) -> Iterable[Cursor]:
        return (self._source,)


class _PackedCursor(_BufferCursor):
    """Short records in a buffer, without a Python object for each."""

    _none = NO_RECORDS
    _source: PackedRecords

    def _open(self, epoch: str, at: Any = None) -> PackedRecords:
        assert isinstance(self._stage.source, Records)
        return PackedRecords(self._stage.source.of_epoch(epoch), at)

    def _array(self, elements: Any) -> Array:
        table: Array = elements.table if len(elements) else NO_RECORDS
        return table

    def _given(self, elements: Array) -> Any:
        return self._source.placed(elements)

    def _settle(self, elements: Array) -> None:
        self._source.settle(elements)


# ---- The buffer of a shuffle ------------------------------------------------------------------


class Numbered(NamedTuple):
    """Elements along the first axis, and the number that each had in the source (int64)."""

    elements: Array
    numbers: Array

    def split(self, count: int) -> tuple[Numbered, Numbered]:
        """The first count, and the rest."""
        elements, numbers = self
        return (
            Numbered(elements[:count], numbers[:count]),
            Numbered(elements[count:], numbers[count:]),
        )


class Buffer:
    """The elements that a shuffle holds.

    Args:
        limit: The largest number of elements.
        none: An empty array with the dtype and shape of elements.

    Attributes:
        size: The number of elements.
    """

    def __init__(self, limit: int, none: Array) -> None:
        self._limit = limit
        self._room = Numbered(none, np.empty(0, np.int64))
        self._numbers: Array | None = None  # a copy, until elements change
        self.size = 0

    def held(self) -> Numbered:
        """The elements, as views."""
        return self._room.split(self.size)[0]

    def numbers(self) -> Array:
        """The numbers of the elements, in an array that does not change. With prefetch or threads
        every element has a snapshot, but elements change only once for many of them."""
        if self._numbers is None:
            self._numbers = self.held().numbers.copy()
        return self._numbers

    def add(self, more: Numbered) -> None:
        self._numbers = None
        size = self.size + len(more.numbers)
        if size > len(self._room.numbers):
            room = min(2 * size, self._limit)
            self._room = Numbered(*(self._grown(array, room) for array in self._room))
        for array, values in zip(self._room, more, strict=True):
            array[self.size : size] = values
        self.size = size

    def _grown(self, array: Array, room: int) -> Array:
        grown = np.empty((room, *array.shape[1:]), array.dtype)
        grown[: self.size] = array[: self.size]
        return grown

    def exchange(self, incoming: Numbered, key: int, first: int) -> None:
        """Exchanges incoming elements for random ones, one after the other; random number first of
        the key says which the first one is."""
        self._numbers = None
        elements, numbers = self._room
        call(
            lib.tfw_exchange,
            key,
            first,
            ffi.from_buffer(elements),
            ffi.from_buffer("int64_t[]", numbers),
            self.size,
            ffi.from_buffer(incoming.elements),
            ffi.from_buffer("int64_t[]", incoming.numbers),
            elements.strides[0],
            len(incoming.numbers),
        )

    def empty(self, order: Array) -> Numbered:
        """Removes all elements and returns them in this order."""
        self._numbers = None
        elements, numbers = self.held()
        self._room, self.size = Numbered(elements[:0], numbers[:0]), 0
        return Numbered(elements[order], numbers[order])
