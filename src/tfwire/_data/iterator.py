"""DatasetIterator: one pass over a dataset, its position and its state."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from tfwire._base.errors import copied, public
from tfwire._base.iterator_threads import EXECUTING
from tfwire._base.shared_iterator import SharedIterator, State
from tfwire._data.resuming.positions import advanced
from tfwire._data.stages import Cursor, Stage
from tfwire._data.state_checks import COUNT, check_state, plain

_STATE_VERSION = 1
# Where no user function can notice, elements are taken in pieces. A piece takes about a
# millisecond: it needs little memory, and the first element comes soon. The elements do not depend
# on the size.
_ELEMENTS_PER_TAKE = 256
_SECONDS = 1e-3
_FORM = {
    "version": int,
    "pipeline": {str},
    "epoch": COUNT,
    "at": object,
    "given": range(_ELEMENTS_PER_TAKE + 1),
}


Item = TypeVar("Item")
Iter = TypeVar("Iter", bound="DatasetIterator[Any]")


@public
class DatasetIterator(chain[Item]):
    """One pass over a Dataset, made by ``iter(dataset)``. It can be saved and resumed, and is a
    context manager that closes it.

    Example:
        >>> dataset = tfw.Dataset.range(100).shuffle(10, seed=1).batch(3)
        >>> elements = iter(dataset)
        >>> first = next(elements)
        >>> state = elements.state_dict()  # small, and JSON takes it
        >>> resumed = iter(dataset)  # in another process, perhaps
        >>> resumed.load_state_dict(state)
        >>> all((a == b).all() for a, b in zip(elements, resumed))  # what comes after first
        True
    """

    # The __next__ of chain is written in C and costs nothing. It takes elements from these pieces.
    _pieces: Any

    # Translates an error of the operating system; the compat layer has TensorFlow's errors.
    @staticmethod
    def _translated(error: OSError) -> OSError:
        return error

    # What follows an error after which the iterator cannot go on, of a kind that tries to; None: no
    # iterator goes on after an error.
    @staticmethod
    def _given_up(error: Exception) -> Exception | None:
        return None

    def state_dict(self) -> dict[str, object]:
        """The position of this iterator.

        Returns:
            A dict of JSON's types for ``load_state_dict``. It is small, except that a shuffle with
            a buffer has a number for every element in it.

        Raises:
            ValueError: The dataset reads from a file object or a pipe, which cannot be read again;
                or the iterator is closed; or an error interrupted its last element.
            Exception: The next element is an error, and the position after it is not known: a
                function of ``map`` failed in the middle of a batch, say. Or the source of a
                shuffle failed, which gives its buffer before the error.

        Example:
            >>> import json
            >>> elements = iter(tfw.Dataset.range(3))
            >>> _ = next(elements)
            >>> saved = json.dumps(elements.state_dict())
        """
        state: dict[str, object] = self._pieces.saved()
        return state

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continues from the position of another iterator over the same pipeline and files: with
        the remaining elements of that iterator, in the same order. The next pass over the dataset
        is then the epoch after that of the state.

        Functions of ``map`` and ``filter`` and generators must give the same results again.
        Generators run again from the beginning, and compressed files are read again.

        Args:
            state: What ``state_dict`` returned; it may have been saved as JSON.

        Raises:
            ValueError: It is the state of another pipeline or of other files, or not a state; or
                this iterator has ended or failed: then load it into a new one.
            DataLossError, OSError: The files cannot be read up to the position.

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
        """Stops threads and closes files. There are no more elements.

        >>> elements = iter(tfw.Dataset.range(3))
        >>> elements.close()
        >>> list(elements)
        []
        """
        self._pieces.close()

    def __enter__(self: Iter) -> Iter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators of datasets cannot be copied; load their state_dict into others")


def iterate(
    stage: Stage,
    show: Any = None,
    epochs: Epochs | None = None,
    kind: type[DatasetIterator[Any]] = DatasetIterator,
) -> DatasetIterator[Any]:
    """An iterator over a stage.

    Args:
        stage: The stage.
        show: Applied to every element that the user gets.
        epochs: Numbers the passes over the stage; None: the stage's own count.
        kind: The class of the iterator.
    """
    pieces = _Pieces(stage, show, epochs or Epochs(stage), kind)
    elements = kind.from_iterable(pieces)
    assert isinstance(elements, DatasetIterator)
    elements._pieces = pieces
    return elements


class Epochs:
    """Numbers the passes over a stage, on which random orders depend.

    The stages that draw such orders keep the count, so that it is one for all datasets made of
    them. If there are none, the stage itself keeps it.
    """

    def __init__(self, stage: Stage) -> None:
        self._stages = [below for below in stage.chain() if below.redraws] or [stage]

    def next(self) -> int:
        """The number of the next pass."""
        return max(stage.next_epoch for stage in self._stages)

    def begin(self) -> int:
        """The number of a pass that begins."""
        epoch = self.next()
        self.set_next(epoch + 1)
        return epoch

    def set_next(self, epoch: int) -> None:
        """Sets the number of the next pass."""
        for stage in self._stages:
            stage.next_epoch = epoch


class _Pieces(SharedIterator[Iterator[Any]]):
    """The elements of a pass, in pieces.

    Threads that share the chain come here one after the other when a piece is used up. Later ones
    get the same new piece, while it has elements. After the end or an error, the chain never asks
    again.
    """

    def __init__(
        self, stage: Stage, show: Any, epochs: Epochs, kind: type[DatasetIterator[Any]]
    ) -> None:
        super().__init__()
        self._stage = stage
        self._show = show
        self._kind = kind
        self._size = 1
        self._epochs = epochs
        self._epoch = epochs.begin()
        self._cursor: Cursor | None = None
        self._piece = _Piece()
        self._raising = _RaisingPiece([])
        self._described: list[str] | None = None

    def step(self) -> Iterator[Any]:
        if self._piece.left:
            return self._piece.elements
        if self.error is not None:  # and it was raised
            raise StopIteration
        quiet = self._stage.quiet
        try:
            cursor = self._opened()
            if quiet and self._piece.after is None:
                self._piece = _Piece(after=_Position(cursor))
            before = self._piece.after
            begin = time.perf_counter()
            elements = cursor.take(self._size)
        except Exception as error:
            return self._after(error)
        if not elements:
            raise StopIteration
        if quiet:
            self._adapt(time.perf_counter() - begin)
        if self._show is not None:
            elements = list(map(self._show, elements))
        after = _Position(cursor) if quiet else None
        # In one assignment: an interrupt may come at any point.
        self._piece = _Piece(iter(elements), len(elements), before, after)
        return self._piece.elements

    def _after(self, error: Exception) -> Iterator[Any]:
        """What follows an error: the error, and the elements after it or why there are none."""
        raised = self._kind._translated(error) if isinstance(error, OSError) else error
        if raised is not error:
            raised.__cause__ = error
        given_up = self._kind._given_up(raised)
        if given_up is None:
            raise raised
        if self._cursor is not None and not self._reentered and self._cursor.recover():
            self._piece = _Piece()
            self._raising = _RaisingPiece([raised])
        else:
            self.error = raised
            self._raising = _RaisingPiece([raised, given_up])
        return self._raising

    def reentered(self) -> Iterator[Any]:
        # An error raised here would end the chain and lose the step's elements.
        return _RefusingPiece(self)

    def _adapt(self, seconds: float) -> None:
        """Adapts the size of pieces to the time that the last one took."""
        if seconds > 2 * _SECONDS:
            self._size = max(1, self._size // 2)
        elif seconds < _SECONDS / 2:
            self._size = min(2 * self._size, _ELEMENTS_PER_TAKE)

    def _opened(self) -> Cursor:
        if self._cursor is None:
            self._cursor = self._stage.open(str(self._epoch))
        return self._cursor

    def stop(self) -> None:
        cursor = self._cursor
        if cursor is not None:
            cursor.stop()

    def over_now(self) -> None:
        # The error's traceback refers to this object, so the files would stay open with it.
        if isinstance(self.error, Exception):
            self._release_once()

    def release(self) -> None:
        self._piece.drop()
        self._raising.drop()
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    # ---- States -------------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        place = self.exclusively(self._place)
        return {"version": _STATE_VERSION, "pipeline": list(self._description()), **place}

    def _description(self) -> list[str]:
        """Of the pipeline, with the sizes of the files when it was first asked for: every file is
        looked at, and one that is replaced later is not what this pass reads."""
        if self._described is None:
            self._described = [below.describe() for below in self._stage.chain()]
        return self._described

    def _place(self) -> dict[str, Any]:
        if self.state is State.CLOSED:
            raise ValueError("the iterator is closed: it has no position")
        piece = self._piece
        if self.error is not None and not self._stage.quiet:
            raise ValueError("an error interrupted the last element") from self.error
        given = 0
        if piece.before is not None and piece.left:
            # Not the position of the cursor, which may be past an error that is still to be raised.
            self._opened().raise_deferred()
            at, given = piece.before.snapshot(), piece.size - piece.left
        elif piece.after is not None:
            at = piece.after.snapshot()
        else:
            at = self._opened().snapshot()
        return {"epoch": self._epoch, "at": plain(at), "given": given}

    def load(self, state: dict[str, Any]) -> None:
        state = checked_copy(state)
        if (found := self._description()) != state["pipeline"]:
            raise ValueError(
                f"the state is of another pipeline: {state['pipeline']}, this one is {found}"
            )
        self.exclusively(self._load, state)

    def _load(self, state: dict[str, Any]) -> None:
        with self.reopening():
            cursor = self._stage.open(str(state["epoch"]), state["at"])
            cursor = advanced(cursor, state["given"])
        # Nothing can fail from here on, and nothing was changed before.
        self._piece.drop()
        self._raising.drop()
        self._piece = _Piece()
        self.error = None
        old, self._cursor = self._cursor, cursor
        self._epoch = state["epoch"]
        self._epochs.set_next(self._epoch + 1)
        if old is not None:
            old.stop()
            old.close()


def checked_copy(state: Any) -> dict[str, Any]:
    """A copy of the state of an iterator, of the right form except for its position.

    Raises:
        ValueError: It is none.
    """
    try:
        state = plain(state)
    except RecursionError:
        raise ValueError("the state is damaged: it is nested without end") from None
    known = isinstance(state, dict) and state.keys() == _FORM.keys()
    version = state["version"] if known else None
    if type(version) is not int or version != _STATE_VERSION:
        other = "another version" if known else type(state).__name__
        raise ValueError(
            f"state must be the state of an iterator of version {_STATE_VERSION}, found {other}"
        )
    check_state(state, _FORM)
    found: dict[str, Any] = state
    return found


class _Position:
    """The position of a cursor, or the error for which it is not known."""

    def __init__(self, cursor: Cursor) -> None:
        self._found: Any = None
        self._error: Exception | None = None
        try:
            self._found = cursor.snapshot()
        except Exception as error:
            self._error = error

    def snapshot(self) -> Any:
        if self._error is not None:
            raise copied(self._error)
        return self._found


class _Piece(NamedTuple):
    """Elements, and the positions before and after them; None if they are not kept."""

    elements: Iterator[Any] = iter(())
    size: int = 0
    before: _Position | None = None
    after: _Position | None = None

    @property
    def left(self) -> int:
        """The number of elements left."""
        return operator.length_hint(self.elements)

    def drop(self) -> None:
        for _ in self.elements:  # the chain has the same iterator
            pass


class _RaisingPiece(Iterator[Any]):
    """A piece of errors, one for each call. The chain goes on after them."""

    def __init__(self, errors: list[Exception]) -> None:
        self._errors: SimpleQueue[Exception] = SimpleQueue()
        for error in errors:
            self._errors.put(error)

    def __next__(self) -> Any:
        try:
            error = self._errors.get_nowait()
        except Empty:
            raise StopIteration from None
        raise error

    def drop(self) -> None:
        """Forgets the errors that were not raised."""
        with suppress(Empty):
            while True:
                self._errors.get_nowait()


class _RefusingPiece(Iterator[Any]):
    """A piece that raises an error in the threads that a step may wait for. For other threads it is
    empty, so that they wait for the step as usual."""

    def __init__(self, pieces: _Pieces) -> None:
        self._pieces = pieces

    def __next__(self) -> Any:
        if self._pieces.executing():
            raise ValueError(EXECUTING)
        raise StopIteration
