"""What an element is like: TensorSpec and its kin, and the element_spec of a pipeline."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import numpy as np

from tfwire import columns
from tfwire._datasets.replayed import elements_of
from tfwire._datasets.stage import Stage
from tfwire._datasets.structure import describe, leaves, map_structure, zip_structures
from tfwire.compat._convert import to_numpy
from tfwire.compat._dtypes import as_dtype
from tfwire.compat._errors import translating_files
from tfwire.compat._missing import Explained
from tfwire.compat._shapes import TensorShape

__all__ = [
    "DatasetSpec",
    "RaggedTensorSpec",
    "SparseTensorSpec",
    "TensorSpec",
    "described",
    "element_spec",
    "fits",
    "of_rows",
    "spec_of",
]


class TensorSpec(Explained):
    """A shape and a dtype.

    Args:
        shape: The sizes, None where one is not known; None for any shape.
        dtype: Any name of a dtype.
        name: Kept, and part of nothing.

    Example:
        >>> import tfwire.compat as tf
        >>> tf.TensorSpec([None, 3], tf.int64)
        TensorSpec(shape=(None, 3), dtype=tf.int64, name=None)
    """

    _tf_name = "TensorSpec"

    def __init__(self, shape: Any, dtype: Any = "float32", name: str | None = None) -> None:
        self._shape, self._dtype, self._name = TensorShape(shape), as_dtype(dtype), name

    @classmethod
    def from_tensor(cls, tensor: Any, name: str | None = None) -> TensorSpec:
        """The spec of a tensor."""
        value = to_numpy(tensor)
        return cls(np.shape(value), _dtype_of(value), name)

    @classmethod
    def from_spec(cls, spec: Any, name: str | None = None) -> TensorSpec:
        """The same spec under another name."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @property
    def shape(self) -> Any:
        return self._shape

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def name(self) -> str | None:
        return self._name

    def is_compatible_with(self, spec_or_tensor: Any) -> bool:
        """Whether a tensor, or what another spec stands for, is of this dtype and shape."""
        other = spec_or_tensor
        if not isinstance(other, TensorSpec):
            other = TensorSpec.from_tensor(other)
        return self.dtype == other.dtype and fits(self.shape, other.shape)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        name = getattr(self, "_name", None)
        return (
            f"{type(self).__name__}(shape={self.shape}, dtype=tf.{self.dtype.name}, name={name!r})"
        )


def fits(wanted: Any, found: Any) -> bool:
    if wanted.rank is None or found.rank is None:
        return True
    return wanted.rank == found.rank and all(
        w is None or f is None or w == f for w, f in zip(wanted, found, strict=True)
    )


class SparseTensorSpec(TensorSpec):
    """The shape and dtype of a SparseTensor."""

    _tf_name = "SparseTensorSpec"

    def __init__(self, shape: Any = None, dtype: Any = "float32") -> None:
        super().__init__(shape, dtype)

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, tf.{self.dtype.name})"


class RaggedTensorSpec(TensorSpec):
    """The shape and dtype of a RaggedTensor, and how many of its dimensions are ragged."""

    _tf_name = "RaggedTensorSpec"

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = "float32",
        ragged_rank: int | None = None,
        row_splits_dtype: Any = "int64",
    ) -> None:
        super().__init__(shape, dtype)
        rank = self.shape.rank
        self.ragged_rank = ragged_rank if ragged_rank is not None else (rank or 1) - 1
        self.row_splits_dtype = as_dtype(row_splits_dtype)

    def __repr__(self) -> str:
        return (
            f"RaggedTensorSpec({self.shape!r}, tf.{self.dtype.name}, {self.ragged_rank}, "
            f"tf.{self.row_splits_dtype.name})"
        )


class DatasetSpec(Explained):
    """The spec of a dataset that is an element of another one, as those of ``window``."""

    _tf_name = "data.DatasetSpec"

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec = element_spec
        self.dataset_shape = TensorShape(dataset_shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, {self.dataset_shape!r})"


# ---- Specs of values --------------------------------------------------------------------------


def spec_of(leaf: Any) -> Any:
    """The spec of a leaf: of a tensor, a SparseTensor, a RaggedTensor or a dataset."""
    plain = getattr(leaf, "plain", leaf)
    if isinstance(plain, columns.SparseTensor):
        return SparseTensorSpec(plain.shape, _dtype_of(plain.values))
    if isinstance(plain, columns.RaggedTensor):
        return RaggedTensorSpec(plain.shape, plain.dtype, plain.ragged_rank)
    if hasattr(leaf, "as_numpy_iterator"):
        return DatasetSpec(leaf.element_spec)
    return TensorSpec.from_tensor(leaf)


def _dtype_of(value: Any) -> Any:
    return np.dtype(object) if isinstance(value, bytes) else value.dtype


# ---- Specs of pipelines -----------------------------------------------------------------------

_DESCRIBED = re.compile(r"(\w+)\[(.*)\]")


def described(spec: Any) -> Any:
    """A spec in the words of a stage ("int64[28, ?]"); None where it has none for it."""
    if type(spec) is not TensorSpec or spec.shape.rank is None:
        return None
    return describe(spec.dtype.as_numpy_dtype, spec.shape)


def element_spec(stage: Stage) -> Any:
    """The specs of the elements of a stage.

    Where a function of the user makes the elements, nobody knows their specs before it runs: the
    first two elements are then made, and a size that differs between them is None.

    Returns:
        The structure of an element with a spec for every leaf; None if there is no element.
    """
    known = stage.spec
    if known is not None and all(_DESCRIBED.fullmatch(leaf or "") for leaf in leaves(known)):
        return map_structure(_from_words, known)
    elements = elements_of(stage, "spec")
    with translating_files():
        found = [map_structure(spec_of, element) for element in islice(elements, 2)]
    elements.close()  # type: ignore[attr-defined]
    return zip_structures(_common, *found) if found else None


def of_rows(spec: Any) -> tuple[int | None, Any]:
    """How many rows every element has, and the spec of a row; None where a stage's spec does not
    tell."""
    words = [] if spec is None else [leaf or "" for leaf in leaves(spec)]
    if not words or not all(_DESCRIBED.fullmatch(word) for word in words):
        return None, None
    shapes = [_from_words(word).shape for word in words]
    if not all(shape.rank for shape in shapes):
        return None, None
    sizes = {shape[0] for shape in shapes}
    row = map_structure(lambda word: _without_rows(_from_words(word)), spec)
    return (sizes.pop() if len(sizes) == 1 else None), row


def _without_rows(spec: TensorSpec) -> Any:
    return described(TensorSpec(spec.shape[1:], spec.dtype))


def _from_words(words: str) -> TensorSpec:
    match = _DESCRIBED.fullmatch(words)
    assert match is not None
    name, sizes = match.groups()
    shape = [None if size == "?" else int(size) for size in sizes.split(", ") if size]
    return TensorSpec(shape, name)


def _common(first: Any, *others: Any) -> Any:
    """A spec for both of two values."""
    if not others or first == others[0] or not isinstance(first, TensorSpec):
        return first
    one, other = first.shape, others[0].shape
    shape = None
    if one.rank is not None and one.rank == other.rank:
        shape = [a if a == b else None for a, b in zip(one, other, strict=True)]
    if isinstance(first, RaggedTensorSpec):
        return RaggedTensorSpec(shape, first.dtype, first.ragged_rank, first.row_splits_dtype)
    return type(first)(shape, first.dtype)
