"""TensorShape: sizes, None where one is not known."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, NamedTuple

from tfwire.compat._missing import Explained

__all__ = ["Dimension", "TensorShape"]


Sizes = tuple[int | None, ...]


class Dimension(NamedTuple):
    """One size, as ``TensorShape.dims`` gives it."""

    value: int | None


class TensorShape(Explained):
    """A shape: a sequence of sizes, None for those that are not known.

    Args:
        dims: The sizes; an int means rank 1; None: not even the rank is known.

    Raises:
        TypeError: A size is not an integer.
        ValueError: A size is negative.
    """

    _tf_name = "TensorShape"
    __slots__ = ("_dims",)

    def __init__(self, dims: Any = None) -> None:
        if isinstance(dims, TensorShape):
            dims = dims.dims
        if hasattr(dims, "__index__") and not hasattr(dims, "__len__"):
            dims = (dims,)
        if hasattr(dims, "numpy"):
            dims = dims.numpy().tolist()
        self._dims: Sizes | None = None if dims is None else tuple(map(_size, dims))

    @property
    def rank(self) -> int | None:
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as objects with a ``value``."""
        return None if self._dims is None else [Dimension(size) for size in self._dims]

    def as_list(self) -> list[int | None]:
        """The sizes as a list.

        Raises:
            ValueError: The rank is not known.
        """
        return list(self._known())

    def _known(self) -> Sizes:
        if self._dims is None:
            raise ValueError("the rank of this TensorShape is not known")
        return self._dims

    def num_elements(self) -> int | None:
        """The product of the sizes, None where one is not known."""
        product = 1
        for size in self._dims or (None,) * (self._dims is None):
            if size is None:
                return None
            product *= size
        return product

    def is_fully_defined(self) -> bool:
        """True if every size is known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """True if some array could have both shapes."""
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return True
        pairs = zip(self._dims, theirs, strict=False)
        return len(self._dims) == len(theirs) and all(
            a is None or b is None or a == b for a, b in pairs
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError unless :meth:`is_compatible_with`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {self} and {TensorShape(other)} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError unless :meth:`is_fully_defined`."""
        if not self.is_fully_defined():
            raise ValueError(f"shape {self} is not fully defined")

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError if the shape has another rank."""
        self.with_rank(rank)

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, with as many sizes as ``rank`` says.

        Raises:
            ValueError: It has another rank.
        """
        if self._dims is None:
            return TensorShape([None] * rank)
        if len(self._dims) != rank:
            raise ValueError(f"shape {self} must have rank {rank}")
        return self

    def merge_with(self, other: Any) -> TensorShape:
        """What is known of either shape.

        Raises:
            ValueError: They are incompatible.
        """
        self.assert_is_compatible_with(other)
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return self if theirs is None else TensorShape(theirs)
        pairs = zip(self._dims, theirs, strict=True)
        return TensorShape([b if a is None else a for a, b in pairs])

    def concatenate(self, other: Any) -> TensorShape:
        """This shape's sizes, then the other's."""
        theirs = TensorShape(other)._dims
        if self._dims is None or theirs is None:
            return TensorShape(None)
        return TensorShape(self._dims + theirs)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __len__(self) -> int:
        return len(self._known())

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known())

    def __getitem__(self, key: Any) -> Any:
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else None
        found = self._dims[key]
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == TensorShape(other)._dims
        except (TypeError, ValueError):
            return False

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)


def _size(value: Any) -> int | None:
    if isinstance(value, Dimension):
        return value.value
    if value is None:
        return None
    try:
        size = operator.index(value)
    except TypeError:
        raise TypeError(f"a size must be an integer or None, got {type(value).__name__}") from None
    if size < 0:
        raise ValueError(f"a size must not be negative, got {size}")
    return size
