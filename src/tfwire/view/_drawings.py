"""Histograms, shares and lines as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tfwire._interface.contents import histogram
from tfwire.view._html import Html, element

BINS = 24
_POINTS_OF_LINE = 400  # of a line
_HEIGHT = 100


def counts_of(values: np.ndarray[Any, Any], bins: int = BINS) -> tuple[float, float, list[int]]:
    """The smallest and largest finite value, and how many are in each part between them; of a few
    integers one after the other, a part for each."""
    low, high, counts = histogram(values, bins)
    if counts and values.dtype == np.int64 and high - low < bins:
        counts = np.bincount(values - int(low)).tolist()
    return low, high, counts


def bars(counts: list[int], said: object = "") -> Html:
    """A histogram as a picture; nothing if there is one value only.

    Args:
        said: What it shows, for those who do not see it; nothing if that stands beside it.
    """
    if not counts:
        return Html()
    top, step = max(counts), BINS * 5 / len(counts)
    path = "".join(
        f"M{i * step:g} 30v-{30 * n / top:.1f}h{step - 1:g}V30z" for i, n in enumerate(counts) if n
    )
    return _drawing("h", f"0 0 {BINS * 5} 30", element("path", d=path), said)


def share_bar(part: float) -> Html:
    """A part of a whole as a bar."""
    return _drawing("w", "0 0 100 8", element("rect", width=f"{100 * part:.1f}", height=8), "")


def line_plot(steps: np.ndarray[Any, Any], low: float, high: float, said: object) -> Html:
    """A line for each column of an array, and one that marks the step that is shown.

    Args:
        low, high: The smallest and the largest finite value.
    """
    count, scale = len(steps), _HEIGHT / (high - low or 1)
    numbers = np.linspace(0, count - 1, min(count, _POINTS_OF_LINE), dtype=np.int64)
    found = [
        element("path", d="".join(_line(numbers, high, scale, column)), class_=f"l{i}")
        for i, column in enumerate(steps[numbers].astype(np.float64).T)
    ]
    now = element("line", class_="now", x1=0, x2=0, y1=0, y2=_HEIGHT)
    return _drawing("plot", f"0 0 {count - 1} {_HEIGHT}", [*found, now], said, whole=True)


def _line(numbers: Any, high: float, scale: float, column: Any) -> Iterator[str]:
    """The commands of a path; a value that is not finite leaves a gap."""
    word = "M"
    for x, value in zip(numbers.tolist(), column.tolist(), strict=True):
        if not np.isfinite(value):
            word = "M"
            continue
        yield f"{word}{x} {(high - value) * scale:.1f}"
        word = "L"


def _drawing(
    class_: str, view_box: str, content: object, said: object, *, whole: bool = False
) -> Html:
    attributes: dict[str, object] = {"class_": class_, "viewBox": view_box}
    attributes |= {"preserveAspectRatio": "none"} if whole else {}
    attributes |= {"role": "img", "aria_label": said} if said else {"aria_hidden": "true"}
    return element("svg", content, **attributes)
