"""The figure of docs/growth.md: time and memory, a panel per axis, as SVG with plain text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

# Colours that can be distinguished without telling red from green (Okabe and Ito).
COLOURS = {
    "read": "#0072B2",
    "verify": "#000000",
    "index": "#E69F00",
    "parse": "#D55E00",
    "decode": "#CC79A7",
    "encode": "#56B4E9",
    "write": "#009E73",
}
WIDTH, LEFT, RIGHT = 252, 46, 14  # of a panel, with the room for its labels
HEIGHT, TOP, BOTTOM = 236, 30, 44
HEAD = 58  # title and legend
LEAST_MB = 0.1  # a logarithm needs one
SUPERSCRIPT = "⁰¹²³⁴⁵⁶⁷⁸⁹"


class Scale(NamedTuple):
    """A logarithmic axis: from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, number: float) -> float:
        part = math.log(number / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)


def draw(cells: Sequence[Any], units: dict[str, str]) -> str:
    """The figure.

    Args:
        cells: Of growth.py.
        units: For the name of an axis what its times are divided by.
    """
    axes = list(dict.fromkeys(cell.axis for cell in cells))
    width, height = WIDTH * len(axes) + 8, HEAD + 2 * HEIGHT + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="10">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        text(10, 20, "Time and memory by what grows; both scales logarithmic", "bold", size=13),
        *legend([name for name in COLOURS if any(c.operation == name for c in cells)]),
    ]
    measures = (
        (0, lambda cell: cell.wall, lambda axis: f"ns per {units[axis]}"),
        (
            1,
            lambda cell: max(cell.memory / 1e6, LEAST_MB),
            lambda axis: "peak memory, MB",
        ),
    )
    for row, value, title in measures:
        high = nice_above(max(value(cell) for cell in cells))
        low = nice_below(min(value(cell) for cell in cells))
        for column, axis in enumerate(axes):
            own = [cell for cell in cells if cell.axis == axis]
            x, y = column * WIDTH, HEAD + row * HEIGHT
            parts += panel(x, y, own, value, (low, high), axis, title(axis))
    return "\n".join([*parts, "</svg>", ""])


def nice_above(number: float) -> float:
    return float(10 ** math.ceil(math.log10(number) + 1e-9))


def nice_below(number: float) -> float:
    return float(10 ** math.floor(math.log10(number)))


def legend(names: list[str]) -> Iterator[str]:
    for i, name in enumerate(names):
        x = 14 + 84 * i
        yield line([(x, 40), (x + 22, 40)], COLOURS[name], 2)
        yield dot(x + 11, 40, COLOURS[name])
        yield text(x + 28, 43.5, name)


def panel(
    x: float,
    y: float,
    cells: list[Any],
    value: Any,
    limits: tuple[float, float],
    axis: str,
    title: str,
) -> Iterator[str]:
    """The lines of all operations over one axis."""
    points = sorted({cell.at for cell in cells})
    across = Scale(points[0], max(points[-1], points[0] * 2), x + LEFT, x + WIDTH - RIGHT)
    up = Scale(*limits, y + HEIGHT - BOTTOM, y + TOP)
    yield text(x + LEFT, y + TOP - 10, title, "bold")
    for tick in decades(*limits):
        yield line([(across.start, up(tick)), (across.end, up(tick))], "#dddddd", 0.7)
        yield text(across.start - 5, up(tick) + 3.5, f"{tick:,g}", anchor="end")
    for point in points:
        yield line([(across(point), up.start), (across(point), up.start + 4)], "#555555", 1)
        yield text(across(point), up.start + 16, power(point), anchor="middle")
    yield line([(across.start, up.start), (across.end, up.start)], "#555555", 1)
    yield text((across.start + across.end) / 2, up.start + 32, axis, anchor="middle")
    for name, colour in COLOURS.items():
        track = [(across(c.at), up(value(c))) for c in cells if c.operation == name]
        if track:
            yield line(track, colour, 1.6)
            yield from (dot(*at, colour) for at in track)


def decades(low: float, high: float) -> Iterator[float]:
    for exponent in range(round(math.log10(low)), round(math.log10(high)) + 1):
        yield 10.0**exponent


def power(number: int) -> str:
    """A large power of ten in superscript, anything else as it is."""
    digits = len(str(number)) - 1
    if number < 10_000 or number != 10**digits:
        return f"{number:,}"
    return f"10{SUPERSCRIPT[digits]}"


# ---- SVG --------------------------------------------------------------------------------------


def text(
    x: float, y: float, what: str, weight: str = "", anchor: str = "start", size: int = 10
) -> str:
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{bold} '
        f'fill="#222222">{what}</text>'
    )


def line(points: Iterable[tuple[float, float]], colour: str, width: float) -> str:
    pairs = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{pairs}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.8" fill="{colour}"/>'
