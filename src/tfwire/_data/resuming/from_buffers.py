"""The stage FromBuffers: elements that the buffers of shuffles held when states were saved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._data.combining import Concatenate
from tfwire._data.indexed_records import share
from tfwire._data.resuming.positions import ELEMENTS_PER_SKIP, Left
from tfwire._data.stages import Cursor, GatheringPieces, Stage
from tfwire._data.state_checks import COUNT, MISSING, check_state, state_or

Array = np.ndarray[Any, Any]
ELEMENTS_PER_DRAW = 4096  # of a shuffle: a snapshot of the source is kept for each time


class Window(NamedTuple):
    """Some of the elements of a stage from a position on, by their numbers (int64, sorted)."""

    source: Stage
    at: Any
    numbers: Array


class FromBuffers(Stage):
    """The elements of several windows. A share of them is read without the windows of others."""

    length: int = 0

    def __init__(self, windows: Sequence[Window]) -> None:
        self.windows = windows
        self.length = sum(len(window.numbers) for window in windows)
        self.spec = windows[0].source.spec if windows else None
        self.quiet = all(window.source.quiet for window in windows)

    def open(self, epoch: str, at: Any = None) -> Cursor:
        given = state_or(at, range(self.length + 1), 0)
        return _FromBuffersCursor(self.part(range(given, self.length)), epoch, given)

    def part(self, places: range) -> FromBuffers:
        found, first = [], 0
        for source, at, numbers in self.windows:
            chosen = numbers[max(places.start - first, 0) : max(places.stop - first, 0)]
            if len(chosen):
                found.append(Window(source, at, chosen))
            first += len(numbers)
        return FromBuffers(found)

    def sharded(self, num_shards: int, index: int, rule: str) -> FromBuffers:
        return self.part(share(self.length, num_shards, index, "even"))

    def left(self, passes: Sequence[Left], epoch: str) -> FromBuffers:
        found: list[Window] = []
        for left in passes:
            given = state_or(left.at, range(left.stage.length + 1), 0) + left.given
            found += left.stage.part(range(given, left.stage.length)).windows
        return FromBuffers(found)


class _FromBuffersCursor(GatheringPieces):
    def __init__(self, stage: FromBuffers, epoch: str, given: int) -> None:
        self._windows = iter(stage.windows)
        self._epoch = epoch
        self._given = given
        self._below: Cursor | None = None
        self._numbers: Array = np.empty(0, np.int64)  # of those that are left, from here on
        self._ready: list[Any] = []

    def piece(self, count: int) -> list[Any] | None:
        if not self._ready:
            if not len(self._numbers) and not self._next_window():
                return None
            self._read()
        piece, self._ready = self._ready[:count], self._ready[count:]
        self._given += len(piece)
        return piece

    def _next_window(self) -> bool:
        self.close()
        if (window := next(self._windows, None)) is None:
            return False
        self._below = window.source.open(self._epoch, window.at)
        self._numbers = window.numbers
        return True

    def _read(self) -> None:
        assert self._below is not None
        if not (elements := self._below.take(ELEMENTS_PER_SKIP)):
            raise ValueError(MISSING)
        here = self._numbers[: np.searchsorted(self._numbers, len(elements))]
        self._ready = [elements[number] for number in here.tolist()]
        self._numbers = self._numbers[len(here) :] - len(elements)

    def place(self) -> int:
        return self._given

    def parts(self) -> Iterable[Cursor]:
        return () if self._below is None else (self._below,)

    def close(self) -> None:
        super().close()
        self._below = None


def left_of_streams(passes: Sequence[Left], epoch: str) -> Stage:
    """The elements that buffers hold, and those that they have not drawn yet."""
    held, sources = [], []
    for left in passes:
        source, at = left.stage.source, left.stage.checked(left.place(epoch))
        if at is None:
            sources.append(Left(source, None))
            continue
        number, place = at["place"]
        numbers = np.sort(np.array([*at["next"], *at["held"]], np.int64))
        held.append(Window(source, place, numbers - number))
        known = "source" in at
        drawn = at["pulled"] - number
        sources.append(Left(source, at["source"]) if known else Left(source, place, drawn))
    return Concatenate((FromBuffers(held), sources[0].stage.left(sources, epoch)))


def check_buffer(at: Any, buffer_size: int) -> None:
    """Raises ValueError if a position in the order of a buffer cannot be one."""
    counts = {"drawn": COUNT, "pulled": COUNT, "place": [COUNT, object]}
    form: dict[str, Any] = {"next": {COUNT}, "held": {COUNT}, **counts}
    if isinstance(at, dict) and "source" in at:
        form["source"] = object
    check_state(at, form)
    numbers = {*at["next"], *at["held"]}
    check_state([*numbers], {range(at["place"][0], at["pulled"])})
    if len(numbers) < len(at["next"]) + len(at["held"]):
        raise ValueError("the state is damaged: an element is held twice")
    # What was pulled last stays in the buffer until the source ends.
    size, last = len(at["held"]), max(at["held"], default=at["pulled"] - 1)
    pulled = at["drawn"] + size
    if (pulled, last) != (at["pulled"], pulled - 1) or size > buffer_size:
        raise ValueError("the state is damaged: its counts disagree")
    # No element stays as long as that in a buffer, with a probability of 1 - exp(-200).
    most = 200 * (buffer_size + 2 * ELEMENTS_PER_DRAW)
    if at["pulled"] - at["place"][0] > most:
        raise ValueError("the state is damaged: it asks for too many elements")
