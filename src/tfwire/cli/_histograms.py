"""How the values of features are distributed: histograms for the terminal and for matplotlib."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

from tfwire._interface.contents import Histogram, ValueSample
from tfwire._interface.messages import shorten, show_key

_HISTOGRAM_PARTS = 16
_KEPT_STRINGS = 10
_STRINGS_IN_CELL = 3
_STRING_CHARACTERS = 16  # of a string
_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", "._-=+*%#"


class Distribution(NamedTuple):
    """How values are distributed.

    Attributes:
        histogram: Of the numbers, or of the lengths of strings in bytes.
        num_strings: How many strings there are.
        distinct: How many of them differ; None if they are numbers, or too long to be compared.
        frequent: The most frequent strings, and how often each occurs.
    """

    histogram: Histogram
    num_strings: int
    distinct: int | None
    frequent: list[tuple[bytes, int]]

    @property
    def repeated(self) -> bool:
        """Whether these are strings that occur again."""
        return self.distinct is not None and self.distinct < self.num_strings

    def as_text(self, encoding: str) -> str:
        """One cell of a table, in characters that an encoding has."""
        if self.distinct is None or (not self.repeated and self.num_strings > 1):
            bars = _BARS if _can_encode(encoding) else _ASCII_BARS
            counts = self.histogram.counts
            top = max(counts, default=1)
            text = "".join(" " if n == 0 else bars[(n * len(bars) - 1) // top] for n in counts)
            return text if self.distinct is None else f"{text} all different".lstrip()
        strings = ", ".join(
            f"{shorten(show_key(value), _STRING_CHARACTERS)} {_percent(count, self.num_strings)}"
            for value, count in self.frequent[:_STRINGS_IN_CELL]
        )
        all_shown = self.distinct <= _STRINGS_IN_CELL
        return strings if all_shown else f"{self.distinct:,} different: {strings}"

    def as_json(self) -> dict[str, Any]:
        """The same for JSON; what is not there is left out."""
        found: dict[str, Any] = {}
        if self.histogram.counts:
            found["histogram"] = self.histogram._asdict()
        if self.distinct is not None:
            found["distinct"] = self.distinct
            found["frequent"] = [
                {"value": value.decode("utf-8", "surrogateescape"), "count": count}
                for value, count in self.frequent
            ]
        return found


def distribution_of(sample: ValueSample) -> Distribution:
    """The distribution of the values of a sample."""
    histogram, num_strings = sample.histogram(_HISTOGRAM_PARTS), len(sample.lengths)
    if not num_strings or not sample.all_short:
        return Distribution(histogram, num_strings, None, [])
    frequent = sample.strings.most_common(_KEPT_STRINGS)
    return Distribution(histogram, num_strings, len(sample.strings), frequent)


def _can_encode(encoding: str) -> bool:
    try:
        return bool(_BARS.encode(encoding))
    except (UnicodeEncodeError, LookupError):
        return False


def _percent(count: int, total: int) -> str:
    share = 100 * count / total
    return f"{share:.0f} %" if share >= 1 else "<1 %"


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
