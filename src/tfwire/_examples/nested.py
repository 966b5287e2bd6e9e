"""Columns of lists in lists: how long every list is, whatever library has them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arguments import as_index
from tfwire._base.arrays import joined_ranges, joined_splits, to_splits
from tfwire._base.native import borrow, ffi, lib
from tfwire._examples.arrow_import import ArrowImport, is_arrow, values_of_input
from tfwire._examples.encoder_inputs import (
    bytes_column_input,
    copied_splits,
    flat_input,
    outer_splits,
    plain_input,
)
from tfwire._examples.missing import absent_entries, array_of_pandas
from tfwire._examples.values import (
    BYTES,
    NONE,
    Array,
    Name,
    distinct_types,
    dtype_kind,
    joint_kind,
    scalar_kind,
    scalar_kinds,
    show,
)

_MAX_DEPTH = 16  # as of Arrow data. A RaggedTensor may be its own values
_NO_LIMIT = 1 << 62


class Nested(NamedTuple):
    """A column that says how long all its lists are, at any depth.

    Attributes:
        kind: BYTES, FLOAT or INT64; NONE if there are no values that say it.
        values: Of all lists, one after the other: as of an Input.
        offsets: Of strings.
        num_records: How many records there are.
        levels: Row splits, from the records to the values. Where there are no values, some may be
            missing at the end.
        missing: Which entries are missing: of the records, of the lists of each level, and of the
            values. None: none of them.
    """

    kind: int
    values: Any
    offsets: Array | None
    num_records: int
    levels: list[Array]
    missing: list[Array | None]

    def count_at(self, depth: int) -> int:
        """How many entries there are at a depth: records, lists, or values that may be missing."""
        return int(self.levels[depth - 1][-1]) if depth else self.num_records


def nested_column(value: Any, name: Name) -> Nested:
    """A column with everything that says how long its lists are.

    Raises:
        TypeError: A value of a type that no feature holds, or lists beside values.
        ValueError: Row splits that do not fit their values; lists more than 16 deep.
        OSError, MemoryError: As a stream of Arrow data says.
    """
    return _nested(value, name, 0)


def _nested(value: Any, name: Name, depth: int) -> Nested:
    """The column of the cells at some depth."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"{show(name)}: lists more than {_MAX_DEPTH} deep")
    value = array_of_pandas(value)
    if isinstance(value, np.ndarray):
        return _of_array(value, name, depth)
    if is_arrow(value):
        return _of_arrow(value, name)
    if hasattr(value, "row_splits"):
        inner = _nested(value.values, name, depth + 1)
        splits = copied_splits(value.row_splits, name)
        outer_splits(
            splits, np.arange(inner.num_records + 1, dtype=np.int64), name
        )  # refuses what does not fit
        return _within(splits, None, inner)
    if hasattr(value, "offsets"):
        column, count = bytes_column_input(value, name)
        return _uniform(column, count, tuple(map(as_index, getattr(value, "shape", ())))[1:])
    if hasattr(value, "numpy"):
        return _nested(value.numpy(), name, depth)
    if isinstance(value, Sequence) and scalar_kind(type(value)) is None:
        return _of_cells(tuple(value), name, depth, is_array=False)
    column, count = plain_input(value, name)  # which says what is wrong with others
    return _uniform(column, count, ())


def _uniform(column: Any, num_records: int, shape: Sequence[int]) -> Nested:
    """A column whose records have one shape."""
    levels, count = [], num_records
    for size in shape:
        levels.append(np.arange(count + 1, dtype=np.int64) * size)
        count *= size
    missing: list[Array | None] = [None] * (len(levels) + 1)
    return Nested(column.kind, column.values, column.offsets, num_records, levels, missing)


def _within(splits: Array, missing: Array | None, inner: Nested) -> Nested:
    """A column of lists of what is in another."""
    return inner._replace(
        num_records=len(splits) - 1,
        levels=[splits, *inner.levels],
        missing=[missing, *inner.missing],
    )


def _of_array(array: Array, name: Name, depth: int) -> Nested:
    plain = np.asarray(array)
    is_masked = isinstance(array, np.ma.MaskedArray) and bool(np.ma.getmaskarray(array).any())
    if plain.dtype.kind == "O" or is_masked:
        cells = tuple(array.tolist()) if plain.ndim == 1 else tuple(array)
        return _of_cells(cells, name, depth, is_array=plain.ndim == 1)
    column, count = plain_input(plain, name)
    return _uniform(column, count, plain.shape[1:])


