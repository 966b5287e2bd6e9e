"""Transformations as generator functions, and the class that makes datasets of them.

Each function takes the epoch and the iterators of its sources last, as
``tfwire._interface.pipelines.Replayed`` calls it: ``functools.partial`` binds what comes before.
"""

from __future__ import annotations

import os
import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, cycle, islice, repeat
from typing import Any, TypeVar

import numpy as np

import tfwire as tfw
from tfwire._interface.messages import InvalidArgumentError, integer, warn
from tfwire._interface.pipelines import (
    Intact,
    Map,
    Replayed,
    Stage,
    as_key,
    count_rows,
    cut_rows,
    description,
    draws,
    join_rows,
    leaves,
    map_structure,
    stage_elements,
)
from tfwire.compat._constants import to_array, to_numpy
from tfwire.compat._data.fingerprints import DrawnSeed
from tfwire.compat._errors import Explained, FailedPreconditionError

Elements = Iterator[Any]
P = TypeVar("P", bound="Generating")


class Generating(Explained, tfw.Dataset[Any]):
    """A pipeline whose further stages are generator functions."""

    _tf_name = "data.Dataset"

    def _generated(self: P, name: str, generate: Any, *arguments: Any, **facts: Any) -> P:
        """The dataset of what a generator function yields for the elements of this one.

        Args:
            name: The name of the transformation.
            generate: Takes the arguments, the epoch and the iterator of this dataset.
            arguments: Its first arguments.
            facts: Length, spec and the like of the new stage, where they are known.
        """
        generate = partial(generate, *arguments)
        return self._next(Replayed(name, (self._stage,), generate, **facts), name)

    @classmethod
    def _source(cls, name: str, generate: Any, *arguments: Any, **facts: Any) -> Any:
        """The dataset of what a generator function yields, which calls no function of the user."""
        sources, generate = facts.pop("sources", ()), partial(generate, *arguments)
        return cls._of(Replayed(name, sources, generate, quiet=True, **facts), name)

    def _shown(self, structure: Any) -> Any:
        return map_structure(self._show, structure)

    def _hidden(self, structure: Any) -> Any:
        return map_structure(self._hide, structure)

    def _listed(self, values: list[Any], spec: Any = None) -> Any:
        made = self._further or type(self)
        return made._source("list", listed, values, length=len(values), spec=spec)


class Arranged(Map):
    """The parts of tuples in another structure, in place of its leaves."""

    def __init__(self, source: Stage, structure: Any) -> None:
        super().__init__(source, partial(_arranged, structure))
        self.arguments = (structure,)
        self.spec, self.quiet = _arranged(structure, source.spec), source.quiet


def _arranged(structure: Any, parts: Any) -> Any:
    following = iter(parts)
    return map_structure(lambda leaf: next(following), structure)


# ---- Arguments ----------------------------------------------------------------------------------
# Functions of modules and methods, no closures: pipelines pickle with their functions.
def open_inner(call: Callable[[Any], Any], element: Any, epoch: str) -> Iterator[Any]:
    inner = call(element)
    require_dataset("the result of map_func", inner)
    return stage_elements(inner._stage, epoch)


def require_dataset(name: str, value: Any) -> None:
    if not isinstance(value, Generating):
        raise TypeError(f"{name} must be a Dataset, found {type(value).__name__}")


def scalar_bool(call: Callable[[Any], Any], element: Any) -> np.bool_:
    """The bool that a predicate returns for an element.

    Raises:
        InvalidArgumentError: It returns something other than one bool.
    """
    found = call(element)
    if not isinstance(found, np.bool_):
        kind = getattr(found, "dtype", type(found).__name__)
        raise InvalidArgumentError(f"`predicate` must return a scalar bool, found {kind}")
    return found


def scalar_integer(call: Callable[..., Any], *arguments: Any) -> int:
    return int(call(*arguments))


def as_seed(seed: Any) -> int:
    if seed is None:
        return DrawnSeed(random.randrange(2**63))
    return integer("seed", to_numpy(seed))


def as_path(path: Any) -> str:
    return os.fsdecode(to_numpy(os.fspath(path) if isinstance(path, os.PathLike) else path))


# ---- Generator functions ------------------------------------------------------------------------
def flat_map(open_inner: Callable[[Any, str], Elements], epoch: str, source: Elements) -> Elements:
    """The elements of the datasets that a function makes of the elements."""
    for number, element in enumerate(source):
        yield from open_inner(element, f"{epoch}.{number}")


def windows(
    make: Callable[[list[Any]], Any],
    size: int,
    shift: int,
    stride: int,
    drop_remainder: bool,
    epoch: str,
    source: Elements,
) -> Elements:
    """``make`` of the elements of each window."""
    span = (size - 1) * stride + 1
    held: deque[Any] = deque()
    intact = Intact(source)
    held.extend(islice(intact, span))
    while len(held) >= (span if drop_remainder else 1):
        yield make(list(islice(held, 0, span, stride)))
        for _ in range(min(shift, len(held))):
            held.popleft()
        deque(islice(intact, max(0, shift - span)), maxlen=0)
        held.extend(islice(intact, span - len(held)))
    intact.raise_error()


