"""Parquet and Arrow IPC files for tfwire convert, by pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tfwire._interface.messages import quoted, show_path
from tfwire.cli._row_survey import RowColumn
from tfwire.cli._rows import Row

_METADATA_KEY = b"tfwire:feature"
_MAX_ROWS = 65536
_PARQUET_READ_SIZE = 1 << 20  # bytes of a Parquet file read at a time


def _arrow(name: str = "pyarrow") -> Any:
    return import_module(name)


@contextmanager
def arrow_errors(path: str) -> Iterator[None]:
    """Makes errors of pyarrow those of a file."""
    try:
        yield
    except (_arrow().ArrowException, TypeError, OverflowError) as error:
        text = str(error).split("\n")[0]
        raise ValueError(f"{show_path(path)}: {text}") from None


@contextmanager
def column_errors(path: str) -> Iterator[None]:
    """Makes errors of columns those of a file, in the words of the command."""
    try:
        yield
    except (_arrow().ArrowException, TypeError, ValueError, OverflowError) as error:
        text, advice, _ = str(error).split("\n")[0].partition("; give features")
        advice = advice and "; give --schema, to write a .tfrecord file"
        raise ValueError(f"{show_path(path)}: {text}{advice}") from None


# ---- Reading ------------------------------------------------------------------------------------


@contextmanager
def _opened_table(path: str, format_name: str) -> Iterator[Any]:
    """A ParquetFile, a RecordBatchFileReader or a RecordBatchStreamReader."""
    with open(path, "rb") as file, arrow_errors(path):
        if format_name == "parquet":
            parquet = _arrow("pyarrow.parquet")
            yield parquet.ParquetFile(file, buffer_size=_PARQUET_READ_SIZE, pre_buffer=False)
            return
        is_file = file.peek(6)[:6] == b"ARROW1"
        ipc = _arrow("pyarrow.ipc")
        yield ipc.open_file(file) if is_file else ipc.open_stream(file)


def arrow_schema(path: str, format_name: str) -> Any:
    """The pyarrow.Schema of a file."""
    with _opened_table(path, format_name) as table:
        return table.schema_arrow if format_name == "parquet" else table.schema


def num_rows(path: str, format_name: str) -> int | None:
    """How many rows a file has; None if it does not say."""
    with _opened_table(path, format_name) as table:
        return int(table.metadata.num_rows) if format_name == "parquet" else None


def table_batches(path: str, format_name: str, budget: int) -> Iterator[tuple[Any, int]]:
    """The record batches of a file, of about ``budget`` bytes at most, each with the number of rows
    up to its end.

    Args:
        path: The file.
        format_name: "parquet" or "arrow".
        budget: Bytes.
    """
    done = 0
    with _opened_table(path, format_name) as table:
        if format_name == "parquet":
            batches = table.iter_batches(_rows_of_budget(table.metadata, budget), use_threads=False)
        elif hasattr(table, "num_record_batches"):
            batches = (table.get_batch(i) for i in range(table.num_record_batches))
        else:
            batches = iter(table)
        for batch in batches:
            rows = max(1, batch.num_rows * budget // max(1, batch.nbytes))
            for first in range(0, batch.num_rows, rows):
                piece = batch.slice(first, rows)
                done += piece.num_rows
                yield piece, done


def _rows_of_budget(metadata: Any, budget: int) -> int:
    """How many rows take at most this many bytes in every row group."""
    rows = _MAX_ROWS
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        rows = min(rows, group.num_rows * budget // max(1, group.total_byte_size))
    return max(1, rows)


def arrow_rows(batch: Any) -> Iterator[Row]:
    """The rows of a record batch; nulls are missing values."""
    names = batch.schema.names
    for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
        row = zip(names, values, strict=True)
        yield {name: _row_value(name, value) for name, value in row if value is not None}


def _row_value(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_row_item(name, item) for item in value]
    return _row_item(name, value)


def _row_item(name: str, item: Any) -> Any:
    if isinstance(item, str):
        return item.encode()
    if item is None:
        raise ValueError(f"{quoted(name)}: null in a list; drop it or fill it first")
    return int(item) if isinstance(item, bool) else item


def check_names(paths: Sequence[str], features: Any) -> None:
    """Refuses features and feature lists of one name, which would be two columns.

    Raises:
        ValueError: There are some.
    """
    both = set(features) & set(getattr(features, "sequence_features", ()))
    if both:
        where = show_path(paths[0]) if len(paths) == 1 else f"the {len(paths)} files"
        raise ValueError(
            f"{where}: {quoted(min(both))} is in the context and among the feature lists, which "
            "would be two columns of one name; give --schema with a file that has one of them, or "
            "convert to JSON lines"
        )


def is_of_records(schema: Any) -> bool:
    """Whether the columns of a table are more than rows hold, ragged features or feature lists, and
    its metadata says how they become records."""
    return any(map(_is_of_records, schema))


def _is_of_records(field: Any) -> bool:
    text = (field.metadata or {}).get(_METADATA_KEY)
    lists, _ = _lists_of(_arrow("pyarrow.types"), field.type)
    return text is not None and (len(lists) > 1 or b'"feature_lists"' in text)


def lost_types(path: str, schema: Any, features: Any) -> Iterator[str]:
    """What a TFRecord file does not hold of a schema.

    Args:
        path: The first of the tables.
        schema: Of the tables.
        features: The InferredSchema that is given; None: none.

    Raises:
        ValueError: Lists in lists, and nothing says how they are written.
    """
    types = _arrow("pyarrow.types")
    known = set() if features is None else {*features, *features.sequence_features}
    if not known.issuperset(schema.names):
        for name in sorted(known.difference(schema.names)):
            yield f"{quoted(name)}: the schema names it, and there is no such column"
    for field in schema:
        lists, item = _lists_of(types, field.type)
        is_known = field.name in known or (
            features is None and _METADATA_KEY in (field.metadata or {})
        )
        if not is_known and not all(map(types.is_fixed_size_list, lists[1:])):
            raise ValueError(
                f"{show_path(path)}: {quoted(field.name)}: lists in lists, whose lengths no "
                "feature holds; give --schema with a file that says how they are written: a "
                "features.json with sequences in it, or a schema.pbtxt with feature lists"
            )
        if not is_known and len(lists) > 1:
            yield f"{quoted(field.name)}: lists of one shape are flattened"
        if types.is_float64(item):
            yield f"{quoted(field.name)}: double is rounded to float"
        elif types.is_boolean(item):
            yield f"{quoted(field.name)}: bool becomes int64"


def lost_in_rows(path: str, schema: Any) -> Iterator[str]:
    """What rows do not hold of the schema of a file.

    Raises:
        ValueError: A type that rows cannot have.
    """
    types = _arrow("pyarrow.types")
    for field in schema:
        lists, item = _lists_of(types, field.type)
        if (len(lists) > 1 and not _is_of_records(field)) or not _is_plain(types, item):
            advice = "; go by a .tfrecord file, for which --schema says how these are written"
            raise ValueError(
                f"{show_path(path)}: {quoted(field.name)}: expected numbers, strings or lists of "
                f"these, found {field.type}{advice if len(lists) > 1 else ''}"
            )
        if types.is_boolean(item):
            yield f"{quoted(field.name)}: bool becomes int64"
    if is_of_records(schema):
        yield from lost_types(path, schema, None)


def _lists_of(types: Any, kind: Any) -> tuple[list[Any], Any]:
    """The types of lists around values, and that of the values."""
    lists = []
    while _is_list(types, kind):
        lists.append(kind)
        kind = kind.value_type
    return lists, kind.value_type if types.is_dictionary(kind) else kind


def _is_list(types: Any, kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_plain(types: Any, kind: Any) -> bool:
    strings = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    numbers = (types.is_integer, types.is_floating, types.is_boolean)
    others = (types.is_fixed_size_binary, types.is_null)
    return any(is_kind(kind) for is_kind in (*strings, *numbers, *others))


# ---- Writing ------------------------------------------------------------------------------------


def schema_of_columns(columns: Sequence[RowColumn]) -> Any:
    """The pyarrow.Schema of rows."""
    arrow = _arrow()
    kinds = {"int64": arrow.int64(), "float": arrow.float64(), "float32": arrow.float32()}
    fields = []
    for column in columns:
        kind = kinds.get(column.kind) or (arrow.string() if column.text else arrow.binary())
        fields.append((column.name, arrow.list_(kind) if column.is_list else kind))
    return arrow.schema(fields)


def table_of_rows(rows: Sequence[Row], columns: Sequence[RowColumn]) -> Any:
    """Typed rows as a record batch."""
    arrow, schema = _arrow(), schema_of_columns(columns)
    arrays = []
    for field in schema:
        values = [row.get(field.name) for row in rows]
        arrays.append(arrow.array(values, field.type))
    return arrow.record_batch(arrays, schema=schema)


def schema_of(reader: Any) -> Any:
    """The pyarrow.Schema of an ArrowReader."""
    return _arrow().schema(reader)


def record_batch(batch: Any) -> Any:
    """A batch of an ArrowReader as one of pyarrow."""
    return _arrow().record_batch(batch)


def select_rows(batch: Any, chosen: slice) -> Any:
    """Some rows of a record batch."""
    begin, end, step = chosen.indices(batch.num_rows)
    if step == 1:
        return batch.slice(begin, end - begin)
    return batch.take(_arrow().array(range(begin, end, step), _arrow().int64()))


def sizes_of_rows(batch: Any) -> list[int]:
    """The mean number of bytes of a row, for each."""
    return [batch.nbytes // max(1, batch.num_rows)] * int(batch.num_rows)


class _TableWriter:
    """Writes record batches to a file."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write(self, items: Any) -> None:
        if items.num_rows:
            self._writer.write_batch(items)

    def close(self) -> None:
        self._writer.close()


def open_table_writer(file: Any, format_name: str, compression: str, schema: Any) -> _TableWriter:
    """A FileWriter of record batches."""
    if format_name == "parquet":
        parquet = _arrow("pyarrow.parquet")
        return _TableWriter(parquet.ParquetWriter(file, schema, compression=compression))
    ipc = _arrow("pyarrow.ipc")
    options = ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
    return _TableWriter(ipc.new_file(file, schema, options=options))
