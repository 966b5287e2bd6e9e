"""The specs of elements, and the signatures of generators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from tfwire._base.errors import InvalidArgumentError
from tfwire._data.prefetch import stage_elements
from tfwire._data.stages import Stage
from tfwire._data.structure import describe, leaves, map_structure, zip_structures
from tfwire._examples import column_types
from tfwire._parsing.features import DType
from tfwire.compat._convert import as_dtype, numpy_dtype, to_numpy
from tfwire.compat._errors import DtypeError, Explained, translating_files
from tfwire.compat._tensor import TensorShape

__all__ = [
    "DatasetSpec",
    "RaggedTensorSpec",
    "SparseTensorSpec",
    "TensorSpec",
    "check_dtypes",
    "convert",
    "described",
    "element_spec",
    "fits",
    "leaf_spec",
    "of_batch",
    "of_rows",
    "of_types",
]


class TensorSpec(Explained):
    """A shape and a dtype.

    Args:
        shape: The sizes, None where one is not known; None for any shape.
        dtype: Any name of a dtype.
        name: Kept, but not compared.

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
        return cls(np.shape(value), _leaf_dtype(value), name)

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
        """True if a tensor or spec has this dtype, and a shape that this one allows."""
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
        self.ragged_rank: int = ragged_rank if ragged_rank is not None else (rank or 1) - 1
        self.row_splits_dtype: DType = as_dtype(row_splits_dtype)

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
def leaf_spec(leaf: Any) -> Any:
    """The spec of a leaf: of a tensor, a SparseTensor, a RaggedTensor or a dataset."""
    plain = getattr(leaf, "plain", leaf)
    if isinstance(plain, column_types.SparseTensor):
        return SparseTensorSpec(plain.shape, _leaf_dtype(plain.values))
    if isinstance(plain, column_types.RaggedTensor):
        return RaggedTensorSpec(plain.shape, plain.dtype, plain.ragged_rank)
    if hasattr(leaf, "as_numpy_iterator"):
        return DatasetSpec(leaf.element_spec)
    return TensorSpec.from_tensor(leaf)


def _leaf_dtype(value: Any) -> Any:
    return np.dtype(object) if isinstance(value, bytes) else value.dtype


# ---- Specs of pipelines -----------------------------------------------------------------------
_DESCRIBED = re.compile(r"(\w+)\[(.*)\]")


def described(spec: Any) -> Any:
    """A spec as the text of a stage ("int64[28, ?]"); None if there is no such text."""
    if type(spec) is not TensorSpec or spec.shape.rank is None:
        return None
    return describe(spec.dtype.as_numpy_dtype, spec.shape)


def element_spec(stage: Stage) -> Any:
    """The specs of the elements of a stage.

    If a user function makes the elements, the first two are made to find out. A size that
    differs between them is None.

    Returns:
        The structure of an element with a spec for every leaf; None if there is no element.
    """
    if _is_known(stage.spec):
        return map_structure(_from_words, stage.spec)
    elements = stage_elements(stage, "spec")
    with translating_files():
        found = [map_structure(leaf_spec, element) for element in islice(elements, 2)]
    elements.close()  # type: ignore[attr-defined]
    return zip_structures(_common, *found) if found else None


def of_rows(spec: Any) -> tuple[int | None, Any]:
    """The number of rows in every element, and the spec of a row; None if the spec of the stage
    does not tell.

    Raises:
        InvalidArgumentError: A leaf is a scalar, or the numbers of rows differ.
    """
    if not _is_known(spec):
        return None, None
    shapes = [_from_words(words).shape for words in leaves(spec)]
    if not all(shape.rank for shape in shapes):
        raise InvalidArgumentError("unbatch needs leaves of rank 1 or more, found a scalar")
    sizes = {shape[0] for shape in shapes}
    if len(sizes - {None}) > 1:
        raise InvalidArgumentError("unbatch needs leaves of one first axis, found different sizes")
    row = map_structure(lambda words: _without_rows(_from_words(words)), spec)
    return (sizes.pop() if len(sizes) == 1 else None), row


def of_batch(size: int | None, words: str) -> Any:
    """The spec of batches of rows of a spec."""
    row = _from_words(words)
    return described(TensorSpec([size, *row.shape], row.dtype))


def check_dtypes(stages: Sequence[Stage]) -> None:
    """Checks that elements of several stages may follow each other, as far as specs are known.

    Raises:
        TypeError: Their structures or dtypes differ.
    """
    known = [stage.spec for stage in stages if _is_known(stage.spec)]
    for spec in known[1:]:
        if map_structure(_spec_name, spec) != map_structure(_spec_name, known[0]):
            raise TypeError(
                f"datasets must have elements of one structure and the same dtypes, "
                f"found {known[0]!r} and {spec!r}"
            )


def _spec_name(words: str) -> str:
    return words.partition("[")[0]


