"""The buffer of a shuffle: elements that change places with others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfwire._core import check, ffi, lib, new_error

__all__ = ["Buffer", "Numbered"]

Array = np.ndarray[Any, Any]


class Numbered(NamedTuple):
    """Elements along the first axis, and the number that each had in the source (int64)."""

    elements: Array
    numbers: Array

    def split(self, count: int) -> tuple[Numbered, Numbered]:
        """The first so many and the others."""
        elements, numbers = self
        return (
            Numbered(elements[:count], numbers[:count]),
            Numbered(elements[count:], numbers[count:]),
        )


class Buffer:
    """What a shuffle holds.

    Args:
        limit: Elements that it will hold at most.
        none: No elements, of the dtype and shape that there will be.

    Attributes:
        size: Elements that it holds.
    """

    def __init__(self, limit: int, none: Array) -> None:
        self._limit = limit
        self._room = Numbered(none, np.empty(0, np.int64))
        self.size = 0

    def held(self) -> Numbered:
        """The elements, where they are."""
        return self._room.split(self.size)[0]

    def add(self, more: Numbered) -> None:
        size = self.size + len(more.numbers)
        if size > len(self._room.numbers):
            room = min(2 * size, self._limit)
            self._room = Numbered(*(self._grown(array, room) for array in self._room))
        for array, values in zip(self._room, more, strict=True):
            array[self.size : size] = values
        self.size = size

    def _grown(self, array: Array, room: int) -> Array:
        grown = np.empty((room, *array.shape[1:]), array.dtype)
        grown[: self.size] = array[: self.size]
        return grown

    def exchange(self, incoming: Numbered, slots: Array) -> None:
        """Gives elements of these slots for others, one after the other: of the draws of one slot,
        each gives what the one before put there."""
        elements, numbers = self._room
        error = new_error()
        status = lib.tfw_exchange(
            ffi.from_buffer(elements),
            ffi.from_buffer("int64_t[]", numbers),
            self.size,
            ffi.from_buffer(incoming.elements),
            ffi.from_buffer("int64_t[]", incoming.numbers),
            elements.strides[0],
            ffi.from_buffer("int64_t[]", slots),
            len(slots),
            error,
        )
        check(status, error)

    def empty(self, order: Array) -> Numbered:
        """Gives all there is, in this order."""
        elements, numbers = self.held()
        self._room, self.size = Numbered(elements[:0], numbers[:0]), 0
        return Numbered(elements[order], numbers[order])
