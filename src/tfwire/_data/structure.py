"""The structure of elements: mapping, stacking and padding; their description before they are made;
arguments of transformations.

The description of a leaf is its dtype and shape: "float32[28, ?]", "string[]", "int64[...]" of any
rank. "sparse int64[5]" is a SparseTensor; "ragged(1, int64) int64[2, ?]" a RaggedTensor, with the
number of its ragged dimensions and the dtype of their splits. Other texts say what is not an array.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.arguments import as_index, integer, refuse_unordered, wrong_type
from tfwire._base.arrays import filled, to_splits
from tfwire._base.errors import InvalidArgumentError
from tfwire._base.strings import as_array, encoded_text
from tfwire._examples.column_types import RaggedTensor, SparseTensor

Array = np.ndarray[Any, Any]
MAX_PADDING = 1 << 30  # bytes of padding in a leaf of a batch, unless another limit is set


def map_structure(function: Callable[[Any], Any], element: Any) -> Any:
    """Applies a function to the leaves of an element; tuples and dicts are structure."""
    if _is_tuple(element):
        items = [map_structure(function, item) for item in element]
        return type(element)(*items) if hasattr(element, "_fields") else tuple(items)
    if isinstance(element, dict):
        return {key: map_structure(function, item) for key, item in element.items()}
    return function(element)


def zip_structures(
    function: Callable[..., Any], first: Any, *others: Any, spread: bool = False
) -> Any:
    """Combines elements of one structure: calls a function with the leaves at each place.

    Args:
        spread: A leaf of another element may stand for all leaves of a structure in the first.

    Raises:
        ValueError: The structures differ.
    """
    keys = _keys(first)
    if keys is None:
        return function(first, *others)
    columns = [_parts(other, keys, spread) for other in others]
    rows = zip(_parts(first, keys, spread), *columns, strict=True)
    items = [zip_structures(function, *row, spread=spread) for row in rows]
    if isinstance(first, dict):
        return dict(zip(keys, items, strict=True))
    return type(first)(*items) if hasattr(first, "_fields") else tuple(items)


def _keys(element: Any) -> Any:
    """The keys or numbers of an element's parts; None for a leaf."""
    if isinstance(element, dict):
        return element.keys()
    return range(len(element)) if _is_tuple(element) else None


def _parts(element: Any, keys: Any, spread: bool) -> list[Any]:
    found = _keys(element)
    if found == keys:
        return [element[key] for key in keys]
    if found is None and spread:
        return [element for _ in keys]
    parts = type(element).__name__ if found is None else f"the parts {list(found)}"
    raise ValueError(f"structures differ: expected the parts {list(keys)}, found {parts}")


def _is_tuple(element: Any) -> bool:
    """True for a tuple that is structure. A SparseTensor is one value, although it is a tuple."""
    return isinstance(element, tuple) and not isinstance(element, SparseTensor)


def leaves(element: Any) -> Iterator[Any]:
    """The leaves of an element, in order."""
    if isinstance(element, dict) or _is_tuple(element):
        for item in element.values() if isinstance(element, dict) else element:
            yield from leaves(item)
    else:
        yield element


# ---- Many elements as one -----------------------------------------------------------------------
def stack_elements(elements: Sequence[Any]) -> Any:
    """Stacks elements of one structure: every leaf gets a new first axis."""
    return zip_structures(_stack_leaves, *elements)


def _stack_leaves(*values: Any) -> Any:
    first = values[0]
    if isinstance(first, (bytes, str)):
        return _strings(values)
    if isinstance(first, SparseTensor):
        return _stack_sparse(values)
    if isinstance(first, RaggedTensor):
        return stack_ragged(values, first.row_splits.dtype)
    shapes = {np.shape(value) for value in values}
    if len(shapes) > 1:
        raise InvalidArgumentError(f"cannot batch elements of different shapes: {sorted(shapes)}")
    return np.stack(list(map(as_array, values)))


def _strings(values: Sequence[Any]) -> Array:
    column = np.empty(len(values), object)
    column[:] = list(map(encoded_text, values)) if isinstance(values[0], str) else values
    return column


def _stack_sparse(tensors: Sequence[SparseTensor]) -> SparseTensor:
    """Stacks SparseTensors. Each of the other dimensions is the largest among them."""
    counts = [len(tensor.indices) for tensor in tensors]
    numbers = np.repeat(np.arange(len(tensors), dtype=np.int64), counts)
    indices = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([as_array(tensor.values) for tensor in tensors])
    shape = np.max([tensor.dense_shape for tensor in tensors], axis=0)
    return SparseTensor(
        np.column_stack([numbers, indices]), values, np.concatenate([[len(tensors)], shape])
    )


def stack_ragged(values: Sequence[Any], splits_dtype: Any = np.int64) -> RaggedTensor:
    """Stacks arrays, or RaggedTensors, whose first sizes may differ: each becomes a row."""
    lengths = np.array([len(value) for value in values], np.int64)
    return RaggedTensor(_joined(values, splits_dtype), to_splits(lengths).astype(splits_dtype))


