"""Products of names, states and events: a part of them by day, all of them by night."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def diagonals(number: int, count: int, *factors: Iterable[Any]) -> list[Any]:
    """Arguments of parametrize: all combinations, of which one diagonal of so many is not slow.

    With no factor shorter than ``count``, it has every pair of values; several tests that take a
    diagonal each have every pair with a test.
    """
    rows = itertools.product(*map(enumerate, factors))
    return [
        pytest.param(
            *(value for _, value in row),
            marks=[pytest.mark.slow] * (sum(index for index, _ in row) % count != number),
        )
        for row in rows
    ]
