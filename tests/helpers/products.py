"""Products of names, states and events: a part of them by day, all of them by night; many cases in
one test."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
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


def rotated(number: int, first: Iterable[Any], second: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Every item of the first with one of the second: over all numbers, with each of them."""
    for index, item in enumerate(first, number):
        yield item, second[index % len(second)]


def check_each(check: Callable[..., None], cases: Iterable[Any]) -> None:
    """Checks every case, and fails with all that fail: a tuple is the arguments of ``check``."""
    problems = []
    for case in cases:
        try:
            check(*case) if isinstance(case, tuple) else check(case)
        except (Exception, pytest.fail.Exception) as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            problems.append(f"{case!r:.200}: {frame.name}:{frame.lineno}: {error!r:.2000}")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
