"""Stages that give some of the elements, or all of them again: Take, Skip, Repeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfwire._base.arguments import integer
from tfwire._data.resuming.positions import ELEMENTS_PER_SKIP
from tfwire._data.stages import (
    END,
    ChosenByPlace,
    Cursor,
    Derived,
    GatheringPieces,
    Stage,
    Through,
)
from tfwire._data.state_checks import COUNT, state_or


class _Counted(ChosenByPlace):
    """Elements chosen by a count."""

    def __init__(self, source: Stage, count: int) -> None:
        count = integer("count", count)
        super().__init__(source, count)
        self.count = count
        if source.length is not None:
            self.length = len(self.chosen(range(source.length)))


class Take(_Counted):
    """The first elements; all of them for a negative count."""

    passes_errors = True

    def __init__(self, source: Stage, count: int) -> None:
        super().__init__(source, count)
        if self.endless and self.count >= 0:
            self.length, self.endless = self.count, False

    def chosen(self, places: range) -> range:
        return places if self.count < 0 else places[: self.count]

    def open(self, epoch: str, at: Any = None) -> Cursor:
        if self.count < 0:
            return self.source.open(epoch, at)
        given, below = state_or(at, [range(self.count + 1), object], (0, None))
        return _TakeCursor(self.source.open(epoch, below), self.count, given)


class _TakeCursor(Through):
    def __init__(self, below: Cursor, count: int, given: int) -> None:
        super().__init__(below)
        self._count = count
        self._given = given

    def take(self, count: int) -> list[Any]:
        wanted = min(count, self._count - self._given)
        found = self._below.take(wanted) if wanted else []
        self._given += len(found)
        return found

    def snapshot(self) -> Any:
        return [self._given, self._below.snapshot()]


class Skip(_Counted):
    """All but the first elements; none for a negative count."""

    def chosen(self, places: range) -> range:
        return places[:0] if self.count < 0 else places[self.count :]

    def open(self, epoch: str, at: Any = None) -> Cursor:
        counts = range(min(self.count, 0), max(self.count, 0) + 1)
        left, below = state_or(at, [counts, object], (self.count, None))
        return _SkipCursor(self.source.open(epoch, below), left)


class _SkipCursor(Through):
    def __init__(self, below: Cursor, left: int) -> None:
        super().__init__(below)
        self._left = left  # elements to skip; negative: all

    def take(self, count: int) -> list[Any]:
        if self._left < 0:
            return []
        while self._left:
            piece = self._below.take(min(self._left, ELEMENTS_PER_SKIP))
            if not piece:
                return []
            self._left -= len(piece)
        return self._below.take(count)

    def snapshot(self) -> Any:
        return [self._left, self._below.snapshot()]


class Repeat(Derived):
    """The elements count times over, whether or not some passes have none. If count is None or
    negative: until a pass has none, as repeating nothing forever would never return."""

    passes_errors = True

    def __init__(self, source: Stage, count: int | None) -> None:
        count = None if count is None else integer("count", count)
        super().__init__(source, count)
        self.count = None if count is None or count < 0 else count
        if self.count == 0 or source.length == 0:
            self.length, self.endless = 0, False
        elif self.count is None:
            self.length, self.endless = None, True
        elif source.length is not None:
            self.length = source.length * self.count

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _RepeatCursor(self, epoch, at)

    def origin(self, epoch: str, place: int) -> list[int]:
        if not self.source.length:
            return super().origin(epoch, place)
        number, place = divmod(place, self.source.length)
        return [number, *self.source.origin(f"{epoch}.{number}", place)]


class _RepeatCursor(GatheringPieces):
    goes_on = True

    def __init__(self, stage: Repeat, epoch: str, at: Any) -> None:
        self._stage = stage
        self._outer = epoch
        self._epoch = 0
        self._empty = True  # so far, this epoch
        self._below: Cursor | None = None
        if at == END or stage.source.length == 0:
            return
        epochs = COUNT if stage.count is None else range(stage.count + 1)
        self._epoch, self._empty, below = state_or(at, [epochs, bool, None], (0, True, None))
        self._below = self._open(below)

    def _open(self, at: Any = None) -> Cursor | None:
        if self._stage.count is not None and self._epoch >= self._stage.count:
            return None
        return self._stage.source.open(f"{self._outer}.{self._epoch}", at)

    def piece(self, count: int) -> list[Any] | None:
        if self._below is None:
            return None
        piece = self._below.take(count)
        if piece:
            self._empty = False
        else:
            self._below.close()
            self._epoch += 1
            ended = self._empty and self._stage.count is None
            self._below = None if ended else self._open()
            self._empty = True
        return piece

    def place(self) -> Any:
        if self._below is None:
            return END
        return [self._epoch, self._empty, self._below.snapshot()]

    def parts(self) -> Iterable[Cursor]:
        below = self._below
        return () if below is None else (below,)
