"""CSV files, for tfwire convert: rows whose cells are strings."""

from __future__ import annotations

import argparse
import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from tfwire._interface.messages import quoted
from tfwire._interface.new_files import split_name
from tfwire.cli._row_survey import RowColumn, RowValue, is_number
from tfwire.cli._rows import Encoder, NumberedRow, OpenedFile, Row, json_value

_MAX_CELL = (1 << 31) - 1
_UTF8 = "utf-8-sig"  # with or without a byte order mark
_MARKS = ("\udcff\udcfe", "\udcfe\udcff")  # of UTF-16, where UTF-8 is expected
_DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'", " ": "' '"}
_LOOKED_LINES = 20  # for another delimiter


class CsvForm(NamedTuple):
    """How a CSV file is written.

    Attributes:
        delimiter: None: a tab in files whose names end in .tsv, in others a comma.
        header: The first line names the columns; else they are column_0, column_1 and so on.
        encoding: Of a file that is read.
    """

    delimiter: str | None = None
    header: bool = True
    encoding: str = _UTF8

    @classmethod
    def of(cls, options: argparse.Namespace) -> CsvForm:
        """What the options of the command say."""
        return cls(options.delimiter, options.header is not False, options.encoding or _UTF8)

    def delimiter_of(self, path: str) -> str:
        """The delimiter in a file."""
        return self.delimiter or ("\t" if split_name(path)[0].endswith(".tsv") else ",")


# ---- Reading ------------------------------------------------------------------------------------


def csv_rows(source: OpenedFile, path: str, form: CsvForm) -> Iterator[NumberedRow]:
    """The rows of a CSV file, by line. Empty cells are missing values, all others strings.

    Raises:
        ValueError: It is no CSV file of this form. The error names the line.
    """
    csv.field_size_limit(_MAX_CELL)
    # Bytes that are wrong become surrogates, which no text has: the line with the first is known.
    wide = codecs.lookup(form.encoding).name.startswith(("utf-16", "utf-32"))
    errors = "surrogatepass" if wide else "surrogateescape"
    text = io.TextIOWrapper(source.file, form.encoding, errors, newline="")
    try:
        lines = _checked_lines(text, form.encoding)
        head = list(islice(lines, _LOOKED_LINES))
        _check_delimiter(head, form.delimiter_of(path), form.delimiter is not None)
        names: list[str] | None = None
        for number, cells in _numbered(chain(head, lines), form.delimiter_of(path)):
            if names is None:
                names = cells if form.header else [f"column_{i}" for i in range(len(cells))]
                name, count = Counter(names).most_common(1)[0]
                if count > 1:
                    raise ValueError(f"line {number}: {quoted(name)} occurs twice")
                if form.header:
                    continue
            if len(cells) != len(names):
                raise ValueError(f"line {number}: expected {len(names)} cells, found {len(cells)}")
            pairs = zip(names, cells, strict=True)
            row: Row = {name: cell.encode() for name, cell in pairs if cell}
            yield number, row, None
    finally:
        text.detach()


def _numbered(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows with the numbers of the lines where they begin, without empty lines."""
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    number = 1
    try:
        for cells in reader:
            if cells:
                yield number, cells
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"line {number}: {error}") from None


def _checked_lines(text: Iterable[str], encoding: str) -> Iterator[str]:
    """The lines of a text.

    Raises:
        ValueError: One has bytes that are not of its encoding.
    """
    number = 0
    try:
        for number, line in enumerate(text, 1):
            if not line.isascii():
                line.encode()
            elif number == 1 and 3 * line.count("\0") > len(line):
                order = "be" if line.startswith("\0") else "le"
                raise ValueError(f"line 1: UTF-16 without a mark; give --encoding utf-16-{order}")
            yield line.removeprefix("\ufeff") if number == 1 else line  # left by utf-16-le
    except UnicodeEncodeError:
        raise ValueError(f"line {number}: {_wrong_bytes(line, encoding)}") from None
    except UnicodeError as error:  # at the end, or at the beginning
        if "BOM" in str(error):
            expected = f"{encoding} begins with a mark, found none"
            raise ValueError(f"line 1: {expected}; give --encoding {encoding}-le") from None
        raise ValueError(f"after line {number}: {_wrong_bytes('', encoding)}") from None


def _wrong_bytes(line: str, encoding: str) -> str:
    if encoding != _UTF8:
        return f"other bytes than {encoding} has; give another --encoding"
    if line.startswith(_MARKS):
        return "expected UTF-8, found UTF-16; give --encoding utf-16"
    return "expected UTF-8; --encoding says which other encoding it is, like latin-1"


def _check_delimiter(head: Sequence[str], delimiter: str, given: bool) -> None:
    """Raises ValueError if the lines are one column, and several with another delimiter."""
    if len(next(csv.reader(head, delimiter=delimiter), [])) != 1:
        return
    for other, shown in _DELIMITERS.items():
        rows = [row for row in csv.reader(head, delimiter=other) if row]
        if len(head) == _LOOKED_LINES:
            rows = rows[: max(1, len(rows) - 1)]  # the last may end in a later line
        widths = set(map(len, rows))
        enough = other != " " or (len(rows) > 1 and not given)  # a header may have spaces
        if other != delimiter and len(widths) == 1 and widths != {1} and enough:
            known = _DELIMITERS.get(delimiter, quoted(delimiter))
            found = f"one column with delimiter {known}, {widths.pop()} with {shown}"
            more = "" if given else f"; --delimiter {known} if it is one column"
            raise ValueError(f"line 1: {found}: give --delimiter {shown}{more}")


def doubts_of_names(names: Iterable[str]) -> Iterator[str]:
    """What to say of the names that a header gave."""
    found = list(names)
    if found and all(is_number(name.encode()) for name in found):
        yield "the names of columns are numbers; --no-header reads the first line as a row"


# ---- Writing ------------------------------------------------------------------------------------


def csv_encoder(columns: Sequence[RowColumn], path: str, form: CsvForm) -> Encoder:
    """Rows as lines of CSV, or several if there are line ends in them; lists as JSON."""
    delimiter = form.delimiter_of(path)

    def encode(row: Any) -> bytes:
        cells = [_csv_cell(row.get(column.name), column.text) for column in columns]
        return _csv_line(cells, delimiter) if cells else b""

    names = [column.name for column in columns] if form.header else []
    return Encoder(encode, _csv_line(names, delimiter) if names else b"")


def _csv_cell(value: RowValue | None, text: bool) -> str:
    if value is None:
        return ""
    found = json_value(value, text)
    return json.dumps(found, ensure_ascii=False) if isinstance(found, list) else str(found)


def _csv_line(cells: Sequence[str], delimiter: str) -> bytes:
    line = io.StringIO()
    # One cell with another delimiter in it must not look like several.
    alone = len(cells) == 1 and any(other in cells[0] for other in _DELIMITERS)
    writer = csv.writer(
        line,
        delimiter=delimiter,
        lineterminator="\r\n",
        # Minimal quotes both characters of a line end in cells.
        quoting=csv.QUOTE_ALL if alone else csv.QUOTE_MINIMAL,
    )
    writer.writerow(cells)
    return line.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"