def _of_cells(cells: tuple[Any, ...], name: Name, depth: int, is_array: bool) -> Nested:
    types = distinct_types(cells)
    missing = absent_entries(cells, types, is_array)
    found = cells if missing is None else tuple(compress(cells, ~missing))
    if not found:
        return Nested(NONE, (), None, len(cells), [], [missing])
    types = types if missing is None else distinct_types(found)
    kinds = scalar_kinds(types)
    if kinds is not None:
        column = flat_input(joint_kind(kinds, name), found, name)
        return Nested(column.kind, column.values, column.offsets, len(cells), [], [missing])
    joined = _joined_arrays(found) if types == {np.ndarray} else None
    if joined is None:
        parts: Sequence[Any] = found
        if not types <= {list, tuple}:
            parts = [items_of(cell, name) for cell in found]
        lengths = np.fromiter(map(len, parts), np.int64, len(parts))
        inner = _of_cells(tuple(chain.from_iterable(parts)), name, depth + 1, is_array=False)
    else:
        lengths = np.fromiter(map(len, found), np.int64, len(found))
        inner = _nested(joined, name, depth + 1)
    if missing is not None:
        every = np.zeros(len(cells), np.int64)
        every[~missing] = lengths
        lengths = every
    return _within(to_splits(lengths), missing, inner)


def _joined_arrays(cells: tuple[Any, ...]) -> Array | None:
    """Arrays of numbers that differ in their first dimension alone, one after the other."""
    if cells[0].ndim == 0:
        return None
    dtypes, shapes = {cell.dtype for cell in cells}, {cell.shape[1:] for cell in cells}
    if len(dtypes) != 1 or len(shapes) != 1 or {cell.ndim for cell in cells} != {cells[0].ndim}:
        return None
    return None if dtype_kind(cells[0].dtype) in (None, BYTES) else np.concatenate(cells)


def items_of(cell: Any, name: Name) -> Any:
    """What is in a list."""
    if isinstance(cell, (list, tuple)):
        return tuple(cell)
    cell = array_of_pandas(cell)
    if isinstance(cell, np.ndarray) and cell.ndim:
        return cell.tolist() if cell.ndim == 1 else list(cell)
    for method in ("to_pylist", "to_list"):  # of Arrow and polars; of ours
        if hasattr(cell, method):
            return getattr(cell, method)()
    if hasattr(cell, "numpy"):
        return items_of(cell.numpy(), name)
    if isinstance(cell, Sequence) and scalar_kind(type(cell)) is None:
        return tuple(cell)
    expected = "lists, or values, in all places of one depth"
    raise TypeError(f"{show(name)}: expected {expected}, found {type(cell).__name__}")


# ---- Arrow data ---------------------------------------------------------------------------------


def _of_arrow(value: Any, name: Name) -> Nested:
    source = ArrowImport(value, show(name))
    with source.released_on_error():
        source.read_schema()
        source.nest(0)
    chunks = [
        _copied(nested_of_input(source, 0, found[0], count))
        for found, count, _ in source.batches(_NO_LIMIT)
    ]
    if not chunks:
        return Nested(NONE, (), None, 0, [], [None])
    return chunks[0] if len(chunks) == 1 else _joined(chunks)


def nested_of_input(source: ArrowImport, column: int, given: Any, num_records: int) -> Nested:
    """A column of a batch of Arrow data, which was asked for as nested; as long as the batch is
    there.

    Args:
        source: The table.
        column: Its number.
        given: Its ``tfw_input``.
        num_records: Of the batch.
    """
    levels, marks = source.levels(column)
    values, offsets = values_of_input(given)
    missing = [None if mark is None else mark != lib.TFW_PRESENT for mark in marks]
    if given.presence != ffi.NULL:
        presence = borrow(given.presence, num_records, np.uint8)
        absent = presence == lib.TFW_ABSENT
        missing[0] = absent if absent.any() else None
        if not levels and missing[0] is not None:
            values, offsets = _present_values(values, offsets, np.flatnonzero(~absent))
    kind = given.kind if len(values) or (offsets is not None and len(offsets) > 1) else NONE
    return Nested(kind, values, offsets, num_records, levels, missing)


def _present_values(values: Any, offsets: Array | None, present: Array) -> tuple[Any, Any]:
    """The values of some records. In memory, the others have one, too, unless none has."""
    if offsets is None:
        return (values[present] if len(values) else values), None
    where, kept = joined_ranges(offsets[:-1][present], np.diff(offsets)[present])
    return values[where], kept


def _copied(lent: Nested) -> Nested:
    offsets = None if lent.offsets is None else lent.offsets.copy()
    levels = [level.copy() for level in lent.levels]
    return lent._replace(values=lent.values.copy(), offsets=offsets, levels=levels)


def _joined(chunks: list[Nested]) -> Nested:
    """Chunks of one type, one after the other."""
    first = chunks[0]
    missing: list[Array | None] = []
    for depth, _ in enumerate(first.missing):
        marks = [
            np.zeros(chunk.count_at(depth), np.bool_) if mark is None else mark
            for chunk in chunks
            for mark in [chunk.missing[depth]]
        ]
        every = np.concatenate(marks)
        missing.append(every if every.any() else None)
    offsets = None
    if first.offsets is not None:
        offsets = joined_splits(chunk.offsets for chunk in chunks)
    return Nested(
        max(chunk.kind for chunk in chunks),  # NONE is the smallest
        np.concatenate([chunk.values for chunk in chunks]),
        offsets,
        sum(chunk.num_records for chunk in chunks),
        [joined_splits(parts) for parts in zip(*(chunk.levels for chunk in chunks), strict=True)],
        missing,
    )
