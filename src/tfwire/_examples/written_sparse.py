"""Structs of indices and values, as tables have of a SparseFeature, as the features of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.native import lib
from tfwire._base.text import quoted
from tfwire._examples.inputs import Input
from tfwire._examples.missing import is_missing
from tfwire._examples.nested import Nested, items_of, nested_column
from tfwire._examples.values import INT64, NONE, Array, Name, missing_in_list, show
from tfwire._examples.written_columns import WrittenColumn

INDICES, VALUES = b"indices", b"values"


class WrittenSparse(NamedTuple):
    """How a struct of indices and values becomes features.

    Attributes:
        name: Of the column.
        indices: Of each dimension, the feature of its indices.
        values: The feature of the values.
        sizes: Of each dimension.
    """

    name: Name
    indices: tuple[WrittenColumn, ...]
    values: WrittenColumn
    sizes: tuple[int, ...]

    def check_fields(self, fields: Collection[bytes | None]) -> None:
        """Refuses a column of a table that is no struct of indices and values.

        Args:
            fields: Those of the struct; None: it is no struct.
        """
        if set(fields) != {INDICES, VALUES}:
            named = ", ".join(quoted(each.decode(errors="replace")) for each in fields if each)
            found = f"one of {named}" if named else "another type"
            raise TypeError(f"{show(self.name)}: {_EXPECTED}, found {found}")

    def check_features(self, given: Mapping[bytes, tuple[Name, Any]], first: int) -> None:
        """Refuses features that do not fit each other, and indices outside of the size.

        Args:
            given: Names and Inputs of all features that are written, by their keys.
            first: The number of the first record, for errors.
        """
        counts = _counts(given, self.values.key)
        for column, size in zip(self.indices, self.sizes, strict=True):
            found = _counts(given, column.key)
            if (differ := found != counts).any():
                number = int(differ.argmax())
                both = " and ".join(
                    f"{many[number if len(many) > 1 else 0]} in {_quoted(key)}"
                    + " (there is no such column)" * (key not in given)
                    for key, many in ((column.key, found), (self.values.key, counts))
                )
                raise ValueError(
                    f"{show(self.name)}: record {first + number}: expected as many indices as "
                    f"values, found {both}"
                )
            if column.key in given and (place := _outside(given[column.key][1], found, size)):
                number, index = place
                raise ValueError(
                    f"{show(self.name)}: record {first + number}: the index {index} in "
                    f"{_quoted(column.key)} is outside of the size {size}"
                )


def _quoted(key: bytes) -> str:
    return quoted(key.decode("utf-8", "surrogateescape"))


def _counts(given: Mapping[bytes, tuple[Name, Any]], key: bytes) -> Array:
    """How many values each record has of a feature; one 0 for all if it is not written."""
    if key not in given:
        return np.zeros(1, np.int64)
    _, feature = given[key]
    hidden = feature.presence is not None and feature.presence != lib.TFW_PRESENT
    return np.where(hidden, 0, np.diff(feature.splits))


def _outside(feature: Input, counts: Array, size: int) -> tuple[int, int] | None:
    """The first record with an index outside of a size, and this index."""
    indices = feature.values
    (places,) = np.nonzero((indices < 0) | (indices >= size))
    splits: Any = feature.splits
    records = np.searchsorted(splits, places, "right") - 1
    for place, number in zip(places, records, strict=True):
        if 0 <= number < len(counts) and counts[number]:  # no null hides it
            return int(number), int(indices[place])
    return None


_EXPECTED = "expected a struct of 'indices' and 'values', as SparseFeature says"


def nested_of_structs(value: Any, name: Name) -> tuple[Nested, Nested]:
    """The indices and the values of a column of dicts, or of Arrow's structs."""
    parts: tuple[list[Any], list[Any]] = [], []
    for number, cell in enumerate(items_of(value, name)):
        known = isinstance(cell, Mapping) and cell.keys() == {"indices", "values"}
        if not known and not is_missing(cell):
            found = "a dict of other keys" if isinstance(cell, Mapping) else type(cell).__name__
            raise TypeError(f"{show(name)}: record {number}: {_EXPECTED}, found {found}")
        for part, key in zip(parts, ("indices", "values"), strict=True):
            part.append(cell[key] if known else None)
    return nested_column(parts[0], name), nested_column(parts[1], name)


def columns_of_sparse(
    sparse: WrittenSparse, indices: Nested, values: Nested
) -> Iterator[tuple[WrittenColumn, Nested]]:
    """The columns that a column of structs becomes.

    Raises:
        TypeError: A null inside a list.
        ValueError: No lists, or places of another length than there are dimensions.
    """
    for column in (indices, values):
        if not column.levels and column.kind != NONE:
            raise ValueError(f"{show(sparse.name)}: expected lists of indices and of values")
    yield sparse.values, values
    parts = [indices] if len(sparse.indices) == 1 else _by_dimension(indices, sparse)
    yield from zip(sparse.indices, parts, strict=True)


def _by_dimension(indices: Nested, sparse: WrittenSparse) -> Iterator[Nested]:
    """Of lists of places, which have an index for each dimension, the indices of each."""
    rank = len(sparse.indices)
    if any(absent is not None and absent.any() for absent in indices.missing[1:]):
        raise missing_in_list(sparse.name)
    count = int(indices.levels[0][-1]) if indices.levels else 0
    is_flat = len(indices.levels) != 2 or (np.diff(indices.levels[1]) != rank).any()
    if count and (is_flat or indices.kind != INT64):
        raise ValueError(f"{show(sparse.name)}: expected {rank} integers in each of the indices")
    numbers = np.asarray(indices.values, np.int64).reshape(-1, rank) if count else None
    for axis in range(rank):
        values = () if numbers is None else np.ascontiguousarray(numbers[:, axis], np.int64)
        kind = NONE if numbers is None else INT64
        levels, missing = indices.levels[:1], [*indices.missing[:1], None]
        yield Nested(kind, values, None, indices.num_records, levels, missing)
