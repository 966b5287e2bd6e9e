"""The formats of tfwire convert: names of their files, compressions, and what each does not hold of
others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._interface.messages import plural, quoted, show_path

if TYPE_CHECKING:
    from tfwire import SkippedRegions
    from tfwire.cli._row_survey import RowColumn, RowSurvey


class FileFormat(NamedTuple):
    """A file format.

    Attributes:
        suffixes: Of file names, without the dot.
        compressions: That it can be written with; the first unless another is asked for.
    """

    suffixes: tuple[str, ...]
    compressions: tuple[str, ...]


FORMATS = {
    "tfrecord": FileFormat(
        ("tfrecord", "tfrecords", "tfrec", "tfr", "record"), ("none", "gzip", "zlib")
    ),
    "parquet": FileFormat(("parquet", "pq"), ("snappy", "none", "gzip", "zstd", "lz4")),
    "arrow": FileFormat(("arrow", "feather", "ipc"), ("none", "zstd", "lz4")),
    "jsonl": FileFormat(("jsonl", "ndjson"), ("none", "gzip")),
    "csv": FileFormat(("csv",), ("none", "gzip")),
    "tar": FileFormat(("tar", "tgz"), ("none", "gzip")),
}
ARROW_FORMATS = ("parquet", "arrow")

_SHARD = re.compile(r"-(\d+|\{[^{}]*\})-of-(\d+|\{[^{}]*\})")
_COMPRESSED = re.compile(r"\.(gz|gzip|zlib)$")


def format_of(path: str) -> str | None:
    """The format that a file's name says: train.tfrecord, train.tfrecord-00000-of-00010,
    train.csv.gz; None if it says none."""
    name = _SHARD.sub("", os.path.basename(path).lower())
    suffix = _COMPRESSED.sub("", name).rpartition(".")[2]
    for format_name, known in FORMATS.items():
        if suffix in known.suffixes and "." in name:
            return format_name
    return None


def is_gzip_name(path: str) -> bool:
    """Whether a file's name says that it is compressed by gzip."""
    return _SHARD.sub("", os.path.basename(path).lower()).endswith((".gz", ".gzip", ".tgz"))


# ---- What a conversion loses on the way, or writes in another form ------------------------------


class Losses:
    """Lines on what the output does not hold.

    Attributes:
        lines: One for each column or kind of loss.
        num_kindless: Features without a kind, which are left out.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.num_kindless = 0

    def all_lines(self) -> list[str]:
        """The lines, without repetitions."""
        lines = list(dict.fromkeys(self.lines))
        if self.num_kindless:
            lines.append(f"{plural(self.num_kindless, 'feature')} without a kind, left out")
        return lines

    def add_damage(self, path: str, regions: SkippedRegions) -> None:
        """Records that do not verify."""
        if regions:
            found = f"{plural(regions.num_regions, 'damaged region')}, "
            found += f"{plural(regions.num_bytes, 'byte')}, left out"
            self.lines.append(f"{show_path(path)}: {found}")

    def add_empty(self, count: int) -> None:
        """Rows without a column."""
        if count:
            self.lines.append(f"{plural(count, 'row')} without any value, left out")

    def add_left_out(self, found: Iterable[str], known: Iterable[str]) -> None:
        """Columns that the schema does not have."""
        for name in sorted(set(found) - set(known)):
            self.lines.append(f"{quoted(name)}: not in the schema, left out")

    def add_names(self, names: Iterable[str]) -> None:
        """Names that a table cannot have."""
        for name in names:
            if not _is_utf8(name) or "\0" in name:
                self.lines.append(f"{quoted(name)}: the name is written with escapes")

    def add_rows(
        self, survey: RowSurvey, columns: Sequence[RowColumn], target: str, examples: bool
    ) -> None:
        """What rows lose in a format.

        Args:
            survey: Of the rows.
            columns: Of the rows.
            target: The format.
            examples: JSON lines are Examples.
        """
        if target == "tfrecord" or examples:
            find = _lost_in_examples
        else:
            find = {"jsonl": _lost_in_json, "csv": _lost_in_csv, "tar": _lost_in_tar}.get(
                target, _lost_in_tables
            )
        for column in columns:
            seen = survey.columns.get(column.name)
            if seen is not None:
                self.lines += [f"{quoted(column.name)}: {text}" for text in find(column, seen)]
                if seen.bools and target not in ARROW_FORMATS:
                    self.lines.append(f"{quoted(column.name)}: bool becomes int64")
        if target in (*ARROW_FORMATS, "csv"):
            self.add_names(column.name for column in columns)
        if target == "tar" or (target in (*ARROW_FORMATS, "csv") and not columns):
            self.add_empty(survey.num_empty)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _lost_in_examples(column: RowColumn, seen: Any) -> Iterable[str]:
    if column.kind in ("float", "float32") and seen.rounded:
        yield "numbers are rounded to float32"


def _lost_in_json(column: RowColumn, seen: Any) -> Iterable[str]:
    yield from _lost_strings(column)
    if seen.non_finite:
        yield "NaN and infinities are written as strings"
    if column.kind != "bytes" and seen.counts[1] == 0:
        yield f"its kind, {column.kind}, as it has no values; --schema gives it back"


def _lost_in_tables(column: RowColumn, seen: Any) -> Iterable[str]:
    if column.kind == "float32" and seen.rounded:
        yield "numbers are rounded to float32"


def _lost_in_csv(column: RowColumn, seen: Any) -> Iterable[str]:
    yield from _lost_strings(column)
    if column.is_list:
        yield "lists are written as JSON; --schema reads them back"
    elif seen.has_empty_string:
        yield "empty strings cannot be told from missing values"
    if column.kind == "bytes" and not column.is_list and seen.numbers and seen.some_number:
        yield "its strings look like numbers; --schema reads them back as strings"
    if column.kind == "float" and seen.non_finite and not seen.finite:
        yield "NaN and infinities look like strings; --schema reads them back as numbers"


def _lost_in_tar(column: RowColumn, seen: Any) -> Iterable[str]:
    if column.is_list or column.kind != "bytes":
        yield from _lost_in_json(column, seen)


def _lost_strings(column: RowColumn) -> Iterable[str]:
    if column.kind == "bytes" and not column.text:
        yield "bytes that are not UTF-8 are written as base64; --base64 NAME reads them back"
