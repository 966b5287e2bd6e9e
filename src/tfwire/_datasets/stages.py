"""The stages of a Dataset: small re-iterable objects, each reading the one before it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tfwire._ahead import Ahead
from tfwire.columns import RaggedTensor, SparseTensor

__all__ = [
    "Batch",
    "Filter",
    "Generator",
    "Map",
    "Parse",
    "Prefetch",
    "Records",
    "Repeat",
    "Shard",
    "Shuffle",
    "Skip",
    "Slices",
    "Stage",
    "Take",
    "map_structure",
]


def map_structure(function: Callable[[Any], Any], element: Any) -> Any:
    """An element with function applied to its leaves; tuples and dicts are its structure."""
    if _is_tuple(element):
        items = [map_structure(function, item) for item in element]
        return type(element)(*items) if hasattr(element, "_fields") else tuple(items)
    if isinstance(element, dict):
        return {key: map_structure(function, item) for key, item in element.items()}
    return function(element)


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


def stack(elements: Sequence[Any]) -> Any:
    """Elements of one structure as one, every leaf with a new first axis."""
    first = elements[0]
    if _is_tuple(first):
        columns = [stack(items) for items in zip(*elements, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else tuple(columns)
    if isinstance(first, dict):
        return {key: stack([element[key] for element in elements]) for key in first}
    if isinstance(first, (bytes, str)):
        column = np.empty(len(elements), object)
        column[:] = elements
        return column
    if isinstance(first, SparseTensor):
        return _stack_sparse(elements)
    if isinstance(first, RaggedTensor):
        raise TypeError("RaggedTensors cannot be batched; batch the records, then parse them")
    shapes = {np.shape(element) for element in elements}
    if len(shapes) > 1:
        raise ValueError(f"cannot batch elements of different shapes: {sorted(shapes)}")
    return np.stack([np.asarray(element) for element in elements])


def _stack_sparse(tensors: Sequence[SparseTensor]) -> SparseTensor:
    """SparseTensors as one, whose other dimensions are those of the largest."""
    numbers = np.repeat(np.arange(len(tensors)), [len(tensor.indices) for tensor in tensors])
    indices = np.concatenate([tensor.indices for tensor in tensors])
    values = np.concatenate([np.asarray(tensor.values) for tensor in tensors])
    shape = np.max([tensor.dense_shape for tensor in tensors], axis=0)
    return SparseTensor(
        np.column_stack([numbers, indices]), values, np.concatenate([[len(tensors)], shape])
    )


class Stage:
    """A re-iterable sequence of elements.

    Attributes:
        source: The stage before, None for a source.
        length: Number of elements where it is known without reading, else None.
        spec: The structure of an element with a description ("int64[28, 28]") per leaf, or None.
    """

    source: Stage | None = None
    length: int | None = None
    spec: Any = None

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError


class Slices(Stage):
    """The slices of arrays along their first axis."""

    def __init__(self, tensors: Any) -> None:
        self.arrays = map_structure(_sliceable, tensors)
        lengths = {len(leaf) for leaf in leaves(self.arrays)}
        if len(lengths) != 1:
            raise ValueError(f"arrays must agree in their first axis, found {sorted(lengths)}")
        self.length = lengths.pop()
        self.spec = map_structure(lambda array: describe(array.dtype, array.shape[1:]), self.arrays)

    def __iter__(self) -> Iterator[Any]:
        for i in range(self.length or 0):
            yield map_structure(itemgetter(i), self.arrays)


def _sliceable(tensor: Any) -> np.ndarray[Any, Any]:
    """An array of rank 1 or more; strings as an object array of bytes."""
    if hasattr(tensor, "numpy"):
        tensor = tensor.numpy()
    array = np.asarray(tensor)
    if array.ndim == 0:
        raise ValueError("from_tensor_slices needs arrays with a first axis, found a scalar")
    if array.dtype.kind == "U":
        encoded = [text.encode() for text in array.ravel().tolist()]
    elif array.dtype.kind == "S":
        # Via the list that came in where there is one: numpy drops trailing NUL bytes.
        encoded = list(tensor) if isinstance(tensor, list) else array.ravel().tolist()
    else:
        return array
    column = np.empty(array.size, object)
    column[:] = encoded
    return column.reshape(array.shape)


def describe(dtype: Any, shape: Iterable[Any]) -> str:
    """A leaf's dtype and shape: "float32[28, 28]", "string[]"."""
    dtype = np.dtype(dtype)
    name = "string" if dtype.kind in "OSU" else dtype.name
    return f"{name}[{', '.join('?' if n is None else str(n) for n in shape)}]"


