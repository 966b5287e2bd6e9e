"""Rows and columns of Python values as the columns that C encodes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tfwire._core import lib
from tfwire._examples.encoder import Column, make_column
from tfwire._examples.normalize import (
    BYTES,
    FLOAT,
    INT64,
    NONE,
    Array,
    Cell,
    Name,
    cell_of,
    dtype_kind,
    join_cells,
    joint_kind,
    key_bytes,
    scalar_kind,
    show,
    types_of,
)
from tfwire._spans import strings_of_objects

__all__ = ["columns_of_mapping", "columns_of_rows", "lists_of_mapping"]

Named = list[tuple[bytes, Column]]


def splits_of(lengths: Any, count: int) -> Array:
    """Lengths as offsets: count + 1 entries from 0 on."""
    splits = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=splits[1:])
    return splits


def named(columns: Mapping[Any, Any], sort_keys: bool) -> list[tuple[bytes, Any, Any]]:
    """(key's bytes, key, value) of every item, in the order of the output.

    Raises:
        ValueError: Two keys have the same bytes.
    """
    items = [(key_bytes(name), name, value) for name, value in columns.items()]
    if len({item[0] for item in items}) != len(items):
        raise ValueError("two keys are the same feature, once as str and once as bytes")
    return sorted(items, key=lambda item: item[0]) if sort_keys else items


# ---- Rows -------------------------------------------------------------------------------------


class _Cells:
    """The cells of one feature, in the rows that have it."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self.rows: list[int] = []
        self.cells: list[Cell] = []

    def column(self, kind: int, num_rows: int) -> Column:
        lengths = [len(cell.values) for cell in self.cells]
        values = join_cells(kind, self.cells, self.name)
        presence = None
        if kind == NONE or len(self.rows) != num_rows:
            presence = np.full(num_rows, lib.TFW_ABSENT, np.uint8)
            presence[self.rows] = lib.TFW_KINDLESS if kind == NONE else lib.TFW_PRESENT
            by_row = np.zeros(num_rows, np.int64)
            by_row[self.rows] = lengths
            lengths = by_row.tolist()
        return make_column(
            kind, values, self.name, splits=splits_of(lengths, num_rows), presence=presence
        )


def columns_of_rows(rows: Sequence[Mapping[Any, Any]], sort_keys: bool) -> Named:
    """Rows as columns. A feature that has another kind in another row gets a column of each."""
    features: dict[tuple[bytes, int], _Cells] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"expected a mapping of names to values, found {type(row).__name__}")
        for key, name, value in named(row, sort_keys=False):
            cell = cell_of(value, name)
            feature = features.get((key, cell.kind))
            if feature is None:
                feature = features[key, cell.kind] = _Cells(name)
            feature.rows.append(i)
            feature.cells.append(cell)
    order = sorted(features) if sort_keys else list(features)
    return [(key, features[key, kind].column(kind, len(rows))) for key, kind in order]


# ---- Columns ----------------------------------------------------------------------------------


def columns_of_mapping(columns: Mapping[Any, Any], sort_keys: bool) -> tuple[Named, int]:
    """Columns whose first axis counts the records, and the number of records.

    Raises:
        TypeError: No mapping.
        ValueError: The columns differ in length.
    """
    if not hasattr(columns, "items"):
        raise TypeError(
            f"expected a mapping of names to columns, found {type(columns).__name__}; "
            "rows are for encode_examples, or a writer's write_many"
        )
    found: Named = []
    first = ""
    num_records = 0
    for key, name, value in named(columns, sort_keys):
        column, length = column_of(value, name)
        if found and length != num_records:
            raise ValueError(
                f"columns differ in length: {first} has {num_records} records, "
                f"{show(name)} has {length}"
            )
        first, num_records = first or show(name), length
        found.append((key, column))
    return found, num_records


def lists_of_mapping(feature_lists: Mapping[Any, Any], sort_keys: bool = True) -> Named:
    """The feature lists of one SequenceExample: columns whose first axis counts the steps.

    Raises:
        TypeError: No mapping.
    """
    if not hasattr(feature_lists, "items"):
        found_type = type(feature_lists).__name__
        raise TypeError(f"expected a mapping of names to feature lists, found {found_type}")
    found: Named = []
    for key, name, value in named(feature_lists, sort_keys):
        column, length = column_of(value, name)
        presence = None if column.presence is None else np.full(1, lib.TFW_KINDLESS, np.uint8)
        steps = np.array([0, length], np.int64)
        found.append((key, column._replace(steps=steps, presence=presence)))
    return found


def column_of(value: Any, name: Name) -> tuple[Column, int]:
    """A column and its number of cells (records, or steps of a feature list)."""
    if isinstance(value, np.ndarray):
        return _array_column(value, name)
    if hasattr(value, "row_splits"):
        return _ragged_column(value, name)
    if hasattr(value, "dense_shape"):  # a tuple, which would be taken for three records
        raise TypeError(f"{show(name)}: a SparseTensor is no column; a RaggedTensor is one")
    if hasattr(value, "offsets"):
        return _string_column(value, name)
    if hasattr(value, "numpy"):
        return column_of(value.numpy(), name)
    if hasattr(value, "feature"):  # a tf.train.FeatureList
        return _list_column(list(value.feature), name)
    if isinstance(value, Sequence) and scalar_kind(type(value)) is None:
        return _list_column(value, name)
    if hasattr(value, "__array__"):
        return _array_column(np.asarray(value), name)
    found = "None" if value is None else type(value).__name__
    raise TypeError(
        f"{show(name)}: expected a column with one entry per record or step, found {found}"
    )


