"""Features as TFDS declares them: the tree of a features.json, and values of what is stored.

``tfwire.read_schema`` says how values are stored: as int64, float32 or bytes, in one row or ragged.
A tree makes of these what TFDS gives: values of the declared types, decoded and nested.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tfwire import (
    Dataset,
    FixedLenSequenceFeature,
    RaggedFeature,
    RaggedTensor,
    VarLenFeature,
)
from tfwire._interface.descriptions import (
    encoding_of,
    is_dynamic,
    is_encoded,
    parts_of_translation,
    sizes_of,
    tensor_content,
)
from tfwire.tfds._images import decoded_image

Array = np.ndarray[Any, Any]

_MOST_TENSOR_BYTES = (1 << 31) - 1  # bytes of a tensor: as many as a message may have


class SkipDecoding:
    """Leaves a feature as it is stored: images, frames of videos and encoded tensors as bytes."""

    def __repr__(self) -> str:
        return "SkipDecoding()"


def as_stored(value: Any) -> Any:
    return value


# ---- The tree -----------------------------------------------------------------------------------


class Leaf:
    """A feature without parts.

    Attributes:
        key: Its name in the records; parts are joined by "/".
        sizes: Lengths of the sequences that it is in, and its shape; -1: unknown.
        rank: In how many sequences it is.
        dtype: The declared type; None: bytes.
        decode: Makes an element of what is stored of it; None: that is the element.
    """

    def __init__(
        self,
        key: str,
        lengths: Sequence[int],
        shape: Sequence[int] = (),
        dtype: Any = None,
        decode: Callable[[Any], Any] | None = None,
        decoded: tuple[Sequence[int], Any] = ((), None),
    ) -> None:
        self.key = key
        self.rank = len(lengths)
        self.sizes = [*lengths, *shape]
        self.dtype = dtype
        self.decode = decode
        self._element_rank = len(shape)
        self._decoded = decoded
        # An unknown dimension is the first, or it is stored as all values in a row.
        self._in_a_row = self.rank < 2 and -1 in self.sizes[1:]

    @property
    def keys(self) -> list[str]:
        return [self.key]

    def cast(self, columns: dict[str, Any]) -> None:
        """Gives the column of a batch the declared type."""
        if self.dtype is not None:
            columns[self.key] = _with_values(columns[self.key], self._as_declared)

    def _as_declared(self, values: Array) -> Array:
        return values.astype(self.dtype, copy=False)

    def row(self, columns: Mapping[str, Any], number: int) -> dict[str, Any]:
        """What is stored of it in a row of a batch."""
        value = columns[self.key][number]
        if self._in_a_row:
            value = value.reshape(self.sizes)
        return {self.key: value}

    def column(self, columns: Mapping[str, Any]) -> Any:
        """Its values in all rows of a batch."""
        if self._in_a_row:
            count = len(columns[self.key])
            return stacked([self.value(self.row(columns, n)) for n in range(count)], (count,))
        return self.value(columns)

    def value(self, stored: Mapping[str, Any], where: str = "") -> Any:
        """Of what is stored of a row, of a sequence in it, or of many rows, its value.

        Args:
            where: The row, for errors that come when it is not known any more.
        """
        try:
            return self._value(stored)
        except (ValueError, zlib.error) as error:
            raise ValueError(f"feature {self.key!r}: {error}") from error

    def _value(self, stored: Mapping[str, Any]) -> Any:
        value = stored[self.key]
        return value if self.decode is None else self._decode_all(value)

    def _decode_all(self, value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return RaggedTensor(self._decode_all(value.values), value.row_splits)
        assert self.decode is not None
        if np.ndim(value) == self._element_rank:
            return self.decode(value)
        leading = value.shape[: value.ndim - self._element_rank]
        elements = value.reshape(prod(leading), *value.shape[len(leading) :])
        return stacked(list(map(self.decode, elements)), leading, *self._decoded)


class DynamicLeaf(Leaf):
    """An encoded tensor whose shape lies beside it."""

    @property
    def keys(self) -> list[str]:
        return [f"{self.key}/shape", f"{self.key}/value"]

    def cast(self, columns: dict[str, Any]) -> None:
        """Nothing: both are as they are stored."""

    def row(self, columns: Mapping[str, Any], number: int) -> dict[str, Any]:
        return {key: columns[key][number] for key in self.keys}

    def _value(self, stored: Mapping[str, Any]) -> Any:
        shape, value = (stored[key] for key in self.keys)
        if self.decode is as_stored:
            return {
                "shape": _with_values(shape, lambda sizes: sizes.astype(np.int32)),
                "value": value,
            }
        return self._decode_pairs(value, shape)

    def _decode_pairs(self, value: Any, shape: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return RaggedTensor(self._decode_pairs(value.values, shape.values), value.row_splits)
        assert self.decode is not None
        if not np.ndim(value):
            return self.decode((value, shape.tolist()))
        pairs = zip(value.reshape(-1), shape.reshape(value.size, -1).tolist(), strict=True)
        return stacked(list(map(self.decode, pairs)), value.shape, *self._decoded)


class Group:
    """A dict of features."""

    def __init__(self, children: dict[str, Any]) -> None:
        self.children = children

    def leaves(self) -> Iterator[Leaf]:
        for child in self.children.values():
            yield from [child] if isinstance(child, Leaf) else child.leaves()

    def value(self, stored: Mapping[str, Any], where: str = "") -> dict[str, Any]:
        return {name: child.value(stored, where) for name, child in self.children.items()}

    def column(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        return {name: child.column(columns) for name, child in self.children.items()}


class StepsFeature:
    """A Dataset feature: the elements of a dataset in every example, as the steps of an episode."""

    def __init__(self, element: Any) -> None:
        self.element = element

    def leaves(self) -> Iterator[Leaf]:
        yield from [self.element] if isinstance(self.element, Leaf) else self.element.leaves()

    def value(self, stored: Mapping[str, Any], where: str = "") -> Dataset[Any]:
        """A Dataset that decodes an element when it is asked for."""
        columns = self.stored(stored)
        count = len(next(iter(columns.values())))
        return Dataset.range(count).map(partial(_step, self, columns, where))

    def stored(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """What is stored of all steps of an example."""
        columns = {key: stored[key] for leaf in self.leaves() for key in leaf.keys}
        counts = {key: len(column) for key, column in columns.items()}
        if len(set(counts.values())) > 1:
            raise ValueError(f"the features of steps differ in length: {counts}")
        return columns

    def column(self, columns: Mapping[str, Any]) -> Any:
        return self.element.column(columns)


def _step(steps: StepsFeature, columns: Mapping[str, Any], where: str, number: Any) -> Any:
    try:
        return steps.element.value({key: column[int(number)] for key, column in columns.items()})
    except ValueError as error:
        raise ValueError(f"{where}: step {number}: {error}") from error


# ---- Making it ----------------------------------------------------------------------------------


def feature_of(
    node: Mapping[str, Any],
    decoders: Mapping[str, Any],
    key: str = "",
    lengths: tuple[int, ...] = (),
) -> Any:
    """The feature of a node of a features.json.

    Args:
        decoders: By key, for leaves.
    """
    make = partial(feature_of, decoders=decoders)
    if "featuresDict" in node:
        children = node["featuresDict"]["features"].items()
        return Group({n: make(c, key=_joined(key, n), lengths=lengths) for n, c in children})
    if "sequence" in node:
        length = int(node["sequence"].get("length", -1))
        inner = make(node["sequence"]["feature"], key=key, lengths=(*lengths, length))
        return StepsFeature(inner) if is_dataset(node) else inner
    if "translation" in node:
        more = (-1,) if node["translation"].get("variableLanguagesPerExample") else ()
        parts = parts_of_translation(node["translation"])
        return Group({n: Leaf(_joined(key, n), (*lengths, *more)) for n in parts})
    leaf = _leaf(node, key, lengths)
    decoder = decoders.get(key)
    if isinstance(decoder, SkipDecoding):
        leaf.decode = as_stored if isinstance(leaf, DynamicLeaf) else None
    elif decoder is not None:
        leaf.decode, leaf._decoded = partial(_decoded_by, decoder), ((), None)
    return leaf


def _decoded_by(decoder: Callable[[Any], Any], stored: Any) -> Any:
    """What a user's decoder makes of a value; its errors are those of the value."""
    try:
        return decoder(stored)
    except Exception as error:
        raise ValueError(f"its decoder raised {type(error).__name__}: {error}") from error


