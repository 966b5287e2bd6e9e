"""Columns as the features that a specification says: values and partitions, context and steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NamedTuple, NoReturn

import numpy as np

from tfwire._base.arrays import joined_ranges, to_splits
from tfwire._base.native import lib
from tfwire._base.text import quoted
from tfwire._examples.encoder_inputs import check_lengths, column_items, inputs_from_columns
from tfwire._examples.inputs import Input, Inputs
from tfwire._examples.kinds import KIND_NAMES
from tfwire._examples.nested import Nested, nested_column
from tfwire._examples.values import (
    BYTES,
    FLOAT,
    INT64,
    NONE,
    Array,
    Name,
    as_float32,
    missing_in_list,
    show,
)
from tfwire._examples.written_columns import WritePlan, WrittenColumn
from tfwire._examples.written_sparse import WrittenSparse, columns_of_sparse, nested_of_structs


def features_of(column: WrittenColumn, nested: Nested, first: int = 0) -> Inputs:
    """The features of a column.

    Args:
        column: How it becomes features.
        nested: The column.
        first: The number of its first record, for errors.

    Raises:
        TypeError: Values of another kind than the specification says, or missing in a list.
        ValueError: Lists of another depth or length, or rows that a partition cannot hold.
    """
    return _Writing(column, nested, first).inputs()


class _Writing:
    """A column that becomes features.

    Attributes:
        levels: Row splits from the records to the values, as deep as the specification says, its
            shape included.
        missing: Which entries are missing, as of Nested, of these levels.
        base: How many of them are around what has values and partitions: a record has them, or,
            of a feature list, a step.
    """

    def __init__(self, column: WrittenColumn, nested: Nested, first: int) -> None:
        self.column, self.nested, self.first = column, nested, first
        self.base = int(column.is_list)
        self.missing = list(nested.missing)
        self.levels = self._fitting_levels()
        self._check_missing()
        self._check_shape()

    def inputs(self) -> Inputs:
        """The features, as C reads them."""
        values, offsets = self._values()
        layout: dict[str, Any] = {"presence": self._presence(0)}
        if self.base:
            layout |= {"steps": self.levels[0], "step_presence": self._presence(1)}
        splits = self._splits(self.base, len(self.levels))
        value = Input(self.column.kind, values, offsets=offsets, splits=splits, **layout)
        found = [(self.column.key, value)]
        for i, (kind, key) in enumerate(self.column.partitions):
            depth = self.base + 1 + i
            if kind == "UniformRowLength":
                lengths = np.diff(self.levels[depth])
                self._expect(lengths == key, depth, f"a row whose length is not {key}")
            else:
                numbers, splits = _PARTITIONS[kind](self, depth)
                found.append((key, Input(INT64, numbers, splits=splits, **layout)))
        return found

    # ---- Depth, shape and kind ------------------------------------------------------------------

    def _fitting_levels(self) -> list[Array]:
        """The levels of lists of any length and of the shape, and one for the values if some are
        missing."""
        column, nested = self.column, self.nested
        levels, wanted = list(nested.levels), column.lists + len(column.shape)
        is_open = nested.kind == NONE or not nested.num_records  # it says no depth
        while is_open and len(levels) < wanted:
            count = int(levels[-1][-1]) if levels else nested.num_records
            levels.append(np.zeros(count + 1, np.int64))
            self.missing.append(None)
        depth = len(levels)
        may_be_flat = not column.lists or column.shape
        is_flat = depth == column.lists + 1 and depth != wanted and may_be_flat
        is_scalar = depth == wanted - 1 and not column.shape and not column.partitions
        if depth != wanted and not is_flat and not is_scalar:
            said, found = _words(wanted), _words(depth)
            raise ValueError(
                f"{show(column.name)}: expected {said} in each record, as {column.said_by} says, "
                f"found {found}"
            )
        if is_scalar or depth == self.base or depth == 0:
            absent = self.missing[depth]
            count = int(levels[-1][-1]) if levels else nested.num_records
            lengths = np.ones(count, np.int64) if absent is None else (~absent).astype(np.int64)
            levels.append(to_splits(lengths))
        return levels

    def _check_missing(self) -> None:
        """Refuses what is missing in a list, steps aside, which may have no kind."""
        for depth, absent in enumerate(self.missing):
            if absent is None or not absent.any():
                continue
            number = self._record(depth, int(absent.argmax()))
            if depth == 0 and self.column.required:
                raise ValueError(
                    f"{show(self.column.name)}: record {number}: a value is missing, and "
                    f"{self.column.said_by} needs one in every record"
                )
            may_be_null = depth == 1 and self.base and self.column.lists > 1  # not of a shape
            if depth and not may_be_null:
                raise missing_in_list(self.column.name, number)

    def _check_shape(self) -> None:
        """Refuses elements of another shape, or without enough values."""
        column = self.column
        if column.lists and not column.shape:
            return
        dimensions = self.levels[column.lists : column.lists + len(column.shape)]
        shape: tuple[int, ...] = column.shape
        if len(self.nested.levels) != column.lists + len(column.shape):
            dimensions, shape = self.levels[column.lists :], (math.prod(column.shape),)
        for i, (level, size) in enumerate(zip(dimensions, shape, strict=False)):
            fits = np.diff(level) == size
            absent = self.missing[column.lists] if not i else None
            text = f"expected the shape {list(column.shape)}, as {column.said_by} says"
            self._expect(fits if absent is None else fits | absent, column.lists + i, text)

    def _values(self) -> tuple[Any, Array | None]:
        """The values in the kind of the specification, and the offsets of strings."""
        kind, nested = self.column.kind, self.nested
        count = len(nested.values if nested.offsets is None else nested.offsets[1:])
        if nested.kind == kind:
            return nested.values, nested.offsets
        if not count:
            if kind == BYTES:
                return np.empty(0, np.uint8), np.zeros(1, np.int64)
            return np.empty(0, np.float32 if kind == FLOAT else np.int64), None
        if (nested.kind, kind) == (INT64, FLOAT):
            return as_float32(nested.values.astype(np.float64), self.column.name), None
        raise TypeError(
            f"{show(self.column.name)}: expected {KIND_NAMES[kind]}, as {self.column.said_by} "
            f"says, found {KIND_NAMES[nested.kind]}"
        )

    def _presence(self, depth: int) -> Array | None:
        absent = self.missing[depth] if depth < len(self.missing) else None
        if absent is None or not absent.any():
            return None
        gone = lib.TFW_KINDLESS if depth else lib.TFW_ABSENT
        presence: Array = np.where(absent, gone, lib.TFW_PRESENT).astype(np.uint8)
        return presence

    # ---- Levels -------------------------------------------------------------------------------

    def _splits(self, begin: int, end: int) -> Array:
        """Where each entry of a depth begins and ends among those of a deeper one."""
        count = int(self.levels[begin - 1][-1]) if begin else self.nested.num_records
        splits = np.arange(count + 1, dtype=np.int64)
        for level in self.levels[begin:end]:
            splits = level[splits]
        return splits

    def _record(self, depth: int, entry: int) -> int:
        """The number of the record that an entry of a depth is in."""
        number = int(np.searchsorted(self._splits(0, depth), entry, "right")) - 1
        return self.first + number

    def _expect(self, good: Array, depth: int, text: str) -> None:
        if not good.all():
            self._fail(depth, int(good.argmin()), text)

    def _fail(self, depth: int, entry: int, text: str) -> NoReturn:
        number = self._record(depth, entry)
        raise ValueError(f"{show(self.column.name)}: record {number}: {text}")

    # ---- Partitions: their numbers, and where those of each record (each step) begin and end ----

    def _row_lengths(self, depth: int) -> tuple[Array, Array]:
        return np.diff(self.levels[depth]), self._splits(self.base, depth)

    def _row_splits(self, depth: int) -> tuple[Array, Array]:
        rows, begins = self._splits(self.base, depth), self._splits(self.base, depth + 1)[:-1]
        sizes = np.diff(rows) + 1
        where, splits = joined_ranges(rows[:-1], sizes)
        return self.levels[depth][where] - np.repeat(begins, sizes), splits

    def _row_starts(self, depth: int) -> tuple[Array, Array]:
        return self._relative(self.levels[depth][:-1], depth)

    def _row_limits(self, depth: int) -> tuple[Array, Array]:
        return self._relative(self.levels[depth][1:], depth)

    def _relative(self, ends: Array, depth: int) -> tuple[Array, Array]:
        rows, begins = self._splits(self.base, depth), self._splits(self.base, depth + 1)[:-1]
        return ends - np.repeat(begins, np.diff(rows)), rows

    def _value_row_ids(self, depth: int) -> tuple[Array, Array]:
        rows, lengths = self._splits(self.base, depth), np.diff(self.levels[depth])
        lasts = rows[1:][np.diff(rows) != 0] - 1
        empty = lengths[lasts] == 0
        if empty.any():
            self._fail(
                depth, int(lasts[empty.argmax()]), "ValueRowIds hold no last row that is empty"
            )
        numbers = np.arange(len(lengths), dtype=np.int64) - np.repeat(rows[:-1], np.diff(rows))
        return np.repeat(numbers, lengths), self._splits(self.base, depth + 1)


_PARTITIONS: dict[str, Callable[[_Writing, int], tuple[Array, Array]]] = {
    "RowSplits": _Writing._row_splits,
    "RowLengths": _Writing._row_lengths,
    "RowStarts": _Writing._row_starts,
    "RowLimits": _Writing._row_limits,
    "ValueRowIds": _Writing._value_row_ids,
}


def _words(depth: int) -> str:
    return ("a value", "a list", "lists in a list")[depth] if depth < 3 else f"lists {depth} deep"


# ---- The features of several columns ------------------------------------------------------------


class WrittenBatch(NamedTuple):
    """Records that a plan makes.

    Attributes:
        features, lists: Features and feature lists, with their keys.
        num_records: How many records there are.
    """

    features: list[tuple[bytes, Any]]
    lists: list[tuple[bytes, Any]]
    num_records: int


class WrittenInputs:
    """The features of columns, which may share partitions.

    Args:
        first: The number of the first record, for errors.
    """

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._parts: tuple[dict[bytes, tuple[Name, Any]], ...] = ({}, {})

    def add(self, key: bytes, name: Name, given: Any) -> None:
        """A feature that is written as it is: an Input or a ``tfw_input``."""
        self._put(False, key, name, given)

    def add_column(self, column: WrittenColumn, nested: Nested) -> None:
        """The features of a column.

        Raises:
            TypeError, ValueError: As ``features_of``, or it shares a feature with another column,
                which says something else of it.
        """
        for key, given in features_of(column, nested, self._first):
            self._put(column.is_list, key, column.name, given)

    def _put(self, is_list: bool, key: bytes, name: Name, given: Any) -> None:
        part = self._parts[is_list]
        if key not in part:
            part[key] = name, given
            return
        other, known = part[key]
        where = _difference(known, given)
        if where is not None:
            shared = quoted(key.decode("utf-8", "surrogateescape"))
            record = "" if where < 0 else f"record {self._first + where}: "
            said = f"{show(other)} writes something else as {shared}"
            if other == name:
                said = f"its values and partitions are all written as {shared}, and differ"
            raise ValueError(f"{show(name)}: {record}{said}; give each a key of its own")

    def add_sparse(self, sparse: WrittenSparse, indices: Nested, values: Nested) -> None:
        """The features of a column of structs; errors as of ``add_column``."""
        for column, nested in columns_of_sparse(sparse, indices, values):
            self.add_column(column, nested)

    def batch(self, num_records: int, sort_keys: bool, plan: WritePlan) -> WrittenBatch:
        """All features, for so many records.

        Raises:
            ValueError: Those of a SparseFeature do not fit each other, or its size.
        """
        for sparse in plan.structs.values():
            sparse.check_features(self._parts[0], self._first)
        features, lists = (
            [(key, given) for key, (_, given) in part.items()] for part in self._parts
        )
        if sort_keys:
            features.sort(key=itemgetter(0))
            lists.sort(key=itemgetter(0))
        return WrittenBatch(features, lists, num_records)


def written_columns(columns: Mapping[Any, Any], sort_keys: bool, plan: WritePlan) -> WrittenBatch:
    """Columns whose first axis counts the records, as their plan says.

    Raises:
        TypeError, ValueError: As ``inputs_from_columns`` and ``features_of``; a column is missing
            that all records must have.
    """
    others = {}
    written = WrittenInputs()
    lengths: dict[str, int] = {}
    items = column_items(columns, sort_keys)
    plan.check_names(key for key, _, _ in items)
    for key, name, value in items:
        column, sparse = plan.columns.get(key), plan.structs.get(key)
        if sparse is not None:
            nested, values = nested_of_structs(value, name)
            written.add_sparse(sparse, nested, values)
            lengths[show(name)] = nested.num_records
            continue
        if column is None:
            others[name] = value
            continue
        try:
            nested = nested_column(value, name)
            written.add_column(column, nested)
        except (TypeError, ValueError) as error:
            raise _naming_record(error, column, value) from None
        lengths[show(name)] = nested.num_records
    inputs, count = inputs_from_columns(others, sort_keys)
    if others:
        lengths[show(next(iter(others)))] = count
    check_lengths(lengths)
    for (key, given), name in zip(inputs, others, strict=True):
        written.add(key, name, given)
    return written.batch(next(iter(lengths.values()), 0), sort_keys, plan)


def _naming_record(error: Exception, column: WrittenColumn, value: Any) -> Exception:
    """An error of a column that names the first record at fault, if it is one's alone."""
    shown = f"{show(column.name)}: "
    said = str(error).removeprefix(shown)
    is_array = isinstance(value, np.ndarray) and value.dtype.kind == "O"
    has_cells = is_array or isinstance(value, (list, tuple))
    if not said.startswith("record ") and has_cells:
        for number, cell in enumerate(value):
            try:
                features_of(column, nested_column([cell], column.name))
            except (TypeError, ValueError):
                kind = TypeError if isinstance(error, TypeError) else ValueError
                return kind(f"{shown}record {number}: {said}")
    return error


