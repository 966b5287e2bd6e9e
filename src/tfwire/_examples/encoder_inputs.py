"""Rows and columns of Python values as the encoder's inputs: flat arrays and their splits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np

from tfwire._base.arrays import contiguous_bytes, int64_array, to_splits
from tfwire._base.native import lib
from tfwire._base.strings import strings_of_objects
from tfwire._examples.arrow_import import LISTS_IN_LISTS, arrow_column, is_arrow
from tfwire._examples.inputs import Input, Inputs
from tfwire._examples.missing import absent_entries, array_of_pandas, is_missing
from tfwire._examples.values import (
    BYTES,
    FLOAT,
    INT64,
    NONE,
    Array,
    Flat,
    Name,
    as_float32,
    as_int64,
    concatenate,
    distinct_types,
    dtype_kind,
    flatten_value,
    joint_kind,
    key_bytes,
    missing_in_list,
    pack_strings,
    scalar_kind,
    scalar_kinds,
    show,
)

# ---- Rows -------------------------------------------------------------------------------------


Settle = Callable[[bytes, Name, Flat, int], Flat | None]
"""Gives a value the kind of its feature, by its key, its name and the number of its row."""


def _as_it_is(_key: bytes, _name: Name, flat: Flat, _number: int) -> Flat:
    return flat


def inputs_from_rows(
    rows: Sequence[Mapping[Any, Any]],
    sort_keys: bool,
    settle: Settle = _as_it_is,
    number: int = 0,
) -> Inputs:
    """The inputs of rows. A feature whose kind differs between rows gets an input for each kind.

    Args:
        rows: Mappings of names to values.
        sort_keys: Order features by their keys' bytes.
        settle: Called with every value; None: it is missing.
        number: That of the first row.

    Raises:
        TypeError: A row is not a mapping, or a value of a type that no feature holds.
        ValueError: Two keys have the same bytes, or nested lists differ in shape.
    """
    features: dict[tuple[bytes, int], _Feature] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"expected a mapping of names to values, found {type(row).__name__}")
        for key, name, value in _items(row):
            if is_missing(value):
                continue
            flat = settle(key, name, flatten_value(value, name), number + i)
            if flat is None:
                continue
            feature = features.get((key, flat.kind))
            if feature is None:
                feature = features[key, flat.kind] = _Feature(name)
            feature.rows.append(i)
            feature.found.append(flat)
    order = sorted(features) if sort_keys else list(features)
    return [(key, features[key, kind].input(kind, len(rows))) for key, kind in order]


class _Feature:
    """The values of one feature, in the rows that have it."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self.rows: list[int] = []
        self.found: list[Flat] = []

    def input(self, kind: int, num_rows: int) -> Input:
        lengths = np.fromiter((len(flat.values) for flat in self.found), np.int64, len(self.found))
        values = concatenate(kind, self.found, self.name)
        presence = None
        if kind == NONE or len(self.rows) != num_rows:
            presence = np.full(num_rows, lib.TFW_ABSENT, np.uint8)
            presence[self.rows] = lib.TFW_KINDLESS if kind == NONE else lib.TFW_PRESENT
            by_row = np.zeros(num_rows, np.int64)
            by_row[self.rows] = lengths
            lengths = by_row
        return flat_input(kind, values, self.name, splits=to_splits(lengths), presence=presence)


def _items(mapping: Mapping[Any, Any], sort_keys: bool = False) -> list[tuple[bytes, Any, Any]]:
    """The key's bytes, the key and the value of every item.

    Raises:
        ValueError: Two keys have the same bytes.
    """
    items = [(key_bytes(name), name, value) for name, value in mapping.items()]
    if len({item[0] for item in items}) != len(items):
        raise ValueError("two keys are the same feature, once as str and once as bytes")
    return sorted(items, key=lambda item: item[0]) if sort_keys else items


# ---- Columns ----------------------------------------------------------------------------------


