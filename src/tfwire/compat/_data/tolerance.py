"""The stage of ``ignore_errors`` after stages that go on after an error."""

from __future__ import annotations

from typing import Any

from tfwire._base.errors import warn
from tfwire._data.stages import Cursor, Derived, GatheringPieces, Stage, Through


class Tolerant(Derived):
    """The elements that do not raise. An error after which the source cannot go on is raised.

    Args:
        source: The stage below.
        warns: Warn of each error.
    """

    def __init__(self, source: Stage, warns: bool) -> None:
        super().__init__(source, warns)
        self.length = None

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _TolerantCursor(self.source.open(epoch, at), self.arguments[0])


class _TolerantCursor(Through, GatheringPieces):
    goes_on = True

    def __init__(self, below: Cursor, warns: bool) -> None:
        super().__init__(below)
        self._warns = warns

    def piece(self, count: int) -> list[Any] | None:
        try:
            return self._below.take(count) or None
        except Exception as error:
            if not self._below.recover():
                raise
            if self._warns:
                warn(f"an element was left out: {error}")
            return []
