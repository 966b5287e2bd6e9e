"""Sources of elements: arrays, ranges, generators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from tfwire._base.strings import as_array
from tfwire._data.indexed_records import ByNumber, fitting
from tfwire._data.stages import UNPLACED, Cursor, GatheringElements, Stage
from tfwire._data.state_checks import COUNT, INT64, after, state_or
from tfwire._data.structure import describe, leaves, map_structure

Array = np.ndarray[Any, Any]


class _Counting(GatheringElements):
    """A cursor whose position is the number of elements given.

    Args:
        elements: Those after the first count.
        count: How many were given before.
    """

    goes_on = True  # what an iterator gives after an error is its own business

    def __init__(self, elements: Iterator[Any], count: int) -> None:
        self._elements = elements
        self._count = count

    def elements(self, count: int) -> Iterator[Any]:
        return self._elements

    def take(self, count: int) -> list[Any]:
        found = super().take(count)
        self._count += len(found)
        return found

    def place(self) -> Any:
        if self._recovered:
            raise ValueError(UNPLACED)
        return self._count


class Slices(ByNumber):
    """The slices of arrays along their first axis.

    Args:
        tensors: The arrays.
        name: Their name in the description of a pipeline.
        numbers: Of the slices in the arrays that they are a part of; None: there are no others.
    """

    def __init__(
        self, tensors: Any, name: str = "from_tensor_slices", numbers: range | None = None
    ) -> None:
        self._arrays = map_structure(_sliceable, tensors)
        lengths = {len(leaf) for leaf in leaves(self._arrays)}
        if len(lengths) != 1:
            raise ValueError(f"arrays must agree in their first axis, found {sorted(lengths)}")
        self.length = lengths.pop()
        self.numbers = range(self.length) if numbers is None else numbers
        self.at_once = fitting(sum(leaf.nbytes for leaf in leaves(self._arrays)), self.length)
        self.spec = map_structure(lambda one: describe(one.dtype, one.shape[1:]), self._arrays)
        self._name = name

    def fetch(self, places: Array) -> list[Any]:
        return [map_structure(partial(_row, i), self._arrays) for i in places.tolist()]

    def part(self, places: range) -> Stage:
        chosen = slice(places.start, places.stop, places.step)
        rows = map_structure(itemgetter(chosen), self._arrays)
        return Slices(rows, f"{self._name}[{_shown(places)}]", self.numbers[chosen])

    def describe(self) -> str:
        return f"{self._name}({self.length} x {self.spec})"


class Numbers(ByNumber):
    """The integers of a range as int64 scalars, each made when it is asked for.

    Args:
        numbers: The range.
        name: Its name in the description of a pipeline.
    """

    def __init__(self, numbers: range, name: str) -> None:
        ends = (numbers[0], numbers[-1]) if numbers else ()
        if any(number not in INT64 for number in ends) or numbers[2**63 - 1 :]:
            raise ValueError(f"the numbers of a range must be int64, found {numbers}")
        self.numbers = numbers
        self.length = len(numbers)
        self.spec = describe(np.dtype(np.int64), ())
        self._name = name

    def open(self, epoch: str, at: Any = None) -> Cursor:
        first = state_or(at, range(self.length + 1), 0)
        return _Counting(map(np.int64, self.numbers[first:]), first)

    def fetch(self, places: Array) -> list[Any]:
        return [np.int64(self.numbers[place]) for place in places.tolist()]

    def part(self, places: range) -> Stage:
        numbers = self.numbers[places.start : places.stop : places.step]
        return Numbers(numbers, f"{self._name}[{_shown(places)}]")

    def describe(self) -> str:
        return f"{self._name}({self.length} x {self.spec})"


def _shown(places: range) -> str:
    return f"{places.start}:{places.stop}" + (f":{places.step}" if places.step > 1 else "")


def _sliceable(tensor: Any) -> Array:
    """An array of rank 1 or more; strings as an object array of bytes."""
    if hasattr(tensor, "numpy"):
        tensor = tensor.numpy()
    array = as_array(tensor)
    if array.ndim == 0:
        found = type(tensor).__name__
        raise ValueError(f"tensors must be arrays with a first axis, found one {found}")
    return array


def _row(i: int, array: Array) -> Any:
    """A row that can be changed without changing the array."""
    return array[i] if array.ndim == 1 else array[i].copy()


class Generator(Stage):
    """The elements that a function generates, called again for every pass."""

    quiet = False

    def __init__(self, generator: Callable[[], Iterable[Any]]) -> None:
        self._generator = generator

    def open(self, epoch: str, at: Any = None) -> Cursor:
        count = state_or(at, COUNT, 0)
        elements = iter(self._generator())
        return _Counting(after(elements, count), count)

    def describe(self) -> str:
        return "from_generator"
