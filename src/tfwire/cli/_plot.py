"""The distributions of features as one figure, by matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from io import BytesIO
from typing import Any

from tfwire._base.arguments import show_key
from tfwire.cli._distribution import Distribution

__all__ = ["ENDINGS", "draw_distributions", "find_matplotlib"]

ENDINGS = (".png", ".svg", ".pdf")
_COLUMNS = 4
_MOST_PLOTS = 60
_LONGEST_TITLE = 28  # characters


def draw_distributions(distributions: Mapping[str, Distribution], title: str, ending: str) -> bytes:
    """A figure with a plot for each feature.

    Args:
        distributions: By the name to show.
        title: Of the figure.
        ending: One of ENDINGS.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure_class = find_matplotlib()
    shown = [item for item in distributions.items() if item[1].histogram.counts or item[1].repeated]
    left_out, shown = len(shown) - _MOST_PLOTS, shown[:_MOST_PLOTS]
    rows = max(1, -(-len(shown) // _COLUMNS))
    figure = figure_class(figsize=(3.2 * _COLUMNS, 2.2 * rows + 0.6), layout="constrained")
    if left_out > 0:
        title += f" ({left_out:,} more not drawn)"
    figure.suptitle(_plain(title), fontsize=11)
    for i, (name, distribution) in enumerate(shown):
        _draw_one(figure.add_subplot(rows, _COLUMNS, i + 1), name, distribution)
    out = BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of characters that the font does not have
        figure.savefig(out, format=ending.removeprefix("."), dpi=120, metadata=_no_date(ending))
    return out.getvalue()


def find_matplotlib() -> Any:
    """matplotlib's class of figures; raises ImportError if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install 'tfwire[plot]'") from error
    return Figure


def _draw_one(axes: Any, name: str, distribution: Distribution) -> None:
    axes.set_title(_plain(show_key(name), _LONGEST_TITLE), fontsize=9)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    if distribution.repeated:
        names = [_plain(show_key(value), 14) for value, _ in distribution.frequent]
        places = range(len(names))
        axes.barh(places, [count for _, count in distribution.frequent], color="tab:green")
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        return
    low, high, counts = distribution.histogram
    width = (high - low) / max(1, len(counts))
    color = "tab:orange" if distribution.num_strings else "tab:blue"
    axes.locator_params(axis="x", nbins=5)
    axes.bar(
        [low + i * width for i in range(len(counts))], counts, width, align="edge", color=color
    )
    if distribution.num_strings:
        axes.set_xlabel("length in bytes", fontsize=7)


def _plain(text: str, longest: int = 200) -> str:
    """Text in which matplotlib sees no mathematics."""
    return (text if len(text) <= longest else f"{text[: longest - 3]}...").replace("$", r"\$")


def _no_date(ending: str) -> dict[str, None]:
    """The same values give the same file."""
    return {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
