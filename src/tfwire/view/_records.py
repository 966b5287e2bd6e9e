"""Records of files in pages: found by reading ahead from a known place, by a saved index, or by a
search for values.

Nothing is kept but places: the memory does not depend on the size of a file.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tfwire import (
    DataLossError,
    ParseError,
    RecordIndex,
    RecordPosition,
    SkippedRegion,
    decode_sequence_example,
    read_records,
)
from tfwire._interface.contents import Cut, cut_message, measure
from tfwire._interface.messages import show_path
from tfwire.view._budget import RECORD_LIMITS, Budget
from tfwire.view._described import Described, described_in
from tfwire.view._media import readable_text

# A longer record is named, not read: a page takes no more memory than that.
LONGEST_RECORD = 64 << 20
_PLACE_EVERY = 256  # records between the places that are remembered
FRAME_BYTES = 16  # of a record: the length and two checksums
_OBJECT_BYTES = 64  # that a string, a step or a feature takes, beside what it holds


class FeatureName(NamedTuple):
    """The name of a feature, or of a feature list: a record may have both under one name."""

    text: str
    is_list: bool = False


class Record(NamedTuple):
    """A record, or a part of the file that cannot be shown.

    Attributes:
        number: In the file.
        offset: Of its header; in a compressed file, in the decompressed content.
        size: Of its payload, or of the part that was left out.
        kind: "Example", "SequenceExample", "other", "long" or "damage".
        features: Values by name; empty unless it is one of the first two kinds.
        lists: The feature lists of a SequenceExample: the values of each step, by name.
        payload: The bytes; pages keep those of other records only.
        reason: What is damaged.
        left_out: How many further features and feature lists there are, which are not decoded.
        cuts: Of those that are, the ones that have more values, or steps.
        objects, memory: What it was decoded to: objects of Python, and bytes.
        described: What is said of features beside the file.
    """

    number: int
    offset: int
    size: int
    kind: str
    features: Mapping[str, Any] = MappingProxyType({})
    lists: Mapping[str, list[Any]] = MappingProxyType({})
    payload: bytes = b""
    reason: str = ""
    left_out: int = 0
    cuts: Mapping[tuple[str, bool], Cut] = MappingProxyType({})
    objects: int = 0
    memory: int = 0
    described: Mapping[str, Described] = MappingProxyType({})

    @property
    def is_decoded(self) -> bool:
        return self.kind in ("Example", "SequenceExample")

    @property
    def is_read(self) -> bool:
        return self.is_decoded or self.kind == "other"

    @property
    def is_whole(self) -> bool:
        """Whether all of it was decoded."""
        return not (self.left_out or self.cuts)

    @property
    def names(self) -> list[FeatureName]:
        features = [FeatureName(name) for name in self.features]
        return features + [FeatureName(name, True) for name in self.lists]

    def steps(self, name: FeatureName) -> list[Any] | None:
        """The values of each step; of a feature, which has no steps, of a single one. None if the
        record does not have it."""
        if name.is_list:
            return self.lists.get(name.text)
        values = self.features.get(name.text)
        return None if values is None else [values]


class Page(NamedTuple):
    """Some consecutive records, or those of them that were searched for.

    Attributes:
        records: In the order of the file.
        next: Where to go on; None at the end of the file.
        passed: How many records were read for it.
        partly: How many of them were read in part: the values that follow were not searched.
    """

    records: list[Record]
    next: RecordPosition | None
    passed: int
    partly: int = 0

    def first(self, count: int, start: RecordPosition) -> Page:
        """The page with so many records; the next page begins with the others."""
        if count == len(self.records):
            return self
        place = RecordPosition(self.records[count].number, self.records[count].offset)
        passed = place.record_index - start.record_index
        return self._replace(records=self.records[:count], next=place, passed=passed)


class BrowsedFile:
    """A file whose records are looked at. Threads may share it.

    Args:
        path: A file or URL.
        compression_type: As for read_records.

    Attributes:
        path: The file.
        name: For people.
        size: In bytes; None if it is not known.
        num_records: None unless a saved index says it, or the end was reached.
        described: What is said of features beside it.
    """

    def __init__(self, path: str, compression_type: Any = "auto") -> None:
        self.path = path
        self.name = show_path(path)
        self._compression = compression_type
        self.described = described_in(os.path.dirname(os.path.abspath(path)))
        self.size = os.path.getsize(path) if os.path.isfile(path) else None
        self._index = _saved_index(path)
        self.num_records = None if self._index is None else len(self._index)
        self._places = [RecordPosition()]
        self._lock = threading.Lock()  # of the places

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
        budget: Budget | None = None,
    ) -> Page:
        """Records from a place on.

        Args:
            start: The place.
            count: How many records to give at most.
            wanted: Leaves out the others. It sees the payloads, which the page does not keep.
            budget: A page ends with the record that exceeds it, and a search when it is late.
        """
        budget = budget or Budget()
        found: list[Record] = []
        passed = partly = 0
        with self._reader(start) as reader:
            for record in self._parts(reader):
                passed += 1
                partly += not record.is_whole
                if wanted is None or wanted(record):
                    found.append(record if record.kind == "other" else record._replace(payload=b""))
                    budget.spend(record.objects, record.memory)
                is_late = wanted is not None and budget.is_late
                if len(found) >= count or budget.is_full or is_late:
                    place = place_after(record)
                    break
            else:
                self.num_records = reader.position.record_index
                return Page(found, None, passed, partly)
        self._remember(place)
        at_end = self.num_records == place.record_index or place.offset == self.size
        return Page(found, None if at_end else place, passed, partly)

    def first(self, count: int, budget: Budget | None = None) -> Iterator[Record]:
        """The first records one by one, so that not all of them are in memory. The record that
        exceeds the budget is the last."""
        budget = budget or Budget()
        with self._reader(RecordPosition()) as reader:
            for passed, record in enumerate(self._parts(reader)):
                if passed == count or budget.is_full:
                    return
                budget.spend(record.objects, record.memory)
                yield record
            self.num_records = reader.position.record_index

    def find(self, number: int, budget: Budget | None = None) -> RecordPosition | None:
        """The place of a record by its number; None if it is not there, or too far for the time."""
        if self._index is not None:
            if number >= len(self._index):
                return None
            return RecordPosition(number, int(self._index.offsets[number]))
        with self._lock:
            place = self._places[bisect_right(self._places, (number, 1 << 63)) - 1]
        if place.record_index == number:
            return place
        budget = budget or Budget()
        with self._reader(place) as reader:
            for _, passed, offset, _ in reader.with_positions():
                place = RecordPosition(passed, offset)
                if passed >= number:
                    self._remember(place)
                    return _place_of_skipped(reader, number) if passed > number else place
                if passed % _PLACE_EVERY == 0:
                    self._remember(place)
                    if budget.is_late:
                        return None
            self.num_records = reader.position.record_index
            return _place_of_skipped(reader, number)

    def record(self, number: int, budget: Budget | None = None) -> Record | None:
        """A record by its number."""
        place = self.find(number, budget)
        found = self.page(place, 1, budget=budget).records if place is not None else []
        return found[0] if found and found[0].number == number else None

    def payload(self, number: int) -> bytes | None:
        """The bytes of a record by its number; None if it is not there, damaged or too long."""
        place = self.find(number)
        if place is None:
            return None
        with self._reader(place) as reader:
            for _, found, _, payload in reader.with_positions():
                return bytes(payload) if found == number else None
        return None

    def _remember(self, place: RecordPosition) -> None:
        with self._lock:
            at = bisect_right(self._places, place)
            if self._places[at - 1] != place:
                self._places.insert(at, place)

    def _reader(self, start: RecordPosition) -> Any:
        return read_records(
            self.path,
            self._compression,
            on_corrupt="skip",
            max_record_size=LONGEST_RECORD,
            start=start,
        )

    def _parts(self, reader: Any) -> Iterator[Record]:
        """The records, and before each the regions that were left out there. A reader finds regions
        ahead of the records that it gives."""
        told = 0
        for _, number, offset, payload in reader.with_positions():
            while told < len(reader.skipped) and reader.skipped[told].begin < offset:
                yield self._skipped(reader.skipped[told])
                told += 1
            yield decoded_record(number, offset, payload)._replace(described=self.described)
        for region in reader.skipped[told:]:
            yield self._skipped(region)

    def _skipped(self, region: SkippedRegion) -> Record:
        """Damage, or a record that is only too long to show."""
        size, kind = region.end - region.begin, "damage"
        is_long = region.reason == "too large"
        if is_long and region.end == self.size:
            is_long = self._is_whole(region)
        if is_long:
            size, kind = size - FRAME_BYTES, "long"
        return Record(region.record_index, region.begin, size, kind, reason=region.reason)

    def _is_whole(self, region: SkippedRegion) -> bool:
        """Whether the last record of a region ends where the file does."""
        at = region.begin
        with open(self.path, "rb") as file:
            while at < region.end:
                file.seek(at)
                at += int.from_bytes(file.read(8), "little") + FRAME_BYTES
        return at == region.end


def _place_of_skipped(reader: Any, number: int) -> RecordPosition | None:
    """Where the part that was left out as this record begins."""
    for region in reader.skipped:
        if region.record_index == number:
            return RecordPosition(number, region.begin)
    return None


def place_after(record: Record) -> RecordPosition:
    """The place after a record, or after a part that was left out."""
    frame = 0 if record.kind == "damage" else FRAME_BYTES
    return RecordPosition(record.number + 1, record.offset + record.size + frame)


def _saved_index(path: str) -> RecordIndex | None:
    try:
        return RecordIndex.load(path)
    except (OSError, DataLossError, ValueError, ImportError):
        return None


def decoded_record(number: int, offset: int, payload: bytes) -> Record:
    """A record with its first parts, as far as they are within the limits; "other" if nothing in it
    is known."""
    size, message, left_out = len(payload), payload, 0
    cuts: dict[tuple[str, bool], Cut] = {}
    try:
        extent = measure(payload)
        if not RECORD_LIMITS.holds(extent):
            message, left_out, cuts = cut_message(payload, RECORD_LIMITS)
            extent = measure(message)
        features, lists = decode_sequence_example(message)
    except ParseError:
        return Record(number, offset, size, "other", payload=payload, memory=size)
    kind = "SequenceExample" if lists else "Example"
    objects, memory = extent.objects, extent.num_bytes + _OBJECT_BYTES * extent.objects
    found = Record(number, offset, size, kind, features, lists, payload, "", left_out, cuts)
    return found._replace(objects=objects, memory=max(size, memory))


# ---- The search: which records have a feature with a value --------------------------------------


def search_for(name: FeatureName | None, text: str) -> Callable[[Record], bool] | None:
    """Whether a record has a feature, and ``text`` in it; None if nothing is searched for.

    Args:
        name: A feature, or a feature list, of which one step is enough; None: any of them.
        text: A number that equals one of the values, or part of one of the strings. Without a
            name, images and other strings that are not text are left out: short texts occur in
            them by chance.
    """
    if name is None and not text:
        return None
    part = text.encode("utf-8", "surrogateescape")

    def matches(record: Record) -> bool:
        names = record.names if name is None else [name]
        steps = (values for each in names for values in record.steps(each) or ())
        if not text:
            return name is not None and record.steps(name) is not None
        return any(_has(values, text, part, name is None) for values in steps)

    return matches


def _has(values: Any, text: str, part: bytes, only_text: bool) -> bool:
    if isinstance(values, np.ndarray) and values.dtype != object:
        try:
            wanted = _integer_of(text) if values.dtype == np.int64 else np.float32(text)
        except (ValueError, OverflowError):
            return False
        return bool(np.any(values == wanted))
    return any(
        part in value and not (only_text and readable_text(value) is None) for value in values
    )


def _integer_of(text: str) -> int:
    """An integer, exactly; also one that is written like 1e3."""
    try:
        number = int(text)
    except ValueError:
        if not float(text).is_integer():
            raise
        number = int(float(text))
    return int(np.int64(number))  # an OverflowError if no int64 is equal
