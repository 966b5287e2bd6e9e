"""SparseTensor and RaggedTensor whose parts are tensors, for the compat layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfwire import columns
from tfwire.compat._tensor import Tensor, to_numpy

__all__ = ["RaggedTensor", "SparseTensor"]


class SparseTensor:
    """A :class:`tfwire.SparseTensor` whose fields have ``numpy()``; ``plain`` is the one inside."""

    __slots__ = ("plain",)

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.plain = columns.SparseTensor(
            np.asarray(to_numpy(indices), np.int64),
            np.asarray(to_numpy(values)),
            np.asarray(to_numpy(dense_shape), np.int64),
        )

    @property
    def indices(self) -> Tensor:
        return Tensor(self.plain.indices)

    @property
    def values(self) -> Tensor:
        return Tensor(self.plain.values)

    @property
    def dense_shape(self) -> Tensor:
        return Tensor(self.plain.dense_shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.plain.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.plain.dtype

    def __iter__(self) -> Iterator[Tensor]:
        """The fields, as those of the named tuple inside."""
        return iter((self.indices, self.values, self.dense_shape))

    def __repr__(self) -> str:
        return (
            f"SparseTensor(indices={self.indices}, values={self.values}, "
            f"dense_shape={self.dense_shape})"
        )


class RaggedTensor:
    """A :class:`tfwire.RaggedTensor` whose parts have ``numpy()``; ``plain`` is the one inside."""

    __slots__ = ("plain",)

    def __init__(self, plain: columns.RaggedTensor) -> None:
        self.plain = plain

    @property
    def values(self) -> Any:
        return _part(self.plain.values)

    @property
    def flat_values(self) -> Tensor:
        return Tensor(self.plain.flat_values)

    @property
    def row_splits(self) -> Tensor:
        return Tensor(self.plain.row_splits)

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        return tuple(map(Tensor, self.plain.nested_row_splits))

    @property
    def ragged_rank(self) -> int:
        return self.plain.ragged_rank

    @property
    def shape(self) -> tuple[int | None, ...]:
        return self.plain.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.plain.dtype

    def row_lengths(self) -> Tensor:
        """The length of every row."""
        return Tensor(self.plain.row_lengths())

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
        return _part(self.plain[key])

    def __iter__(self) -> Iterator[Any]:
        return map(_part, self.plain)

    def __repr__(self) -> str:
        return f"<tf.{self.plain!r}>"


def _part(values: Any) -> Any:
    """Rows as a ragged tensor or, without rows, a tensor."""
    return RaggedTensor(values) if isinstance(values, columns.RaggedTensor) else Tensor(values)
