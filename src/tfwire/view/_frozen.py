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
from tfwire.view._pictures import Picture
from tfwire.view._records import BrowsedFile, Record
from tfwire.view._summary import FeatureSummary

__all__ = ["frozen_page"]

_MOST_DETAILS = 2_000_000  # characters of the sections that show single records


def frozen_page(
    files: Sequence[BrowsedFile],
    num_records: int,
    num_bytes: int,
    corners: tuple[str, ...] = (),
) -> str:
    """The first records of files as one page of HTML, which loads nothing.

    Args:
        files: To be shown one after the other.
        num_records: How many records of all files together.
        num_bytes: How many bytes of pictures; the others are named.
        corners: As Look has them.
    """
    budget = _Budget(num_bytes)
    parts, left = [], num_records
    for number, file in enumerate(files):
        share = max(1, left // (len(files) - number))
        records = file.page(RecordPosition(), share).records
        left -= len(records)
        parts.append(_file_part(number, file, records, budget, corners))
    names = files[0].name if len(files) == 1 else plural(len(files), "file")
    search = (
        '<nav><input type="search" data-rows placeholder="filter rows" aria-label="filter rows">'
        '<small class="keys"><kbd>/</kbd> filter <kbd>j</kbd> <kbd>k</kbd> rows '
        "<kbd>Enter</kbd> open</small></nav>"
    )
    header = f"<h1>{escaped(names)}</h1>{search}"
    return document(names, header, "".join(parts), policy=True)


class _Budget:
    """The bytes of pictures that a page may still take."""

    def __init__(self, num_bytes: int) -> None:
        self._left = num_bytes

    def source(self, picture: Picture) -> str:
        """The picture itself as an address, once it fits; empty afterwards."""
        if len(picture.contents) > self._left:
            return ""
        self._left -= len(picture.contents)
        return data_uri(picture.media, picture.contents)


def _file_part(
    number: int,
    file: BrowsedFile,
    records: Sequence[Record],
    budget: _Budget,
    corners: tuple[str, ...],
) -> str:
    look = Look(budget.source, lambda record: f"#f{number}r{record.number}", corners)
    facts = plural(file.size, "byte") if file.size is not None else ""
    count = "all" if file.num_records is not None else "the first"
    shown = f"{count} {plural(len(records), 'record')}"
    head = f'<h2>{escaped(file.name)}</h2><p class="facts">{facts}; {shown}</p>'
    body = [head, record_table(records, look), "<h2>Features</h2>"]
    body.append(feature_summary(FeatureSummary(records)))
    room = _MOST_DETAILS
    for record in records:
        if record.kind == "damage" or room < 0:
            continue
        title = f'<h2 id="f{number}r{record.number}">Record {record.number:,}</h2>'
        section = f"<section>{title}{record_view(record, look)}</section>"
        room -= len(section)
        body.append(section)
    return "".join(body)