def is_dataset(node: Mapping[str, Any]) -> bool:
    return str(node.get("pythonClassName", "")).endswith(".Dataset")


def _joined(key: str, name: str) -> str:
    return f"{key}/{name}" if key else name


def _leaf(node: Mapping[str, Any], key: str, lengths: tuple[int, ...]) -> Leaf:
    if "classLabel" in node:
        return Leaf(key, lengths, (), np.dtype(np.int64))
    if "text" in node:
        return Leaf(key, lengths)
    if "boundingBox" in node:
        return Leaf(key, lengths, (4,), np.dtype(np.float32))
    if "image" in node or "video" in node:
        content = node.get("image") or node.get("video") or {}
        shape = sizes_of(content)
        if "video" in node:
            lengths, shape = (*lengths, (shape or [-1])[0]), shape[1:]
        shape, dtype = shape or [-1, -1, 3], np.dtype(content.get("dtype", "uint8"))
        decode = partial(decoded_image, shape=shape, dtype=dtype)
        return Leaf(key, lengths, decode=decode, decoded=(shape, dtype))
    content = tensor_content(node)
    shape = sizes_of(content) or ([-1] if "audio" in node else [])
    if content.get("lazyDecode"):  # a file of sound; its decoder is the user's
        return Leaf(key, lengths)
    dtype = _dtype(key, content.get("dtype", "int64"))
    if not is_encoded(node):
        return Leaf(key, lengths, shape, dtype)
    decode = partial(_decoded_tensor, shape=shape, dtype=dtype, encoding=encoding_of(node))
    kind = DynamicLeaf if is_dynamic(node) else Leaf
    return kind(key, lengths, decode=decode, decoded=(shape, dtype))