class Generator(Stage):
    """What a function without arguments generates, anew for every iteration."""

    def __init__(self, generator: Callable[[], Iterable[Any]], spec: Any) -> None:
        self.generator = generator
        self.spec = spec

    def __iter__(self) -> Iterator[Any]:
        return iter(self.generator())


class Records(Stage):
    """The records of TFRecord files, one file after the other or several in turn."""

    spec = "string[]"

    def __init__(self, paths: list[Any], compression_type: str, cycle: int, **options: Any) -> None:
        self.paths = paths
        self.compression_type = compression_type
        self.cycle = cycle
        self.options = options

    def _read(self, paths: list[Any]) -> Iterator[bytes]:
        from tfwire.records import read_records

        return iter(read_records(paths, self.compression_type, **self.options))

    def __iter__(self) -> Iterator[bytes]:
        if self.cycle <= 1:
            return self._read(self.paths)
        return self._interleaved()

    def parsed(self, parser: Any, batch: Batch) -> Iterator[Any]:
        """The batches of these records, read and parsed in C, without an object per record."""
        batches: Iterator[Any] = parser.parse_file(
            self.paths,
            batch.count,
            compression_type=self.compression_type,
            on_corrupt=self.options.get("on_corrupt", "raise"),
            drop_remainder=batch.drop_remainder,
        )
        return batches

    def _interleaved(self) -> Iterator[bytes]:
        """One record of each of cycle files in turn; a file that ends gives its place to the next,
        as TensorFlow's num_parallel_reads does."""
        waiting = iter(self.paths)
        places: list[Iterator[bytes] | None] = [
            self._read([path]) for path in itertools.islice(waiting, self.cycle)
        ]
        while any(place is not None for place in places):
            for i, place in enumerate(places):
                if place is None:
                    continue
                record = next(place, None)
                while record is None:
                    path = next(waiting, None)
                    if path is None:
                        places[i] = None
                        break
                    replacement = self._read([path])
                    places[i] = replacement
                    record = next(replacement, None)
                if record is not None:
                    yield record


class Map(Stage):
    """A function of every element."""

    def __init__(self, source: Stage, function: Callable[[Any], Any]) -> None:
        self.source = source
        self.function = function
        self.length = source.length

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        return map(self.function, self.source)


class Filter(Stage):
    """The elements for which a function is true."""

    def __init__(self, source: Stage, predicate: Callable[[Any], Any]) -> None:
        self.source = source
        self.predicate = predicate
        self.spec = source.spec

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        return filter(self.predicate, self.source)


class Parse(Stage):
    """Serialized Examples parsed, one by one or, when they come in batches, batch by batch."""

    def __init__(self, source: Stage, parser: Any, features: Mapping[Any, Any]) -> None:
        self.source = source
        self.batched = isinstance(source, Batch)
        self.parser = parser
        self.features = features
        self.length = source.length
        self.spec = {
            key: describe(feature.dtype.as_numpy_dtype, feature.shape)
            if hasattr(feature, "shape") and hasattr(feature.dtype, "as_numpy_dtype")
            else type(feature).__name__
            for key, feature in features.items()
        }

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        if not isinstance(self.source, Batch):
            return map(self.parser.parse_single, self.source)
        records = self.source.source
        if isinstance(records, Records) and records.cycle <= 1:
            return records.parsed(self.parser, self.source)
        return map(self.parser.parse, self.source)


class Batch(Stage):
    """Elements stacked, count at a time."""

    def __init__(self, source: Stage, count: int, drop_remainder: bool) -> None:
        self.source = source
        self.count = count
        self.drop_remainder = drop_remainder
        self.spec = source.spec and map_structure(_with_batch_axis, source.spec)
        if source.length is not None:
            self.length = source.length // count
            self.length += bool(source.length % count) and not drop_remainder

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        elements = iter(self.source)
        while chunk := list(itertools.islice(elements, self.count)):
            if len(chunk) == self.count or not self.drop_remainder:
                yield stack(chunk)


