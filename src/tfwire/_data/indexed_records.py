"""Indexed record files as a stage, and the shards of a numbered source."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from tfwire._base.arguments import choice, show_path
from tfwire._base.errors import DataLossError
from tfwire._data.permutations import permuted
from tfwire._data.stages import Cursor, GatheringPieces, Stage
from tfwire._data.states import state_or

__all__ = [
    "Chosen",
    "IndexedCursor",
    "IndexedRecords",
    "Permuted",
    "check_rule",
    "file_facts",
    "share",
]

Array = np.ndarray[Any, Any]
_RULES = ("even", "drop", "pad")


def check_rule(rule: Any) -> None:
    """Raises ValueError for an unknown sharding rule."""
    choice("rule", rule, _RULES)


def share(count: int, num_shards: int, index: int, rule: str) -> range:
    """The numbers of a shard of range(count). With "pad" they may be larger, and wrap around."""
    if rule == "even":
        return range(count * index // num_shards, count * (index + 1) // num_shards)
    size = count // num_shards if rule == "drop" else -(-count // num_shards)
    return range(size * index, size * (index + 1))


def file_facts(path: Any) -> list[Any]:
    """The name and size of a file, by which a saved state identifies it; size None if unknown.

    Raises:
        ValueError: A file object or a pipe, which cannot be read again.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"a TFRecordDataset of a {type(path).__name__} cannot be resumed")
    name = os.path.basename(os.fspath(path))
    try:
        status = os.stat(path)
    except OSError:
        return [name, None]  # a URL
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(
            f"a TFRecordDataset of {show_path(path)}, not a regular file, cannot be resumed"
        )
    return [name, status.st_size]


class IndexedRecords(Stage):
    """Records of indexed files: their count is known, and each can be read by its number.

    Args:
        files: A TFRecordFiles.
        numbers: The numbers of its records; they wrap around at their count.
    """

    spec = "string[]"

    def __init__(self, files: Any, numbers: range) -> None:
        self.files = files
        self.numbers = numbers
        self.length: int = len(numbers)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return IndexedCursor(self, state_or(at, range(self.length + 1), 0))

    def fetch(self, places: Array) -> list[bytes]:
        """The records at these places of this stage."""
        numbers = self.numbers.start + self.numbers.step * places
        found: list[bytes] = self.files[numbers % max(len(self.files), 1)]
        return found

    def sharded(self, num_shards: int, index: int, rule: str) -> IndexedRecords:
        part = share(self.length, num_shards, index, rule)
        # "pad" wraps around in this stage.
        return self.part(part) if part.stop <= self.length else Chosen(self, part)

    def part(self, places: range) -> IndexedRecords:
        return IndexedRecords(self.files, self.numbers[places.start : places.stop : places.step])

    def describe(self) -> str:
        facts = [file_facts(path) for path in self.files.paths]
        return f"TFRecordDataset({facts}, {self.numbers})"


class Chosen(IndexedRecords):
    """Places in other indexed records, wrapping around after the last."""

    def __init__(self, records: IndexedRecords, places: range) -> None:
        super().__init__(records.files, places if records.length else range(0))
        self._records = records

    def fetch(self, places: Array) -> list[bytes]:
        wrapped = (self.numbers.start + self.numbers.step * places) % self._records.length
        return self._records.fetch(wrapped)

    def part(self, places: range) -> IndexedRecords:
        return Chosen(self, places)

    def describe(self) -> str:
        return f"{self._records.describe()}[{self.numbers}]"


class Permuted(IndexedRecords):
    """All records of other indexed records in a random order."""

    def __init__(self, records: IndexedRecords, key: int) -> None:
        super().__init__(records.files, records.numbers)
        self._records = records
        self._key = key

    def fetch(self, places: Array) -> list[bytes]:
        return self._records.fetch(permuted(self._key, self.length, places))

    def part(self, places: range) -> IndexedRecords:
        return Chosen(self, places)


def _at_once(files: Any) -> int:
    """How many records of a TFRecordFiles to read at a time: thousands, or a few megabytes."""
    num_bytes = sum(int(index.offsets[-1]) for index in files.indexes)
    return min(4096, max(16, (1 << 23) * len(files) // max(num_bytes, 1)))


class IndexedCursor(GatheringPieces):
    """Indexed records, read many at a time.

    Args:
        stage: The records.
        at: The place to begin at.
    """

    def __init__(self, stage: IndexedRecords, at: int) -> None:
        self._stage = stage
        self._at_once = _at_once(stage.files)
        self._at = at
        self._ready: Iterator[bytes] = iter(())
        self._fetched = at

    def take(self, count: int) -> list[bytes]:
        found = super().take(count)
        self._at += len(found)
        return found

    def piece(self, count: int) -> list[bytes] | None:
        if piece := list(islice(self._ready, count)):
            return piece
        if self._fetched >= self._stage.length:
            return None
        end = min(self._fetched + self._at_once, self._stage.length)
        places = np.arange(self._fetched, end)
        try:
            records = self._stage.fetch(places)
        except DataLossError:
            if len(places) == 1:
                raise
            self._at_once = 1  # returns those before the damage first, then raises the error
            return []
        self._fetched, self._ready = end, iter(records)
        return []

    def place(self) -> Any:
        return self._at