def _array_column(array: Array, name: Name) -> tuple[Column, int]:
    if array.ndim == 0:
        raise TypeError(
            f"{show(name)}: expected a column with one entry per record or step, found rank 0"
        )
    if array.dtype.kind == "O" and array.ndim == 1:
        return _list_column(array.tolist(), name)
    cell = cell_of(array, name)
    per_record = math.prod(array.shape[1:])
    kind = cell.kind if cell.kind != NONE else dtype_kind(array.dtype) or BYTES
    return make_column(kind, cell.values, name, per_record=per_record), len(array)


def _list_column(cells: Sequence[Any], name: Name) -> tuple[Column, int]:
    if cells and type(cells[0]) is bytes and (strings := strings_of_objects(cells)) is not None:
        data, offsets = strings
        return Column(BYTES, data, offsets=offsets), len(offsets) - 1
    cells = tuple(cells)  # another thread may change the list between two looks
    types = types_of(cells)
    kinds = {scalar_kind(cls) for cls in types}
    if cells and None not in kinds:
        kind = joint_kind(kinds, name)  # type: ignore[arg-type]
        return make_column(kind, cells, name), len(cells)
    if types <= {list, tuple}:
        flat = list(chain.from_iterable(cells))
        kinds = {scalar_kind(cls) for cls in types_of(flat)}
        if None not in kinds:
            kind = joint_kind(kinds, name)  # type: ignore[arg-type]
            return _ragged(kind, flat, map(len, cells), len(cells), name)
    if types == {np.ndarray} and {cell.ndim for cell in cells} == {1}:
        dtypes = {cell.dtype for cell in cells}
        array_kind = dtype_kind(dtypes.pop())
        if not dtypes and array_kind in (INT64, FLOAT):
            return _ragged(array_kind, np.concatenate(cells), map(len, cells), len(cells), name)
    found = [cell_of(cell, name) for cell in cells]
    kind = joint_kind((cell.kind for cell in found), name)
    lengths = (len(cell.values) for cell in found)
    return _ragged(kind, join_cells(kind, found, name), lengths, len(found), name)


def _ragged(kind: int, values: Any, lengths: Any, count: int, name: Name) -> tuple[Column, int]:
    """A column of cells of any length. Where no cell says what kind they are, none is set."""
    presence = np.full(count, lib.TFW_KINDLESS, np.uint8) if kind == NONE else None
    splits = splits_of(lengths, count)
    return make_column(kind, values, name, splits=splits, presence=presence), count


def _ragged_column(ragged: Any, name: Name) -> tuple[Column, int]:
    """A RaggedTensor: its rows are the records; inner dimensions are flattened."""
    splits = _own_splits(ragged.row_splits, name)
    values = ragged.values
    while hasattr(values, "row_splits"):
        splits = _inner_splits(splits, _own_splits(values.row_splits, name), name)
        values = values.values
    column, num_values = column_of(values, name)
    if column.splits is None:
        ends = np.arange(num_values + 1, dtype=np.int64) * column.per_record
    else:
        ends = column.splits
    splits = _inner_splits(splits, ends, name)
    return column._replace(splits=splits, per_record=1), len(splits) - 1


def _own_splits(splits: Any, name: Name) -> Array:
    """A copy: they are checked here, and another thread may change what they were given in."""
    copied = np.array(splits, np.int64)
    if copied.ndim != 1:
        raise ValueError(f"{show(name)}: row_splits must be of rank 1, found {copied.ndim}")
    return copied


def _inner_splits(splits: Array, inner: Array, name: Name) -> Array:
    """Splits of rows as splits of what the rows hold, whose own are inner."""
    if len(splits) == 0 or splits[0] != 0 or splits[-1] != len(inner) - 1:
        raise ValueError(f"{show(name)}: row_splits do not cover the values")
    if (np.diff(splits) < 0).any():
        raise ValueError(f"{show(name)}: row_splits decrease")
    return inner[splits]


def _string_column(column: Any, name: Name) -> tuple[Column, int]:
    """A BytesColumn, used in place: C reads offsets once and checks them against the data."""
    offsets = np.ascontiguousarray(column.offsets, np.int64)
    shape = getattr(column, "shape", (len(offsets) - 1,))
    if len(shape) == 0 or len(offsets) == 0:
        raise TypeError(
            f"{show(name)}: expected a column with one entry per record or step, found rank 0"
        )
    data = np.ascontiguousarray(column.data)
    per_record = math.prod(shape[1:]) if shape[0] else 0  # no records: it may exceed C's range
    return Column(BYTES, data, offsets=offsets, per_record=per_record), shape[0]
