"""What lies beside a file: the features.json of TensorFlow Datasets with the names of classes, or a
schema.pbtxt. Both come from anywhere, as records do: what is odd in them is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from tfwire import FixedLenFeature, FixedLenSequenceFeature, read_schema
from tfwire._interface.descriptions import is_encoded, modern, sizes_of, tensor_content

_LONGEST_DESCRIPTION = 4 << 20  # of a description
_MOST_LABELS = 100  # features with names of classes
_MOST_CLASS_NAMES = 100_000
_MOST_SIZES = 8
_ODD = (
    *(AttributeError, KeyError, OSError, OverflowError),
    *(RecursionError, TypeError, ValueError),
)


class Described(NamedTuple):
    """What is said of a feature.

    Attributes:
        shape: Of its values; -1: unknown.
        classes: The names of the classes whose numbers they are.
    """

    shape: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()

    def shape_of(self, size: int) -> tuple[int, ...]:
        """The shape of so many values; empty if they do not have it."""
        known = prod(length for length in self.shape if length != -1)
        unknown = self.shape.count(-1)
        if unknown > 1 or min(self.shape, default=0) < -1 or known <= 0:
            return ()
        if size % known or not (unknown or size == known):
            return ()
        return tuple(size // known if length == -1 else length for length in self.shape)

    def name(self, number: int) -> str:
        """That of a class; empty if it has none."""
        return self.classes[number] if 0 <= number < len(self.classes) else ""


@lru_cache(maxsize=8)
def described_in(folder: str) -> Mapping[str, Described]:
    """What a folder says of features, by their names in the records."""
    try:
        text = _text(os.path.join(folder, "features.json"))
        if text:
            labels = iter(range(_MOST_LABELS))
            return dict(_of_node(folder, modern(json.loads(text)), (), (), labels))
        path = os.path.join(folder, "schema.pbtxt")
        return dict(_of_schema(read_schema(path))) if _text(path) else {}
    except _ODD:
        return {}


def _text(path: str) -> str:
    """The text of a file of moderate size; empty if it is not there."""
    if not os.path.isfile(path) or os.path.getsize(path) > _LONGEST_DESCRIPTION:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read(_LONGEST_DESCRIPTION)


def _of_node(
    folder: str, node: Any, path: tuple[str, ...], lengths: tuple[int, ...], labels: Iterator[int]
) -> Iterator[tuple[str, Described]]:
    if "featuresDict" in node:
        for name, child in node["featuresDict"]["features"].items():
            yield from _of_node(folder, child, (*path, name), lengths, labels)
    elif "sequence" in node:
        sequence = node["sequence"]
        inner = (*lengths, int(sequence.get("length", -1)))
        yield from _of_node(folder, sequence["feature"], path, inner, labels)
    else:
        content = {} if is_encoded(node) else tensor_content(node)
        shape = (*lengths, *((4,) if "boundingBox" in node else sizes_of(content)))
        classes: tuple[str, ...] = ()
        if "classLabel" in node and next(labels, None) is not None:
            classes = _class_names(folder, path)
        yield "/".join(path), Described(_bounded(shape), classes)


def _bounded(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if len(shape) <= _MOST_SIZES else ()


def _class_names(folder: str, path: tuple[str, ...]) -> tuple[str, ...]:
    """As TFDS writes them, a line each."""
    name = "-".join(part.replace("/", ".") for part in path) + ".labels.txt"
    text = _text(os.path.join(folder, name)) if name == os.path.basename(name) else ""
    return tuple(
        filter(None, map(str.strip, text.split("\n", _MOST_CLASS_NAMES)[:_MOST_CLASS_NAMES]))
    )


def _of_schema(schema: Mapping[str, Any]) -> Iterator[tuple[str, Described]]:
    for name, feature in schema.items():
        if isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
            sizes: Any = feature.shape
            more = (-1,) if isinstance(feature, FixedLenSequenceFeature) else ()
            yield name, Described(_bounded((*more, *sizes)))
