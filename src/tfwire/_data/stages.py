"""Stages of a pipeline: what a stage is, and those that change or combine elements.

A stage is a description; a cursor is one pass through it. Cursors are pulled: ``take(n)`` consumes
exactly what n elements need from the stages below. So the positions of the cursors are the position
of the pipeline. A cursor that reads ahead (Prefetch, and the user's iterator) keeps the snapshot
taken after the last element that it gave.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import length_hint
from typing import Any

from tfwire._base.errors import copied
from tfwire._data.resuming.positions import ELEMENTS_PER_SKIP, Left
from tfwire._data.structure import check_shard, joined_pieces

UNPLACED = "the position is not known: an error came in the middle of some elements"
END = "end"  # the position of a cursor that has ended


class Cursor:
    """One pass through a stage."""

    deferred: Exception | None = None  # comes after the elements that this cursor holds

    @abstractmethod
    def take(self, count: int) -> list[Any]:
        """The next count elements; fewer only at the end, or before an error that the next call
        raises."""

    @abstractmethod
    def snapshot(self) -> Any:
        """The position of the pass, for ``Stage.open``: dicts, lists, numbers, strings, and arrays
        of integers."""

    def parts(self) -> Iterable[Cursor]:
        """The cursors below."""
        return ()

    def raise_deferred(self) -> None:
        """Raises the error that this cursor or one below it defers, if any.

        A cursor that defers an error has no position to save: if the error does not come again
        after a resumption, other elements follow.
        """
        if self.deferred is not None:
            raise copied(self.deferred)
        for cursor in self.parts():
            cursor.raise_deferred()

    def recover(self) -> bool:
        """After an error that ``take`` raised: later calls go on after the element that it is of.
        False if that is not possible; then the cursor is at its end."""
        return all(cursor.recover() for cursor in self.parts())

    def stop(self) -> None:
        """Wakes the thread that waits in ``take``, which then raises an exception. Never waits. Any
        thread may call it at any time."""
        for cursor in self.parts():
            cursor.stop()

    def close(self) -> None:
        """Releases files and threads."""
        for cursor in self.parts():
            cursor.close()


class Stage:
    """A sequence of elements, for any number of passes.

    Attributes:
        source: The stage below; None if there is none, or several.
        sources: All stages below.
        given: Those whose elements are given as they are, where there are several or it is known.
        length: Number of elements if known without reading, else None.
        endless: True if the elements never end, unless there are none. As in TensorFlow, what is
            repeated without end counts as endless, though it may turn out to have no elements.
        spec: The structure of an element with a description ("int64[28, 28]") per leaf, or None.
        quiet: True if no user function runs here or below: nobody notices if elements are made
            ahead of time.
        redraws: True if this stage draws another random order in every epoch.
        next_epoch: The number of the next epoch, where this stage counts them.
        seeded: False if this stage draws a random order that no other process knows.
        one_to_one: True if each element is made of one element of the source, and of nothing else.
        passes_errors: True if this stage passes the errors of its source on, and then continues.
    """

    source: Stage | None = None
    sources: tuple[Stage, ...] = ()
    given: tuple[Stage, ...] = ()
    length: int | None = None
    endless = False
    spec: Any = None
    quiet = True
    redraws = False
    next_epoch = 0
    seeded = True
    one_to_one = False
    passes_errors = False

    @property
    def batched(self) -> bool:
        """True if elements are batches, as far as the stages tell."""
        return any(source.batched for source in self.sources)

    @abstractmethod
    def open(self, epoch: str, at: Any = None) -> Cursor:
        """A pass from the beginning, or from a snapshot.

        Args:
            epoch: Identifies the pass; random numbers depend on it.
            at: What ``snapshot`` gave; it may have been saved as JSON, or be damaged.

        Raises:
            ValueError: The snapshot is damaged.
        """

    def describe(self) -> str:
        """The stage and its arguments, to tell whether a saved state fits the pipeline."""
        return type(self).__name__

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """This stage over a share of the records at its source; by default every num_shards-th
        element of this stage.

        Raises:
            ValueError: The rule needs a source of known length, or a shuffle needs a seed.
        """
        if rule == "pad":
            raise ValueError(f"rule={rule!r} needs a source of known length, not {self.describe()}")
        for stage in self.chain():
            if not stage.seeded:
                raise ValueError(
                    f"shards of {self.describe()} need a seed for {stage.describe()} before it: "
                    "without one, it has another order in every process"
                )
        return Shard(self.apart(), num_shards, index, rule == "drop")

    def apart(self) -> Stage:
        """The same elements by stages with counts of epochs of their own: shards that are iterated
        in one process do not count for each other."""
        found = copy.copy(self)
        found.sources = tuple(source.apart() for source in self.sources)
        if self.given is self.sources:
            found.given = found.sources
        return found

    def part(self, places: range) -> Stage | None:
        """The elements at these places of this stage, which has a length, without those between
        them. None: they cannot be found without reading others."""
        return None

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        """What is left of passes over shards, of which this is one, to be sharded anew.

        Raises:
            ValueError: It is not known without another pass, or a position is damaged.
        """
        raise ValueError(
            f"what is left of {self.describe()} cannot be divided among another number of shards: "
            f"go on with {len(passes)}, or from the end of an epoch"
        )

    def origin(self, epoch: str, place: int) -> list[int]:
        """Numbers that say which element is at this place of a pass, here and in every shard that
        has it. Where elements are not known by their places, such as those of files without an
        index, they say only that no other element is meant, here or in another shard."""
        first = [part for source in self.sources for part in source.origin(epoch, 0)]
        return [*first, place]

    def chain(self) -> Iterator[Stage]:
        """This stage and those below."""
        yield self
        for source in self.sources:
            yield from source.chain()


class Derived(Stage):
    """A stage on another one.

    Args:
        source: The stage below.
        arguments: The other arguments of the class, for ``over``.
    """

    def __init__(self, source: Stage, *arguments: Any) -> None:
        self.source: Stage = source
        self.sources = (source,)
        self.arguments = arguments
        self.length = source.length
        self.endless = source.endless
        self.spec = source.spec
        self.quiet = source.quiet

    def over(self, source: Stage) -> Stage:
        """The same on another stage."""
        return type(self)(source, *self.arguments)

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        return self.over(self.source.sharded(num_shards, index, rule))

    def apart(self) -> Stage:
        return self.over(self.source.apart())

    def below(self, left: Left, epoch: str) -> Left | None:
        """What is left of the source, of which the elements that are left are made, if it is
        known."""
        return Left(self.source, left.at, left.given) if self.one_to_one else None

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        sources = [left.stage.below(left, epoch) for left in passes]
        if None in sources:
            return super().left(passes, epoch)
        return self.over(sources[0].stage.left(sources, epoch))

    def origin(self, epoch: str, place: int) -> list[int]:
        origin_of = self.source.origin if self.one_to_one else super().origin
        return origin_of(epoch, place)

    def describe(self) -> str:
        shown = ", ".join(str(a) for a in self.arguments if isinstance(a, (int, type(None))))
        return f"{type(self).__name__}({shown})"


class Gathering(Cursor):
    """A cursor that raises an error after the elements before it, and on every later call until it
    recovers.

    Attributes:
        goes_on: True if an error, of its own or below, loses no other element.
    """

    _error: Exception | None = None
    _raised = False  # by take
    _recovered = False
    goes_on = False

    @property
    def is_to_raise(self) -> bool:
        """True if ``take`` will raise an error that it has not raised yet. Another error, of a
        function above, must not make it forgotten."""
        return not self._raised and (self._error is not None or self.deferred is not None)

    def recover(self) -> bool:
        if self.is_to_raise:
            return True
        if self._error is not None and not self.goes_on:
            return False
        if not super().recover():
            return False
        self._recovered |= self._raised
        self._error, self._raised = None, False
        return True

    @abstractmethod
    def place(self) -> Any:
        """The position of the pass, if there was no error."""

    def snapshot(self) -> Any:
        """The position of the pass.

        Raises:
            Exception: The error of the pass. The stages below are past it: to go on there would
                skip the elements that the error prevented.
        """
        self.raise_pending()
        return self.place()

    def raise_pending(self) -> None:
        """Raises the error of the pass, if there was one."""
        if self._error is not None:
            raise self._error

    def begin_to_take(self) -> None:
        """Raises the error of the pass, if there was one, for ``take``."""
        self._raised = self._error is not None
        self.raise_pending()

    def keep(self, error: Exception, is_raised: bool) -> None:
        """Keeps an error, which ``take`` raises now or the next time."""
        self._error, self._raised = error, is_raised


class GatheringElements(Gathering):
    """A cursor whose elements come one by one."""

    @abstractmethod
    def elements(self, count: int) -> Iterator[Any]:
        """The next elements: count of them or more, or all that are left."""

    def take(self, count: int) -> list[Any]:
        self.begin_to_take()
        found: list[Any] = []
        try:
            found.extend(islice(self.elements(count), count))
        except Exception as error:
            self.keep(error, not found)
            if not found:
                raise
        return found


class GatheringPieces(Gathering):
    """A cursor whose elements come in pieces."""

    @abstractmethod
    def piece(self, count: int) -> list[Any] | None:
        """The next elements, up to count, perhaps none; None at the end."""

    def take(self, count: int) -> list[Any]:
        self.begin_to_take()
        pieces: list[Any] = []  # lists, or all StringTable, or all RecordNumbers
        try:
            while count > 0 and (piece := self.piece(count)) is not None:
                if piece:
                    pieces.append(piece)
                    count -= len(piece)
        except Exception as error:
            self.keep(error, not pieces)
            if not pieces:
                raise
        return joined_pieces(pieces)


class Through(Cursor):
    """A cursor on one other, by default with its position."""

    def __init__(self, below: Cursor) -> None:
        self._below = below

    def place(self) -> Any:
        return self._below.snapshot()

    def parts(self) -> Iterable[Cursor]:
        return (self._below,)


# ---- One by one -------------------------------------------------------------------------------
class Map(Derived):
    """A function of every element."""

    one_to_one = True

    def __init__(self, source: Stage, function: Callable[[Any], Any]) -> None:
        super().__init__(source, function)
        self.function = function
        self.spec = None
        self.quiet = False

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return MapCursor(self.source.open(epoch, at), self.function)


class _FunctionCursor(Through, GatheringElements):
    """A cursor that calls a function for each element, and keeps those that follow an error."""

    goes_on = True

    def __init__(self, below: Cursor, function: Callable[[Any], Any]) -> None:
        super().__init__(below)
        self._function = function
        self._left: Iterator[Any] = iter(())  # elements from below

    def place(self) -> Any:
        if length_hint(self._left):
            raise ValueError(UNPLACED)
        return super().place()


class MapCursor(_FunctionCursor):
    def elements(self, count: int) -> Iterator[Any]:
        # A generator: a StopIteration that the function raises is an error and not the end.
        count -= length_hint(self._left)
        for element in self._left:
            yield self._function(element)
        self._left = iter(self._below.take(count))
        for element in self._left:
            yield self._function(element)


class Filter(Derived):
    """The elements for which a function is true."""

    def __init__(self, source: Stage, predicate: Callable[[Any], Any]) -> None:
        super().__init__(source, predicate)
        self.length, self.endless = None, False
        self.quiet = False

    def below(self, left: Left, epoch: str) -> Left:
        return Left(self.source, left.place(epoch))

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _FilterCursor(self.source.open(epoch, at), self.arguments[0])


class _FilterCursor(_FunctionCursor):
    def elements(self, count: int) -> Iterator[Any]:  # a generator, as in map
        while length_hint(self._left) or (count and self._take(count)):
            for element in self._left:
                if self._function(element):
                    count -= 1
                    yield element

    def _take(self, count: int) -> bool:
        self._left = iter(self._below.take(count))
        return length_hint(self._left) > 0


class ChosenByPlace(Derived):
    """Some elements of the source, chosen by their places."""

    @abstractmethod
    def chosen(self, places: range) -> range:
        """Those of all places of a source that are chosen."""

    def origin(self, epoch: str, place: int) -> list[int]:
        return self.source.origin(epoch, self.chosen(range(2**63 - 1))[place])

    def narrowed(self) -> Stage:
        """This stage, or the part of the source that it is."""
        length = self.source.length
        found = None if length is None else self.source.part(self.chosen(range(length)))
        return self if found is None else found

    def sharded(self, num_shards: int, index: int, rule: str) -> Stage:
        """Shards of the chosen elements, and not these places in every shard of the source."""
        sunk = self._sunk()
        if isinstance(sunk, ChosenByPlace):
            return Stage.sharded(sunk, num_shards, index, rule)
        return sunk.sharded(num_shards, index, rule)

    def _sunk(self) -> Stage:
        """The same elements, chosen as near to the source as can be."""
        source = self.source._sunk() if isinstance(self.source, ChosenByPlace) else self.source
        if isinstance(source, Derived) and source.one_to_one:
            return source.over(type(self)(source.source, *self.arguments)._sunk())
        return type(self)(source, *self.arguments).narrowed()


class Shard(ChosenByPlace):
    """Every num_shards-th element from index on.

    Args:
        source: Gives the elements.
        num_shards: How many shards.
        index: The index of the shard.
        equal: Leave out the last elements if not all shards would have one.
    """

    def __init__(self, source: Stage, num_shards: int, index: int, equal: bool = False) -> None:
        num_shards, index = check_shard(num_shards, index)
        super().__init__(source, num_shards, index, equal)
        if source.length is not None:
            self.length = len(self.chosen(range(source.length)))

    def left(self, passes: Sequence[Left], epoch: str) -> Stage:
        return Stage.left(self.source, passes, epoch)  # raises, and names what the user wrote

    def chosen(self, places: range) -> range:
        num_shards, index, equal = self.arguments
        rounds = len(places) // num_shards * num_shards
        return (places[:rounds] if equal else places)[index::num_shards]

    def open(self, epoch: str, at: Any = None) -> Cursor:
        return _ShardCursor(self.source.open(epoch, at), *self.arguments)


class _ShardCursor(Through, GatheringPieces):
    """Takes whole rounds, so that every snapshot is taken at the start of a round."""

    def __init__(self, below: Cursor, num_shards: int, index: int, equal: bool) -> None:
        super().__init__(below)
        self._num_shards = num_shards
        self._index = index
        self._equal = equal
        self._taken = 0  # elements of an incomplete round, before the end or an error
        self.goes_on = not equal

    def piece(self, count: int) -> list[Any] | None:
        num_shards, taken = self._num_shards, self._taken
        rounds = min(count, max(1, ELEMENTS_PER_SKIP // num_shards))
        piece = self._below.take(rounds * num_shards - taken)
        if self._equal:
            piece = piece[: len(piece) // num_shards * num_shards]
        self._taken = (taken + len(piece)) % num_shards
        return piece[(self._index - taken) % num_shards :: num_shards] if piece else None

    def place(self) -> Any:
        if self._recovered and self._taken:
            raise ValueError(UNPLACED)
        return super().place()
