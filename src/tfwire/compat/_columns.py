"""SparseTensor and RaggedTensor whose parts are tensors, for the compat layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfwire import columns
from tfwire.compat._convert import as_array
from tfwire.compat._dtypes import DType, as_dtype
from tfwire.compat._missing import Explained
from tfwire.compat._shapes import TensorShape
from tfwire.compat._tensor import Tensor

__all__ = ["RaggedTensor", "SparseTensor"]


def _integers(value: Any) -> Any:
    """int64 values of any integer type; an empty list has none that could be wrong."""
    array = as_array(value)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"expected integers, got {as_dtype(array.dtype)}")
    return array.astype(np.int64)


class SparseTensor(Explained):
    """A :class:`tfwire.SparseTensor` whose fields have ``numpy()``; ``plain`` is the one inside.

    Args:
        indices: int64 of shape ``(n, rank)``.
        values: The n values.
        dense_shape: int64 of shape ``(rank,)``.

    Raises:
        ValueError: The shapes do not fit each other.
    """

    _tf_name = "SparseTensor"
    __slots__ = ("plain",)

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        places, sizes = _integers(indices), _integers(dense_shape)
        array = as_array(values)
        if (places.ndim, array.ndim, sizes.ndim) != (2, 1, 1):
            raise ValueError("indices must have rank 2, values and dense_shape rank 1")
        if places.shape != (len(array), len(sizes)):
            raise ValueError(
                f"indices of shape {places.shape} for {len(array)} values of rank {len(sizes)}"
            )
        self.plain = columns.SparseTensor(places, array, sizes)

    @property
    def indices(self) -> Tensor:
        return Tensor._of(self.plain.indices)

    @property
    def values(self) -> Tensor:
        return _tensor(self.plain.values)

    @property
    def dense_shape(self) -> Tensor:
        return Tensor._of(self.plain.dense_shape)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.plain.shape)

    def get_shape(self) -> TensorShape:
        """The dense shape."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return as_dtype(self.plain.dtype)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Other values in the same places."""
        return SparseTensor(self.plain.indices, new_values, self.plain.dense_shape)

    def __iter__(self) -> Iterator[Tensor]:
        """The fields, as those of the named tuple inside."""
        return iter((self.indices, self.values, self.dense_shape))

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


class RaggedTensor(Explained):
    """A :class:`tfwire.RaggedTensor` whose parts have ``numpy()``; ``plain`` is the one inside."""

    _tf_name = "RaggedTensor"
    __slots__ = ("plain",)

    def __init__(self, plain: columns.RaggedTensor) -> None:
        self.plain = plain

    @property
    def values(self) -> Any:
        return _part(self.plain.values)

    @property
    def flat_values(self) -> Tensor:
        return _tensor(self.plain.flat_values)

    @property
    def row_splits(self) -> Tensor:
        return Tensor._of(self.plain.row_splits)

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        return tuple(map(Tensor._of, self.plain.nested_row_splits))

    @property
    def ragged_rank(self) -> int:
        return self.plain.ragged_rank

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self.plain.shape)

    def get_shape(self) -> TensorShape:
        """The shape, None in the dimensions in which rows differ."""
        return self.shape

    @property
    def dtype(self) -> DType:
        return as_dtype(self.plain.dtype)

    def nrows(self) -> Tensor:
        """The number of rows, int64."""
        return Tensor(np.array(len(self), np.int64))

    def to_tensor(self, default_value: Any = None) -> Tensor:
        """The rows as a dense tensor, shorter ones filled up at their ends.

        Args:
            default_value: What to fill with; None is 0, False or b"".
        """
        sizes = _bounds(self.plain)
        dtype = self.plain.dtype
        empty: Any = b"" if dtype.kind == "O" else 0
        filler = as_array(empty if default_value is None else default_value, dtype)
        dense = np.full(sizes, filler, dtype)
        _place(dense, self.plain)
        return Tensor(dense)

    def row_lengths(self) -> Tensor:
        """The length of every row."""
        return Tensor._of(self.plain.row_lengths())

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        return self.plain.to_list()

    def numpy(self) -> Any:
        """An array where all rows are of one length, else an object array of the rows."""
        rows = [row.numpy() for row in self]
        if len({row.shape for row in rows}) == 1:
            return np.stack(rows)
        array = np.empty(len(rows), object)
        array[:] = rows
        return array

    def __len__(self) -> int:
        return len(self.plain)

    def __getitem__(self, key: Any) -> Any:
        first, *others = key if isinstance(key, tuple) else (key,)
        row = _part(self.plain[first])
        return row[tuple(others)] if others else row

    def __iter__(self) -> Iterator[Any]:
        return map(_part, self.plain)

    def __repr__(self) -> str:
        return f"<tf.{self.plain!r}>"


def _bounds(ragged: columns.RaggedTensor) -> tuple[int, ...]:
    """The shape of the smallest dense tensor that holds the rows."""
    values = ragged.values
    longest = int(ragged.row_lengths().max(initial=0))
    inner = _bounds(values)[1:] if isinstance(values, columns.RaggedTensor) else values.shape[1:]
    return (len(ragged), longest, *inner)


def _place(dense: Any, ragged: columns.RaggedTensor) -> None:
    for place, row in zip(dense, ragged, strict=True):
        if isinstance(row, columns.RaggedTensor):
            _place(place[: len(row)], row)
        else:
            place[: len(row)] = as_array(row)


def _tensor(values: Any) -> Tensor:
    return Tensor._of(values) if isinstance(values, np.ndarray) else Tensor(values)


def _part(values: Any) -> Any:
    """Rows as a ragged tensor or, without rows, a tensor."""
    return RaggedTensor(values) if isinstance(values, columns.RaggedTensor) else _tensor(values)
