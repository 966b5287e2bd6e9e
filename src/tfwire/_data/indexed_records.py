"""Stages whose elements can be read by number, such as indexed files; and their shards."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from functools import reduce
from itertools import islice
from typing import Any

import numpy as np

from tfwire._base.arguments import choice
from tfwire._base.errors import DataLossError
from tfwire._data.permutations import is_computed, permuted
from tfwire._data.resuming.positions import Left
from tfwire._data.stages import Cursor, GatheringPieces, Stage
from tfwire._data.state_checks import file_id, state_or
from tfwire._records.files.urls import ObjectPath
from tfwire._records.index.random_access import TFRecordFiles
from tfwire._records.reading.pipeline import Draw

Array = np.ndarray[Any, Any]
RULES = ("even", "drop", "pad")
# Elements that are read at a time, and their bytes. More of objects, as the ranges of one read are
# in flight together, and of compressed files, which are inflated between the records of a read.
_SOME, _MANY = 1 << 12, 1 << 16
_SOME_BYTES, _MANY_BYTES = 1 << 23, 1 << 26


def check_rule(rule: Any) -> None:
    """Raises ValueError for an unknown sharding rule."""
    choice("rule", rule, RULES)


def share(count: int, num_shards: int, index: int, rule: str) -> range:
    """The numbers of a shard of range(count). With "pad" they may be larger, and wrap around."""
    if rule == "even":
        return range(count * index // num_shards, count * (index + 1) // num_shards)
    size = count // num_shards if rule == "drop" else -(-count // num_shards)
    return range(size * index, size * (index + 1))


class ByNumber(Stage):
    """Elements whose count is known, and which can each be read by its number.

    Attributes:
        numbers: The numbers of its elements: of records those in the files.
        at_once: How many to read at a time.
        files: The TFRecordFiles whose records the elements are; None if they are others.
        packs: Elements may come as RecordNumbers instead of a list.
    """

    length: int = 0
    numbers: range
    at_once = 4096
    files: Any = None
    packs = False

    @abstractmethod
    def fetch(self, places: Array) -> list[Any]:
        """The elements at these places of this stage."""

    def record_numbers(self, places: Array) -> Array:
        """The numbers of the elements at these places."""
        return self.numbers.start + self.numbers.step * places

    def draw(self, places: range) -> Array | Draw:
        """The same of places side by side, perhaps to be computed where they are needed."""
        return self.record_numbers(_array_of(places))

    def origin(self, epoch: str, place: int) -> list[int]:
        return [self.numbers.start + self.numbers.step * place]

    def packing(self) -> ByNumber:
        """The same, but records come as RecordNumbers instead of a list."""
        found = copy(self)
        found.packs = True
        return found

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return NumberedCursor(self, state_or(at, range(self.length + 1), 0))

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        part = share(self.length, num_shards, index, rule)
        # "pad" wraps around in this stage.
        return self.part(part) if part.stop <= self.length else Chosen(self, part)

    def part(self, places: range) -> Stage:
        return Chosen(self, places)

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        return Joined([left.stage.after(left.at, left.given) for left in passes])

    def after(self, at: Any, given: int) -> ByNumber:
        """The elements after some of those from a position on."""
        first = state_or(at, range(self.length + 1), 0) + given
        return Chosen(self, range(min(first, self.length), self.length))


class IndexedRecords(ByNumber):
    """Records of indexed files.

    Args:
        files: A TFRecordFiles.
        numbers: The numbers of its records.
    """

    spec = "string[]"

    def __init__(self, files: Any, numbers: range) -> None:
        self.files = files
        self.numbers = numbers
        self.length = len(numbers)
        num_bytes = sum(int(index.offsets[-1]) for index in files.indexes)
        remote = any(isinstance(path, ObjectPath) for path in files.paths)
        compressed = any(index.compression for index in files.indexes)
        most_bytes = _MANY_BYTES if remote or compressed else _SOME_BYTES
        self.at_once = fitting(num_bytes, len(files), most_bytes, _MANY if compressed else _SOME)

    def fetch(self, places: Array) -> list[bytes]:
        found: list[bytes] = self.files[self.record_numbers(places)]
        return found

    def draw(self, places: range) -> Draw:
        return Draw(_chosen_of(self.numbers, places))

    def part(self, places: range) -> IndexedRecords:
        return IndexedRecords(self.files, _chosen_of(self.numbers, places))

    def describe(self) -> str:
        files = zip(self.files.paths, self.files.indexes, strict=True)
        facts = [_facts(path, index) for path, index in files]
        return f"TFRecordDataset({facts}, {self.numbers})"


class Chosen(ByNumber):
    """Places in another stage, wrapping around after the last."""

    def __init__(self, source: ByNumber, places: Any) -> None:
        self._source = source
        self._places = places if source.length else range(0)
        self.length = len(self._places)
        self.spec = source.spec
        self.at_once = source.at_once
        self.files = source.files

    def origin(self, epoch: str, place: int) -> list[int]:
        return self._source.origin(epoch, int(self._chosen(np.int64(place))))

    def fetch(self, places: Array) -> list[Any]:
        return self._source.fetch(self._chosen(places))

    def record_numbers(self, places: Array) -> Array:
        return self._source.record_numbers(self._chosen(places))

    def draw(self, places: range) -> Array | Draw:
        chosen = _chosen_of(self._places, places)
        return (
            self._source.draw(chosen) if chosen[-1] < self._source.length else super().draw(places)
        )

    def _chosen(self, places: Any) -> Any:
        return (self._places.start + self._places.step * places) % (self._source.length or 1)

    def describe(self) -> str:
        return f"{self._source.describe()}[{self._places}]"


class Joined(ByNumber):
    """The elements of several stages, one after the other.

    Args:
        parts: The stages; of the same files, if they are of files.
    """

    def __init__(self, parts: Sequence[ByNumber]) -> None:
        self._parts = parts
        self._ends = np.cumsum([part.length for part in parts], dtype=np.int64)
        self.length = sum(part.length for part in parts)
        if parts:
            self.spec, self.files = parts[0].spec, parts[0].files
            self.at_once = min(part.at_once for part in parts)

    def _by_part(self, places: Array) -> Iterator[tuple[Array, ByNumber, Array]]:
        """For each part, which of the places are of it, and these in the part."""
        numbers = np.searchsorted(self._ends, places, side="right")
        for number in np.unique(numbers).tolist():
            part = self._parts[number]
            slots = np.flatnonzero(numbers == number)
            yield slots, part, places[slots] - (self._ends[number] - part.length)

    def fetch(self, places: Array) -> list[Any]:
        if self.files is not None:
            records: list[Any] = self.files[self.record_numbers(places)]
            return records
        found: list[Any] = [None] * len(places)
        for slots, part, inner in self._by_part(places):
            for slot, element in zip(slots.tolist(), part.fetch(inner), strict=True):
                found[slot] = element
        return found

    def record_numbers(self, places: Array) -> Array:
        found = np.empty(len(places), np.int64)
        for slots, part, inner in self._by_part(places):
            found[slots] = part.record_numbers(inner)
        return found

    def origin(self, epoch: str, place: int) -> list[int]:
        if place >= self.length:  # of an empty stage
            return [place]
        ((_, part, inner),) = self._by_part(np.array([place], np.int64))
        return part.origin(epoch, int(inner[0]))


class Picked(Chosen):
    """The elements at some places of another stage, an array."""

    draw = ByNumber.draw

    def _chosen(self, places: Any) -> Any:
        return self._places[places]


class Permuted(ByNumber):
    """All elements of another stage in a random order."""

    def __init__(self, source: ByNumber, key: int) -> None:
        self._source = source
        self._key = key
        self.length = source.length
        self.spec = source.spec
        self.at_once = source.at_once
        self.files = source.files

    def origin(self, epoch: str, place: int) -> list[int]:
        return [*self._source.origin(epoch, 0), place]

    def fetch(self, places: Array) -> list[Any]:
        return self._source.fetch(permuted(self._key, self.length, places))

    def record_numbers(self, places: Array) -> Array:
        return self._source.record_numbers(permuted(self._key, self.length, places))

    def draw(self, places: range) -> Array | Draw:
        if isinstance(self._source, IndexedRecords) and is_computed(self.length):
            return Draw(places, self._key, self.length, self._source.numbers)
        return super().draw(places)


class RecordNumbers(Sequence[Any]):
    """Records of files, as a list of bytes objects, but read when they are needed.

    Args:
        files: The files.
        draw: Their numbers, in any order.
    """

    def __init__(self, files: TFRecordFiles, draw: Array | Draw) -> None:
        self._files = files
        self.draw = draw

    @property
    def numbers(self) -> Array:
        """Their numbers, int64."""
        if not isinstance(self.draw, Draw):
            return self.draw
        places, key, size, ordered = self.draw
        found = _array_of(places)
        return ordered.start + ordered.step * permuted(key, size, found) if size else found

    def __len__(self) -> int:
        return len(self.draw.places if isinstance(self.draw, Draw) else self.draw)

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            return self._files[int(self.numbers[index])]
        draw = self.draw
        if isinstance(draw, Draw):
            return RecordNumbers(self._files, draw._replace(places=draw.places[index]))
        return RecordNumbers(self._files, draw[index])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._files[self.numbers])

    @staticmethod
    def joined(parts: Sequence[RecordNumbers]) -> RecordNumbers:
        """The records of all parts, of which there is one at least."""
        return reduce(RecordNumbers._followed, parts)

    def _followed(self, other: RecordNumbers) -> RecordNumbers:
        draw, more = self.draw, other.draw
        if isinstance(draw, Draw) and isinstance(more, Draw) and draw[1:] == more[1:]:
            both = range(draw.places.start, more.places.stop, draw.places.step)
            if both[: len(self)] == draw.places and both[len(self) :] == more.places:
                return RecordNumbers(self._files, draw._replace(places=both))
        return RecordNumbers(self._files, np.concatenate([self.numbers, other.numbers]))


def _array_of(places: range) -> Array:
    return np.arange(places.start, places.stop, places.step, dtype=np.int64)


def _chosen_of(numbers: range, places: range) -> range:
    """The numbers at these places, which are in increasing order."""
    return numbers[places.start : places.stop : places.step]


def _facts(path: Any, index: Any) -> list[Any]:
    """As file_id; the index knows the size of an object."""
    if isinstance(path, ObjectPath):
        return [os.path.basename(path), index.size]
    return file_id(path)


def fitting(num_bytes: int, count: int, most_bytes: int = _SOME_BYTES, most: int = _SOME) -> int:
    """How many of count elements to read at a time: at most so many, and about so many bytes."""
    return min(most, max(16, most_bytes * count // max(num_bytes, 1)))


class NumberedCursor(GatheringPieces):
    """Elements of a stage by their numbers, read many at a time.

    Args:
        stage: The stage.
        at: The place to begin at.
    """

    def __init__(self, stage: ByNumber, at: int) -> None:
        self._stage = stage
        self._at_once = stage.at_once
        self._at = at
        self._ready: Iterator[Any] = iter(())
        self._fetched = at

    def take(self, count: int) -> list[Any]:
        found = super().take(count)
        self._at += len(found)
        return found

    def piece(self, count: int) -> Any:
        if self._stage.packs:
            return self._numbers(count)
        if piece := list(islice(self._ready, count)):
            return piece
        if self._fetched >= self._stage.length:
            return None
        end = min(self._fetched + self._at_once, self._stage.length)
        places = np.arange(self._fetched, end, dtype=np.int64)
        try:
            records = self._stage.fetch(places)
        except DataLossError:
            if len(places) == 1:
                raise
            self._at_once = 1  # returns those before the damage first, then raises the error
            return []
        self._fetched, self._ready = end, iter(records)
        return []

    def _numbers(self, count: int) -> RecordNumbers | None:
        first, end = self._fetched, min(self._fetched + count, self._stage.length)
        if first == end:
            return None
        self._fetched = end
        return RecordNumbers(self._stage.files, self._stage.draw(range(first, end)))

    def place(self) -> Any:
        return self._at