def inputs_from_columns(columns: Mapping[Any, Any], sort_keys: bool) -> tuple[Inputs, int]:
    """The inputs of columns whose first axis counts the records, and the number of records.

    What is missing for a whole record is an absent feature.

    Raises:
        TypeError: ``columns`` is not a mapping, or a value of a type that no feature holds.
        ValueError: The columns differ in length.
    """
    inputs: Inputs = []
    lengths: dict[str, int] = {}
    for key, name, value in column_items(columns, sort_keys):
        column, lengths[show(name)] = plain_input(value, name)
        inputs.append((key, column))
    check_lengths(lengths)
    return inputs, next(iter(lengths.values()), 0)


def column_items(columns: Any, sort_keys: bool) -> list[tuple[bytes, Any, Any]]:
    """The key's bytes, the name and the column of each.

    Raises:
        TypeError: ``columns`` is not a mapping.
        ValueError: Two keys have the same bytes.
    """
    if not hasattr(columns, "items"):
        raise TypeError(
            f"expected a mapping of names to columns, found {type(columns).__name__}; "
            "rows are for encode_examples, or a writer's write_many"
        )
    return _items(columns, sort_keys)


def check_lengths(lengths: Mapping[str, int]) -> None:
    """Refuses columns that differ in length.

    Raises:
        ValueError: They do.
    """
    first = next(iter(lengths), "")
    for name, found in lengths.items():
        if found != lengths[first]:
            raise ValueError(
                f"columns differ in length: {first} has {lengths[first]} records, "
                f"{name} has {found}"
            )


def inputs_from_lists(feature_lists: Mapping[Any, Any], sort_keys: bool) -> Inputs:
    """The feature lists of one SequenceExample, from columns whose first axis counts the steps.

    Raises:
        TypeError: ``feature_lists`` is not a mapping, or a value of a type that no feature holds.
    """
    if not hasattr(feature_lists, "items"):
        found = type(feature_lists).__name__
        raise TypeError(f"expected a mapping of names to feature lists, found {found}")
    inputs: Inputs = []
    for key, name, value in _items(feature_lists, sort_keys):
        try:
            column, length = plain_input(value, name)
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace(": record ", ": step ", 1)) from None
        _refuse_absent(column, name, np.arange(length + 1, dtype=np.int64), "step")
        presence = None if column.presence is None else np.full(1, lib.TFW_KINDLESS, np.uint8)
        steps = np.array([0, length], np.int64)
        inputs.append((key, column._replace(steps=steps, presence=presence)))
    return inputs


def plain_input(value: Any, name: Name) -> tuple[Input, int]:
    """The input of one column, and the column's length in records (or steps)."""
    value = array_of_pandas(value)
    if isinstance(value, np.ndarray):
        return _from_array(value, name)
    if is_arrow(value):
        return arrow_column(value, show(name))
    if hasattr(value, "row_splits"):
        return _from_ragged(value, name)
    if hasattr(value, "dense_shape"):  # a tuple, which would be taken for three records
        raise TypeError(f"{show(name)}: a SparseTensor cannot be a column; use a RaggedTensor")
    if hasattr(value, "offsets"):
        return bytes_column_input(value, name)
    if hasattr(value, "numpy"):
        return plain_input(value.numpy(), name)
    if hasattr(value, "feature"):  # a tf.train.FeatureList
        return _from_list(list(value.feature), name)
    if isinstance(value, Sequence) and scalar_kind(type(value)) is None:
        return _from_list(value, name)
    if hasattr(value, "__array__"):
        return _from_array(np.asarray(value), name)
    raise _not_a_column(name, "None" if value is None else type(value).__name__)


def _not_a_column(name: Name, found: str) -> TypeError:
    return TypeError(
        f"{show(name)}: expected a column with one entry per record or step, found {found}"
    )


