"""What is in the columns of rows: a first pass over the input of tfwire convert, which finds the
kinds of columns, and what the output cannot hold or has in another form.

A row is a dict of names to values: int, float, bytes, or a list of these. A name that is missing is
a feature that the record does not have.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire import SkippedRegions
from tfwire._interface.messages import plural, quoted, show_path

RowValue = int | float | bytes | list[Any]


class RowPlace(NamedTuple):
    """Where a row is.

    Attributes:
        path: The file.
        number: Of the row in it, or of its line.
        unit: "row", "record" or "line".
    """

    path: str
    number: int
    unit: str

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.unit} {self.number}"


NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_WORDS = {word.encode(): number for word, number in NON_FINITE.items()}
# As numpy and pandas write them.
_CELL_WORDS = {**_WORDS, b"nan": math.nan, b"inf": math.inf, b"-inf": -math.inf}
_INTEGER_CELL = re.compile(rb"0|-?[1-9][0-9]{0,18}")
_NUMBER_CELL = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 40  # characters
_KIND_OF_TYPE = {int: "int64", bool: "int64", float: "float", bytes: "bytes"}


class RowColumn(NamedTuple):
    """A column as it is written.

    Attributes:
        kind: "int64", "float", "float32" or "bytes".
        is_list: Its values are lists.
        text: All its strings are UTF-8.
        required: A row without it is an error.
        json_lists: Its lists come as JSON, in strings.
    """

    name: str
    kind: str
    is_list: bool
    text: bool
    required: bool = False
    json_lists: bool = False

    def typed(self, value: RowValue) -> RowValue:
        """A value in the kind of the column.

        Raises:
            ValueError: It has another kind, or is a list in a column of single values.
        """
        if self.json_lists and type(value) is bytes:
            value = _list_in_text(value)
        if type(value) is list:
            if self.is_list:
                return [self._item(item) for item in value]
            raise ValueError(f"{quoted(self.name)}: expected one value, found a list")
        if self.is_list:
            return [self._item(value)]
        item: RowValue = self._item(value)
        return item

    def _item(self, item: Any) -> Any:
        if type(item) is bytes and self.kind != "bytes":
            item = _number(item, self.kind != "int64")
        if self.kind == "bytes" and type(item) is bytes:
            return item
        if self.kind == "int64" and type(item) in (int, bool):
            return int(item)
        if self.kind in ("float", "float32") and type(item) in (int, float):
            return float(item)
        found = _KIND_OF_TYPE.get(type(item), "text")
        raise ValueError(f"{quoted(self.name)}: expected {self.kind}, found {found}")


def typed_row(row: Mapping[str, RowValue], columns: Iterable[RowColumn]) -> dict[str, RowValue]:
    """A row with the values of its columns in the columns' kinds and order.

    Raises:
        ValueError: A value of another kind, or one that is required is missing.
    """
    typed: dict[str, RowValue] = {}
    for column in columns:
        value = row.get(column.name)
        if value is not None:
            typed[column.name] = column.typed(value)
        elif column.required:
            raise ValueError(f"no {quoted(column.name)}, which the schema requires")
    return typed


def _list_in_text(text: bytes) -> RowValue:
    """The list that a cell holds as JSON; the text itself if it holds none."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(values, list):
        return text
    return [item.encode() if isinstance(item, str) else item for item in values]


def _number(text: bytes, large: bool = False) -> Any:
    """The number in a text; the text if there is none, or an integer with more digits than int64
    has, unless that is wanted."""
    if text in _CELL_WORDS:
        return _CELL_WORDS[text]
    if len(text) <= _LONGEST_NUMBER and _NUMBER_CELL.fullmatch(text):
        if _INTEGER_CELL.fullmatch(text):
            return int(text)
        if large or text == b"-0" or not text.removeprefix(b"-").isdigit():
            return float(text)
    return text


def columns_of_schema(features: Mapping[str, Any]) -> list[RowColumn]:
    """The columns of rows that a specification describes.

    Raises:
        ValueError: A feature that rows cannot hold.
    """
    columns = []
    for name, feature in features.items():
        kind = type(feature).__name__
        if kind not in ("FixedLenFeature", "VarLenFeature", "FixedLenSequenceFeature"):
            raise ValueError(f"{quoted(name)}: a {kind} can be written to Parquet and Arrow alone")
        dtype = {"string": "bytes", "float32": "float32"}.get(feature.dtype.name, "int64")
        single = kind == "FixedLenFeature" and len(feature.shape) == 0
        required = kind == "FixedLenFeature" and feature.default_value is None
        columns.append(RowColumn(name, dtype, not single, True, required))
    return columns