def _difference(one: Any, other: Any) -> int | None:
    """The first record in which two features differ; -1: they do in kind or form; None: in none."""
    if not (isinstance(one, Input) and isinstance(other, Input)) or one.kind != other.kind:
        return -1
    above: list[Array] = []  # row splits, from the records on, that both have
    for field in ("presence", "steps", "step_presence", "splits", "offsets", "values"):
        is_splits = field in ("steps", "splits", "offsets")
        first, second = _plain(one, field, other), _plain(other, field, one)
        if first is None and second is None:
            continue
        if first is None or second is None:
            return -1
        if not np.array_equal(first, second):
            entry = _first_difference(first, second) - is_splits
            for level in reversed(above):
                entry = int(np.searchsorted(level, entry, "right")) - 1
            return entry
        if is_splits:
            above.append(first)
    return None


def _plain(given: Input, field: str, other: Input) -> Array | None:
    """A field as an array: also where all are present, which the other feature does not say."""
    found, beside = getattr(given, field), getattr(other, field)
    if found is None and beside is not None and field.endswith("presence"):
        return np.full(len(beside), lib.TFW_PRESENT, np.uint8)
    return found if found is None or isinstance(found, np.ndarray) else np.frombuffer(found, "u1")


def _first_difference(first: Array, second: Array) -> int:
    """Where two arrays differ."""
    count = min(len(first), len(second))
    differ = first[:count] != second[:count]
    return int(differ.argmax()) if differ.any() else count
