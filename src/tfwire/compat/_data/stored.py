"""Elements of datasets in files: what cache(filename), snapshot, save and load keep.

A file of elements is a TFRecord file. Each record is an Example with two features: "structure", the
JSON of an element with numbers in place of its tensors, and "tensors", those tensors serialized.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tfwire as tfw
from tfwire._datasets.replayed import elements_of
from tfwire.columns import RaggedTensor, SparseTensor
from tfwire.compat._dtypes import as_dtype

__all__ = ["kept", "load", "save", "stored_file"]

_FILE = "elements.tfrecord"


def stored_file(folder: str) -> str:
    """The file of elements in a folder that ``save`` or ``snapshot`` makes."""
    return os.path.join(folder, _FILE)


def save(path: str, compression: Any, elements: Iterator[Any]) -> None:
    """Writes a file of elements, which replaces one that is there when it is whole."""
    for _ in _saving(path, compression, elements):
        pass


def load(path: str, epoch: str = "") -> Iterator[Any]:
    """The elements of a file."""
    for record in tfw.read_records(path):
        yield _decode(record)


def kept(path: str, compression: Any, stage: Any, epoch: str) -> Iterator[Any]:
    """The elements of a stage, which a whole first pass keeps in a file."""
    if os.path.exists(path):
        return load(path)
    return _saving(path, compression, elements_of(stage, "cache"))


def _saving(path: str, compression: Any, elements: Iterator[Any]) -> Iterator[Any]:
    """The elements, while they are written to a file that replaces the one of before at the end."""
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    with tfw.TFRecordWriter(path, compression, atomic=True) as writer:
        for element in elements:
            writer.write(_encode(element))
            yield element


# ---- An element as a record -------------------------------------------------------------------


def _encode(element: Any) -> bytes:
    tensors: list[bytes] = []
    structure = json.dumps(_flatten(element, tensors))
    found: bytes = tfw.encode_example({"structure": structure, "tensors": tensors})
    return found


def _flatten(element: Any, tensors: list[bytes]) -> Any:
    """The structure of an element, whose serialized tensors are added to a list."""
    if isinstance(element, dict):
        return {"dict": [[key, _flatten(value, tensors)] for key, value in element.items()]}
    if isinstance(element, SparseTensor):
        return {"sparse": [_flatten(np.asarray(part), tensors) for part in element]}
    if isinstance(element, RaggedTensor):
        parts = (np.asarray(element.flat_values), *element.nested_row_splits)
        return {"ragged": [_flatten(part, tensors) for part in parts]}
    if isinstance(element, tuple):
        return {"tuple": [_flatten(value, tensors) for value in element]}
    tensors.append(tfw.serialize_tensor(element))
    dtype = as_dtype(object if isinstance(element, bytes) else element.dtype)
    return {"tensor": [len(tensors) - 1, dtype.name]}


def _decode(record: bytes) -> Any:
    example = tfw.decode_example(record)
    return _unflatten(json.loads(example["structure"][0]), example.get("tensors", ()))


def _unflatten(node: Any, tensors: Any) -> Any:
    ((kind, parts),) = node.items()
    if kind == "tensor":
        number, dtype = parts
        return tfw.parse_tensor(tensors[number], dtype)
    if kind == "dict":
        return {key: _unflatten(value, tensors) for key, value in parts}
    values = [_unflatten(part, tensors) for part in parts]
    return _MAKE[kind](values)


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