class _ColumnStatistics:
    """What was seen of a column."""

    def __init__(self) -> None:
        self.kinds: dict[str, RowPlace] = {}  # with the first row
        self.lists = False
        self.counts: tuple[int, int] = (1 << 63, 0)
        self.text = True
        self.has_empty_string = False
        self.rounded = False  # True: float32 changes a value
        self.finite = self.non_finite = self.bools = False  # some values are
        self.words = self.integers = self.numbers = True  # all strings are such
        self.some_number = False

    def add(self, row: RowPlace, value: RowValue, kind: str | None = None) -> None:
        """Adds the value of a row; its kind is that of its items unless it is given."""
        items = value if isinstance(value, list) else [value]
        self.lists |= isinstance(value, list)
        self.counts = min(self.counts[0], len(items)), max(self.counts[1], len(items))
        if kind is not None:
            self.kinds.setdefault(kind, row)
        for item in items:
            if kind is None:
                self.kinds.setdefault(_KIND_OF_TYPE[type(item)], row)
            if type(item) is bytes:
                self._add_string(item)
            elif type(item) is float:
                self._add_float(item, kind)
            elif type(item) is bool:
                self.bools = True
            elif type(item) is int:
                self.rounded |= _is_rounded(item)

    def _add_float(self, item: float, kind: str | None) -> None:
        finite = math.isfinite(item)
        self.finite |= finite
        self.non_finite |= not finite
        if kind is None and finite and not self.rounded:
            self.rounded = _is_rounded(item)

    def _add_string(self, item: bytes) -> None:
        self.has_empty_string |= not item
        if self.text and not item.isascii():
            try:
                item.decode()
            except UnicodeDecodeError:
                self.text = False
        self.words &= item in _WORDS
        if self.numbers:
            number = _number(item)
            found = type(number) is not bytes
            self.numbers &= found and _is_in_range(number)
            self.integers &= type(number) is int
            if found and item not in _CELL_WORDS:
                self.some_number = True
                self.rounded = self.rounded or _is_rounded(number)


def _is_rounded(number: float) -> bool:
    """Whether float32 changes a number; infinity is one that float64 has changed."""
    if type(number) is int:
        return not -(1 << 24) <= number <= 1 << 24
    with np.errstate(over="ignore"):
        single = np.float32(number)
    return math.isinf(number) or number not in (float(single), float(str(single)))


def is_number(text: bytes) -> bool:
    """Whether a cell is one of a column of numbers."""
    return type(_number(text)) is not bytes


def _is_in_range(number: Any) -> bool:
    return type(number) is float or -(2**63) <= number < 2**63


class RowSurvey:
    """Collects what is in rows.

    Args:
        one_kind: Columns have one kind of numbers; else integers and floats give floats, and
            strings like "NaN" among them are floats.
        text_cells: All values are text, of which the kind is guessed.
    """

    def __init__(self, one_kind: bool, text_cells: bool = False) -> None:
        self._one_kind, self._text_cells = one_kind, text_cells
        self.columns: dict[str, _ColumnStatistics] = {}
        self.num_rows = 0
        self.num_empty = 0

    def add(
        self, place: RowPlace, row: Mapping[str, RowValue], kinds: Mapping[str, str] | None = None
    ) -> None:
        """Adds a row, with the kinds of its values if they are known."""
        for name, value in row.items():
            seen = self.columns.get(name)
            if seen is None:
                seen = self.columns[name] = _ColumnStatistics()
            seen.add(place, value, kinds[name] if kinds else None)
        self.num_rows += 1
        self.num_empty += not row

    def found_columns(self, keep_order: bool) -> list[RowColumn]:
        """The columns.

        Raises:
            ValueError: A column is of several kinds.
        """
        names = list(self.columns) if keep_order else sorted(self.columns)
        return [self._column(name, self.columns[name]) for name in names]

    def _column(self, name: str, seen: _ColumnStatistics) -> RowColumn:
        return RowColumn(name, self._kind(name, seen), seen.lists, seen.text)

    def _kind(self, name: str, seen: _ColumnStatistics) -> str:
        kinds = set(seen.kinds)
        if self._text_cells and kinds == {"bytes"} and seen.numbers and seen.some_number:
            return "int64" if seen.integers else "float"
        if len(kinds) <= 1:
            return next(iter(kinds), "bytes")
        mixed = kinds == {"int64", "float"}
        mixed |= "bytes" in kinds and "float" in kinds and seen.words
        mixed |= kinds == {"int64", "bytes"} and seen.words
        if mixed and not self._one_kind:
            return "float"
        found = ", ".join(
            f"{kind} in {at.unit} {at.number} of {show_path(at.path)}"
            for kind, at in seen.kinds.items()
        )
        raise ValueError(f"{quoted(name)} is of several kinds: {found} (the first of each)")


# ---- What a conversion loses on the way, or writes in another form ------------------------------

ARROW_FORMATS = ("parquet", "arrow")


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
            lines.append(f"{plural(self.num_kindless, 'empty feature')} without a type, left out")
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
