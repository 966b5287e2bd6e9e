"""Rows of TFRecord files and JSON lines, for tfwire convert. What a row is: _row_survey."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tfwire import (
    decode_example,
    decode_json_example,
    encode_example,
    example_to_json,
)
from tfwire._interface.messages import parser_said, quoted, show_path
from tfwire.cli._row_survey import NON_FINITE, RowColumn, RowValue

Row = dict[str, RowValue]
# The kinds of values are None where the values say them.
RowAndKinds = tuple[Row, Mapping[str, str] | None]
NumberedRow = tuple[int, Row, Mapping[str, str] | None]  # by the line where it begins
MAX_ROWS = 65536  # of a batch
_VALUE_BYTES = 64  # of a value in Python, beside its string
_LONGEST_LINE = 1 << 30  # bytes, as long as records may be


class OpenedFile(NamedTuple):
    """A file that is read from the beginning to the end.

    Attributes:
        file: To read from; inflated if its beginning says gzip.
        position: Says how many bytes of it are read.
    """

    file: Any
    position: Callable[[], int]


@contextmanager
def opened(path: str) -> Iterator[OpenedFile]:
    """Opens a file, whose errors name it."""
    with open(path, "rb") as raw:
        try:
            if raw.peek(2)[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=raw) as inflated:
                    yield OpenedFile(inflated, raw.tell)
            else:
                yield OpenedFile(raw, raw.tell)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{show_path(path)}: damaged gzip file: {error}") from None
        except ValueError as error:
            raise ValueError(f"{show_path(path)}: {error}") from None


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


# ---- JSON lines ---------------------------------------------------------------------------------


def json_rows(
    source: OpenedFile, other_row: Callable[[dict[str, Any]], RowAndKinds | None]
) -> Iterator[NumberedRow]:
    """The rows of JSON lines: objects, or Examples in protobuf's JSON, which say their kinds.

    Args:
        source: The file.
        other_row: Gives objects of other forms as rows; None: it is not of these.

    Raises:
        ValueError: A line that is no such row.
    """
    lines = iter(lambda: source.file.readline(_LONGEST_LINE + 1), b"")
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE:
            raise ValueError(f"line {number} has more than 1 GiB")
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if line.isspace() or not line:
            continue
        try:
            row, kinds = _json_row(line, other_row)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {_said(error)}") from None
        yield number, row, kinds


def _said(error: ValueError | RecursionError) -> str:
    """Why a line is not JSON, or no row."""
    if isinstance(error, UnicodeError):
        return "expected JSON in UTF-8"
    if isinstance(error, json.JSONDecodeError):
        return f"expected JSON: {error.msg}: column {error.colno}"
    is_deep = isinstance(error, RecursionError)
    return f"expected JSON: {parser_said(error)}" if is_deep else str(error)


def _json_row(
    line: bytes, other_row: Callable[[dict[str, Any]], RowAndKinds | None]
) -> RowAndKinds:
    tree = json.loads(line.decode().rstrip(), object_pairs_hook=_unique)
    if not isinstance(tree, dict):
        raise ValueError(f"expected an object, found {json_type(tree)}")
    if tree.keys() == {"features"} and isinstance(tree["features"], dict):
        row, kinds, _ = decoded_row(decode_example(decode_json_example(line)))
        return row, kinds
    found = other_row(tree)
    if found is not None:
        return found
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
    if isinstance(item, dict) and item.keys() == {"base64"}:  # as tfwire cat --json prints bytes
        try:
            return base64.b64decode(item["base64"], validate=True)
        except (TypeError, ValueError):
            raise ValueError(f"{quoted(name)}: expected base64") from None
    found = "a list in a list" if isinstance(item, list) else json_type(item)
    raise ValueError(
        f"{quoted(name)}: expected a number, a string or a list of these, found {found}"
    )


_JSON_TYPE_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    type(None): "null",
}


def json_type(value: Any) -> str:
    """What a value of JSON is, in words."""
    return _JSON_TYPE_NAMES.get(type(value), "a number")


class Encoder(NamedTuple):
    """How rows become text.

    Attributes:
        encode: Gives a row as lines, or as members of an archive.
        header, footer: What a file begins and ends with.
    """

    encode: Callable[[Any], bytes]
    header: bytes = b""
    footer: bytes = b""


def json_encoder(columns: Sequence[RowColumn]) -> Encoder:
    """Rows as lines of JSON."""
    is_text = {column.name: column.text for column in columns}

    def encode(row: Row) -> bytes:
        return json_line({name: json_value(value, is_text[name]) for name, value in row.items()})

    return Encoder(encode)


def json_line(tree: dict[str, Any]) -> bytes:
    """An object as a line of JSON."""
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


def example_encoder(columns: Sequence[RowColumn]) -> Encoder:
    """Rows as Examples in protobuf's JSON, one per line."""
    kinds = kinds_of(columns)

    def encode(row: Row) -> bytes:
        return example_to_json(encode_example(features_of_row(row, kinds))).encode() + b"\n"

    return Encoder(encode)


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


# ---- Writing text -----------------------------------------------------------------------------


class TextWriter:
    """Writes rows that are encoded, between the header and the footer.

    Args:
        file: A binary file.
        compressed: By gzip; the same content gives the same bytes.
        encoder: Of the rows.
    """

    def __init__(self, file: Any, compressed: bool, encoder: Encoder) -> None:
        self._gzip = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else None
        self._file = self._gzip or file
        self._footer = encoder.footer
        self._file.write(encoder.header)

    def write(self, items: Sequence[bytes]) -> None:
        self._file.writelines(items)

    def close(self) -> None:
        self._file.write(self._footer)
        if self._gzip is not None:
            self._gzip.close()


def pieces(items: Iterator[Any], budget: int) -> Iterator[list[Any]]:
    """Rows or lines in lists of about so many bytes, and MAX_ROWS at most."""
    piece: list[Any] = []
    size = 0
    for item in items:
        piece.append(item)
        if isinstance(item, bytes):
            size += len(item)
        else:
            size += sum(map(_size, [*item.values(), *getattr(item, "lists", {}).values()]))
        if size >= budget or len(piece) >= MAX_ROWS:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _size(value: Any) -> int:
    if isinstance(value, list):
        return _VALUE_BYTES + sum(map(_size, value))
    return _VALUE_BYTES + (len(value) if isinstance(value, bytes) else 0)
