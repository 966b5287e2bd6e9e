"""Rows of TFRecord files, JSON lines and CSV, for tfwire convert. What a row is: _row_survey."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tfwire import (
    decode_example,
    decode_json_example,
    decode_sequence_example,
    encode_example,
    example_to_json,
)
from tfwire._interface.messages import parser_said, quoted, show_path
from tfwire.cli._row_survey import NON_FINITE, RowColumn, RowValue

Row = dict[str, RowValue]
# The kinds of values are None where the values say them.
RowAndKinds = tuple[Row, Mapping[str, str] | None]
_LONGEST_LINE = 1 << 30  # bytes, as long as records may be
_MAX_CELL = (1 << 31) - 1


class OpenedFile:
    """A file that is read from the beginning to the end, inflated if its beginning says gzip.

    Attributes:
        file: To read from.
    """

    def __init__(self, path: str) -> None:
        # Closed by close().
        self._raw = open(path, "rb")  # noqa: SIM115
        try:
            compressed = self._raw.peek(2)[:2] == b"\x1f\x8b"
        except BaseException:
            self._raw.close()
            raise
        self.file: Any = gzip.GzipFile(fileobj=self._raw) if compressed else self._raw

    def position(self) -> int:
        """How many bytes of the file are read."""
        return self._raw.tell()

    def close(self) -> None:
        self.file.close()
        self._raw.close()


@contextmanager
def opened(path: str) -> Iterator[OpenedFile]:
    """Opens a file; errors of gzip name it."""
    file = OpenedFile(path)
    try:
        yield file
    except (EOFError, gzip.BadGzipFile) as error:
        raise ValueError(f"{show_path(path)}: damaged gzip file: {error}") from None
    finally:
        file.close()


# ---- TFRecord files -----------------------------------------------------------------------------


def decoded_row(features: dict[str, Any]) -> tuple[Row, dict[str, str], int]:
    """The row of a decoded Example, the kinds of its values, and the number of features without a
    kind, which are left out."""
    row: Row = {}
    kinds = {}
    for name, values in features.items():
        if isinstance(values, list):
            if values:
                row[name] = values[0] if len(values) == 1 else values
                kinds[name] = "bytes"
            continue
        items = _shortest(values) if values.dtype == np.float32 else values.tolist()
        row[name] = items[0] if len(items) == 1 else items
        kinds[name] = _KIND_OF_DTYPE.get(values.dtype.name, "bytes")
    return row, kinds, len(features) - len(row)


_KIND_OF_DTYPE = {"int64": "int64", "float32": "float"}


def _shortest(values: Any) -> list[float]:
    """float32 as the floats with the shortest text that gives them back: 0.1."""
    return [float(text) for text in values.astype(str)]


def example_row(record: bytes) -> tuple[Row, dict[str, str], int]:
    """As decoded_row, of a record.

    Raises:
        ParseError: It is not an Example.
        ValueError: It is a SequenceExample.
    """
    features, lists = decode_sequence_example(record)
    if lists:
        raise ValueError("a SequenceExample can be converted to Parquet and Arrow alone")
    return decoded_row(features)


# ---- JSON lines ---------------------------------------------------------------------------------


def json_rows(path: str, report: Callable[[int], None]) -> Iterator[RowAndKinds]:
    """The rows of JSON lines: objects, or Examples in protobuf's JSON, which say their kinds.

    Args:
        path: The file.
        report: Called with the number of bytes that are read.

    Raises:
        ValueError: A line that is no such row.
    """
    with opened(path) as source:
        lines = iter(lambda: source.file.readline(_LONGEST_LINE + 1), b"")
        for number, line in enumerate(lines, 1):
            if len(line) > _LONGEST_LINE:
                raise ValueError(f"{show_path(path)}: line {number} has more than 1 GiB")
            line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if line.isspace() or not line:
                continue
            try:
                yield _json_row(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{show_path(path)}: line {number}: {_said(error)}") from None
            report(source.position())


def _said(error: ValueError | RecursionError) -> str:
    """Why a line is not JSON, or no row."""
    if isinstance(error, UnicodeError):
        return "expected JSON in UTF-8"
    is_json = not isinstance(error, (json.JSONDecodeError, RecursionError))
    return str(error) if is_json else f"expected JSON: {parser_said(error)}"


def _json_row(line: bytes) -> RowAndKinds:
    tree = json.loads(line.decode(), object_pairs_hook=_unique)
    if not isinstance(tree, dict):
        raise ValueError(f"expected an object, found {_json_type(tree)}")
    if tree.keys() == {"features"} and isinstance(tree["features"], dict):
        row, kinds, _ = decoded_row(decode_example(decode_json_example(line)))
        return row, kinds
    return {name: plain_value(name, v) for name, v in tree.items() if v is not None}, None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{quoted(twice)} occurs twice")
    return found


def plain_value(name: str, value: Any) -> RowValue:
    """A value of JSON as one of a row."""
    if isinstance(value, list):
        return [_json_item(name, item) for item in value]
    return _json_item(name, value)


def _json_item(name: str, item: Any) -> int | float | bytes:
    if isinstance(item, str):
        return item.encode()
    if isinstance(item, int):
        if not -(2**63) <= item < 2**63:
            raise ValueError(f"{quoted(name)}: expected an integer of 64 bits")
        return item
    if isinstance(item, float):
        return item
    raise ValueError(
        f"{quoted(name)}: expected a number, a string or a list of these, found {_json_type(item)}"
    )


_JSON_TYPE_NAMES = {
    dict: "an object",
    list: "a list in a list",
    str: "a string",
    type(None): "null",
}


def _json_type(value: Any) -> str:
    return _JSON_TYPE_NAMES.get(type(value), "a number")


class JsonEncoder:
    """Rows as lines of JSON.

    Args:
        columns: Of the rows.
    """

    header = footer = b""

    def __init__(self, columns: Sequence[RowColumn]) -> None:
        self._columns = {column.name: column for column in columns}

    def encode(self, row: Row) -> bytes:
        """A row as a line."""
        tree = {name: json_value(value, self._columns[name].text) for name, value in row.items()}
        try:
            return json.dumps(tree, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError:  # a name that is not UTF-8
            return json.dumps(tree).encode() + b"\n"


def json_value(value: RowValue, text: bool) -> Any:
    """A value as JSON has it: strings as text or base64, NaN and infinities as strings."""
    if isinstance(value, list):
        return [json_value(item, text) for item in value]
    if isinstance(value, bytes):
        return value.decode() if text else base64.b64encode(value).decode()
    if isinstance(value, float) and (value != value or value in (np.inf, -np.inf)):
        return next(word for word, number in NON_FINITE.items() if str(number) == str(value))
    return value


def kinds_of(columns: Sequence[RowColumn]) -> dict[str, str]:
    """The kinds of columns by name."""
    return {column.name: column.kind for column in columns}


def features_of_row(row: Row, kinds: Mapping[str, str]) -> dict[str, Any]:
    """A row as encode_example takes it, its numbers in the kinds of their columns."""
    features = {}
    for name, value in row.items():
        items = value if isinstance(value, list) else [value]
        features[name] = np.array(items, _NUMPY_OF_KIND[kinds[name]])
    return features


_NUMPY_OF_KIND: dict[str, Any] = {
    "int64": np.int64,
    "float": np.float32,
    "float32": np.float32,
    "bytes": object,
}


class ExampleEncoder:
    """Rows as Examples in protobuf's JSON, one per line.

    Args:
        columns: Of the rows.
    """

    header = footer = b""

    def __init__(self, columns: Sequence[RowColumn]) -> None:
        self._kinds = kinds_of(columns)

    def encode(self, row: Row) -> bytes:
        """A row as a line."""
        example = encode_example(features_of_row(row, self._kinds))
        return example_to_json(example).encode() + b"\n"


def decode_base64(row: Row, names: Sequence[str]) -> None:
    """Decodes the strings of some columns from base64.

    Raises:
        ValueError: A value is not base64.
    """
    for name in names:
        if name in row:
            value: Any = row[name]
            try:
                if isinstance(value, bytes) and value.startswith(b"["):  # a cell of CSV
                    value = json.loads(value)
                items = value if isinstance(value, list) else [value]
                decoded = [base64.b64decode(item, validate=True) for item in items]
            except (TypeError, ValueError):
                raise ValueError(f"{quoted(name)}: expected base64") from None
            row[name] = decoded if isinstance(value, list) else decoded[0]


# ---- CSV ----------------------------------------------------------------------------------------


def csv_rows(path: str, report: Callable[[int], None]) -> Iterator[Row]:
    """The rows of a CSV file, whose first line names the columns. Empty cells are missing values,
    all others strings."""
    csv.field_size_limit(_MAX_CELL)
    with opened(path) as source:
        # Other bytes become surrogates, which no text has: the row with the first is known.
        text = io.TextIOWrapper(source.file, "utf-8-sig", "surrogateescape", newline="")
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, [])
            _unique([(name, name.encode()) for name in header])
            for cells in reader:
                if cells and len(cells) != len(header):
                    raise ValueError(f"expected {len(header)} cells, found {len(cells)}")
                if cells:
                    pairs = zip(header, cells, strict=True)
                    yield {name: cell.encode() for name, cell in pairs if cell}
                report(source.position())
        except (csv.Error, ValueError) as error:
            said = "expected UTF-8" if isinstance(error, UnicodeError) else error
            raise ValueError(f"{show_path(path)}: line {reader.line_num}: {said}") from None
        finally:
            text.detach()


class CsvEncoder:
    """Rows as lines of CSV; lists as JSON.

    Args:
        columns: Of the rows.
    """

    footer = b""

    def __init__(self, columns: Sequence[RowColumn]) -> None:
        self._columns = columns
        self.header: bytes = _csv_line([column.name for column in columns]) if columns else b""

    def encode(self, row: Row) -> bytes:
        """A row as a line, or several if there are line ends in it."""
        cells = [self._cell(column, row.get(column.name)) for column in self._columns]
        return _csv_line(cells) if cells else b""

    def _cell(self, column: RowColumn, value: RowValue | None) -> str:
        if value is None:
            return ""
        found = json_value(value, column.text)
        return json.dumps(found, ensure_ascii=False) if isinstance(found, list) else str(found)


def _csv_line(cells: Sequence[str]) -> bytes:
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(cells)  # quotes both characters in cells
    return line.getvalue().removesuffix("\r\n").encode("utf-8", "backslashreplace") + b"\n"


# ---- Writing text -----------------------------------------------------------------------------


class TextWriter:
    """Writes rows that are encoded, between a header and a footer.

    Args:
        file: A binary file.
        compressed: By gzip; the same content gives the same bytes.
    """

    def __init__(self, file: Any, compressed: bool, header: bytes, footer: bytes) -> None:
        self._gzip = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else None
        self._file = self._gzip or file
        self._footer = footer
        self._file.write(header)

    def write(self, items: Sequence[bytes]) -> None:
        self._file.writelines(items)

    def close(self) -> None:
        self._file.write(self._footer)
        if self._gzip is not None:
            self._gzip.close()
