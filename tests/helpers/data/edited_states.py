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

import numpy as np

import tfwire as tfw
import tfwire.compat as tf
from helpers.data.files import SPEC, NumberedFiles
from helpers.search import cases
from tfwire import Dataset, TFRecordDataset

SIZES = (40, 0, 7, 25, 1)
MOST = 400  # elements that are drawn after a state was taken
NUMBERS = [-1, 0, 1, 2, 3, 7, 255, 256, 257, 1023, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63]
NUMBERS += [10**25, -(2**63), -(10**25), True, False, 0.5, 1e300, float("nan")]
WRONG = [*NUMBERS, None, "", "1", "end", "x" * 99, [], {}, [0], [[]], {"": 0}, [0, 0, 0, 0]]
WRONG += [[[0, 0, 0, 0]] * 2, b"x", (), object]


PIPELINES = {
    "files": lambda files: TFRecordDataset(files.plain),
    "gzip": lambda files: TFRecordDataset(files.gzip, "GZIP"),
    "skipping": lambda files: TFRecordDataset(files.plain, on_corrupt="skip"),
    "in turn": lambda files: TFRecordDataset(files.plain, num_parallel_reads=3),
    "all in turn": lambda files: TFRecordDataset(files.plain, num_parallel_reads=9).batch(3),
    "indexed": lambda files: TFRecordDataset(files.plain, indexed=True),
    "by number": lambda files: TFRecordDataset(files.plain, indexed=True).shuffle(99, 1),
    "parsed": lambda files: TFRecordDataset(files.plain).batch(4).parse_example(SPEC),
    "packed": lambda files: (
        TFRecordDataset(files.plain).shuffle(9, 1).repeat().batch(4).parse_example(SPEC)
    ),
    "by threads": lambda files: (
        TFRecordDataset(files.plain).shuffle(9, 1).batch(4).parse_example(SPEC, num_threads=2)
    ),
    "one by one": lambda files: TFRecordDataset(files.plain).parse_example(SPEC).batch(4),
    "shuffled": lambda files: TFRecordDataset(files.plain).shuffle(9, 1).repeat(2),
    "endless": lambda files: Dataset.range(30).repeat().shuffle(9, 1).batch(2),
    "shuffled twice": lambda files: Dataset.range(73).shuffle(5, 1).shuffle(7, 2),
    "thresholds": lambda files: Dataset.range(73).shuffle_batch(3, 20, 10, 1),
    "arrays": lambda files: Dataset.from_tensor_slices({"n": np.arange(73)}).prefetch(2),
    "generator": lambda files: Dataset.from_generator(lambda: range(73)).take(50).repeat(2),
    "shard": lambda files: TFRecordDataset(files.plain).shard(3, 1).skip(2).take(9),
    "source shard": lambda files: TFRecordDataset(files.plain, indexed=True).shard_source(
        3, 2, "pad"
    ),
    "mapped": lambda files: Dataset.range(73).map(abs).filter(bool).batch(5).prefetch(1),
    "zip": lambda files: Dataset.zip(
        Dataset.range(50).shuffle(9, 3).prefetch(1), TFRecordDataset(files.plain)
    ).repeat(2),
    "window": lambda files: tf.data.Dataset.range(73).window(4, 2).flat_map(lambda w: w),
    "grouped": lambda files: (
        tf.data.TFRecordDataset(files.plain)
        .shuffle(9, 2)
        .enumerate()
        .group_by_window(lambda i, r: i % 3, lambda k, w: w.batch(4), 4)
    ),
}


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