def _with_batch_axis(leaf: str) -> str:
    if not leaf.endswith("]"):
        return leaf
    dtype, shape = leaf[:-1].split("[")
    return f"{dtype}[?, {shape}]" if shape else f"{dtype}[?]"


class Take(Stage):
    """The first elements; all of them for a negative count."""

    def __init__(self, source: Stage, count: int) -> None:
        self.source = source
        self.count = count
        self.spec = source.spec
        if source.length is not None:
            self.length = source.length if count < 0 else min(count, source.length)

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        return iter(self.source) if self.count < 0 else itertools.islice(self.source, self.count)


class Skip(Stage):
    """All but the first elements; none for a negative count."""

    def __init__(self, source: Stage, count: int) -> None:
        self.source = source
        self.count = count
        self.spec = source.spec
        if source.length is not None:
            self.length = 0 if count < 0 else max(source.length - count, 0)

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        return iter(()) if self.count < 0 else itertools.islice(self.source, self.count, None)


class Repeat(Stage):
    """The elements count times over; for ever when count is None or negative."""

    def __init__(self, source: Stage, count: int | None) -> None:
        self.source = source
        self.count = None if count is None or count < 0 else count
        self.spec = source.spec
        if self.count is not None and source.length is not None:
            self.length = source.length * self.count

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        epochs = itertools.count() if self.count is None else iter(range(self.count))
        for _ in epochs:
            empty = True
            for element in self.source:
                empty = False
                yield element
            if empty:  # an endless repetition of nothing would never return
                return


class Shard(Stage):
    """Every num_shards-th element from index on."""

    def __init__(self, source: Stage, num_shards: int, index: int) -> None:
        if not 0 <= index < num_shards:
            raise ValueError(f"shard index must be within [0, {num_shards}), found {index}")
        self.source = source
        self.num_shards = num_shards
        self.index = index
        self.spec = source.spec
        if source.length is not None:
            self.length = max(source.length - index + num_shards - 1, 0) // num_shards

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        return itertools.islice(self.source, self.index, None, self.num_shards)


class Shuffle(Stage):
    """A buffer that gives a random one of its elements and takes the next into its place."""

    def __init__(
        self, source: Stage, buffer_size: int, seed: int | None, reshuffle_each_iteration: bool
    ) -> None:
        if buffer_size < 1:
            raise ValueError(f"buffer_size must be at least 1, found {buffer_size}")
        self.source = source
        self.buffer_size = buffer_size
        self.seed = random.randrange(2**63) if seed is None else seed
        self.reshuffle = reshuffle_each_iteration
        self.epoch = 0
        self.spec = source.spec
        self.length = source.length

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        rng = random.Random(f"{self.seed}/{self.epoch}")
        self.epoch += self.reshuffle
        elements = iter(self.source)
        buffer = list(itertools.islice(elements, self.buffer_size))
        for element in elements:
            i = rng.randrange(len(buffer))
            yield buffer[i]
            buffer[i] = element
        rng.shuffle(buffer)
        yield from buffer


class _Drawn(NamedTuple):
    """What a draw gave: an element, or the end, perhaps by an error."""

    element: Any = None
    last: bool = False
    error: Exception | None = None


class Prefetch(Stage):
    """The elements, drawn by a thread up to count ahead of whom they are for."""

    def __init__(self, source: Stage, count: int) -> None:
        if count < 1:
            raise ValueError(f"buffer_size must be at least 1, or -1 (AUTOTUNE), found {count}")
        self.source = source
        self.count = count
        self.spec = source.spec
        self.length = source.length

    def __iter__(self) -> Iterator[Any]:
        assert self.source is not None
        elements = iter(self.source)
        ahead = Ahead(lambda: _draw(elements), lambda drawn: drawn, 1, self.count)
        try:
            while not (drawn := ahead.next()).last:
                yield drawn.element
        finally:
            ahead.stop()
        if drawn.error is not None:
            raise drawn.error


def _draw(elements: Iterator[Any]) -> _Drawn:
    try:
        return _Drawn(next(elements))
    except StopIteration:
        return _Drawn(last=True)
    except Exception as error:
        return _Drawn(last=True, error=error)
