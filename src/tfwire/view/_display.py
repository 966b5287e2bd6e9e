"""Objects as tables of HTML, for notebooks: what _repr_html_ returns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, pairwise
from typing import Any

import numpy as np

from tfwire._base.arguments import integer
from tfwire._base.errors import DataLossError
from tfwire._base.text import plural
from tfwire._examples.column_types import BytesColumn, RaggedTensor, SparseTensor
from tfwire._parsing.infer import InferredSchema
from tfwire._records.random_access import TFRecordFile, TFRecordFiles
from tfwire.view._html import bytes_text, cell, escaped, number, table, title
from tfwire.view._records import Record, decoded_record

__all__ = ["as_html"]

_COLUMNS_OF_TABLE = 24


def as_html(value: object, max_rows: int = 20) -> str:
    """A table of HTML, with thumbnails of JPEG, PNG, GIF and WebP images.

    All text is escaped. A cell takes 64 KB at most; images of more than 48,000 bytes are named.

    Args:
        value: A batch, as parsers give it: a mapping of names to columns; a column: an array, a
            BytesColumn, RaggedTensor or SparseTensor; a TFRecordFile or TFRecordFiles; the result
            of infer_schema; a Dataset.
        max_rows: How many rows to show.

    Returns:
        HTML of one element.

    Raises:
        TypeError: ``value`` is something else, or ``max_rows`` is not an integer.
        ValueError: ``max_rows`` is negative, or the file is closed.
        OSError: A record cannot be read. Of one that is damaged, the table says so.

    Example:
        >>> as_html({"label": np.array([3, 4])})[:31]
        '<div><table><thead><tr><th></th'
    """
    max_rows = integer("max_rows", max_rows, 0)
    return f"<div>{_shown(value, max_rows)}</div>"


def _shown(value: Any, max_rows: int) -> str:
    if isinstance(value, (TFRecordFile, TFRecordFiles)):
        return _records(value, max_rows)
    if isinstance(value, InferredSchema):
        return _schema(value)
    if isinstance(value, Mapping):
        return _batch(value, max_rows)
    if isinstance(value, (np.ndarray, BytesColumn, RaggedTensor, SparseTensor)):
        return _batch({"": value}, max_rows)
    if hasattr(value, "element_spec"):
        return _dataset(value)
    raise TypeError(f"value must be a batch, a column, records or a schema, found {_type(value)}")


def _type(value: object) -> str:
    return type(value).__name__


# ---- Records ------------------------------------------------------------------------------------


def _records(records: TFRecordFile | TFRecordFiles, max_rows: int) -> str:
    """The first records, decoded without a specification."""
    found = [_record(records, i) for i in range(min(max_rows, len(records)))]
    names = sorted({name for record in found for name in record.names})
    rows = []
    for record in found:
        row = [str(record.number)]
        if record.kind == "damage":
            row.append(escaped(record.reason, 400))
        if record.kind == "other":
            row.append(f"not an Example: {bytes_text(record.payload)}")
        for name in names[:_COLUMNS_OF_TABLE]:
            steps = record.steps(name)
            value = steps if steps is None or name.is_list else steps[0]
            row.append("" if value is None else _feature(value))
        rows.append(row)
    titles = ["#", *(title(name, 60) for name in names[:_COLUMNS_OF_TABLE])]
    num_columns = len(names) + max((record.left_out for record in found), default=0)
    return table(titles, rows, _caption(repr(records), len(rows), len(records), num_columns))


def _record(records: TFRecordFile | TFRecordFiles, number: int) -> Record:
    try:
        return decoded_record(number, 0, records[number])
    except DataLossError as error:
        return Record(number, 0, 0, "damage", reason=str(error))


def _feature(values: Any) -> str:
    """The values of a feature; a single one as it is."""
    return cell(values[0]) if len(values) == 1 else cell(values)


def _caption(what: str, shown: int, total: int, num_columns: int) -> str:
    parts = [escaped(what)]
    if shown < total:
        parts.append(f"{plural(shown, 'row')} of {total:,}")
    if num_columns > _COLUMNS_OF_TABLE:
        parts.append(f"{_COLUMNS_OF_TABLE} columns of {num_columns:,}")
    return "; ".join(parts)


# ---- Columns ------------------------------------------------------------------------------------


def _batch(columns: Mapping[Any, Any], max_rows: int) -> str:
    names = list(islice(columns, _COLUMNS_OF_TABLE))
    cells = [_column(columns[name], max_rows) for name in names]
    count = max(map(len, cells), default=0)
    rows = [
        [str(i), *(column[i] if i < len(column) else "" for column in cells)] for i in range(count)
    ]
    total = max((_num_rows(columns[name]) for name in names), default=0)
    titles = ["", *(f"{escaped(str(name), 60)}<br>{_kind(columns[name])}" for name in names)]
    note = f"{plural(count, 'row')} of {total:,}" if count < total else ""
    if len(columns) > len(names):
        note += f" {_COLUMNS_OF_TABLE} columns of {len(columns):,}"
    return table(titles, rows, note)


def _num_rows(column: Any) -> int:
    if isinstance(column, SparseTensor):
        return int(column.dense_shape[0]) if len(column.dense_shape) else 0
    return len(column) if getattr(column, "shape", ()) else 1


def _kind(column: Any) -> str:
    """The dtype and shape of a column."""
    dtype = getattr(column, "dtype", getattr(getattr(column, "values", None), "dtype", "string"))
    shape = getattr(column, "shape", None)
    if isinstance(column, SparseTensor):
        shape = tuple(map(int, column.dense_shape))
    text = str(dtype).replace("object", "string")
    return f"<small>{escaped(text)} {escaped(str(shape))}</small>" if shape is not None else ""


def _column(column: Any, max_rows: int) -> list[str]:
    """The cells of the first rows."""
    if isinstance(column, SparseTensor):
        rows = min(max_rows, _num_rows(column))
        numbers = column.indices[:, 0] if len(column.indices) else np.empty(0, np.int64)
        ends = np.searchsorted(numbers, np.arange(rows + 1))
        return [cell(_items(column.values[a:b])) for a, b in pairwise(ends)]
    if isinstance(column, (BytesColumn, RaggedTensor)):
        return [cell(_items(column[i])) for i in range(min(max_rows, len(column)))]
    array = np.asarray(column)
    return [cell(row) for row in array[:max_rows]] if array.ndim else [cell(array)]


def _items(row: Any) -> Any:
    """A row of strings or lists as lists, or an array."""
    return row.to_list() if isinstance(row, (BytesColumn, RaggedTensor)) else row


# ---- Specifications -----------------------------------------------------------------------------


def _schema(schema: InferredSchema) -> str:
    parts = (
        ("", schema, schema.statistics),
        ("[]", schema.sequence_features, schema.sequence_statistics),
    )
    rows = []
    for mark, features, statistics in parts:
        for name, feature in features.items():
            seen = statistics.get(name)
            share = counts = ""
            if seen is not None and schema.num_records:
                share = f"{100 * seen.present / schema.num_records:.3g} %"
                counts = number(seen.min_count)
                if seen.max_count != seen.min_count:
                    counts += f" to {seen.max_count:,}"
            rows.append([escaped(name, 60) + mark, escaped(repr(feature)), share, counts])
    note = f"of {plural(schema.num_records, 'record')}" if schema.num_records else ""
    return table(["feature", "specification", "present", "values"], rows, note)


def _dataset(dataset: Any) -> str:
    """The structure of the elements; nothing is read."""
    spec = dataset.element_spec
    rows = [[escaped(name, 60), escaped(str(leaf))] for name, leaf in _leaves("", spec)]
    return table(["element", "dtype and shape"], rows, escaped(repr(dataset), 120))


def _leaves(name: str, spec: Any) -> list[tuple[str, Any]]:
    if isinstance(spec, Mapping):
        return [leaf for key, part in spec.items() for leaf in _leaves(f"{name}/{key}", part)]
    if isinstance(spec, (tuple, list)) and not hasattr(spec, "_fields"):
        return [leaf for i, part in enumerate(spec) for leaf in _leaves(f"{name}/{i}", part)]
    return [(name.removeprefix("/"), "unknown until read" if spec is None else spec)]
