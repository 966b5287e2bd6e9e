"""Records of files in pages: found by reading ahead from a known place, or by a saved index.

Nothing is kept but places: the memory does not depend on the size of a file. A file that changes
is looked at anew.
"""

from __future__ import annotations

import os
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

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
from tfwire._interface.damage import detected_compression
from tfwire._interface.files import check_rereadable, is_url
from tfwire._interface.messages import show_path
from tfwire.view._budget import RECORD_LIMITS, Budget
from tfwire.view._described import Described, described_in

# A longer record is named, not read: a page takes no more memory than that.
LONGEST_RECORD = 64 << 20
_PLACE_EVERY = 256  # records between the places that are remembered
FRAME_BYTES = 16  # of a record: the length and two checksums
_QUICKLY_COUNTED = 64 << 20  # bytes of a file whose headers are read at once
_NEAR = 1 << 20  # bytes to read on, rather than to begin anew
_OBJECT_BYTES = 64  # that a string, a step or a feature takes, beside what it holds


class FeatureName(NamedTuple):
    """The name of a feature, or of a feature list: a record may have both under one name."""

    text: str
    is_list: bool = False


class Record(NamedTuple):
    """A record, or a part of a file that cannot be shown.

    Attributes:
        number: In the file.
        offset: Of its header; in a compressed file, in the decompressed content.
        size: Of its payload, or of the part that was left out.
        kind: "Example", "SequenceExample", "other", "long", "damage" or "unreadable", a whole file.
        features: Values by name; empty unless it is one of the first two kinds.
        lists: The feature lists of a SequenceExample: the values of each step, by name.
        payload: The bytes; pages keep those of other records only.
        reason: What is damaged, or why the file cannot be read.
        left_out: How many further features and feature lists there are, which are not decoded.
        cuts: Of those that are, the ones that have more values, or steps.
        objects, memory: What it was decoded to: objects of Python, and bytes.
        described: What is said of features beside the file.
        file: The number of its file.
        row: Its number in all files; None if those before it are not counted.
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
    file: int = 0
    row: int | None = None

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
    """Some consecutive records of a file.

    Attributes:
        records: In the order of the file.
        next: Where to go on; None at the end of the file.
    """

    records: list[Record]
    next: RecordPosition | None


class BrowsedFile:
    """A file whose records are looked at. Threads may share it.

    Args:
        path: A file or URL.
        compression_type: As for read_records.
        number: Of the file.

    Attributes:
        path, compression_type, number: The same.
        name: For people.
        size: In bytes; None if it is not known.
        problem: Why it cannot be read, if that was tried.
        num_records: None unless a saved index says it, or the end was reached; a damaged part
            counts as one.
        num_damaged: How many of them are, as far as it was checked.
        described: What is said of features beside it.
        stamp: Another one says that the file has changed: the time, and the size; None of a URL.
    """

    def __init__(self, path: str, compression_type: Any = "auto", number: int = 0) -> None:
        self.path = path
        self.compression_type = compression_type
        self.number = number
        self.name = show_path(path)
        self.described = described_in(os.path.dirname(os.path.abspath(path)))
        self.is_local = not is_url(path)
        self._lock = threading.Lock()  # of the places
        self._look(self._find_stamp())

    def _find_stamp(self) -> tuple[int, int] | None:
        try:
            status = check_rereadable(self.path) if self.is_local else None
        except (FileNotFoundError, ValueError):  # which reading reports
            status = None
        return None if status is None else (status.st_mtime_ns, status.st_size)

    def _look(self, stamp: tuple[int, int] | None) -> None:
        """Forgets what was known of the file."""
        self.stamp = stamp
        self.size = None if stamp is None else stamp[1]
        self.problem = ""
        self.num_damaged = 0
        self.num_records: int | None = None
        self._is_counted = False
        self._places = [RecordPosition()]

    def fail(self, problem: str) -> None:
        """Notes why it cannot be read; it has no records until it was read."""
        self.problem, self.num_records, self.num_damaged = problem, 0, 0

    def look_again(self) -> None:
        """Notices that the file has changed.

        Raises:
            OSError: It is a pipe or a device now, or there is no access to it.
        """
        stamp = self._find_stamp()
        if stamp != self.stamp:
            self._look(stamp)

    def succeed(self) -> None:
        """It was read: a fault before was one of the moment."""
        if self.problem:
            self._look(self.stamp)

    @property
    def _index(self) -> RecordIndex | None:
        try:
            return _saved_index(self.path, self.stamp)
        except (OSError, DataLossError, ValueError, ImportError):
            return None

    def load_count(self) -> None:
        """Takes the number of records from a saved index, if there is one."""
        if self._is_counted or self.num_records is not None:
            return
        self._is_counted = True
        index = self._index
        self.num_records = None if index is None else len(index)

    def count(self, budget: Budget) -> None:
        """Finds the number of records, if that is quick: by an index, or within the time."""
        self.load_count()
        if self.num_records is not None or not self.is_local or budget.is_late:
            return
        if self.size is not None and self.size <= _QUICKLY_COUNTED and not self._is_compressed:
            with suppress(DataLossError):
                self.num_records = len(RecordIndex.build(self.path, self.compression_type))
        if self.num_records is None:
            self.find(sys.maxsize, budget)

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
        budget: Budget | None = None,
        see: Callable[[Record], object] | None = None,
    ) -> Page:
        """Records from a place on.

        Args:
            start: The place.
            count: How many records to give at most.
            budget: A page ends with the record that exceeds it.
            see: Called with each record and its payload, which the page does not keep.
        """
        budget = budget or Budget()
        found: list[Record] = []
        with self._reader(start) as reader:
            for record in self._parts(reader):
                if see is not None:
                    see(record)
                found.append(record if record.kind == "other" else record._replace(payload=b""))
                budget.spend(record.objects, record.memory)
                if len(found) >= count or budget.is_full:
                    place = place_after(record)
                    break
            else:
                if self._is_remembered(start):
                    self.num_records = _num_passed(reader)
                return Page(found, None)
        if self._is_remembered(start):
            self._remember(place)
        at_end = self.num_records == place.record_index or place.offset == self.size
        return Page(found, None if at_end else place)

    def at(self, places: Sequence[RecordPosition], budget: Budget) -> Iterator[Record]:
        """Records at known places, in order. Those that are near each other are read on to, as are
        all of a compressed file."""
        left = list(places[::-1])
        reads_on = len(left) > 1 and self._is_compressed
        while left and not budget.is_full:
            with self._reader(left[-1]) as reader:
                for record in self._parts(reader):
                    if record.number == left[-1].record_index:
                        budget.spend(record.objects, record.memory)
                        yield record if record.kind == "other" else record._replace(payload=b"")
                    while left and left[-1].record_index <= record.number:
                        left.pop()
                    near = left and left[-1].offset - record.offset < _NEAR
                    if not left or budget.is_full or not (near or reads_on):
                        break
                else:  # the file has become shorter
                    return

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
            self.num_records = _num_passed(reader)

    def find(self, number: int, budget: Budget | None = None) -> RecordPosition | None:
        """The place of a record by its number; None if it is not there, or too far for the time."""
        self.look_again()
        index = self._index
        if index is not None:
            if number >= len(index):
                return None
            return RecordPosition(number, int(index.offsets[number]))
        with self._lock:
            place = self._places[bisect_right(self._places, (number, 1 << 63)) - 1]
        if self.num_records is not None and number >= self.num_records:
            if self.problem:
                self.check()
            return None
        if place.record_index == number and place.offset != self.size:
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
            self.num_records = _num_passed(reader)
            return _place_of_skipped(reader, number)

    def record(self, number: int, budget: Budget | None = None) -> Record | None:
        """A record by its number."""
        place = self.find(number, budget)
        found = self.page(place, 1, budget).records if place is not None else []
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

    def _is_remembered(self, place: RecordPosition) -> bool:
        """Whether a place is known; that of a link may be one of what the file held before."""
        with self._lock:
            return self._places[bisect_right(self._places, place) - 1] == place

    def _remember(self, place: RecordPosition) -> None:
        with self._lock:
            at = bisect_right(self._places, place)
            if self._places[at - 1] != place:
                self._places.insert(at, place)

    @property
    def _is_compressed(self) -> bool:
        """Whether offsets are not those of the file, as far as that is known."""
        if self.compression_type != "auto" or not self.is_local:
            return self.compression_type not in ("auto", "", None)
        return bool(detected_compression(self.path))

    def _reader(self, start: RecordPosition) -> Any:
        self.look_again()
        return read_records(
            self.path,
            self.compression_type,
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
                yield self.skipped(reader.skipped[told])
                told += 1
            found = decoded_record(number, offset, payload)
            yield found._replace(described=self.described, file=self.number)
        for region in reader.skipped[told:]:
            yield self.skipped(region)

    def skipped(self, region: SkippedRegion) -> Record:
        """Damage, or a record that is only too long to show."""
        size, kind = region.end - region.begin, "damage"
        is_long = region.reason == "too large"
        if is_long and region.end == self.size:
            is_long = self._is_whole(region)
        if is_long:
            size, kind = size - FRAME_BYTES, "long"
        at = region.record_index, region.begin, size, kind
        return Record(*at, reason=region.reason, file=self.number)

    def _is_whole(self, region: SkippedRegion) -> bool:
        """Whether a region is records that are too long, of which the last ends where the file
        does. What comes after them may be anything."""
        at = region.begin
        with open(self.path, "rb") as file:
            while at < region.end:
                file.seek(at)
                size = int.from_bytes(file.read(8), "little")
                if size <= LONGEST_RECORD:
                    return False
                at += size + FRAME_BYTES
        return at == region.end


def _num_passed(reader: Any) -> int:
    """How many records a reader has passed; a part that was left out counts as one."""
    last: int = reader.skipped[-1].record_index + 1 if reader.skipped else 0
    passed: int = reader.position.record_index
    return max(passed, last)


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


@lru_cache(maxsize=4)
def _saved_index(path: str, _: tuple[int, int] | None) -> RecordIndex:
    """The index of a file, which may be large: few are kept."""
    return RecordIndex.load(path)


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