def _joined(values: Sequence[Any], splits_dtype: Any) -> Any:
    """The rows of arrays, or of RaggedTensors, one after the other."""
    if not isinstance(values[0], RaggedTensor):
        return np.concatenate(list(map(as_array, values)))
    inner = [value.values[int(value.row_splits[0]) : int(value.row_splits[-1])] for value in values]
    splits = to_splits(np.concatenate([value.row_lengths() for value in values]))
    return RaggedTensor(_joined(inner, splits_dtype), splits.astype(splits_dtype))


# ---- Rows of batches ----------------------------------------------------------------------------
def count_rows(element: Any) -> int:
    """The size of the first axis of an element's leaves.

    Raises:
        ValueError: A leaf is a scalar, or their sizes differ.
    """
    sizes = {_size(leaf) for leaf in leaves(element)}
    if len(sizes) != 1:
        raise ValueError(f"expected leaves of one first axis, found sizes {sorted(sizes)}")
    return sizes.pop()


def _size(leaf: Any) -> int:
    if isinstance(leaf, SparseTensor):
        return int(leaf.dense_shape[0])
    if not isinstance(leaf, RaggedTensor) and not np.ndim(leaf):
        raise ValueError("expected leaves of rank 1 or more, found a scalar")
    return len(leaf)


def cut_rows(element: Any, begin: int, end: int) -> Any:
    """Some rows of an element."""
    return map_structure(lambda leaf: _cut_leaf(leaf, begin, end), element)


def _cut_leaf(leaf: Any, begin: int, end: int) -> Any:
    if not isinstance(leaf, SparseTensor):
        return leaf[begin:end]
    rows = leaf.indices[:, 0]
    within = (begin <= rows) & (rows < end)
    shape = np.concatenate([[end - begin], leaf.dense_shape[1:]]).astype(np.int64)
    return SparseTensor(_below(leaf.indices[within], -begin), as_array(leaf.values)[within], shape)


def _below(indices: Array, rows: int) -> Array:
    """Indices moved by a number of rows."""
    moved: Array = indices.copy()
    moved[:, 0] += rows
    return moved


def join_rows(elements: Sequence[Any]) -> Any:
    """The rows of elements of one structure as one element."""
    return elements[0] if len(elements) == 1 else zip_structures(_join_leaves, *elements)


def _join_leaves(*values: Any) -> Any:
    first = values[0]
    if isinstance(first, RaggedTensor):
        return _joined(values, first.row_splits.dtype)
    if not isinstance(first, SparseTensor):
        return np.concatenate(list(map(as_array, values)))
    counts = [int(value.dense_shape[0]) for value in values]
    firsts = to_splits(np.array(counts, np.int64))[:-1].tolist()
    shapes = [value.dense_shape[1:] for value in values]
    return SparseTensor(
        np.concatenate([_below(v.indices, n) for v, n in zip(values, firsts, strict=True)]),
        np.concatenate([as_array(value.values) for value in values]),
        np.concatenate([[sum(counts)], np.max(shapes, axis=0)]).astype(np.int64),
    )


def pad_and_stack(
    elements: Sequence[Any], padded_shapes: Any, padding_values: Any, max_padding: int | None
) -> Any:
    """As ``stack_elements``, after padding every leaf at its ends.

    Args:
        elements: Of one structure; leaves at the same place have the same rank.
        padded_shapes: The shape to pad to, for every leaf or for all. A size of None or -1, or None
            as the shape, means the longest of these elements.
        padding_values: For every leaf, or for all; None is 0 or b"".
        max_padding: The largest number of bytes of padding in a leaf; None: no limit.

    Raises:
        ValueError: A leaf is larger than its padded shape, has another rank, or would get more
            padding than ``max_padding``.
    """
    columns = zip_structures(lambda *values: _Leaf(values), *elements)
    return zip_structures(
        lambda leaf, shape, value: _pad_leaves(leaf.values, shape, value, max_padding),
        columns,
        as_shapes(padded_shapes, columns),
        padding_values,
        spread=True,
    )