def _dtype(key: str, name: str) -> Any:
    """The type of values; None: bytes."""
    if name in ("string", "object"):
        return None
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"feature {key!r}: the type {name} needs the package ml_dtypes") from error


def exact(specification: Any) -> Any:
    """A specification that tells how long each row of a batch is."""
    if isinstance(specification, VarLenFeature):
        return RaggedFeature(specification.dtype)
    if not isinstance(specification, FixedLenSequenceFeature):
        return specification
    sizes: Any = specification.shape
    inner = [RaggedFeature.UniformRowLength(size) for size in sizes]
    return RaggedFeature(specification.dtype, partitions=inner)


# ---- Values -------------------------------------------------------------------------------------


def _with_values(column: Any, function: Callable[[Any], Any]) -> Any:
    """The column with a function applied to its values."""
    if isinstance(column, RaggedTensor):
        return RaggedTensor(_with_values(column.values, function), column.row_splits)
    return function(column)


def stacked(
    values: list[Any], leading: Sequence[int], shape: Sequence[int] = (), dtype: Any = None
) -> Any:
    """Values as one array if they have one shape, else as an array of objects.

    Args:
        leading: The shape in which they stand.
        shape, dtype: Of one of them, for none. TFDS takes 0 for unknown sizes then.
    """
    if not values:
        return np.empty((*leading, *(max(size, 0) for size in shape)), dtype or object)
    arrays = [value for value in values if isinstance(value, (np.ndarray, np.generic))]
    same = len(arrays) == len(values) and len({(a.shape, a.dtype) for a in arrays}) == 1
    if same:
        return np.stack(arrays).reshape(*leading, *arrays[0].shape)
    objects = np.empty(len(values), object)
    for number, value in enumerate(values):  # numpy would look into them
        objects[number] = value
    return objects.reshape(leading)


def _decoded_tensor(stored: Any, shape: Sequence[int], dtype: Any, encoding: str) -> Any:
    """The tensor in bytes, which may have its shape beside them."""
    data, sizes = (
        (stored[0], _merged(shape, stored[1])) if type(stored) is tuple else (stored, shape)
    )
    if encoding == "zlib":
        data = _inflated(data, None if -1 in sizes else prod(sizes) * dtype.itemsize)
    elif encoding != "bytes":
        raise ValueError(f"the encoding {encoding!r} is unknown")
    tensor: Array = np.frombuffer(data, dtype).reshape(sizes).copy()
    return tensor if tensor.ndim else tensor[()]


def _inflated(data: bytes, size: int | None) -> bytes:
    """What a zlib stream holds. No more is inflated than fits, or than a message may have."""
    most = _MOST_TENSOR_BYTES if size is None else size
    stream = zlib.decompressobj()
    found = stream.decompress(data, min(most, _MOST_TENSOR_BYTES) + 1)
    if len(found) > most or not stream.eof or (size is not None and len(found) != size):
        amount = "more" if len(found) > most or len(found) > _MOST_TENSOR_BYTES else "less"
        expected = "at most " * (size is None) + str(most)
        raise ValueError(f"expected {expected} bytes in zlib, found {amount}")
    return found


def _merged(shape: Sequence[int], found: Sequence[int]) -> list[int]:
    """The shape of a tensor, where what is declared agrees."""
    if any(a not in (-1, b) for a, b in zip(shape, found, strict=True)):
        raise ValueError(f"expected the shape {list(shape)}, found {list(found)}")
    return list(found)