def _from_array(array: Array, name: Name) -> tuple[Input, int]:
    plain = np.asarray(array)  # a subclass may say anything about its shape
    if plain.ndim == 0:
        raise _not_a_column(name, "rank 0")
    if isinstance(array, np.ma.MaskedArray) and plain.dtype.names is None and array.mask.any():
        return _from_masked(plain, np.ma.getmaskarray(array), name)
    if plain.dtype.kind == "O" and plain.ndim == 1:
        return _from_list(plain.tolist(), name, is_array=True)
    if plain.dtype.kind == "O" and plain.size:
        return _from_list(list(plain), name)  # so that errors name the record
    flat = flatten_value(plain, name)
    per_record = math.prod(plain.shape[1:])
    kind = flat.kind if flat.kind != NONE else dtype_kind(plain.dtype) or BYTES
    try:
        return flat_input(kind, flat.values, name, per_record=per_record), len(plain)
    except (TypeError, ValueError) as error:
        raise _naming_record(error, plain, name, None) from None


def _from_masked(array: Array, mask: Array, name: Name) -> tuple[Input, int]:
    if array.ndim > 1:
        in_record = mask.reshape(len(mask), -1).any(axis=1)
        raise missing_in_list(name, int(in_record.argmax()))
    present = ~mask
    if array.dtype.kind == "O":
        found = _from_list(array[present].tolist(), name, True, np.flatnonzero(present))
    else:
        found = _from_array(array[present], name)
    return _with_absent(found[0], present), len(array)


def _with_absent(column: Input, present: Array) -> Input:
    """The input of more records, of which only those that are present have the feature."""
    lengths = np.zeros(len(present), np.int64)
    lengths[present] = column.per_record if column.splits is None else np.diff(column.splits)
    presence = np.full(len(present), lib.TFW_ABSENT, np.uint8)
    presence[present] = lib.TFW_PRESENT if column.presence is None else column.presence
    return column._replace(splits=to_splits(lengths), presence=presence, per_record=1)


def _refuse_absent(column: Input, name: Name, splits: Array, what: str) -> None:
    """Refuses entries that are missing in a list; splits say in which list each is."""
    if column.presence is not None:
        absent = column.presence == lib.TFW_ABSENT
        if absent.any():
            number = int(np.searchsorted(splits, absent.argmax(), "right")) - 1
            raise missing_in_list(name, number, what)


def _from_list(
    entries: Sequence[Any], name: Name, is_array: bool = False, numbers: Array | None = None
) -> tuple[Input, int]:
    """The input of one entry per record, of the records with these numbers (None: of all)."""
    entries = tuple(entries)  # another thread may change the list between two reads
    try:
        return _from_entries(entries, name, is_array, numbers)
    except (TypeError, ValueError) as error:
        raise _naming_record(error, entries, name, numbers) from None


def _from_entries(
    entries: tuple[Any, ...], name: Name, is_array: bool, numbers: Array | None
) -> tuple[Input, int]:
    if entries and type(entries[0]) is bytes:
        strings = strings_of_objects(entries)
        if strings is not None:
            data, offsets = strings
            return Input(BYTES, data, offsets=offsets), len(offsets) - 1
    types = distinct_types(entries)
    absent = absent_entries(entries, types, is_array)
    if absent is not None:
        present = ~absent
        where = np.flatnonzero(present) if numbers is None else numbers[present]
        column, _ = _from_list(tuple(compress(entries, present)), name, is_array, where)
        return _with_absent(column, present), len(entries)
    kinds = scalar_kinds(types)
    if entries and kinds is not None:
        return flat_input(joint_kind(kinds, name), entries, name), len(entries)
    if types <= {list, tuple}:
        values = list(chain.from_iterable(entries))
        kinds = scalar_kinds(distinct_types(values))
        if kinds is not None:
            kind = joint_kind(kinds, name)
            return _split_input(kind, values, map(len, entries), len(entries), name)
    if types == {np.ndarray} and {entry.ndim for entry in entries} == {1}:
        dtypes = {entry.dtype for entry in entries}
        array_kind = dtype_kind(dtypes.pop())
        if not dtypes and array_kind in (INT64, FLOAT):
            joined = np.concatenate(entries)
            return _split_input(array_kind, joined, map(len, entries), len(entries), name)
    found = [flatten_value(entry, name) for entry in entries]
    kind = joint_kind((flat.kind for flat in found), name)
    lengths = (len(flat.values) for flat in found)
    return _split_input(kind, concatenate(kind, found, name), lengths, len(found), name)


