"""The content of a specification when it was compiled, to notice later changes.

A specification is a dict of features. Its shapes, sizes and default values may be lists or arrays,
which can be changed in place. Features and the items of lists are compared by identity: ``==``
takes 1.0 for 1, -0.0 for 0.0, and a plain tuple for a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np

from tfwire._parsing.features import DType, as_feature

__all__ = ["Snapshot"]

_CONSTANT = {type(None), bool, int, float, str, bytes, DType, type}
# Immutable types of TensorFlow in specifications. Not Variable, which may be a default.
_CONSTANT_OF_TENSORFLOW = {"DType", "Dimension", "EagerTensor", "TensorShape"}
# Longer lists are compared by a function: generated code for them would be long.
_UNPACKED = 64


class Snapshot:
    """The items of a specification, and the contents of the lists and arrays inside.

    Attributes:
        features: A copy of the items, to compile.
    """

    def __init__(self, features: Mapping[Any, Any]) -> None:
        self._owner = features  # keeps it alive, so that no other object gets its id()
        self.features = dict(features.items())
        self._lists: list[tuple[list[Any], tuple[Any, ...]]] = []
        self._arrays: list[tuple[np.ndarray[Any, Any], Any]] = []
        # False: something in it can change unnoticed.
        self._is_watched = all(self._watch_feature(*item) for item in self.features.items())

    def is_current(self, features: Mapping[Any, Any] | None) -> bool:
        """True if the specification was not changed since."""
        # Compiled at the first call: a specification that is used once needs none. The method of
        # this object is replaced by the function, which mypy takes for a mistake.
        self.is_current = self._compiled()  # type: ignore[assignment, method-assign]
        return self.is_current(features)

    def _compiled(self) -> Callable[[Mapping[Any, Any] | None], bool]:
        """is_current for this specification, as generated code that unpacks every list and compares
        item by item. It takes a fifth of the time of loops."""
        if not self._is_watched:
            return _never
        check = _CheckSource()
        check.add("[*features] == keys", keys=[*self.features])
        check.add_items("features.values()", tuple(self.features.values()))
        for i, (items, held) in enumerate(self._lists):
            check.add_items(f"list{i}", held, **{f"list{i}": items})
        for i, (array, held) in enumerate(self._arrays):
            names = {f"array{i}": array, f"content{i}": held}
            check.add(f"content(array{i}) == content{i}", content=_content, **names)
        return check.compiled()

    def _watch_feature(self, key: Any, feature: Any) -> bool:
        """Notes what can be changed in a feature; False if that is not known."""
        try:
            known = as_feature(key, feature)
        except Exception:  # of any kind; compiling the feature reports the error
            return False
        # A field of another class may be a property with a new value each time.
        named = known is feature or _is_named_tuple(type(feature))
        return named and all(self._watch(value) for value in feature)

    def _watch(self, value: Any) -> bool:
        kind = type(value)
        if kind in _CONSTANT or issubclass(kind, (np.number, np.bool_)):
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
        self._lists.append((items, held))
        return all(self._watch(item) for item in held)


def _is_named_tuple(kind: type) -> bool:
    """True for features and partitions, ours and TensorFlow's: their fields do not change."""
    module = kind.__module__
    return issubclass(kind, tuple) and (module == "tfwire" or module.startswith("tensorflow."))


class _CheckSource:
    """The source of a function is_current, and the names that it uses."""

    def __init__(self) -> None:
        self._steps: list[str] = []
        self._tests: list[str] = []
        self._names: dict[str, Any] = {}

    def add(self, test: str, **names: Any) -> None:
        """Adds an expression that must be true."""
        self._tests.append(test)
        self._names.update(names)

    def add_items(self, source: str, held: tuple[Any, ...], **names: Any) -> None:
        """Adds that the items of an expression must be those held."""
        first = len(self._names)
        if len(held) > _UNPACKED:
            self.add(f"same({source}, held{first})", same=_same, **names, **{f"held{first}": held})
            return
        numbers = range(first, first + len(held))
        self._steps.append(f"({''.join(f'item{i}, ' for i in numbers)}) = {source}")
        self._tests += [f"item{i} is held{i}" for i in numbers]
        self._names.update(
            names, **{f"held{i}": item for i, item in zip(numbers, held, strict=True)}
        )

    def compiled(self) -> Callable[[Mapping[Any, Any] | None], bool]:
        steps = "\n        ".join(self._steps)
        source = f"""
def is_current(features):
    try:
        {steps}
        return {" and ".join(self._tests)}
    except Exception:  # other numbers of items, or an error of a Mapping
        return False
"""
        exec(source, self._names)
        function: Callable[[Mapping[Any, Any] | None], bool] = self._names.pop("is_current")
        return function


def _never(features: Mapping[Any, Any] | None) -> bool:
    return False


def _same(items: Sequence[Any], held: tuple[Any, ...]) -> bool:
    return len(items) == len(held) and all(map(is_, items, held))


def _content(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    return array.dtype, array.shape, array.tobytes()