class _Leaf:
    """Wraps the values at one place: a bare tuple of values would be structure."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values


def as_shapes(shapes: Any, columns: Any) -> Any:
    """Turns shapes into lists, so that a tuple of numbers is a leaf."""
    if isinstance(shapes, dict) or (_is_tuple(shapes) and _is_tuple(columns)):
        keys = _keys(columns) or ()
        parts = zip(_parts(shapes, keys, False), keys, strict=True)
        found = [as_shapes(part, columns[key]) for part, key in parts]
        return dict(zip(keys, found, strict=True)) if isinstance(shapes, dict) else tuple(found)
    return None if shapes is None else list(shapes)


def _pad_leaves(
    values: Sequence[Any], shape: Sequence[Any] | None, padding: Any, max_padding: int | None
) -> Any:
    if isinstance(values[0], (bytes, str, SparseTensor, RaggedTensor)):
        return _stack_leaves(*values)
    arrays = list(map(as_array, values))
    wanted = _padded_shape(arrays, shape)
    dtype = np.result_type(*arrays)
    size = math.prod(wanted) * len(arrays) - sum(array.size for array in arrays)
    if max_padding is not None and size * dtype.itemsize > max_padding:
        raise ValueError(
            f"a batch of {len(arrays)} elements of shape {wanted} would hold "
            f"{size * dtype.itemsize} bytes of padding; max_padding allows {max_padding}"
        )
    result = padding_of(padding, (len(arrays), *wanted), dtype)
    for i, array in enumerate(arrays):
        inside: tuple[Any, ...] = (i, *map(slice, array.shape))
        result[inside] = array
    return result


def padding_of(padding: Any, shape: Sequence[int], dtype: Any) -> Array:
    """An array full of padding; None is 0 or b"".

    Raises:
        ValueError: Elements of this dtype cannot hold it.
    """
    if padding is None:
        padding = b"" if dtype.kind == "O" else 0
    fits = dtype.kind not in "biu" or (
        not np.iscomplexobj(padding) and dtype.type(padding) == padding
    )
    if not fits:
        raise ValueError(f"padding of {padding!r} does not fit elements of {dtype}")
    return filled("padding", shape, dtype, encoded_text(padding))


def _padded_shape(arrays: Sequence[Array], shape: Sequence[Any] | None) -> list[int]:
    """The shape that arrays of one rank are padded to."""
    ranks = {array.ndim for array in arrays}
    if len(ranks) > 1 or (shape is not None and {len(shape)} != ranks):
        raise InvalidArgumentError(
            f"cannot pad elements of ranks {sorted(ranks)} to the shape {shape}"
        )
    longest = np.max([array.shape for array in arrays], axis=0, initial=0)
    wanted = [
        int(most) if size is None or size == -1 else as_index(size)
        for most, size in zip(longest, shape if shape is not None else longest, strict=True)
    ]
    if (longest > wanted).any():
        raise InvalidArgumentError(
            f"an element of shape {longest.tolist()} does not fit into {wanted}"
        )
    return wanted


# ---- Arguments of transformations -------------------------------------------------------------
def check_padding(shapes: Any, values: Any) -> None:
    """Checks the arguments of ``padded_batch``, as far as possible without elements."""
    _check_shapes(shapes)
    for value in leaves(values):
        if value is not None and np.ndim(value) != 0:
            raise ValueError(f"padding_values must be scalars, found {type(value).__name__}")
        array = np.asarray(value)
        # An int beyond int64 is an object to numpy; a float column takes it.
        if array.dtype.kind == "O" and not isinstance(array.item(), (bytes, str, int, type(None))):
            raise wrong_type("padding_values", value, "numbers or strings")


def _check_shapes(shapes: Any) -> None:
    """A shape is an iterable of sizes, and None is any shape; tuples and dicts are structure."""
    if shapes is None:
        return
    if isinstance(shapes, (str, bytes)) or not isinstance(shapes, Iterable):
        raise TypeError(f"padded_shapes must be shapes, found {type(shapes).__name__}")
    if not isinstance(shapes, dict):
        refuse_unordered("padded_shapes", shapes)
    for part in shapes.values() if isinstance(shapes, dict) else shapes:
        nested = isinstance(part, Iterable) and not isinstance(part, (str, bytes))
        if nested or isinstance(shapes, dict):
            _check_shapes(part)
        elif part is not None:
            integer("a size of padded_shapes", part, -1)


def check_shard(num_shards: Any, index: Any) -> tuple[int, int]:
    """The number of shards and the index of one, checked."""
    shards, number = integer("num_shards", num_shards, 1), integer("index", index)
    if not 0 <= number < shards:
        raise ValueError(f"shard index must be within [0, {shards}), found {number}")
    return shards, number


# ---- What is known of elements before they are made --------------------------------------------


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


def joined_pieces(pieces: Sequence[Any]) -> list[Any]:
    """The elements of all pieces: lists, or what joins itself, such as StringTable."""
    if not pieces or isinstance(pieces[0], list):
        return pieces[0] if len(pieces) == 1 else [*chain.from_iterable(pieces)]
    found: list[Any] = pieces[0] if len(pieces) == 1 else type(pieces[0]).joined(pieces)
    return found


def joined_specs(specs: Sequence[Any]) -> Any:
    """The spec of elements that are as one of these says; None if that is not known."""
    found = specs[0]
    for spec in specs[1:]:
        try:
            found = zip_structures(_joined_text, found, spec)
        except ValueError:  # they have other structures
            return None
    return found


def _joined_text(text: str | None, other: str | None) -> str | None:
    if text == other:
        return text
    first, second = description(text), description(other)
    joined = first and second and first.joined(second)
    return str(joined) if joined else None
