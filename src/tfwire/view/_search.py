"""The search: which records have a feature with a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfwire.view._html import readable_text
from tfwire.view._records import FeatureName, Record


def search_for(name: FeatureName | None, text: str) -> Callable[[Record], bool] | None:
    """Whether a record has a feature, and ``text`` in it; None if nothing is searched for.

    Args:
        name: A feature, or a feature list, of which one step is enough; None: any of them.
        text: A number that equals one of the values, or part of one of the strings. Without a
            name, images and other strings that are not text are left out: short texts occur in
            them by chance.
    """
    if name is None and not text:
        return None
    part = text.encode("utf-8", "surrogateescape")

    def matches(record: Record) -> bool:
        names = record.names if name is None else [name]
        steps = (values for each in names for values in record.steps(each) or ())
        if not text:
            return name is not None and record.steps(name) is not None
        return any(_has(values, text, part, name is None) for values in steps)

    return matches


def _has(values: Any, text: str, part: bytes, only_text: bool) -> bool:
    if isinstance(values, np.ndarray) and values.dtype != object:
        try:
            wanted = _integer_of(text) if values.dtype == np.int64 else np.float32(text)
        except (ValueError, OverflowError):
            return False
        return bool(np.any(values == wanted))
    return any(
        part in value and not (only_text and readable_text(value) is None) for value in values
    )


def _integer_of(text: str) -> int:
    """An integer, exactly; also one that is written like 1e3."""
    try:
        number = int(text)
    except ValueError:
        if not float(text).is_integer():
            raise
        number = int(float(text))
    return int(np.int64(number))  # an OverflowError if no int64 is equal
