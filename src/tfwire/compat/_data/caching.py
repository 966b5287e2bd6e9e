"""Transformations that keep elements, in memory or in files."""

from __future__ import annotations

import json
import os
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, TypeVar

import numpy as np

import tfwire as tfw
from tfwire import RaggedTensor, SparseTensor
from tfwire._interface.messages import warn
from tfwire._interface.pipelines import Replayed, Stage, stage_elements
from tfwire.compat._constants import dtype_of
from tfwire.compat._data.fingerprints import IncomparableError, fingerprint
from tfwire.compat._data.generators import Generating, as_path
from tfwire.compat._errors import translating_files

P = TypeVar("P", bound="Keeping")


class Keeping(Generating):
    """The methods of ``tf.data.Dataset`` that keep elements."""

    def cache(self: P, filename: Any = "", name: str | None = None) -> P:
        """The same elements. The first whole pass keeps them in memory or in a file.

        Args:
            filename: A path; "" keeps them in memory. The file is tfwire's own: see
                docs/differences.md.
        """
        path = as_path(filename)
        if not path:
            return super().cache()
        keep = partial(_kept, path, None, self._stage)
        return self._next(_Kept("cache", self._stage, keep), "cache")

    def snapshot(
        self: P,
        path: Any,
        compression: Any = "AUTO",
        reader_func: Callable[[Any], Any] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> P:
        """The same elements. The first whole pass keeps them in a file below the folder ``path``.

        The file is that of this pipeline: of its stages and their arguments, the code of functions
        and the values that they name, the names, sizes and times of files. Another pipeline makes a
        file of its own, and none is ever removed: see docs/differences.md. If the elements depend
        on something that cannot be compared, a TfwireWarning says so, and nothing is kept.

        Args:
            path: The folder.
            compression: "GZIP", or "AUTO" or None for none.
            reader_func: Takes a dataset that holds one dataset, and returns the one to use.
            shard_func: Accepted; there is one file.
        """
        found = self
        try:
            folder = os.path.join(as_path(path), fingerprint(self._stage))
        except IncomparableError as error:
            warn(
                f"snapshot({path!r}) keeps nothing: it would not know when the pipeline changes, "
                f"which depends on {error}"
            )
        else:
            keep = partial(_kept, stored_file(folder), _codec(compression), self._stage)
            found = self._next(_Kept("snapshot", self._stage, keep), "snapshot")
        return found if reader_func is None else reader_func(self._listed([found]))

    def save(
        self,
        path: Any,
        compression: Any = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Writes the elements to a file in the folder ``path``, for ``Dataset.load``."""
        elements = self.as_numpy_iterator()
        with translating_files():
            file = stored_file(as_path(path))
            for _ in _saving(file, _codec(compression), elements, index=True):
                pass


class _Kept(Replayed):
    """A stage that reads its source in the first pass only: its function opens the source."""

    def __init__(self, name: str, source: Stage, generate: Any) -> None:
        facts: Any = {"length": source.length, "endless": source.endless, "quiet": source.quiet}
        super().__init__(name, (), generate, given=(source,), **facts)
        self.kept = source

    def chain(self) -> Iterator[Stage]:
        yield self
        yield from self.kept.chain()


def _codec(compression: Any) -> Any:
    return None if compression in ("AUTO", "NONE") else compression


# ---- Files of elements: cache(filename), snapshot, save and load --------------------------------
# A file of elements is a TFRecord file. Each record is an Example with two features: "structure",
# the JSON of an element with numbers in place of its tensors, and "tensors", those tensors
# serialized.

_FILE = "elements.tfrecord"


def stored_file(folder: str) -> str:
    """The file of elements in a folder that ``save`` or ``snapshot`` makes."""
    return os.path.join(folder, _FILE)


def load(path: str, epoch: str = "") -> Iterator[Any]:
    """The elements of a file."""
    for record in tfw.read_records(path, max_record_size=None):
        example = tfw.decode_example(record)
        yield _unflatten(json.loads(example["structure"][0]), example.get("tensors", ()))


def _kept(path: str, compression: Any, stage: Any, epoch: str) -> Iterator[Any]:
    """The elements of a stage; the first whole pass writes them to a file."""
    if os.path.exists(path):
        return load(path)
    return _saving(path, compression, stage_elements(stage, "cache"))


def count_saved(path: str) -> int | None:
    """The number of elements of a file of ``save``, by its index; None if none fits the file."""
    try:
        return len(tfw.RecordIndex.load(path))
    except (tfw.DataLossError, OSError, ValueError):
        return None


def _saving(
    path: str, compression: Any, elements: Iterator[Any], index: bool = False
) -> Iterator[Any]:
    """Yields elements while it writes them to a file, which replaces an earlier one at the end."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    with tfw.TFRecordWriter(path, compression, atomic=True, index=index) as writer:
        for element in elements:
            tensors: list[bytes] = []
            structure = json.dumps(_flatten(element, tensors))
            writer.write({"structure": structure, "tensors": tensors})
            yield element


# ---- An element as a record -------------------------------------------------------------------
def _flatten(element: Any, tensors: list[bytes]) -> Any:
    """The structure of an element; its serialized tensors are appended to a list."""
    if isinstance(element, dict):
        return {"dict": [[key, _flatten(value, tensors)] for key, value in element.items()]}
    if isinstance(element, SparseTensor):
        return {"sparse": [_flatten(np.asarray(part), tensors) for part in element]}
    if isinstance(element, RaggedTensor):
        parts = (np.asarray(element.flat_values), *element.nested_row_splits)
        return {"ragged": [_flatten(part, tensors) for part in parts]}
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        items = zip(element._fields, element, strict=True)
        named = [[field, _flatten(value, tensors)] for field, value in items]
        return {"named": [type(element).__name__, named]}
    if isinstance(element, tuple):
        return {"tuple": [_flatten(value, tensors) for value in element]}
    tensors.append(tfw.serialize_tensor(element))
    return {"tensor": [len(tensors) - 1, dtype_of(element).name]}


def _unflatten(node: Any, tensors: Any) -> Any:
    ((kind, parts),) = node.items()
    if kind == "tensor":
        number, dtype = parts
        return tfw.parse_tensor(tensors[number], dtype)
    if kind == "dict":
        return {key: _unflatten(value, tensors) for key, value in parts}
    if kind == "named":
        name, items = parts
        fields = tuple(field for field, _ in items)
        return _named_tuple(name, fields)(*(_unflatten(value, tensors) for _, value in items))
    values = [_unflatten(part, tensors) for part in parts]
    return _MAKE[kind](values)


@lru_cache(maxsize=128)
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    """A type of named tuples with these fields, as TensorFlow makes one for a loaded structure."""
    return namedtuple(name, fields, rename=True)


def _ragged(parts: list[Any]) -> Any:
    values, *splits = parts
    for row_splits in reversed(splits):
        values = RaggedTensor(values, row_splits)
    return values


_MAKE: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "sparse": lambda parts: SparseTensor(*parts),
    "ragged": _ragged,
}
