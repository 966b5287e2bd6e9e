"""What a specification was when it was compiled, to notice that its owner has changed it since.

A specification is a dict of features. Its shapes, sizes and default values may be lists or arrays,
which can be changed in place. ``==`` is fast where nothing has changed, since it compares
identities first, but takes 1.0 for 1 and -0.0 for 0.0. Features with numbers are compared by
identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

import numpy as np

from tfwire.features import DType, as_feature

__all__ = ["Snapshot"]

_CONSTANT = {type(None), str, bytes, DType, type}
_NUMBERS = {bool, int, float}
# What TensorFlow has in specifications; a Variable as a default is none of them.
_CONSTANT_OF_TENSORFLOW = {"DType", "Dimension", "EagerTensor", "TensorShape"}


class Snapshot:
    """The items of a specification, and the contents of the lists and arrays inside.

    Attributes:
        features: The items at that time, for compiling.
    """

    def __init__(self, features: Mapping[Any, Any]) -> None:
        self._owner = features  # which keeps its identity from being given to another object
        self.features = dict(features.items())
        self._keys = [*self.features]
        self._empty_lists: list[list[Any]] = []
        self._lists: list[tuple[list[Any], tuple[Any, ...]]] = []
        self._arrays: list[tuple[np.ndarray[Any, Any], Any]] = []
        self._has_numbers = False
        # Not: something in it can change without anybody noticing.
        self._can_tell = all(self._watch_feature(*item) for item in self.features.items())
        self._simple = self._can_tell and not (self._has_numbers or self._lists or self._arrays)

    def is_current(self, features: Mapping[Any, Any]) -> bool:
        """Whether the specification that this was made of has not been changed since."""
        try:
            return (
                self.features == features
                and [*features] == self._keys
                and not any(self._empty_lists)
                and (self._simple or self._is_same(features))
            )
        except Exception:  # of any kind: from the == of a value, as an array has none of its own
            return False

    def _is_same(self, features: Mapping[Any, Any]) -> bool:
        return (
            self._can_tell
            and all(map(is_, features.values(), self.features.values()))
            and all(_is_same_list(items, held) for items, held in self._lists)
            and all(_content(array) == held for array, held in self._arrays)
        )

    def _watch_feature(self, key: Any, feature: Any) -> bool:
        """Notes what can be changed in a feature; False: that cannot be told."""
        try:
            known = as_feature(key, feature)
        except Exception:  # of any kind: compiling it says what is wrong
            return False
        # Another class may make up its fields anew each time.
        named = known is feature or _is_named_tuple(type(feature))
        return named and all(self._watch(value) for value in feature)

    def _watch(self, value: Any) -> bool:
        kind = type(value)
        if kind in _CONSTANT:
            return True
        if kind in _NUMBERS or issubclass(kind, (np.number, np.bool_)):
            self._has_numbers = True
            return True
        if kind is list:
            return self._watch_list(value)
        if kind is tuple or _is_named_tuple(kind):
            return all(self._watch(item) for item in value)
        if kind is np.ndarray and value.dtype.kind != "O":
            self._arrays.append((value, _content(value)))
            return True
        return kind.__name__ in _CONSTANT_OF_TENSORFLOW or issubclass(kind, (np.dtype, type))

    def _watch_list(self, items: list[Any]) -> bool:
        held = tuple(items)
        if held:
            self._lists.append((items, held))
        else:
            self._empty_lists.append(items)
        return all(self._watch(item) for item in held)


def _is_named_tuple(kind: type) -> bool:
    """Features and partitions, ours and TensorFlow's, whose fields are what they were made of."""
    module = kind.__module__
    return issubclass(kind, tuple) and (module == "tfwire" or module.startswith("tensorflow."))


def _is_same_list(items: list[Any], held: tuple[Any, ...]) -> bool:
    return len(items) == len(held) and all(map(is_, items, held))


def _content(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()
