"""The specs of elements, and the signatures of generators."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

import tfwire as tfw
from tfwire import SparseFeature, VarLenFeature
from tfwire._interface.messages import InvalidArgumentError
from tfwire._interface.pipelines import (
    Derived,
    Description,
    Map,
    Parse,
    Replayed,
    Stage,
    Unbatch,
    Zip,
    description,
    joined_specs,
    leaves,
    map_structure,
    row_text,
    stage_elements,
    zip_structures,
)
from tfwire.compat._constants import as_dtype, dtype_of, numpy_dtype, to_numpy
from tfwire.compat._data.generators import Arranged
from tfwire.compat._errors import DtypeError, Explained, translating_files
from tfwire.compat._tensor import TensorShape
from tfwire.typing import DType

_COMPOSITES = (tfw.SparseTensor, tfw.RaggedTensor)


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
        return cls(np.shape(value), dtype_of(value), name)

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
            other = leaf_spec(other)
        alike = type(self) is type(other) and self._facts() == other._facts()
        return alike and fits(self.shape, other.shape)

    def _facts(self) -> tuple[Any, ...]:
        """What compatible specs share."""
        return (self.dtype,)

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

    def _facts(self) -> tuple[Any, ...]:
        return (self.dtype, self.ragged_rank, self.row_splits_dtype)

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
    if isinstance(plain, tfw.SparseTensor):
        return SparseTensorSpec(plain.shape, dtype_of(plain.values))
    if isinstance(plain, tfw.RaggedTensor):
        splits = plain.row_splits.dtype
        return RaggedTensorSpec(plain.shape, plain.dtype, plain.ragged_rank, splits)
    if hasattr(leaf, "as_numpy_iterator"):
        return DatasetSpec(leaf.element_spec)
    return TensorSpec.from_tensor(leaf)


# ---- Specs of pipelines -----------------------------------------------------------------------
def described(spec: Any) -> Any:
    """A spec as the text of a stage ("int64[28, ?]"); None if there is no such text."""
    if not isinstance(spec, TensorSpec):
        return None
    sizes = None if spec.shape.rank is None else tuple(spec.shape)
    if isinstance(spec, RaggedTensorSpec):
        splits = spec.row_splits_dtype.name
        return str(Description(spec.dtype.name, sizes, "ragged", spec.ragged_rank, splits))
    kind = "sparse" if isinstance(spec, SparseTensorSpec) else ""
    return str(Description(spec.dtype.name, sizes, kind))


def _from_text(text: str) -> TensorSpec:
    found = description(text)
    assert found is not None
    if found.kind == "ragged":
        return RaggedTensorSpec(found.sizes, found.dtype, found.ragged_rank, found.splits)
    return (SparseTensorSpec if found.kind else TensorSpec)(found.sizes, found.dtype)


def element_spec(stage: Stage) -> Any:
    """The specs of the elements of a stage.

    Where a user function makes the elements, the first two that it makes tell. A size that differs
    between them is None.

    Returns:
        The structure of an element with a spec for every leaf; None if there is no element.
    """
    if isinstance(stage, Replayed) and stage.name == "window":
        spec = element_spec(stage.sources[0])
        return None if spec is None else map_structure(DatasetSpec, spec)
    spec = known_spec(stage)
    return _found(stage) if spec is None else map_structure(_from_text, spec)


def known_spec(stage: Stage) -> Any:
    """The structure of an element with a text for every leaf; None if some leaf has none, or if
    there is no element. User functions are called only where nothing else tells."""
    if _is_known(stage.spec):
        return stage.spec
    if stage.given:
        spec = joined_specs([known_spec(source) for source in stage.given])
    elif isinstance(stage, Zip):
        spec = tuple(known_spec(source) for source in stage.sources)
    elif isinstance(stage, Unbatch):
        spec = of_rows(known_spec(stage.source))[1]
    elif isinstance(stage, Arranged) or (
        isinstance(stage, Derived) and not isinstance(stage, (Map, Parse))
    ):
        source = copy.copy(stage.source)
        source.spec = known_spec(stage.source)
        spec = None if source.spec is None else stage.over(source).spec
    else:
        spec = _of_parsed(stage) if isinstance(stage, Parse) else None
        if not _is_known(spec):
            found = _found(stage)
            spec = None if found is None else map_structure(described, found)
    return spec if _is_known(spec) else None


def _of_parsed(stage: Parse) -> Any:
    """The spec of parsed Examples, where it is known whether they come in batches."""
    if stage.axes is None:
        return None
    features = stage.features
    return {key: _of_feature(features[key], stage.axes, text) for key, text in stage.spec.items()}


def _of_feature(feature: Any, axes: Any, text: str) -> str:
    """The text of a feature; that of a RaggedFeature is not known before there are values."""
    if isinstance(feature, VarLenFeature):
        return str(Description(as_dtype(feature.dtype).name, (*axes, None), "sparse"))
    if isinstance(feature, SparseFeature):
        sizes = np.ravel(feature.size).tolist()
        return str(Description(as_dtype(feature.dtype).name, (*axes, *sizes), "sparse"))
    return text


def _found(stage: Stage) -> Any:
    """The specs of the first two elements, as one."""
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
    shapes = [found.sizes for found in map(description, leaves(spec)) if found is not None]
    if any(shape is None for shape in shapes):
        return None, None
    if not all(shapes):
        raise InvalidArgumentError("unbatch needs leaves of rank 1 or more, found a scalar")
    sizes = {shape[0] for shape in shapes if shape}
    if len(sizes - {None}) > 1:
        raise InvalidArgumentError("unbatch needs leaves of one first axis, found different sizes")
    return (sizes.pop() if len(sizes) == 1 else None), map_structure(row_text, spec)


def check_dtypes(stages: Sequence[Stage]) -> None:
    """Checks that elements of several stages may follow each other, as far as specs are known.

    Raises:
        TypeError: Their structures or dtypes differ.
    """
    known = [stage.spec for stage in stages if _is_known(stage.spec)]
    for spec in known[1:]:
        if joined_specs([known[0], spec]) is None or not _is_known(joined_specs([known[0], spec])):
            raise TypeError(
                f"datasets must have elements of one structure and the same dtypes, "
                f"found {known[0]!r} and {spec!r}"
            )


def _is_known(spec: Any) -> bool:
    """True if a stage's spec describes every leaf."""
    texts = [] if spec is None else list(leaves(spec))
    return bool(texts) and all(description(text) for text in texts)


