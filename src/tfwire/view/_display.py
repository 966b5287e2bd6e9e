"""Objects as tables of HTML, for notebooks: what _repr_html_ returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from tfwire import (
    BytesColumn,
    DataLossError,
    InferredSchema,
    RaggedTensor,
    SparseTensor,
    TFRecordFile,
    TFRecordFiles,
)
from tfwire._interface.messages import integer, plural
from tfwire.view._budget import Budget
from tfwire.view._cells import first_values
from tfwire.view._html import (
    Html,
    bytes_text,
    cell,
    element,
    html_table,
    join,
    not_read,
    number,
    row_of_cells,
    shown_text,
    small,
    title,
    too_long,
)
from tfwire.view._records import (
    FRAME_BYTES,
    LONGEST_RECORD,
    FeatureName,
    Record,
    decoded_record,
)

_COLUMNS_OF_TABLE = 24


def as_html(value: object, max_rows: int = 20) -> str:
    """A table of HTML, with thumbnails of JPEG, PNG, GIF and WebP images.

    All text is escaped. The table takes 4 MB at most, an image in it 64 KB; others are named. What
    is left out is said.

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
        >>> as_html({"label": np.array([3, 4])})[:19]
        '<div><table><thead>'
    """
    max_rows = integer("max_rows", max_rows, 0)
    return str(element("div", _shown(value, max_rows, Budget.of_cell())))


def _shown(value: Any, max_rows: int, budget: Budget) -> Html:
    if isinstance(value, (TFRecordFile, TFRecordFiles)):
        return _records(value, max_rows, budget)
    if isinstance(value, InferredSchema):
        return _schema(value, budget)
    if isinstance(value, Mapping):
        return _batch(value, max_rows, budget)
    if isinstance(value, (np.ndarray, BytesColumn, RaggedTensor, SparseTensor)):
        return _batch({"": value}, max_rows, budget)
    if hasattr(value, "element_spec"):
        return _dataset(value, budget)
    found = type(value).__name__
    raise TypeError(f"value must be a batch, a column, records or a schema, found {found}")


def _rows(rows: Iterable[Callable[[], list[object]]], budget: Budget) -> list[Html]:
    """Rows of cells, as many as there is room for."""

    def made(cells: Callable[[], list[object]]) -> Html:
        return row_of_cells(cells())

    return budget.html.fill(partial(made, cells) for cells in rows)


# ---- Records ------------------------------------------------------------------------------------


def _records(records: TFRecordFile | TFRecordFiles, max_rows: int, budget: Budget) -> Html:
    """The first records, decoded without a specification."""
    found: list[Record] = []
    while len(found) < min(max_rows, len(records)) and not budget.is_full:
        found.append(_record(records, len(found)))
        budget.spend(found[-1].objects, found[-1].memory)
    names = sorted({name for record in found for name in record.names})
    shown_names = names[:_COLUMNS_OF_TABLE]
    rows = _rows((partial(_cells, record, shown_names, budget) for record in found), budget)
    titles = ["#", *(title(name, 60) for name in shown_names)]
    num_columns = len(names) + max((record.left_out for record in found), default=0)
    caption = _caption(repr(records), len(rows), len(records), num_columns)
    return html_table(titles, rows, caption)


def _record(records: TFRecordFile | TFRecordFiles, number: int) -> Record:
    size = _size(records, number)
    if size > LONGEST_RECORD:
        return Record(number, 0, size, "long")
    try:
        record = decoded_record(number, 0, records[number])
    except DataLossError as error:
        return Record(number, 0, 0, "damage", reason=str(error))
    return record if record.kind == "other" else record._replace(payload=b"")


def _size(records: TFRecordFile | TFRecordFiles, number: int) -> int:
    """That of a record, decompressed."""
    for index in [records.index] if isinstance(records, TFRecordFile) else records.indexes:
        if number < len(index):
            begin, end = index.offsets[number : number + 2].tolist()
            return int(end - begin) - FRAME_BYTES
        number -= len(index)
    return 0


def _cells(record: Record, names: Sequence[FeatureName], budget: Budget) -> list[object]:
    row: list[object] = [record.number]
    if record.kind == "damage":
        row.append(shown_text(record.reason, 400))
    if record.kind == "long":
        row.append(too_long(record))
    if record.kind == "other":
        row.append(join("not an Example: ", bytes_text(record.payload)))
    for name in names:
        steps = record.steps(name)
        if steps is None:
            row.append("")
        elif len(steps) == 1 and len(steps[0]):
            row.append([_feature(steps[0], budget), not_read(record, name)])
        else:
            row.append([first_values(record, name, steps), not_read(record, name)])
    return row


def _feature(values: Any, budget: Budget) -> Html:
    """The values of a feature; a single one as it is."""
    return cell(values[0] if len(values) == 1 else values, budget)


def _caption(what: str, shown: int, total: int, num_columns: int) -> Html:
    parts = [shown_text(what)]
    if shown < total:
        parts.append(join(f"{plural(shown, 'row')} of {total:,}"))
    if num_columns > _COLUMNS_OF_TABLE:
        parts.append(join(f"{_COLUMNS_OF_TABLE} columns of {num_columns:,}"))
    return Html("; ".join(parts))


# ---- Columns ------------------------------------------------------------------------------------


def _batch(columns: Mapping[Any, Any], max_rows: int, budget: Budget) -> Html:
    names = list(islice(columns, _COLUMNS_OF_TABLE))
    shown = [columns[name] for name in names]
    total = max(map(_num_rows, shown), default=0)
    lengths = [min(max_rows, _num_rows(column)) if _has_rows(column) else 1 for column in shown]
    values = [_row_of(column, length) for column, length in zip(shown, lengths, strict=True)]

    def cells(i: int) -> list[object]:
        row: list[object] = [i]
        for value, length in zip(values, lengths, strict=True):
            row.append(cell(value(i), budget) if i < length else "")
        return row

    rows = _rows((partial(cells, i) for i in range(max(lengths, default=0))), budget)
    line_end = element("br")
    kinds = [join(shown_text(str(name), 60), line_end, _kind(columns[name])) for name in names]
    note = f"{plural(len(rows), 'row')} of {total:,}" if len(rows) < total else ""
    if len(columns) > len(names):
        note += f" {_COLUMNS_OF_TABLE} columns of {len(columns):,}"
    return html_table(["", *kinds], rows, note)


def _has_rows(column: Any) -> bool:
    return not isinstance(column, np.ndarray) or column.ndim > 0


def _num_rows(column: Any) -> int:
    if isinstance(column, SparseTensor):
        return int(column.dense_shape[0]) if len(column.dense_shape) else 0
    return len(column) if getattr(column, "shape", ()) else 1


def _kind(column: Any) -> Html:
    """The dtype and shape of a column."""
    dtype = getattr(column, "dtype", getattr(getattr(column, "values", None), "dtype", "string"))
    shape = getattr(column, "shape", None)
    if isinstance(column, SparseTensor):
        shape = tuple(map(int, column.dense_shape))
    text = str(dtype).replace("object", "string")
    return Html() if shape is None else small(shown_text(text), " ", shown_text(str(shape)))


def _row_of(column: Any, count: int) -> Callable[[int], Any]:
    """A function that gives the first rows by their numbers."""
    if isinstance(column, SparseTensor):
        numbers = column.indices[:, 0] if len(column.indices) else np.empty(0, np.int64)
        ends = np.searchsorted(numbers, np.arange(count + 1, dtype=np.int64))
        return lambda i: column.values[ends[i] : ends[i + 1]]
    if isinstance(column, (BytesColumn, RaggedTensor)):
        return lambda i: column[i]
    array = np.asarray(column)
    return lambda i: array[i] if array.ndim else array


# ---- Specifications -----------------------------------------------------------------------------


def _schema(schema: InferredSchema, budget: Budget) -> Html:
    parts = (
        ("", schema, schema.statistics),
        ("[]", schema.sequence_features, schema.sequence_statistics),
    )
    found = [
        partial(_specification, name, mark, feature, statistics.get(name), schema.num_records)
        for mark, features, statistics in parts
        for name, feature in features.items()
    ]
    rows = _rows(found, budget)
    notes = [f"of {plural(schema.num_records, 'record')}"] if schema.num_records else []
    if len(rows) < len(found):
        notes.append(f"{plural(len(rows), 'feature')} of {len(found):,}")
    return html_table(["feature", "specification", "present", "values"], rows, "; ".join(notes))


def _specification(name: str, mark: str, feature: Any, seen: Any, num_records: int) -> list[object]:
    share = counts = ""
    if seen is not None and num_records:
        share = f"{100 * seen.present / num_records:.3g} %"
        counts = number(seen.min_count)
        if seen.max_count != seen.min_count:
            counts += f" to {seen.max_count:,}"
    return [join(shown_text(name, 60), mark), shown_text(repr(feature)), share, counts]


def _dataset(dataset: Any, budget: Budget) -> Html:
    """The structure of the elements; nothing is read."""
    found = _leaves("", dataset.element_spec)
    rows = budget.html.fill(partial(row_of_cells, leaf) for leaf in found)
    note = shown_text(repr(dataset), 120)
    if len(rows) < len(found):
        note = join(note, f"; {plural(len(rows), 'part')} of {len(found):,}")
    return html_table(["element", "dtype and shape"], rows, note)


def _leaves(name: str, spec: Any) -> list[list[Html]]:
    """Names, dtypes and shapes of the parts."""
    if isinstance(spec, Mapping):
        return [leaf for key, part in spec.items() for leaf in _leaves(f"{name}/{key}", part)]
    if isinstance(spec, (tuple, list)) and not hasattr(spec, "_fields"):
        return [leaf for i, part in enumerate(spec) for leaf in _leaves(f"{name}/{i}", part)]
    found = "unknown until read" if spec is None else str(spec)
    return [[shown_text(name.removeprefix("/"), 60), shown_text(found)]]