def _is_known(spec: Any) -> bool:
    """True if a stage's spec describes every leaf."""
    words = [] if spec is None else list(leaves(spec))
    return bool(words) and all(_DESCRIBED.fullmatch(leaf or "") for leaf in words)


def _without_rows(spec: TensorSpec) -> Any:
    return described(TensorSpec(spec.shape[1:], spec.dtype))


def _from_words(words: str) -> TensorSpec:
    match = _DESCRIBED.fullmatch(words)
    assert match is not None
    name, sizes = match.groups()
    shape = [None if size == "?" else int(size) for size in sizes.split(", ") if size]
    return TensorSpec(shape, name)


def _common(first: Any, *others: Any) -> Any:
    """The spec of two values."""
    if not others or first == others[0] or not isinstance(first, TensorSpec):
        return first
    one, other = first.shape, others[0].shape
    shape = None
    if one.rank is not None and one.rank == other.rank:
        shape = [a if a == b else None for a, b in zip(one, other, strict=True)]
    if isinstance(first, RaggedTensorSpec):
        return RaggedTensorSpec(shape, first.dtype, first.ragged_rank, first.row_splits_dtype)
    return type(first)(shape, first.dtype)


# ---- The signature of from_generator ------------------------------------------------------------


def of_types(types: Any, shapes: Any) -> Any:
    """The signature of the older arguments: types, and shapes or None."""
    types = map_structure(as_dtype, _tuples(types))
    if shapes is None:
        return map_structure(lambda dtype: TensorSpec(None, dtype), types)
    return zip_structures(
        lambda dtype, leaf: TensorSpec(leaf.shape, dtype), types, _shape_leaves(shapes, types)
    )


class _ShapeLeaf:
    """A shape as a leaf: a tuple would be structure."""

    def __init__(self, shape: Any) -> None:
        self.shape = TensorShape(shape)


def _shape_leaves(shapes: Any, types: Any) -> Any:
    """Shapes in the structure of types."""
    if isinstance(types, dict):
        return {key: _shape_leaves(shapes[key], types[key]) for key in types}
    if isinstance(types, tuple):
        return tuple(_shape_leaves(s, t) for s, t in zip(shapes, types, strict=True))
    return _ShapeLeaf(shapes)


def _tuples(structure: Any) -> Any:
    """A signature with tuples for its lists."""
    if isinstance(structure, dict):
        return {key: _tuples(item) for key, item in structure.items()}
    if isinstance(structure, (list, tuple)) and not hasattr(structure, "_fields"):
        return tuple(map(_tuples, structure))
    return structure


def convert(signature: Any, element: Any) -> Any:
    """An element as plain values of the dtypes of a signature.

    Raises:
        TypeError: It has another structure, or a value of another dtype or shape.
    """
    signature = _tuples(signature)
    if isinstance(signature, dict):
        _check_keys(signature, element)
        return {key: convert(signature[key], element[key]) for key in signature}
    if isinstance(signature, tuple):
        if not isinstance(element, tuple) or len(element) != len(signature):
            raise DtypeError(
                f"expected an element of {len(signature)} parts, found {_kind(element)}"
            )
        return tuple(convert(s, e) for s, e in zip(signature, element, strict=True))
    return _leaf(signature, element)


def _check_keys(signature: dict[Any, Any], element: Any) -> None:
    if not isinstance(element, dict) or element.keys() != signature.keys():
        raise DtypeError(
            f"expected an element with the keys {sorted(signature)}, found {_kind(element)}"
        )


def _kind(element: Any) -> str:
    if isinstance(element, dict):
        return f"the keys {sorted(element)}"
    size = f" of {len(element)}" if isinstance(element, (tuple, list)) else ""
    return f"a {type(element).__name__}{size}"


def _leaf(spec: TensorSpec, value: Any) -> Any:
    plain = getattr(value, "plain", value)
    if isinstance(spec, (SparseTensorSpec, RaggedTensorSpec)):
        wanted = (
            column_types.SparseTensor
            if isinstance(spec, SparseTensorSpec)
            else column_types.RaggedTensor
        )
        if not isinstance(plain, wanted):
            raise DtypeError(f"expected a {wanted.__name__}, found {type(value).__name__}")
        return plain
    if isinstance(plain, (column_types.SparseTensor, column_types.RaggedTensor)):
        raise DtypeError(f"expected a tensor, found a {type(plain).__name__}")
    try:
        found = to_numpy(value, numpy_dtype(spec.dtype))
    except (TypeError, ValueError) as error:
        raise DtypeError(
            f"`generator` yielded an element that is not a tf.{spec.dtype.name}: {error}"
        ) from error
    if not fits(spec.shape, TensorShape(np.shape(found))):
        raise DtypeError(
            f"`generator` yielded an element of shape {np.shape(found)} where an element of shape "
            f"{spec.shape} was expected"
        )
    return found
