"""What ``from_generator`` was told of its elements, and elements converted to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfwire import columns
from tfwire._datasets.structure import map_structure, zip_structures
from tfwire.compat._convert import to_numpy
from tfwire.compat._data.specs import RaggedTensorSpec, SparseTensorSpec, TensorSpec, fits
from tfwire.compat._dtypes import as_dtype, numpy_dtype
from tfwire.compat._shapes import TensorShape

__all__ = ["convert", "of_types"]


def of_types(types: Any, shapes: Any) -> Any:
    """The signature of the two arguments before there was one: types, and shapes or None."""
    types = map_structure(as_dtype, _tuples(types))
    if shapes is None:
        return map_structure(lambda dtype: TensorSpec(None, dtype), types)
    return zip_structures(
        lambda dtype, leaf: TensorSpec(leaf.shape, dtype), types, _leaves_of(shapes, types)
    )


class _Leaf:
    """A shape, kept from being taken for structure."""

    def __init__(self, shape: Any) -> None:
        self.shape = TensorShape(shape)


def _leaves_of(shapes: Any, types: Any) -> Any:
    """Shapes in the structure of types."""
    if isinstance(types, dict):
        return {key: _leaves_of(shapes[key], types[key]) for key in types}
    if isinstance(types, tuple):
        return tuple(_leaves_of(s, t) for s, t in zip(shapes, types, strict=True))
    return _Leaf(shapes)


def _tuples(structure: Any) -> Any:
    """Lists of a signature as the tuples that they stand for."""
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
            raise TypeError(f"expected an element of {len(signature)} parts, got {_kind(element)}")
        return tuple(convert(s, e) for s, e in zip(signature, element, strict=True))
    return _leaf(signature, element)


def _check_keys(signature: dict[Any, Any], element: Any) -> None:
    if not isinstance(element, dict) or element.keys() != signature.keys():
        raise TypeError(
            f"expected an element with the keys {sorted(signature)}, got {_kind(element)}"
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
            columns.SparseTensor if isinstance(spec, SparseTensorSpec) else columns.RaggedTensor
        )
        if not isinstance(plain, wanted):
            raise TypeError(f"expected a {wanted.__name__}, got {type(value).__name__}")
        return plain
    if isinstance(plain, (columns.SparseTensor, columns.RaggedTensor)):
        raise TypeError(f"expected a tensor, got a {type(plain).__name__}")
    try:
        found = to_numpy(value, numpy_dtype(spec.dtype))
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"`generator` yielded an element that is no tf.{spec.dtype.name}: {error}"
        ) from error
    if not fits(spec.shape, TensorShape(np.shape(found))):
        raise TypeError(
            f"`generator` yielded an element of shape {np.shape(found)} where an element of shape "
            f"{spec.shape} was expected"
        )
    return found
