"""Histograms of numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Histogram(NamedTuple):
    """How numbers are distributed; NaN and infinities are left out.

    Attributes:
        low, high: The smallest and the largest; 0 without any.
        counts: How many lie in each of equal parts between them; empty if there is one value only.
    """

    low: float
    high: float
    counts: list[int]


def histogram(values: np.ndarray[Any, Any], parts: int) -> Histogram:
    """The histogram of an array of numbers."""
    values = values[np.isfinite(values)]
    if not len(values):
        return Histogram(0, 0, [])
    low, high = values.min(), values.max()
    # From the smallest: large integers that lie close together differ exactly.
    if values.dtype == np.int64:
        distances = (values.view(np.uint64) - low.view(np.uint64)).astype(float)
    else:
        distances = values.astype(float) - float(low)
    span = float(distances.max())
    counts = np.histogram(distances, parts, (0, span))[0].tolist() if span else []
    return Histogram(low.item(), high.item(), counts)
