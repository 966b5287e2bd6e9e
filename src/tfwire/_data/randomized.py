"""The stage Randomized: random numbers that a pass which is resumed or sharded draws again."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from tfwire._base.arguments import integer
from tfwire._data.combining import NumberingCursor
from tfwire._data.permutations import as_key
from tfwire._data.resuming.positions import Left
from tfwire._data.stages import Cursor, Derived, Stage
from tfwire._data.state_checks import COUNT, state_or


class Keyed(NamedTuple):
    """An element, and the key of its random numbers."""

    element: Any
    key: int


class Randomized(Derived):
    """Gives each element a key, of a seed, the epoch and the place of the element alone."""

    one_to_one = True
    redraws = True

    def __init__(self, source: Stage, seed: int) -> None:
        super().__init__(source, integer("seed", seed))
        self.spec = None

    def over(self, source: Stage) -> Randomized:
        found = Randomized(source, *self.arguments)
        found.next_epoch = self.next_epoch
        return found

    def open(self, epoch: str, at: Any = None) -> Cursor:
        given, below = state_or(at, [COUNT, object], (0, None))
        return NumberingCursor(self.source.open(epoch, below), partial(self._keyed, epoch), given)

    def below(self, left: Left, epoch: str) -> Left:
        _, below = state_or(left.at, [COUNT, object], (0, None))
        return Left(self.source, below, left.given)

    def _keyed(self, epoch: str, place: int, element: Any) -> Keyed:
        origin = self.source.origin(epoch, place)
        return Keyed(element, as_key(*self.arguments, epoch, *origin))
