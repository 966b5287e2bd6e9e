"""ParallelMap: a function of many items, computed by several threads, with the results in order."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from operator import length_hint
from threading import Event
from typing import Any, Generic, NamedTuple, TypeVar

from tfwire._base.shared_iterator import SharedIterator
from tfwire._base.workers import Workers

Item = TypeVar("Item")
Result = TypeVar("Result")

# A function that raises an exception if its caller is to stop.
Check = Callable[[], None]


def never_stopped() -> None:
    """The Check of a call that nobody stops."""


class ParallelMap(SharedIterator[Result], Generic[Item, Result]):
    """An iterator over ``function(item, check)`` of all items, in their order.

    With one thread, the caller of ``next`` computes. With more, the iterator's own threads compute;
    they begin at most num_threads + 1 items whose results were not taken yet. An error of the
    function is raised in the place of its result, and ends the iteration. After ``close``, an
    interrupt or an error, and when the iterator is dropped, ``check()`` raises, so that a function
    which calls it often ends soon.

    Args:
        function: Takes an item and a Check. With several threads, each may call it.
        items: Threads read them one by one, when they begin to work on them.
        num_threads: How many threads to use; no more than there are items.

    Raises:
        RuntimeError: By ``next``: no thread can be started; or see SharedIterator.
    """

    def __init__(
        self, function: Callable[[Item, Check], Result], items: Iterable[Item], num_threads: int
    ) -> None:
        super().__init__()
        self._tasks = _Tasks(function, items)
        self._num_threads = min(num_threads, length_hint(items, num_threads))
        self._workers: Workers | None = None
        self._dropped = weakref.finalize(self, self._tasks.stopped.set)

    def step(self) -> Result:
        tasks = self._tasks
        result: Result
        if self._num_threads <= 1:
            result = tasks.compute(tasks.read())
            return result
        if self._workers is None:
            self._workers = Workers(tasks.read, tasks.compute, self._num_threads, owner=self)
        result = self._workers.next()
        return result

    def close(self) -> None:
        """Ends the iteration and its threads. Another thread that waits gets StopIteration."""
        super().close()

    def stop(self) -> None:
        self._dropped.detach()  # Python loses an interrupt that arrives in a finalizer
        self._tasks.stopped.set()
        if self._workers is not None:
            self._workers.stop()

    def over_now(self) -> None:
        self.close()

    def release(self) -> None:
        if self._workers is not None:
            self._workers.close()

    def __reduce__(self) -> Any:
        raise TypeError("iterators with threads cannot be pickled")


class _Unit(NamedTuple):
    """An item. Asking for the next one shows whether it is the last."""

    item: Any
    last: bool = False


class _Tasks:
    """What the threads share; it holds no reference to the iterator."""

    def __init__(self, function: Callable[[Any, Check], Any], items: Iterable[Any]) -> None:
        self.stopped = Event()
        self._function = function
        self._units = map(_Unit, items)

    def read(self) -> _Unit:
        return next(self._units)

    def compute(self, unit: _Unit) -> Any:
        try:
            return self._function(unit.item, self.check)
        except StopIteration as error:  # the iteration would end silently
            raise RuntimeError("a function raised StopIteration") from error

    def check(self) -> None:
        if self.stopped.is_set():
            raise RuntimeError("the iterator was closed")