def _naming_record(
    error: Exception, entries: Iterable[Any], name: Name, numbers: Array | None
) -> Exception:
    """An error of a column that names the first record at fault, found by looking at each."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    said = str(error).removeprefix(f"{show(name)}: ")
    if said.startswith("record "):  # of those that are not missing
        return error
    kinds: set[int] = set()
    for i, entry in enumerate(entries):
        try:
            if not is_missing(entry):
                flat = flatten_value(entry, name)
                kinds.add(flat.kind)
                flat_input(joint_kind(kinds, name), flat.values, name)
        except (TypeError, ValueError):
            number = i if numbers is None else int(numbers[i])
            return kind(f"{show(name)}: record {number}: {said}")
    return kind(f"{show(name)}: {said}")


def _from_ragged(ragged: Any, name: Name) -> tuple[Input, int]:
    """A RaggedTensor of one level: its rows are the records."""
    splits = copied_splits(ragged.row_splits, name)
    values = ragged.values
    if hasattr(values, "row_splits"):
        raise ValueError(f"{show(name)}: {LISTS_IN_LISTS}")
    column, num_values = plain_input(values, name)
    _refuse_absent(column, name, splits, "record")
    if column.splits is not None and num_values:  # lists
        raise ValueError(f"{show(name)}: {LISTS_IN_LISTS}")
    splits = outer_splits(
        splits, np.arange(num_values + 1, dtype=np.int64) * column.per_record, name
    )
    count = len(splits) - 1
    presence = None if column.presence is None else np.full(count, lib.TFW_KINDLESS, np.uint8)
    return column._replace(splits=splits, per_record=1, presence=presence), count


def copied_splits(splits: Any, name: Name) -> Array:
    """A copy, which no other thread can change after the checks."""
    copied: Array = int64_array(f"{show(name)}: row_splits", splits).copy()
    if copied.ndim != 1:
        raise ValueError(f"{show(name)}: row_splits must be of rank 1, found {copied.ndim}")
    return copied


def outer_splits(splits: Array, inner: Array, name: Name) -> Array:
    """Splits of rows of rows, as splits of the values that the inner rows hold."""
    if len(splits) == 0 or splits[0] != 0 or splits[-1] != len(inner) - 1:
        raise ValueError(f"{show(name)}: row_splits do not cover the values")
    if (splits[1:] < splits[:-1]).any():  # a difference may overflow
        raise ValueError(f"{show(name)}: row_splits decrease")
    return inner[splits]


def bytes_column_input(column: Any, name: Name) -> tuple[Input, int]:
    """A BytesColumn, used in place: C reads each offset once and checks it against the data."""
    offsets = int64_array(f"{show(name)}: offsets", column.offsets)
    shape = tuple(map(operator.index, getattr(column, "shape", (len(offsets) - 1,))))
    if len(shape) == 0 or len(offsets) == 0:
        raise _not_a_column(name, "rank 0")
    data = contiguous_bytes(f"{show(name)}: data", column.data)
    per_record = math.prod(shape[1:]) if shape[0] else 0  # no records: it may exceed C's range
    return Input(BYTES, data, offsets=offsets, per_record=per_record), shape[0]


def _split_input(kind: int, values: Any, lengths: Any, count: int, name: Name) -> tuple[Input, int]:
    """The input of records of these lengths. If no record has a kind, no kind is written."""
    presence = np.full(count, lib.TFW_KINDLESS, np.uint8) if kind == NONE else None
    splits = to_splits(np.fromiter(lengths, np.int64, count))
    return flat_input(kind, values, name, splits=splits, presence=presence), count


def flat_input(kind: int, values: Any, name: Name, **layout: Any) -> Input:
    """The input of flat values; a kind of NONE has no values. layout: further fields."""
    if kind == BYTES:
        data, offsets = pack_strings(values, name)
        return Input(BYTES, data, offsets=offsets, **layout)
    if kind == FLOAT:
        return Input(FLOAT, as_float32(values, name), **layout)
    return Input(INT64, as_int64(values, name), **layout)
