"""Saved states of iterators with random edits: each is refused, or the iterator gives something.

As a program, it searches for so many seconds and prints how many states were refused and taken::

    PYTHONPATH=src:tests python -m helpers.data.edited_states SEED SECONDS
"""

from __future__ import annotations

import copy
import itertools
import json
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from itertools import islice

import tfwire as tfw
from helpers.data.files import NumberedFiles
from helpers.data.named_pipelines import PIPELINES
from helpers.search import cases

SIZES = (40, 0, 7, 25, 1)
MOST = 400  # elements that are drawn after a state was taken
NUMBERS = [-1, 0, 1, 2, 3, 7, 255, 256, 257, 1023, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63]
NUMBERS += [10**25, -(2**63), -(10**25), True, False, 0.5, 1e300, float("nan")]
WRONG = [*NUMBERS, None, "", "1", "end", "x" * 99, [], {}, [0], [[]], {"": 0}, [0, 0, 0, 0]]
WRONG += [[[0, 0, 0, 0]] * 2, b"x", (), object]


def edited(value, chance):
    """A value with one or a few of its parts replaced, removed, added or exchanged."""
    value = copy.deepcopy(value)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        value = edited_once(value, chance)
    return value


def edited_once(value, chance):
    inner = isinstance(value, (list, dict)) and value
    if inner and chance.random() < 0.9:
        key = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
        kind = chance.randrange(12)
        if kind == 0:
            del value[key]
        elif kind == 1 and isinstance(value, list):
            value.append(copy.copy(value[key]))
        elif kind == 2 and isinstance(value, list):
            chance.shuffle(value)
        else:
            value[key] = edited_once(value[key], chance)
        return value
    if type(value) is int and chance.random() < 0.5:
        return value + chance.choice([-100, -1, 1, 2, 10, 1000, 10**6, 2**40])
    if chance.random() < 0.02:
        return nested(chance.choice([10, 10_000]))
    return copy.deepcopy(chance.choice(WRONG))  # another edit may change it


def nested(depth):
    found: list = []
    for _ in range(depth):
        found = [found]
    return found


def check(name, files, chance):
    """Whether an edited state is taken. Then what comes is elements, an error of the data or
    ValueError."""
    dataset = PIPELINES[name](files)
    elements = iter(dataset)
    for _ in islice(elements, chance.choice([0, 1, 5, 20, 60, 150])):
        pass
    state = json.loads(json.dumps(elements.state_dict()))
    elements.close()
    resumed = iter(dataset)
    try:
        return taken(resumed, edited(state, chance))
    finally:
        resumed.close()


def taken(elements, state):
    """Whether a state can be loaded. The elements after it are drawn then."""
    try:
        elements.load_state_dict(state)
    except (ValueError, tfw.DataLossError):
        return False
    with suppress(ValueError, tfw.DataLossError):
        for _ in islice(elements, MOST):
            pass
    return True


def search(seed, seconds, least=0):
    """The numbers of states that were refused and taken."""
    counts, names = {False: 0, True: 0}, itertools.cycle(sorted(PIPELINES))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        files = NumberedFiles(folder, SIZES)
        for (case, chance), name in zip(cases(seed, seconds, least), names, strict=False):
            before = time.monotonic()
            try:
                counts[check(name, files, chance)] += 1
            except Exception as error:
                raise AssertionError(f"case {case}: {name}") from error
            assert time.monotonic() - before < 60, f"case {case}: {name} is slow"
    return counts[False], counts[True]


if __name__ == "__main__":
    print(*search(sys.argv[1], float(sys.argv[2])))
