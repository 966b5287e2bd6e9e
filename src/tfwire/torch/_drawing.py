"""What the batches of a ThreadLoader are made of, and states to continue from."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils import data

from tfwire.torch._datasets import TFRecordIterableDataset, TFRecordMapDataset

if TYPE_CHECKING:
    from tfwire.torch._threads import ThreadLoader

# The part of the time that goes to states of a stream is one by this.
_TIMES_APART = 100


class ForBatch(NamedTuple):
    """Numbers of records, or elements; ``last``: there are no more."""

    content: Any = None
    last: bool = False


def new_state() -> dict[str, Any]:
    """The state of a pass that is to begin."""
    return {"version": 1, "of": {}, "at": None, "batches": 0}


def checked_state(state: Any) -> dict[str, Any]:
    """A state of a ThreadLoader.

    Raises:
        TypeError, ValueError: It is none.
    """
    if not isinstance(state, dict):
        raise TypeError(f"state must be a dict, got {type(state).__name__}")
    batches = state.get("batches")
    whole = type(batches) is int and batches >= 0
    if state.keys() != new_state().keys() or state["version"] != 1 or not whole:
        raise ValueError("this is not a state of a ThreadLoader")
    return state


class Position:
    """Where a pass is; it keeps nothing of the pass.

    Args:
        of: Describes the loader.
        handed_over: How many batches were handed over, by passes before this one.
    """

    def __init__(self, of: dict[str, Any], handed_over: int) -> None:
        self._of = of
        self._handed_over = handed_over
        # Some states of what is drawn from, and how many batches were drawn before each.
        self._marks: deque[tuple[int, Any]] = deque()
        self._error: Exception | None = None

    def mark(self, drawn: int, at: Any) -> None:
        self._marks.append((drawn, at))

    def fail(self, error: Exception) -> None:
        """Notes why there is no state, if there is none before."""
        self._error = error.with_traceback(None)

    def hand_over(self) -> None:
        """Counts a batch."""
        self._handed_over += 1
        while len(self._marks) > 1 and self._marks[1][0] <= self._handed_over:
            self._marks.popleft()

    def state(self) -> dict[str, Any]:
        """A state after the batches that were handed over."""
        if not self._marks:
            assert self._error is not None
            raise self._error
        drawn, at = self._marks[0]
        return {**new_state(), "of": self._of, "at": at, "batches": self._handed_over - drawn}


class Drawing:
    """Draws what each batch of a pass is made of; one thread at a time calls ``draw``.

    Args:
        loader: Whose pass it is.
        state: Where it begins.
        packs: Batches of a stream may be FormedRows.

    Raises:
        ValueError: The state is of another loader.
    """

    def __init__(self, loader: ThreadLoader, state: dict[str, Any], packs: bool) -> None:
        self._stream: Any = None  # a DatasetIterator
        self._to_drop: int = state["batches"]  # which were handed over before
        self._drawn = 0
        self._due = 0.0
        of = _description(loader)
        if state != new_state() and state["of"] != of:
            raise ValueError(f"the state is of a loader of {state['of']}, this one is of {of}")
        self.position = Position(of, self._to_drop)
        is_stream = isinstance(loader.dataset, data.IterableDataset)
        opened = self._elements if is_stream else self._numbers
        self._pieces: Iterator[ForBatch] = opened(loader, state["at"], packs)

    def draw(self) -> ForBatch:
        """What the next batch is made of."""
        while self._to_drop:
            self._to_drop -= 1
            if self._next().last:
                raise ValueError("the state is of another dataset: this one has fewer batches")
        if self._stream is not None and time.perf_counter() >= self._due:
            self._mark()
        return self._next()

    def _next(self) -> ForBatch:
        drawn = next(self._pieces, ForBatch(last=True))
        self._drawn += 1
        return drawn

    def _mark(self) -> None:
        begin = time.perf_counter()
        try:
            self.position.mark(self._drawn, self._stream.state_dict())
        except Exception as error:
            self.position.fail(error)
        end = time.perf_counter()
        self._due = end + _TIMES_APART * (end - begin)

    # ---- What is drawn from -------------------------------------------------------------------

    def _numbers(self, loader: ThreadLoader, at: Any, packs: bool) -> Iterator[ForBatch]:
        """The numbers of each batch, by the sampler. Random ones depend on the states of generators
        when they begin."""
        generators = _generators(loader)
        now = torch.get_rng_state()
        try:
            if at is not None:
                _set_states(generators, at)
            states = [generator.get_state().numpy().tobytes().hex() for generator in generators]
            self.position.mark(0, states)
            _draw_seed(loader)
            numbers = iter(_samplers(loader)[0])
            first = list(islice(numbers, 1))  # now: samplers draw a seed then
        finally:
            if at is not None:
                torch.set_rng_state(now)  # it serves others, too
        return map(ForBatch, chain(first, numbers))

    def _elements(self, loader: ThreadLoader, at: Any, packs: bool) -> Iterator[ForBatch]:
        """The elements of each batch of an iterable dataset."""
        _draw_seed(loader)
        source: Any = loader.dataset
        if not isinstance(source, TFRecordIterableDataset):
            elements = iter(source)
            self.position.mark(0, None)  # it begins again
        else:
            packs = packs and loader.batch_size is None
            elements = self._stream = source._iterate(loader.num_threads, packs)
            if at is None:
                self._mark()
            else:
                elements.load_state_dict(at)
                self.position.mark(0, at)
        if loader.batch_size is None:
            return map(ForBatch, elements)
        return _gathered(elements, loader.batch_size, loader.drop_last)


def _draw_seed(loader: ThreadLoader) -> None:
    """As DataLoader does before it shuffles: then the order is the same for the same seed."""
    torch.empty((), dtype=torch.int64).random_(generator=loader.generator)


def _samplers(loader: ThreadLoader) -> list[Any]:
    """What gives numbers, and those that it takes them from."""
    found: list[Any] = [loader.sampler if loader.batch_sampler is None else loader.batch_sampler]
    while (below := getattr(found[-1], "sampler", None)) is not None and below not in found:
        found.append(below)
    return found


def _generators(loader: ThreadLoader) -> list[torch.Generator]:
    """Those that numbers may depend on. Who has none of its own takes torch's."""
    own = [getattr(sampler, "generator", None) for sampler in _samplers(loader)]
    drawn = [each for each in own if isinstance(each, torch.Generator)]
    default = torch.default_generator
    return list(dict.fromkeys([loader.generator or default, *(drawn or [default])]))


