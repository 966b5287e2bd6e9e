"""Records of files in pages: found by reading ahead from a known place, or by a saved index.

Nothing is kept but places: the memory does not depend on the size of a file.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.errors import DataLossError, ParseError
from tfwire._base.text import show_path
from tfwire._examples.decode import decode_sequence_example
from tfwire._records.damage import RecordPosition, SkippedRegion
from tfwire._records.index import RecordIndex
from tfwire._records.reader import read_records

__all__ = ["BrowsedFile", "Page", "Record", "decoded_record", "matches"]

# A longer record is named, not read: a page takes no more memory than that.
_LONGEST_RECORD = 64 << 20
_PLACE_EVERY = 256  # records between the places that are remembered
_FRAME_BYTES = 16  # of a record: the length and two checksums
_SECONDS_PER_PAGE = 1.5  # of reading ahead, or of searching, for one page


class Record(NamedTuple):
    """A record, or a damaged part of the file.

    Attributes:
        number: In the file.
        offset: Of its header; in a compressed file, in the decompressed content.
        size: Of its payload, or of the part that was left out.
        kind: "Example", "SequenceExample", "other" or "damage".
        features: Values by name; empty unless it is one of the first two kinds.
        lists: The feature lists of a SequenceExample: the values of each step, by name.
        payload: The bytes, empty for damage.
        reason: What is damaged.
    """

    number: int
    offset: int
    size: int
    kind: str
    features: Mapping[str, Any] = MappingProxyType({})
    lists: Mapping[str, list[Any]] = MappingProxyType({})
    payload: bytes = b""
    reason: str = ""


class Page(NamedTuple):
    """Some consecutive records, or those of them that were searched for.

    Attributes:
        records: In the order of the file.
        next: Where to go on; None at the end of the file.
        passed: How many records were read for it.
    """

    records: list[Record]
    next: RecordPosition | None
    passed: int


class BrowsedFile:
    """A file whose records are looked at.

    Args:
        path: A file or URL.
        compression_type: As for read_records.

    Attributes:
        path: The file.
        name: For people.
        size: In bytes; None if it is not known.
        num_records: None unless a saved index says it, or the end was reached.
    """

    def __init__(self, path: str, compression_type: Any = "auto") -> None:
        self.path = path
        self.name = show_path(path)
        self._compression = compression_type
        self.size = os.path.getsize(path) if os.path.isfile(path) else None
        self._index = _saved_index(path)
        self.num_records = None if self._index is None else len(self._index)
        self._places = [RecordPosition()]

    def check(self) -> None:
        """Raises the error that reading would: the file is missing, or cannot be opened.

        Raises:
            OSError: See above.
            ImportError: A URL needs a package that is not installed.
        """
        with self._reader(RecordPosition()) as reader:
            next(reader, None)

    def page(
        self,
        start: RecordPosition,
        count: int,
        wanted: Callable[[Record], bool] | None = None,
        *,
        seconds: float = _SECONDS_PER_PAGE,
    ) -> Page:
        """Records from a place on.

        Args:
            start: The place.
            count: How many records to give at most.
            wanted: Leaves out the others. The search ends after ``seconds``, with what was found.
            seconds: See above.
        """
        deadline = time.monotonic() + seconds
        found: list[Record] = []
        passed = 0
        with self._reader(start) as reader:
            for record in _parts(reader):
                passed += 1
                if wanted is None or wanted(record):
                    found.append(record)
                if len(found) >= count or (wanted is not None and time.monotonic() > deadline):
                    place = _after(record)
                    break
            else:
                self.num_records = reader.position.record_index
                return Page(found, None, passed)
        self._remember(place)
        at_end = self.num_records == place.record_index or place.offset == self.size
        return Page(found, None if at_end else place, passed)

    def first(self, count: int) -> Iterator[Record]:
        """The first records one by one, so that not all of them are in memory."""
        with self._reader(RecordPosition()) as reader:
            for passed, record in enumerate(_parts(reader)):
                if passed == count:
                    return
                yield record
            self.num_records = reader.position.record_index

    def find(self, number: int, *, seconds: float = _SECONDS_PER_PAGE) -> RecordPosition | None:
        """The place of a record by its number; None if it is not there, or too far for the time."""
        if self._index is not None:
            if number >= len(self._index):
                return None
            return RecordPosition(number, int(self._index.offsets[number]))
        place = self._places[bisect_right(self._places, (number, 1 << 63)) - 1]
        if place.record_index == number:
            return place
        deadline = time.monotonic() + seconds
        with self._reader(place) as reader:
            for _, passed, offset, _ in reader.with_positions():
                place = RecordPosition(passed, offset)
                if passed >= number:
                    self._remember(place)
                    return place
                if passed % _PLACE_EVERY == 0:
                    self._remember(place)
                    if time.monotonic() > deadline:
                        return None
            self.num_records = reader.position.record_index
        return None

    def record(self, number: int) -> Record | None:
        """A record by its number."""
        place = self.find(number)
        found = self.page(place, 1).records if place is not None else []
        return found[0] if found and found[0].number == number else None

    def _remember(self, place: RecordPosition) -> None:
        at = bisect_right(self._places, place)
        if self._places[at - 1] != place:
            self._places.insert(at, place)

    def _reader(self, start: RecordPosition) -> Any:
        return read_records(
            self.path,
            self._compression,
            on_corrupt="skip",
            max_record_size=_LONGEST_RECORD,
            start=start,
        )


def _parts(reader: Any) -> Iterator[Record]:
    """The records, and before each the regions that were left out there. A reader finds regions
    ahead of the records that it gives."""
    told = 0
    for _, number, offset, payload in reader.with_positions():
        while told < len(reader.skipped) and reader.skipped[told].begin < offset:
            yield _damage(reader.skipped[told])
            told += 1
        yield decoded_record(number, offset, payload)
    for region in reader.skipped[told:]:
        yield _damage(region)


def _after(record: Record) -> RecordPosition:
    """The place after a record, or after a part that was left out."""
    frame = 0 if record.kind == "damage" else _FRAME_BYTES
    return RecordPosition(record.number + 1, record.offset + record.size + frame)


def _saved_index(path: str) -> RecordIndex | None:
    try:
        return RecordIndex.load(path)
    except (OSError, DataLossError, ValueError, ImportError):
        return None


def _damage(region: SkippedRegion) -> Record:
    size = region.end - region.begin
    return Record(region.record_index, region.begin, size, "damage", reason=region.reason)


def decoded_record(number: int, offset: int, payload: bytes) -> Record:
    """A record with its features; "other" if nothing in it is known."""
    try:
        features, lists = decode_sequence_example(payload)
    except ParseError:
        return Record(number, offset, len(payload), "other", payload=payload)
    kind = "SequenceExample" if lists else "Example" if features else "other"
    return Record(number, offset, len(payload), kind, features, lists, payload)


def matches(record: Record, feature: str, text: str) -> bool:
    """Whether a record has a feature, and ``text`` in it.

    Args:
        record: Any.
        feature: The name.
        text: A number that equals one of the values, or part of one of the strings.
    """
    values = record.features.get(feature)
    if values is None:
        steps = record.lists.get(feature)
        return steps is not None and not text
    if not text:
        return True
    if isinstance(values, np.ndarray):
        try:
            return bool(np.any(values == values.dtype.type(float(text))))
        except (ValueError, OverflowError):
            return False
    return any(text.encode("utf-8", "surrogateescape") in value for value in values)