def rebatched(
    sizes: list[int], drop_remainder: bool, spec: Any, epoch: str, source: Elements
) -> Elements:
    """Batches of these sizes, again and again, of the rows of batches."""
    intact = Intact(source)
    # A batch, its first row that is left, and its rows.
    held, begin, total = _empty_batch(spec), 0, 0
    for size in cycle(sizes):
        parts: list[Any] = []
        missing = size
        while missing or held is None:
            if begin == total:
                following = next(intact, None)
                if following is None:
                    break
                held, begin, total = following, 0, count_rows(following)
            end = min(total, begin + missing)
            parts += [cut_rows(held, begin, end)] if end > begin else []
            missing -= end - begin
            begin = end
        if missing == 0 and held is not None:
            yield join_rows(parts) if parts else cut_rows(held, 0, 0)
            continue
        if parts and not drop_remainder:
            yield join_rows(parts)
        break
    intact.raise_error()


def _empty_batch(spec: Any) -> Any:
    """A batch without rows; sizes that are not known are 0. None: the spec does not tell it."""
    try:
        return None if spec is None else map_structure(_no_rows, spec)
    except ValueError:
        return None


def _no_rows(words: str | None) -> Any:
    found = description(words)
    if found is None or found.kind:
        raise ValueError("not an array")
    shape = [0, *(size or 0 for size in (found.sizes or ())[1:])]
    return np.empty(shape, object if found.dtype == "string" else found.dtype)


def scan(
    step: Callable[[Any, Any], tuple[Any, Any]], state: Any, epoch: str, source: Elements
) -> Elements:
    """The outputs of a function of a state and an element, which also returns the next state."""
    for element in source:
        state, output = step(state, element)
        yield output


def tolerant_map(
    function: Callable[[Any], Any], warns: bool, epoch: str, source: Elements
) -> Elements:
    """A function of the elements, without those for which it raises."""
    for element in source:
        yield from _tried(function, warns, element)


def tolerant_filter(
    predicate: Callable[[Any], Any], warns: bool, epoch: str, source: Elements
) -> Elements:
    """The elements for which a function is true and does not raise."""
    for element in source:
        if any(_tried(predicate, warns, element)):
            yield element


def passed(epoch: str, source: Elements) -> Elements:
    return source


def _tried(function: Callable[[Any], Any], warns: bool, element: Any) -> list[Any]:
    """What a function returns, in a list; an empty one if it raises."""
    try:
        return [function(element)]
    except Exception as error:
        if warns:
            warn(f"an element was left out: {error}")
        return []


def take_while(predicate: Callable[[Any], Any], epoch: str, source: Elements) -> Elements:
    """The elements before the first for which a function is false."""
    for element in source:
        if not predicate(element):
            return
        yield element


def unique(epoch: str, source: Elements) -> Elements:
    """The elements that did not come before."""
    seen = set()
    for element in source:
        key = tuple(map(_hashable, leaves(element)))
        if key not in seen:
            seen.add(key)
            yield element


def _hashable(leaf: Any) -> Any:
    value = to_array(leaf)
    return value.shape, tuple(value.ravel().tolist())


def choose(stop_on_empty: bool, epoch: str, choices: Elements, *sources: Elements) -> Elements:
    """The next element of the source that each choice names; an empty source is passed over."""
    ended: set[int] = set()
    for choice in choices:
        number = int(choice)
        if not 0 <= number < len(sources):
            raise InvalidArgumentError(
                f"a choice must be within [0, {len(sources)}), found {number}"
            )
        for element in islice(sources[number], 1):
            yield element
            break
        else:
            ended.add(number)
            if stop_on_empty or len(ended) == len(sources):
                return


def drawn_choices(seed: int, again: bool, epoch: str, weights: Elements) -> Elements:
    """The number of a source for each list of weights, drawn with these weights."""
    key = as_key(seed, epoch) if again else as_key(seed)
    for place, of_sources in enumerate(weights):
        bounds = np.cumsum(of_sources, dtype=np.float64)
        drawn = _uniform(key, place) * bounds[-1]
        yield int(np.searchsorted(bounds, drawn, side="right"))


def resample(
    class_of: Callable[[Any], int],
    target: Any,
    initial: Any,
    seed: int,
    epoch: str,
    source: Elements,
) -> Elements:
    """Elements, some left out at random, so that their classes follow a distribution."""
    key = as_key(seed)
    seen = np.zeros(len(target), np.float64) if initial is None else np.asarray(initial, np.float64)
    for place, element in enumerate(source):
        number = class_of(element)
        if initial is None:
            seen[number] += 1
        none = np.zeros(len(seen), np.float64)
        ratio = np.divide(target, seen / seen.sum(dtype=np.float64), out=none, where=seen > 0)
        if _uniform(key, place) * ratio.max() < ratio[number]:
            yield np.int32(number), element


def random_numbers(seed: int, again: bool, epoch: str) -> Elements:
    """Random numbers below 2**32, endlessly; others in every epoch if ``again``."""
    key = as_key(seed, epoch) if again else as_key(seed)
    for place in count(0, 256):
        yield from (draws(key, place, 256) >> np.uint64(32)).astype(np.int64)


def _uniform(key: int, place: int) -> float:
    return int(draws(key, place, 1)[0]) / 2.0**64


def numbers(start: int, step: int, dtype: Any, epoch: str) -> Elements:
    """start, start + step and so on, endlessly."""
    return map(np.dtype(dtype).type, count(start, step))


def repeated(value: Any, epoch: str) -> Elements:
    return repeat(value)


def counted(expected: int, epoch: str, source: Elements) -> Elements:
    """The elements, whose number must be ``expected`` unless that is negative."""
    found = 0
    for element in source:
        found += 1
        if 0 <= expected < found:
            break
        yield element
    if found != expected and expected >= 0:
        more = "more" if found > expected else f"only {found}"
        raise FailedPreconditionError(
            None, None, f"expected a dataset of {expected} elements, found {more}"
        )


def listed(values: list[Any], epoch: str) -> Elements:
    return iter(values)
