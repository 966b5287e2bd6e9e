"""Shapes of values, and the steps of an episode: as described, or as a record shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire.view._records import FeatureName, Record

_STEPS = "steps/"  # RLDS: features of all steps in a row


def shape_of(record: Record, name: FeatureName) -> tuple[int, ...]:
    """The shape of a feature whose values have two dimensions or more; empty for others."""
    if not (name.is_list or name.text in record.described or name.text.startswith(_STEPS)):
        return ()
    steps = record.steps(name)
    if not steps or name in record.cuts:
        return ()
    if name.is_list:
        lengths = {len(values) for values in steps}
        shape = (len(steps), *lengths) if len(lengths) == 1 and max(lengths) > 1 else ()
    else:
        size = len(steps[0])
        described = record.described.get(name.text)
        shape = described.shape_of(size) if described is not None else ()
        if not shape and name.text.startswith(_STEPS):
            count = _num_flat_steps(record)
            shape = (count, size // count) if count and size > count and not size % count else ()
    return shape if len(shape) > 1 else ()


def _num_flat_steps(record: Record) -> int:
    """How many steps an episode of RLDS has: most features have one value of each."""
    lengths = Counter(
        len(values)
        for name, values in record.features.items()
        if name.startswith(_STEPS) and (name, False) not in record.cuts and len(values) > 1
    )
    return min(lengths, key=lambda length: (-lengths[length], length), default=0)


def episode_of(record: Record) -> dict[FeatureName, Sequence[Any]]:
    """The features of the steps of an episode, and for each step its values; those of an Example
    are of RLDS. Empty if there are not at least two steps."""
    found: dict[FeatureName, Sequence[Any]] = {}
    lengths = Counter(len(steps) for steps in record.lists.values() if len(steps) > 1)
    if lengths:
        count = min(lengths, key=lambda length: (-lengths[length], length))
        lists = ((FeatureName(name, True), steps) for name, steps in record.lists.items())
        return {name: steps for name, steps in lists if len(steps) == count}
    count = _num_flat_steps(record)
    for text, values in record.features.items():
        name = FeatureName(text)
        if count and text.startswith(_STEPS) and len(values) and not len(values) % count:
            width = len(values) // count
            found[name] = [values[i : i + width] for i in range(0, len(values), width)]
    return found


def is_repeated(values: Any) -> bool:
    """Whether a list has one value several times, as that of the instructions of an episode."""
    if not isinstance(values, list) or len(values) < 2 or isinstance(values[0], np.ndarray):
        return False
    first = values[0]
    return len(first) > 0 and all(type(v) is type(first) and v == first for v in values)
