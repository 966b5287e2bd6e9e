"""What is known of elements before they are made: a text for each leaf.

The text of a leaf is its dtype and shape: "float32[28, ?]", "string[]", "int64[...]" of any rank.
"sparse int64[5]" is a SparseTensor; "ragged(1, int64) int64[2, ?]" a RaggedTensor, with the number
of its ragged dimensions and the dtype of their splits. Other texts say what is not an array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arguments import as_index
from tfwire._data.structure import zip_structures

_ANY_RANK = "..."
_LEAF_TEXT = re.compile(r"(?:(sparse|ragged)(?:\((\d+), (\w+)\))? )?(\w+)\[(.*)\]")


class Description(NamedTuple):
    """What the text of a leaf says.

    Attributes:
        dtype: The name of its dtype.
        sizes: Its shape, None for a size that varies; None for any rank.
        kind: "sparse", "ragged" or "".
        ragged_rank: How many dimensions are ragged.
        splits: The dtype of their splits.
    """

    dtype: str
    sizes: tuple[int | None, ...] | None
    kind: str = ""
    ragged_rank: int = 0
    splits: str = ""

    def __str__(self) -> str:
        sizes = _ANY_RANK
        if self.sizes is not None:
            sizes = ", ".join("?" if size is None else str(size) for size in self.sizes)
        ragged = f"({self.ragged_rank}, {self.splits})" if self.kind == "ragged" else ""
        return f"{self.kind}{ragged} {self.dtype}[{sizes}]".lstrip()

    def batched(self, size: int | None) -> Description:
        """That of a batch of this many; None: their number varies."""
        sizes = None if self.sizes is None else (size, *self.sizes)
        ragged_rank = self.ragged_rank + (self.kind == "ragged")
        return self._replace(sizes=sizes, ragged_rank=ragged_rank)

    def row(self) -> Description | None:
        """That of its rows; None if it does not tell."""
        if self.kind == "ragged" or not self.sizes:
            return None
        return self._replace(sizes=self.sizes[1:])

    def joined(self, other: Description) -> Description | None:
        """That of elements of which some are as another one says; None if there is none."""
        if self._replace(sizes=None) != other._replace(sizes=None):
            return None
        one, two = self.sizes, other.sizes
        if one is None or two is None or len(one) != len(two):
            return self._replace(sizes=None)
        sizes = tuple(a if a == b else None for a, b in zip(one, two, strict=True))
        return self._replace(sizes=sizes)


def describe(dtype: Any, shape: Iterable[Any] | None) -> str:
    """The text of an array, or of a scalar."""
    dtype = np.dtype(dtype)
    name = "string" if dtype.kind in "OSU" else dtype.name
    return str(Description(name, None if shape is None else tuple(shape)))


def description(text: str | None) -> Description | None:
    """What a text says; None where it says nothing of an array."""
    if not isinstance(text, str) or (match := _LEAF_TEXT.fullmatch(text)) is None:
        return None
    kind, ragged_rank, splits, dtype, shape = match.groups("")
    sizes = None
    if shape != _ANY_RANK:
        sizes = tuple(None if size == "?" else int(size) for size in shape.split(", ") if size)
    return Description(dtype, sizes, kind, int(ragged_rank or 0), splits)


def batched_text(text: str | None, size: int | None, padding: Any = None) -> str | None:
    """The text of a batch of leaves.

    Args:
        text: That of a leaf.
        size: The number of leaves; None: it varies.
        padding: The sizes that they are padded to, None or -1 for that of the longest; None: they
            are not, or all to that of the longest.
    """
    if (found := description(text)) is None:
        return text
    if padding is not None and not found.kind:
        sizes = tuple(None if one in (None, -1) else as_index(one) for one in padding)
        found = found._replace(sizes=sizes)
    return str(found.batched(size))


def row_text(text: str | None) -> str | None:
    """The text of a leaf's rows; None if that of the leaf does not tell."""
    found = description(text)
    row = found and found.row()
    return str(row) if row else None


def joined_specs(specs: Sequence[Any]) -> Any:
    """The spec of elements that are as one of these says; None if that is not known."""
    found = specs[0]
    for spec in specs[1:]:
        try:
            found = zip_structures(_joined, found, spec)
        except ValueError:  # they have other structures
            return None
    return found


def _joined(text: str | None, other: str | None) -> str | None:
    if text == other:
        return text
    first, second = description(text), description(other)
    joined = first and second and first.joined(second)
    return str(joined) if joined else None
