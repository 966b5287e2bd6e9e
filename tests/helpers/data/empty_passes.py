"""Random pipelines whose sources have passes without elements, beside a model in plain Python.

A source has as many elements in a pass as its epoch says, often none. A pipeline is a number, for
its source, and a list of stages, each a name and its arguments.
"""

from __future__ import annotations

from itertools import count, islice

import numpy as np

from tfwire import Dataset
from tfwire._data.element_sources import Numbers
from tfwire._data.permutations import as_key
from tfwire._data.stages import Stage

MOST = 60  # elements of a pipeline that may be endless


def size_of(number, epoch):
    """How many elements a pass has: none in two of three."""
    drawn = as_key(number, epoch) % 9
    return drawn - 5 if drawn > 5 else 0


class Passes(Stage):
    """A source with as many elements in each pass as ``size_of`` says."""

    def __init__(self, number):
        self._number = number

    def open(self, epoch, at=None):
        first = 10 * self._number
        return Numbers(range(first, first + size_of(self._number, epoch)), "").open(epoch, at)


def passes(number):
    return Dataset._of(Passes(number), "passes")


def is_even(number):
    return number % 2 == 0


def some_passes(number):
    return passes(int(number) % 5)


def build(case):
    number, stages = case
    dataset = passes(number)
    for name, *arguments in stages:
        if name == "filter":
            dataset = dataset.filter(is_even)
        elif name == "interleave":
            dataset = dataset.interleave(some_passes, *arguments)
        elif name == "concatenate":
            dataset = dataset.concatenate(passes(*arguments))
        elif name == "zip":
            dataset = Dataset.zip(dataset, passes(*arguments)).map(add)
        elif name == "sample":
            others = [passes(other) for other in arguments]
            dataset = Dataset.sample_from_datasets([dataset, *others], seed=1)
        elif name == "batch":
            dataset = dataset.batch(*arguments).unbatch()
        elif name == "map":
            dataset = dataset.map(same, *arguments)
        else:
            dataset = getattr(dataset, name)(*arguments)
    return dataset.take(MOST)


def same(number):
    return number


def add(one, other):
    return one + other


def model(case, epoch="0"):
    """The elements of a pass; those of a shuffle and of ``sample`` in some order."""
    number, stages = case
    if not stages:
        first = 10 * number
        yield from range(first, first + size_of(number, epoch))
        return
    name, *arguments = stages[-1]

    def below(epoch=epoch):
        return model((number, stages[:-1]), epoch)

    if name == "repeat":
        for i in range(arguments[0]) if arguments[0] is not None else count():
            part = list(islice(below(f"{epoch}.{i}"), MOST))
            if not part and arguments[0] is None:
                return
            yield from part
    elif name == "filter":
        yield from filter(is_even, below())
    elif name == "zip":
        yield from map(add, below(), model((arguments[0], []), epoch))
    elif name in ("concatenate", "sample"):
        yield from below()
        for other in arguments:
            yield from model((other, []), epoch)
    elif name == "interleave":
        opened = [model((n % 5, []), f"{epoch}.{i}") for i, n in enumerate(islice(below(), MOST))]
        for one in opened:
            yield from one
    elif name == "cache":
        yield from below("cache")
    elif name in ("skip", "take", "shard"):
        first = arguments[0] if name == "skip" else arguments[1] if name == "shard" else 0
        last = arguments[0] if name == "take" else None
        yield from islice(below(), first, last, arguments[0] if name == "shard" else None)
    elif name == "batch" and arguments[1]:
        rows = below()
        while len(batch := list(islice(rows, arguments[0]))) == arguments[0]:
            yield from batch
    else:
        yield from below()


def draw(chance):
    """A random pipeline. What depends on the order of elements does not follow a stage whose order
    the model does not know."""
    stages, ordered, endless = [], True, False
    for _ in range(chance.randint(1, 6)):
        choices = [
            ["repeat", chance.randint(0, 6)],
            ["filter"],
            ["concatenate", chance.randrange(5)],
            ["prefetch", chance.randint(1, 3)],
            ["map", chance.choice([1, 2])],
        ]
        if ordered:
            choices += [
                ["skip", chance.randint(0, 3)],
                ["take", chance.randint(0, 9)],
                ["shard", 2, chance.randrange(2)],
                ["zip", chance.randrange(5)],
                ["batch", chance.randint(1, 3), chance.random() < 0.5],
            ]
        if ordered and not endless:
            choices.append(["interleave", chance.randint(1, 3), chance.randint(1, 2)])
        if not endless:
            choices += [
                ["repeat", None],
                ["shuffle", chance.choice([1, 2, 9]), 1],
                ["sample", chance.randrange(5)],
                ["cache"],
            ]
        stages.append(chance.choice(choices))
        ordered &= stages[-1][0] not in ("shuffle", "sample", "interleave")
        endless |= stages[-1] == ["repeat", None]
    return chance.randrange(5), stages


def is_ordered(case):
    return not {"shuffle", "sample", "interleave"} & {stage[0] for stage in case[1]}


def numbers(elements):
    return [int(np.int64(x)) for x in elements]
