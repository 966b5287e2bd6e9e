"""Positions of passes, and how many of the elements after them were given."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from tfwire._data.state_checks import MISSING, plain

ELEMENTS_PER_SKIP = 256  # elements skipped at a time
AnyCursor = TypeVar("AnyCursor", bound=Any)


class Left(NamedTuple):
    """What is left of a pass over a stage: the elements after the first few of those from a
    position on."""

    stage: Any
    at: Any
    given: int = 0

    def place(self, epoch: str) -> Any:
        """The position where it begins."""
        if not self.given:
            return self.at
        cursor = advanced(self.stage.open(epoch, self.at), self.given, exactly=False)
        try:
            return plain(cursor.snapshot())
        finally:
            cursor.close()


def advanced(cursor: AnyCursor, given: int, exactly: bool = True) -> AnyCursor:
    """A cursor that was opened at a position, after the elements that were given from there on.

    Raises:
        ValueError: There are fewer, which is only allowed if not exactly.
    """
    try:
        # Nothing is read yet if there are none.
        while given and (found := cursor.take(min(given, ELEMENTS_PER_SKIP))):
            given -= len(found)
        if given and exactly:
            raise ValueError(MISSING)
    except BaseException:
        cursor.close()
        raise
    return cursor
