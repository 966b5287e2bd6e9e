"""The iterator that users of a Dataset hold: elements, and where it stands."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tfwire._datasets.shuffle import Shuffle
from tfwire._datasets.stage import Cursor, Stage
from tfwire._public import public
from tfwire._turns import EXECUTING, SharedIterator, State

__all__ = ["DatasetIterator", "iterate"]

_VERSION = 1
_KEYS = {"version", "pipeline", "pass", "at", "given"}
# Where no function of the user's sees it, elements are taken some at a time: as many as take about
# a millisecond, be they numbers or batches of images, so that they need little memory and nobody
# waits long for the first. Which elements there are does not depend on it.
_AT_ONCE = 256
_SECONDS = 1e-3


@public
class DatasetIterator(chain[Any]):
    """One pass over a Dataset, made by ``iter(dataset)``. It can be saved and resumed.

    Example:
        >>> dataset = tfw.Dataset.range(100).shuffle(10, seed=1).batch(3)
        >>> elements = iter(dataset)
        >>> first = next(elements)
        >>> state = elements.state_dict()  # small, and JSON takes it
        >>> resumed = iter(dataset)  # in another process, perhaps
        >>> resumed.load_state_dict(state)
        >>> all((a == b).all() for a, b in zip(elements, resumed))  # what comes behind first
        True
    """

    # chain's __next__, in C, costs nothing; it draws on the pieces below.
    _pieces: _Pieces

    # What is raised for an error of the operating system; the compat layer raises TensorFlow's.
    @staticmethod
    def _translated(error: OSError) -> OSError:
        return error

    def state_dict(self) -> dict[str, Any]:
        """Where this iterator stands.

        Returns:
            A dict of JSON's types for ``load_state_dict``. It is small, save that a shuffle by a
            buffer has a number for every element in its buffer.

        Raises:
            ValueError: The dataset reads from a file object or a pipe, which nobody can read again;
                or the iterator is closed, or an error broke off what it was about to give.
            Exception: The error that is to come, where what follows cannot be told without it: of
                a function of ``map``, say, that failed in the middle of a batch.

        Example:
            >>> import json
            >>> elements = iter(tfw.Dataset.range(3))
            >>> _ = next(elements)
            >>> saved = json.dumps(elements.state_dict())
        """
        return self._pieces.saved()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another iterator stood, over the same pipeline on the same files: with the
        same elements in the same order as that one has yet to give.

        Functions of ``map`` and ``filter`` must give what they gave, generators generate what they
        generated: they run again from the beginning, as compressed files are read again.

        Args:
            state: What ``state_dict`` returned, also after a way through JSON.

        Raises:
            ValueError: It is the state of another pipeline, of other files, or none at all; or this
                iterator has come to its end, or to an error: then take a new one.

        Example:
            >>> dataset = tfw.Dataset.range(3)
            >>> elements = iter(dataset)
            >>> _ = next(elements)
            >>> resumed = iter(dataset)
            >>> resumed.load_state_dict(elements.state_dict())
            >>> [int(x) for x in resumed]
            [1, 2]
        """
        self._pieces.load(state)

    def close(self) -> None:
        """Stops threads and closes files; there are no elements any more.

        >>> elements = iter(tfw.Dataset.range(3))
        >>> elements.close()
        >>> list(elements)
        []
        """
        self._pieces.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators of datasets cannot be copied; load their state_dict into others")


def iterate(
    stage: Stage,
    show: Any = None,
    number: int | None = None,
    kind: type[DatasetIterator] = DatasetIterator,
) -> DatasetIterator:
    """An iterator over a stage.

    Args:
        stage: What to go through.
        show: Is applied to every element that is given away.
        number: Of the pass, by which shuffles tell it from others; None: the next one.
        kind: The class of the iterator.
    """
    pieces = _Pieces(stage, show, number, kind._translated)
    elements = kind.from_iterable(pieces)
    assert isinstance(elements, DatasetIterator)
    elements._pieces = pieces
    return elements


