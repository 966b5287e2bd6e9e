"""How the values of a feature are distributed: a histogram, or the most frequent strings."""

from __future__ import annotations

from typing import Any, NamedTuple

from tfwire._base.arguments import plural, shorten, show_key
from tfwire._parsing.sample import Histogram, ValueSample

__all__ = ["Distribution", "distribution_of"]

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
        strings = [
            f"{shorten(show_key(value), _STRING_CHARACTERS)} {_percent(count, self.num_strings)}"
            for value, count in self.frequent[:_STRINGS_IN_CELL]
        ]
        more = self.distinct - len(strings)
        return ", ".join([*strings, *([plural(more, "other")] if more else [])])

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
