"""A page in one file: a sample of the records, with their pictures, that opens anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from tfwire import RecordPosition, SkippedRegion, SkippedRegions
from tfwire._interface.messages import plural
from tfwire.view._budget import Allowance, Budget
from tfwire.view._dataset import DataSet
from tfwire.view._grid import has_pictures, record_grid
from tfwire.view._html import Html, element, facts, join, shown_text
from tfwire.view._media import data_uri
from tfwire.view._page import (
    Frame,
    document,
    feature_summary,
    key_help,
    record_head,
    record_table,
    record_view,
)
from tfwire.view._pictures import Look, Picture, first_picture, picture_of_payload
from tfwire.view._records import BrowsedFile, Record, place_after
from tfwire.view._summary import FeatureSummary


class FrozenPage(NamedTuple):
    """A page in one file.

    Attributes:
        text: HTML.
        damage: What is damaged among the first records of each file.
    """

    text: str
    damage: list[SkippedRegions]


def frozen_page(
    files: Sequence[BrowsedFile],
    num_records: int,
    num_bytes: int,
    corners: tuple[str, ...] = (),
) -> FrozenPage:
    """The first records of files as one page of HTML, which loads nothing.

    Args:
        files: To be shown one after the other; those without a share of the records are left out.
        num_records: How many records of all files together.
        num_bytes: How many bytes of pictures; the others are named.
        corners: As Look has them.
    """
    budget, dataset = Budget.of_file(num_records, num_bytes), DataSet(files)
    samples = _samples(files, num_records, budget)
    counting = Budget()
    for file in files:
        dataset.count(file, counting)
    for sample in samples:
        sample.records = dataset.numbered(sample.records)
    pictures = _Embedded(num_bytes, budget)
    for sample in samples:
        pictures.reserve(sample)
    parts = []
    for i, sample in enumerate(samples):
        with budget.html.keeping(1 - 1 / (len(samples) - i)):
            parts.append(_file_part(sample, dataset, pictures, corners))
    if budget.effort.refused:
        masks = plural(budget.effort.refused, "gray picture")
        parts.append(facts(f"{masks} not searched for the classes of a mask"))
    if len(files) > len(samples):
        parts.append(facts(f"{plural(len(files) - len(samples), 'more file')} not shown"))
    back = element("a", "records", rel="up", href="#f0")
    label = {"placeholder": "filter rows", "aria_label": "filter rows"}
    search = element("input", type="search", data_rows=True, **label)
    keys = key_help({"/": "filter", "j": "", "k": "rows", "Enter": "open", "Escape": "back"})
    said = facts(dataset.facts()) if len(files) > 1 else ""
    header = join(element("h1", shown_text(dataset.name)), said, element("nav", back, search, keys))
    text = document(dataset.name, header, join(parts), policy=True)
    return FrozenPage(text, [_damage(sample) for sample in samples])


# ---- The sample ---------------------------------------------------------------------------------


class _Sample:
    """The first records of a file."""

    def __init__(self, number: int, file: BrowsedFile) -> None:
        self.number = number
        self.file = file
        self.records: list[Record] = []
        self.summary = FeatureSummary()
        self.next: RecordPosition | None = RecordPosition()

    def grow(self, count: int, budget: Budget) -> None:
        """Takes the next records."""
        if self.next is not None:
            page = self.file.page(self.next, count, budget, self.summary.add)
            self.records += page.records
            self.next = page.next


def _samples(files: Sequence[BrowsedFile], num_records: int, budget: Budget) -> list[_Sample]:
    """Equal shares of files; what some of them do not use is for those with more records."""
    samples = [_Sample(number, file) for number, file in enumerate(files[:num_records])]
    growing, left = samples, num_records
    while growing and left and not (budget.is_full or budget.is_late):
        for at, sample in enumerate(growing):
            share = left // (len(growing) - at)
            if share and not budget.is_full:
                before = len(sample.records)
                sample.grow(share, budget)
                left -= len(sample.records) - before
        growing = [sample for sample in growing if sample.next is not None]
    return [sample for sample in samples if sample.records or sample.next is None]


def _damage(sample: _Sample) -> SkippedRegions:
    found = [record for record in sample.records if record.kind == "damage"]
    regions = (
        SkippedRegion(
            sample.file.path, each.offset, place_after(each).offset, each.number, each.reason
        )
        for each in found
    )
    return SkippedRegions(regions, len(found), sum(each.size for each in found))


# ---- Pictures -----------------------------------------------------------------------------------


class _Embedded:
    """The pictures that are part of a page.

    Each is in the page once, where its record is shown alone; the script has the table show it too.
    The first pictures of all records come before the others.

    Args:
        num_bytes: How many bytes of them there may be.
        budget: That of the page.
    """

    def __init__(self, num_bytes: int, budget: Budget) -> None:
        self.budget = budget
        self._bytes = Allowance(num_bytes)
        self._reserved: dict[tuple[object, ...], int] = {}
        self._embedded: set[tuple[object, ...]] = set()

    def reserve(self, sample: _Sample) -> None:
        """Reserves room for the first picture of each feature."""
        for record in sample.records:
            found = [first_picture(record, name) for name in record.names]
            for picture in (*found, picture_of_payload(record)):
                if picture is not None and (picture.media.num_pixels or picture.media.is_sound):
                    self._take(_key(sample.number, picture), picture)

    def source(self, file: int, picture: Picture) -> dict[str, str]:
        """The picture itself, or where in the page it is; nothing if it does not fit."""
        key = _key(file, picture)
        if key in self._embedded:
            return {"data_copy": f"p{self._reserved[key]}"}
        if key not in self._reserved and not self._take(key, picture):
            return {}
        html = self.budget.html
        if 4 * len(picture.contents) // 3 > html.left:
            return {}
        address = data_uri(picture.media, picture.file(self.budget.effort))
        if not html.take(len(address)):
            return {}
        self._embedded.add(key)
        return {"id": f"p{self._reserved[key]}", "src": address}

    def _take(self, key: tuple[object, ...], picture: Picture) -> bool:
        if not self._bytes.take(len(picture.contents)):
            return False
        self._reserved[key] = len(self._reserved)
        return True


def _key(file: int, picture: Picture) -> tuple[object, ...]:
    return file, picture.number, picture.name, picture.step, picture.item


def _file_part(
    sample: _Sample, dataset: DataSet, pictures: _Embedded, corners: tuple[str, ...]
) -> Html:
    number, file, records = sample.number, sample.file, sample.records
    shown: set[int] = set()  # records that have a section

    def source(picture: Picture) -> dict[str, str]:
        return pictures.source(number, picture)

    def link(record: Record) -> str:
        return f"#f{number}r{record.number}" if record.number in shown else ""

    look, html = Look(source, link, pictures.budget, corners), pictures.budget.html
    readable = [record for record in records if record.is_read]
    sections = []
    with html.keeping(0.5):  # for the table, which shows their pictures again, and the features
        for i, record in enumerate(readable):
            if html.is_spent:
                break
            with html.keeping(1 - 2 / (2 + len(readable) - i)):
                sections.append(
                    html.write(partial(_section, number, record, dataset.name_of(number), look))
                )
            shown.add(record.number)
    with html.keeping(0.25):
        table, num_rows = record_table(records, look, Frame(dataset.shown_labels))
    if has_pictures(records):
        with html.keeping(0.25):
            grid, _ = record_grid(records[:num_rows], look)
        table = join(table, element("details", element("summary", "grid of pictures"), grid))
    notes = []
    if num_rows < len(records):
        notes.append(f"{plural(len(records) - num_rows, 'more record')} not shown")
    if len(sections) < len(readable):
        notes.append(f"{plural(len(readable) - len(sections), 'record')} not shown alone")
    head = element("h2", shown_text(file.name), id=f"f{number}")
    features = element("h2", "Features"), feature_summary(sample.summary, html)
    return join(head, facts(_facts(sample)), table, facts("; ".join(notes)), *features, sections)


def _facts(sample: _Sample) -> str:
    size = sample.file.size
    found = [plural(size, "byte")] if size is not None else []
    count = "all" if sample.next is None else "the first"
    return "; ".join([*found, f"{count} {plural(len(sample.records), 'record')}"])


def _section(file: int, record: Record, name: str, look: Look) -> Html:
    title = record_head(record, name, id=f"f{file}r{record.number}")
    return element("section", title, record_view(record, look))