class _Pieces(SharedIterator):
    """The elements of a pass, some at a time.

    Threads that find in the common chain that a piece is used up come here one after the other;
    those that come later get the same piece, as long as there is something in it. A chain that once
    met the end, or an error, never asks again.
    """

    def __init__(
        self,
        stage: Stage,
        show: Any,
        number: int | None,
        translated: Callable[[OSError], OSError],
    ) -> None:
        super().__init__()
        self._stage = stage
        self._show = show
        self._translated = translated
        self._size = 1
        self._pass = _begin_pass(stage) if number is None else number
        self._cursor: Cursor | None = None
        self._piece = _Piece()

    def step(self) -> Iterator[Any]:
        if not self._piece.left:
            try:
                self._draw()
            except OSError as error:
                theirs = self._translated(error)
                if theirs is error:
                    raise
                raise theirs from error
        return self._piece.elements

    def _draw(self) -> None:
        cursor, quiet = self._opened(), self._stage.quiet
        if quiet and self._piece.after is None:
            self._piece = _Piece(after=_Place(cursor))
        before = self._piece.after
        begin = time.perf_counter()
        elements = cursor.take(self._size)
        if not elements:
            raise StopIteration
        if quiet:
            self._adapt(time.perf_counter() - begin)
        if self._show is not None:
            elements = list(map(self._show, elements))
        after = _Place(cursor) if quiet else None
        # All at once: an interrupt may come at any point.
        self._piece = _Piece(iter(elements), len(elements), before, after)

    def reentered(self) -> Iterator[Any]:
        # An error from here would end the chain, and the step's elements would be lost.
        return _Refusing(self)

    def _adapt(self, seconds: float) -> None:
        """Takes more elements at a time, or fewer, after so many took so long."""
        if seconds > 2 * _SECONDS:
            self._size = max(1, self._size // 2)
        elif seconds < _SECONDS / 2:
            self._size = min(2 * self._size, _AT_ONCE)

    def _opened(self) -> Cursor:
        if self._cursor is None:
            self._cursor = self._stage.open(str(self._pass))
        return self._cursor

    def stop(self) -> None:
        cursor = self._cursor
        if cursor is not None:
            cursor.stop()

    def over_now(self) -> None:
        # The error's traceback leads here: until it is forgotten, nobody else would close files.
        if isinstance(self.error, Exception):
            self._release_once()

    def release(self) -> None:
        self._piece.drop()
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    # ---- States -------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        state: dict[str, Any] = self.exclusively(self._saved)
        return state

    def _saved(self) -> dict[str, Any]:
        if self.state is State.CLOSED:
            raise ValueError("the iterator is closed: it stands nowhere")
        piece = self._piece
        if self.error is not None and not self._stage.quiet:
            raise ValueError("an error broke off the last element") from self.error
        given = 0
        if piece.before is not None and piece.left:
            # Not where the cursor stands: it may be past an error that has yet to be raised.
            at, given = piece.before.snapshot(), piece.size - piece.left
        elif piece.after is not None:
            at = piece.after.snapshot()
        else:
            at = self._opened().snapshot()
        return {
            "version": _VERSION,
            "pipeline": _describe(self._stage),
            "pass": self._pass,
            "at": _plain(at),
            "given": given,
        }

    def load(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict) or state.get("version") != _VERSION or state.keys() != _KEYS:
            raise ValueError(f"expected the state of an iterator of version {_VERSION}")
        if (found := _describe(self._stage)) != state["pipeline"]:
            raise ValueError(
                f"the state is of another pipeline: {state['pipeline']}, this one is {found}"
            )
        self.exclusively(self._load, state)

    def _load(self, state: dict[str, Any]) -> None:
        with self.reopening():
            cursor = _resumed(self._stage, state)
        # Nothing can fail from here on. Until here this iterator is what it was.
        self._piece.drop()
        self._piece = _Piece()
        old, self._cursor = self._cursor, cursor
        self._pass = state["pass"]
        for shuffle in _shuffles(self._stage):
            shuffle.passes = max(shuffle.passes, self._pass + 1)
        if old is not None:
            old.stop()
            old.close()


class _Place:
    """Where a cursor stood, or the error for which nobody can tell."""

    def __init__(self, cursor: Cursor) -> None:
        self._found: Any = None
        self._error: Exception | None = None
        try:
            self._found = cursor.snapshot()
        except Exception as error:
            self._error = error

    def snapshot(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._found


class _Piece(NamedTuple):
    """Elements, and the places before and after them; None where no places are kept."""

    elements: Iterator[Any] = iter(())
    size: int = 0
    before: _Place | None = None
    after: _Place | None = None

    @property
    def left(self) -> int:
        """How many elements were not given yet."""
        return operator.length_hint(self.elements)

    def drop(self) -> None:
        for _ in self.elements:  # the chain holds it too
            pass


class _Refusing(Iterator[Any]):
    """A piece for the thread that is inside a step: an error. For other threads it is empty, so
    that they wait for the step as usual."""

    def __init__(self, pieces: _Pieces) -> None:
        self._pieces = pieces

    def __next__(self) -> Any:
        if self._pieces.entered():
            raise ValueError(EXECUTING)
        raise StopIteration


def _resumed(stage: Stage, state: dict[str, Any]) -> Cursor:
    """A cursor where the one of the state stood."""
    cursor = stage.open(str(state["pass"]), state["at"])
    given = state["given"]
    try:
        # Without any, nothing is read yet.
        if given and len(cursor.take(given)) < given:
            raise ValueError("the elements that were given before the state are not there any more")
    except BaseException:
        cursor.close()
        raise
    return cursor


def _begin_pass(stage: Stage) -> int:
    """The number of a pass, which no other iterator over its shuffles has."""
    shuffles = _shuffles(stage)
    number = max((shuffle.passes for shuffle in shuffles), default=0)
    for shuffle in shuffles:
        shuffle.passes = number + 1
    return number


def _shuffles(stage: Stage) -> list[Shuffle]:
    return [below for below in stage.chain() if isinstance(below, Shuffle)]


def _describe(stage: Stage) -> list[str]:
    return [below.describe() for below in stage.chain()]


def _plain(value: Any) -> Any:
    """A snapshot in the types of JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