def _set_states(generators: list[torch.Generator], states: Any) -> None:
    try:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(torch.tensor(list(bytes.fromhex(state)), dtype=torch.uint8))
    except (TypeError, ValueError, RuntimeError):
        raise ValueError("this is not a state of a ThreadLoader of such a dataset") from None


def _description(loader: ThreadLoader) -> dict[str, Any]:
    """What a state must have in common with the loader that goes on from it."""
    dataset: Any = loader.dataset
    by_number = not isinstance(dataset, data.IterableDataset) and hasattr(dataset, "__len__")
    samplers = _samplers(loader)
    found = {
        "length": len(dataset) if by_number else None,
        "batch_size": getattr(loader.batch_sampler, "batch_size", None),
        "drop_last": getattr(loader.batch_sampler, "drop_last", None),
        "sampler_epoch": next((s.epoch for s in samplers if hasattr(s, "epoch")), None),
    }
    while isinstance(dataset, data.Subset):
        dataset = dataset.dataset
    found["epoch"] = dataset._epoch() if isinstance(dataset, TFRecordMapDataset) else None
    return {name: value if isinstance(value, int) else None for name, value in found.items()}


def _gathered(elements: Iterator[Any], size: int, drop_last: bool) -> Iterator[ForBatch]:
    while items := list(islice(elements, size)):
        if len(items) == size or not drop_last:
            yield ForBatch(items)
