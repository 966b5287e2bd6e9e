"""Elements: numpy values and bytes in tuples and dicts; stacked, padded, described."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tfwire.columns import RaggedTensor, SparseTensor

__all__ = [
    "as_array",
    "describe",
    "leaves",
    "map_structure",
    "pad_and_stack",
    "stack",
    "zip_structures",
]

Array = np.ndarray[Any, Any]


def map_structure(function: Callable[[Any], Any], element: Any) -> Any:
    """An element with function applied to its leaves; tuples and dicts are its structure."""
    if _is_tuple(element):
        items = [map_structure(function, item) for item in element]
        return type(element)(*items) if hasattr(element, "_fields") else tuple(items)
    if isinstance(element, dict):
        return {key: map_structure(function, item) for key, item in element.items()}
    return function(element)


def zip_structures(function: Callable[..., Any], first: Any, *others: Any) -> Any:
    """Elements of one structure as one, function applied to leaves of one place; an other that is
    no structure where the first is one stands for all its leaves."""
    if _is_tuple(first):
        columns = [_parts(other, range(len(first))) for other in others]
        rows = zip(first, *columns, strict=True)
        items = [zip_structures(function, *row) for row in rows]
        return type(first)(*items) if hasattr(first, "_fields") else tuple(items)
    if isinstance(first, dict):
        columns = [_parts(other, first) for other in others]
        rows = zip(first.values(), *columns, strict=True)
        items = [zip_structures(function, *row) for row in rows]
        return dict(zip(first, items, strict=True))
    return function(first, *others)


def _parts(element: Any, keys: Iterable[Any]) -> list[Any]:
    if isinstance(element, dict) or _is_tuple(element):
        return [element[key] for key in keys]
    return [element for _ in keys]


def _is_tuple(element: Any) -> bool:
    """Whether this is structure; a SparseTensor is one value, although it is a tuple."""
    return isinstance(element, tuple) and not isinstance(element, SparseTensor)


def leaves(element: Any) -> Iterator[Any]:
    """The leaves of an element, in order."""
    if isinstance(element, dict) or _is_tuple(element):
        for item in element.values() if isinstance(element, dict) else element:
            yield from leaves(item)
    else:
        yield element


def as_array(value: Any) -> Array:
    """A leaf as an array; strings as objects of bytes, whole: numpy's own drop trailing zeros."""
    try:
        array = np.asarray(value)
    except UnicodeDecodeError:  # bytes beside str
        array = np.asarray(value, object)
    if array.dtype.kind not in "OSU":
        return array
    items = map(_as_bytes, np.asarray(value, object).flat)
    return np.fromiter(items, object, array.size).reshape(array.shape)


def _as_bytes(item: Any) -> Any:
    return item.encode() if isinstance(item, str) else item


def describe(dtype: Any, shape: Iterable[Any]) -> str:
    """A leaf's dtype and shape: "float32[28, 28]", "string[]"."""
    dtype = np.dtype(dtype)
    name = "string" if dtype.kind in "OSU" else dtype.name
    return f"{name}[{', '.join('?' if n is None else str(n) for n in shape)}]"


# ---- Many elements as one -----------------------------------------------------------------------


def stack(elements: Sequence[Any]) -> Any:
    """Elements of one structure as one, every leaf with a new first axis."""
    return zip_structures(_stack_leaves, *elements)


def _stack_leaves(*values: Any) -> Any:
    first = values[0]
    if isinstance(first, (bytes, str)):
        return _strings(values)
    if isinstance(first, SparseTensor):
        return _stack_sparse(values)
    if isinstance(first, RaggedTensor):
        raise TypeError("RaggedTensors cannot be batched; batch the records, then parse them")
    shapes = {np.shape(value) for value in values}
    if len(shapes) > 1:
        raise ValueError(f"cannot batch elements of different shapes: {sorted(shapes)}")
    return np.stack(list(map(as_array, values)))


def _strings(values: Sequence[Any]) -> Array:
    column = np.empty(len(values), object)
    column[:] = list(map(_as_bytes, values)) if isinstance(values[0], str) else values
    return column


def _stack_sparse(tensors: Sequence[SparseTensor]) -> SparseTensor:
    """SparseTensors as one, whose other dimensions are those of the largest."""
    numbers = np.repeat(np.arange(len(tensors)), [len(tensor.indices) for tensor in tensors])
    indices = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([np.asarray(tensor.values) for tensor in tensors])
    shape = np.max([tensor.dense_shape for tensor in tensors], axis=0)
    return SparseTensor(
        np.column_stack([numbers, indices]), values, np.concatenate([[len(tensors)], shape])
    )


def pad_and_stack(elements: Sequence[Any], padded_shapes: Any, padding_values: Any) -> Any:
    """As ``stack``, every leaf padded at its ends first.

    Args:
        elements: Of one structure; leaves of one place have the same rank.
        padded_shapes: For every leaf, or for all: the shape to pad to, None (or -1) in it, or in
            place of it, for the longest of these elements.
        padding_values: For every leaf, or for all; None is 0 or b"".

    Raises:
        ValueError: A leaf is larger than its padded shape, or of another rank.
    """
    columns = zip_structures(lambda *values: _Leaf(values), *elements)
    shapes = map_structure(lambda leaf: leaf, columns)  # the structure to spread the others over
    return zip_structures(
        lambda leaf, shape, value: _pad_leaves(leaf.values, shape, value),
        shapes,
        _as_shapes(padded_shapes, columns),
        padding_values,
    )


class _Leaf:
    """The values of one place, kept from being taken for structure."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


def _as_shapes(shapes: Any, columns: Any) -> Any:
    """Shapes wrapped, so that a tuple of numbers is a leaf."""
    if isinstance(shapes, dict):
        return {key: _as_shapes(shape, columns[key]) for key, shape in shapes.items()}
    if _is_tuple(shapes) and _is_tuple(columns):
        parts = zip(shapes, columns, strict=True)
        return tuple(_as_shapes(shape, column) for shape, column in parts)
    return None if shapes is None else list(shapes)


def _pad_leaves(values: Sequence[Any], shape: Sequence[Any] | None, padding: Any) -> Any:
    if isinstance(values[0], (bytes, str)):
        return _strings(values)
    arrays = list(map(as_array, values))
    ranks = {array.ndim for array in arrays}
    if len(ranks) > 1 or (shape is not None and {len(shape)} != ranks):
        raise ValueError(f"cannot pad elements of ranks {sorted(ranks)} to the shape {shape}")
    longest = np.max([array.shape for array in arrays], axis=0, initial=0)
    wanted = [
        int(most) if size is None or size == -1 else int(size)
        for most, size in zip(longest, shape if shape is not None else longest, strict=True)
    ]
    if (longest > wanted).any():
        raise ValueError(f"an element of shape {longest.tolist()} does not fit into {wanted}")
    dtype = np.result_type(*arrays)
    if padding is None:
        padding = b"" if dtype.kind == "O" else 0
    result = np.full((len(arrays), *wanted), _as_bytes(padding), dtype)
    for i, array in enumerate(arrays):
        inside: tuple[Any, ...] = (i, *map(slice, array.shape))
        result[inside] = array
    return result