def _common(first: Any, *others: Any) -> Any:
    for other in others:
        text, second = described(first), described(other)
        joined = text and second and joined_specs([text, second])
        first = _from_text(joined) if joined else first
    return first


# ---- The signature of from_generator ------------------------------------------------------------


def of_types(types: Any, shapes: Any) -> Any:
    """The signature of the older arguments: types, and shapes or None."""
    if isinstance(types, dict):
        return {key: of_types(types[key], None if shapes is None else shapes[key]) for key in types}
    if isinstance(types, tuple):
        each = [None] * len(types) if shapes is None else shapes
        specs = [of_types(*pair) for pair in zip(types, each, strict=True)]
        return type(types)(*specs) if hasattr(types, "_fields") else tuple(specs)
    return TensorSpec(shapes, types)


def check_signature(signature: Any) -> None:
    """Checks the leaves of a signature.

    Raises:
        TypeError: One is not a spec.
    """
    for spec in leaves(signature):
        if not isinstance(spec, TensorSpec):
            raise TypeError(
                "`output_signature` must hold specs such as tf.TensorSpec, in tuples and dicts, "
                f"found {type(spec).__name__}"
            )


def convert(signature: Any, element: Any) -> Any:
    """An element as plain values of the dtypes of a signature.

    Raises:
        TypeError: It has another structure, or a value of another dtype or shape.
    """
    if isinstance(signature, dict):
        _check_keys(signature, element)
        return {key: convert(signature[key], element[key]) for key in signature}
    if isinstance(signature, tuple):
        named = hasattr(signature, "_fields")
        wanted = type(signature) if named else tuple
        if not isinstance(element, wanted) or len(element) != len(signature):
            raise DtypeError(f"expected {_kind(signature)}, found {_kind(element)}")
        items = [convert(s, e) for s, e in zip(signature, element, strict=True)]
        return wanted(*items) if named else tuple(items)
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
    if type(spec) is not TensorSpec:
        found = leaf_spec(plain) if isinstance(plain, _COMPOSITES) else None
        if found is None or not spec.is_compatible_with(found):
            shown = f"a {type(value).__name__}" if found is None else repr(found)
            raise DtypeError(f"`generator` yielded {shown} where {spec} was expected")
        return plain
    if isinstance(plain, _COMPOSITES):
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
