"""Files whose records are one table: numbers of all of them, pages over the ends of files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple

from tfwire import Error, RecordPosition
from tfwire._interface.messages import plural
from tfwire.view._budget import Budget
from tfwire.view._records import BrowsedFile, Record

FAULTS = (OSError, ImportError, ValueError, Error)  # of a file
COUNTING_SECONDS = 0.3  # of a page, for the numbers of its records
_LONGEST_FILE_LABEL = 24


class TablePlace(NamedTuple):
    """Where a record begins.

    Attributes:
        file: The number of its file.
        position: In the file.
    """

    file: int = 0
    position: RecordPosition = RecordPosition()


class TablePage(NamedTuple):
    """Some consecutive records.

    Attributes:
        records: In the order of the files.
        next: Where to go on; None at the end.
    """

    records: list[Record]
    next: TablePlace | None

    def first(self, count: int) -> TablePage:
        """The page with so many records; the next page begins with the others."""
        if count == len(self.records):
            return self
        left = self.records[count]
        place = TablePlace(left.file, RecordPosition(left.number, left.offset))
        return TablePage(self.records[:count], place)


class DataSet:
    """Files as one table. Threads may share it.

    Args:
        files: One or more.

    Attributes:
        files: The same.
        name: For people.
        labels: Short names of the files.
    """

    def __init__(self, files: Sequence[BrowsedFile]) -> None:
        self.files = files
        for number, file in enumerate(files):
            file.number = number
        names = [file.name for file in files]
        begin, end = _common_ends(names)
        self.name = names[0]
        if len(files) > 1:
            self.name = f"{begin}*{end}" if begin + end else plural(len(files), "file")
        self.labels = [name[len(begin) : len(name) - len(end)] for name in names]
        if max(map(len, self.labels)) > _LONGEST_FILE_LABEL or not all(self.labels):
            self.labels = [str(number) for number in range(len(files))]

    @property
    def shown_labels(self) -> Sequence[str]:
        """Those that rows have: none of a single file."""
        return self.labels if len(self.files) > 1 else ()

    def name_of(self, file: int) -> str:
        """The name of a file, if there are several."""
        return self.files[file].name if len(self.files) > 1 else ""

    def facts(self) -> str:
        """How many records, files and bytes, as far as that is known."""
        sizes = [file.size for file in self.files]
        found, count = [], self.num_records
        if count is not None:
            whole = count - sum(file.num_damaged for file in self.files)
            found.append(plural(whole, "record"))
        if len(self.files) > 1:
            found.append(plural(len(self.files), "file"))
        if None not in sizes:
            found.append(plural(sum(size or 0 for size in sizes), "byte"))
        return ", ".join(found)

    # ---- Numbers --------------------------------------------------------------------------------

    @property
    def num_records(self) -> int | None:
        """How many records there are, if all files are counted."""
        counts = [file.num_records for file in self.files]
        return None if None in counts else sum(filter(None, counts))

    def row_of(self, file: int, number: int) -> int | None:
        """The number of a record in all files, if those before its own are counted."""
        counts = [each.num_records for each in self.files[:file]]
        return None if None in counts else number + sum(filter(None, counts))

    def find(self, row: int, budget: Budget) -> TablePlace:
        """The place of a record by its number in all files.

        Raises:
            LookupError: It is not there, or too far for the time.
        """
        left = row
        for file in self.files[:-1]:
            self.count(file, budget)
            if file.num_records is None:
                raise LookupError(_too_far(row))
            if left < file.num_records:
                break
            left -= file.num_records
        else:
            file = self.files[-1]
        return self.find_in_file(file.number, left, budget, row)

    def find_in_file(
        self, file: int, number: int, budget: Budget, row: int | None = None
    ) -> TablePlace:
        """The place of a record by its number in a file.

        Args:
            file, number: Both numbers.
            budget: Of the page.
            row: What the record is called if it is not there.

        Raises:
            LookupError: It is not there, or too far for the time.
        """
        position = self.files[file].find(number, budget)
        if position is None:
            self.files[file].load_count()
            is_row = row is not None and len(self.files) > 1
            count = self.num_records if is_row else self.files[file].num_records
            raise LookupError(_too_far(number if row is None else row, count, is_row))
        return TablePlace(file, position)

    def count(self, file: BrowsedFile, budget: Budget) -> None:
        """Counts a file, if that is quick; one that cannot be read has no records."""
        try:
            file.look_again()
            file.count(budget)
        except FAULTS as error:
            file.fail(fault_text(error))

    def before(self, place: TablePlace, count: int, budget: Budget) -> TablePlace | None:
        """The place so many records before one, or the first, without its offset; None if there
        are none, or those of the files before it are not counted."""
        file, left = place.file, count
        number = place.position.record_index
        while number < left and file:
            left, file = left - number, file - 1
            self.count(self.files[file], budget)
            found = self.files[file].num_records
            if found is None:
                return None
            number = found
        if not number and left == count:
            return None
        number = max(0, number - left)
        return TablePlace(file, RecordPosition(number, -1 if number else 0))

    def without_empty(self, place: TablePlace | None) -> TablePlace | None:
        """A place, or the beginning of the first file after it that is not known to be empty."""
        while place is not None and place.position.record_index == 0:
            file = self.files[place.file]
            if file.size != 0 and file.num_records != 0:
                break
            more = place.file + 1 < len(self.files)
            place = TablePlace(place.file + 1) if more else None
        return place

    # ---- Records --------------------------------------------------------------------------------

    def page(self, start: TablePlace, count: int, budget: Budget) -> TablePage:
        """Records from a place on.

        Args:
            start: The place.
            count: How many records to give at most.
            budget: A page ends with the record that exceeds it.
        """
        found: list[Record] = []
        file, position = start
        while file < len(self.files):
            if len(found) >= count or budget.is_full or (found and budget.is_late):
                return TablePage(self.numbered(found), TablePlace(file, position))
            try:
                page = self.files[file].page(position, count - len(found), budget)
                self.files[file].succeed()
            except FAULTS as error:
                self.files[file].fail(fault_text(error))
                if len(self.files) == 1:
                    raise
                found.append(Record(0, 0, 0, "unreadable", reason=fault_text(error), file=file))
            else:
                found += page.records
                if page.next is not None:
                    self.files[file].load_count()
                    return TablePage(self.numbered(found), TablePlace(file, page.next))
            file, position = file + 1, RecordPosition()
        return TablePage(self.numbered(found), None)

    def numbered(self, records: Sequence[Record]) -> list[Record]:
        """Records with their numbers in all files. Files before them are counted, as far as that is
        quick."""
        last = max((record.file for record in records), default=0)
        budget = Budget(seconds=COUNTING_SECONDS)
        for file in self.files[:last]:
            if file.num_records is None and not budget.is_late:
                self.count(file, budget)
        counts = [file.num_records for file in self.files[:last]]
        known = counts.index(None) if None in counts else last
        firsts = list(accumulate(counts[:known], lambda a, b: a + (b or 0), initial=0))
        return [
            record._replace(row=firsts[record.file] + record.number)
            if record.file <= known and record.kind != "unreadable"
            else record
            for record in records
        ]

    def first(self, start: int, count: int, budget: Budget) -> Iterator[Record]:
        """The first records, from a file on, as those of BrowsedFile; of several files, those that
        cannot be read are left out."""
        for file in self.files[start:]:
            with suppress(*FAULTS if len(self.files) > 1 else ()):
                for record in file.first(count, budget):
                    count -= 1
                    yield record
            if not count or budget.is_full or budget.is_late:
                return


def _too_far(number: int, count: int | None = None, is_row: bool = True) -> str:
    what = "there are" if is_row else "the file has"
    known = "" if count is None else f": {what} {count:,}"
    hint = known or ": it is too far to read there; tfwire index makes that quick"
    return f"record {number:,} was not found{hint}"


def fault_text(error: Exception) -> str:
    """Why a file cannot be read."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _common_ends(names: Sequence[str]) -> tuple[str, str]:
    """What all names begin and end with, but for digits and letters next to where they differ."""
    if len(names) == 1:
        return "", ""
    begin = _common_beginning(names)
    end = _common_beginning([name[len(begin) :][::-1] for name in names])[::-1]
    while begin and begin[-1].isalnum():
        begin = begin[:-1]
    while end and end[0].isalnum():
        end = end[1:]
    return begin, end


def _common_beginning(names: Sequence[str]) -> str:
    first, last = min(names), max(names)
    pairs = zip(first, last, strict=False)
    length = next((i for i, (a, b) in enumerate(pairs) if a != b), len(first))
    return first[:length]
