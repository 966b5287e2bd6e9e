"""A page in one file: a sample of the records, with their pictures, that opens anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from tfwire._base.text import plural
from tfwire._records.damage import RecordPosition
from tfwire.view._html import escaped
from tfwire.view._media import data_uri
from tfwire.view._page import (
    Look,
    document,
    feature_summary,
    record_table,
    record_view,
)
from tfwire.view._pictures import Picture, first_picture, picture_of_payload
from tfwire.view._records import BrowsedFile, Record
from tfwire.view._summary import FeatureSummary

__all__ = ["frozen_page"]

_MOST_DETAILS = 2_000_000  # characters of the sections that show single records
_MOST_BYTES = 32 << 20  # of records, beside the pictures


def frozen_page(
    files: Sequence[BrowsedFile],
    num_records: int,
    num_bytes: int,
    corners: tuple[str, ...] = (),
) -> str:
    """The first records of files as one page of HTML, which loads nothing.

    Args:
        files: To be shown one after the other; those without a share of the records are left out.
        num_records: How many records of all files together.
        num_bytes: How many bytes of pictures; the others are named.
        corners: As Look has them.
    """
    samples = _samples(files, num_records, _MOST_BYTES + num_bytes)
    budget = _Budget(num_bytes)
    for sample in samples:
        budget.reserve(sample)
    parts = [_file_part(sample, budget, corners) for sample in samples]
    if len(files) > len(samples):
        more = plural(len(files) - len(samples), "more file")
        parts.append(f'<p class="facts">{more} not shown</p>')
    names = files[0].name if len(files) == 1 else plural(len(files), "file")
    tools = (
        '<nav><a rel="up" href="#f0">records</a>'
        '<input type="search" data-rows placeholder="filter rows" aria-label="filter rows">'
        '<small class="keys"><kbd>/</kbd> filter <kbd>j</kbd> <kbd>k</kbd> rows '
        "<kbd>Enter</kbd> open <kbd>Escape</kbd> back</small></nav>"
    )
    header = f"<h1>{escaped(names)}</h1>{tools}"
    return document(names, header, "".join(parts), policy=True)


# ---- The sample ---------------------------------------------------------------------------------


class _Sample:
    """The first records of a file."""

    def __init__(self, number: int, file: BrowsedFile) -> None:
        self.number = number
        self.file = file
        self.records: list[Record] = []
        self.summary = FeatureSummary()
        self.next: RecordPosition | None = RecordPosition()

    def grow(self, count: int, num_bytes: int) -> int:
        """Takes the next records, and returns their size in bytes."""
        if self.next is None:
            return 0
        page = self.file.page(self.next, count, self._add, num_bytes=num_bytes, seconds=60)
        self.records += page.records
        self.next = page.next
        return sum(record.size for record in page.records)

    def _add(self, record: Record) -> bool:
        self.summary.add(record)
        return True


def _samples(files: Sequence[BrowsedFile], num_records: int, num_bytes: int) -> list[_Sample]:
    """Equal shares of files; what some of them do not use is for those with more records."""
    samples = [_Sample(number, file) for number, file in enumerate(files[:num_records])]
    growing, left = samples, num_records
    while growing and left and num_bytes > 0:
        for at, sample in enumerate(growing):
            share = left // (len(growing) - at)
            if share and num_bytes > 0:
                before = len(sample.records)
                num_bytes -= sample.grow(share, num_bytes)
                left -= len(sample.records) - before
        growing = [sample for sample in growing if sample.next is not None]
    return [sample for sample in samples if sample.records or sample.next is None]


# ---- Pictures -----------------------------------------------------------------------------------


class _Budget:
    """The bytes of pictures that a page may take.

    Each picture is in the page once, where its record is shown alone; the script has the table show
    it too. The first pictures of all records come before the others.
    """

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes
        self._reserved: dict[tuple[object, ...], int] = {}
        self._embedded: set[tuple[object, ...]] = set()

    def reserve(self, sample: _Sample) -> None:
        """Reserves room for the first picture of each feature."""
        for record in sample.records:
            found = [first_picture(record, name) for name in record.names]
            for picture in (*found, picture_of_payload(record)):
                if picture is not None and picture.media.is_shown:
                    self._take(_key(sample.number, picture), picture)

    def source(self, file: int, picture: Picture) -> str:
        """The picture itself, or where in the page it is; empty if it does not fit."""
        key = _key(file, picture)
        if key not in self._reserved and not self._take(key, picture):
            return ""
        name = f"p{self._reserved[key]}"
        if key in self._embedded:
            return f'data-copy="{name}"'
        self._embedded.add(key)
        return f'id="{name}" src="{data_uri(picture.media, picture.file())}"'

    def _take(self, key: tuple[object, ...], picture: Picture) -> bool:
        if len(picture.contents) > self._left:
            return False
        self._left -= len(picture.contents)
        self._reserved[key] = len(self._reserved)
        return True


def _key(file: int, picture: Picture) -> tuple[object, ...]:
    return file, picture.number, picture.name, picture.step, picture.item


def _file_part(sample: _Sample, budget: _Budget, corners: tuple[str, ...]) -> str:
    number, file, records = sample.number, sample.file, sample.records

    def source(picture: Picture) -> str:
        return budget.source(number, picture)

    look = Look(source, lambda record: f"#f{number}r{record.number}", corners)
    sections, room = [], _MOST_DETAILS
    for record in records:  # before the table, which shows their pictures again
        if not record.is_read or room < 0:
            continue
        title = f'<h2 id="f{number}r{record.number}">Record {record.number:,}</h2>'
        sections.append(f"<section>{title}{record_view(record, look)}</section>")
        room -= len(sections[-1])
    facts = [plural(file.size, "byte")] if file.size is not None else []
    count = "all" if sample.next is None else "the first"
    facts.append(f"{count} {plural(len(records), 'record')}")
    head = f'<h2 id="f{number}">{escaped(file.name)}</h2><p class="facts">{"; ".join(facts)}</p>'
    body = [head, record_table(records, look), "<h2>Features</h2>"]
    body.append(feature_summary(sample.summary))
    return "".join([*body, *sections])
