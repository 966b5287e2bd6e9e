"""tfwire stats: the features of all records of files, and the ranges of their values."""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from collections.abc import Mapping
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._interface.messages import plural, shorten, show_key, show_path
from tfwire.cli import _arguments
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire._interface.contents import (
        FeatureSurvey,
        Histogram,
        KindSurvey,
        SampledFeatures,
        ValueSample,
    )


_SHOWN_FEATURES = 1000
_TITLES = ("feature", "kind", "records", "values", "min", "mean", "max", "")


def add_stats(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire stats."""
    _arguments.add_shared(parser, "files", "--compression", "--json", "--force")
    parser.add_argument(
        "--plot",
        metavar="OUT",
        help="also draw the distributions: a file .png, .svg or .pdf; needs matplotlib",
    )
    parser.epilog = (
        "Every record of all files is read, and verified. The records of a feature are those that "
        "have it, also without values; one whose values are of several kinds has a row for each. "
        "Of strings, min, mean and max are lengths in bytes. A feature list is shown as NAME[], "
        "with the numbers of steps and of values in a step. Distributions are those of up to "
        "1,000 records drawn at random: a histogram from the smallest to the largest value, or "
        "the most frequent strings and how many of these records' strings are different. Damaged "
        "records are left out and reported on stderr; the exit status is then 1, as when a record "
        "is not an Example."
    )
    parser.set_defaults(run=_stats, in_turn=True)


class _Found:
    """What records hold: a survey of all, and a sample of their values."""

    def __init__(self) -> None:
        from tfwire._interface.contents import RecordSample, Survey

        self.survey, self.sample = Survey(), RecordSample()

    def add(self, batch: Any, path: Any) -> None:
        """Adds the records of a ``tfw_batch``; raises ParseError at one that is no Example."""
        before = self.survey.num_records
        try:
            self.survey.add(batch, path)
        finally:
            self.sample.add(batch, self.survey.num_records - before)

    @cached_property
    def _sampled(self) -> SampledFeatures:
        """Read when all records were added."""
        return self.sample.features()

    def distributions(self, name: str, is_list: bool) -> dict[str, _Distribution]:
        """The distributions of a feature's values, by kind."""
        samples = self._sampled.of(name, is_list=is_list)
        return {kind: _distribution_of(values) for kind, values in samples.items()}


def _stats(options: argparse.Namespace) -> int:
    _arguments.check_stdin(options.files)
    _check_plot(options)
    found, progress = _Found(), Progress(sum(map(_arguments.file_size, options.files)))

    def read(name: str) -> int:
        return _read(name, options, found, progress)

    status = _arguments.for_each_file(options, read, progress)
    if found.survey.num_records == 0 and status:
        return status
    if options.plot is not None:
        _plot(found, options)
    if options.json:
        _arguments.print_json(_as_json(found))
    else:
        _print(found, options.files)
    return status


def _check_plot(options: argparse.Namespace) -> None:
    """Checks that the plot can be drawn, before anything is read."""
    if options.plot is None:
        if options.force:
            raise _arguments.UsageError("--force needs --plot")
        return
    if not options.plot.endswith(_PLOT_ENDINGS):
        raise _arguments.UsageError("--plot OUT must end in .png, .svg or .pdf")
    _find_matplotlib()
    _arguments.check_output(options.plot, options.files, options.force)


def _plot(found: _Found, options: argparse.Namespace) -> None:
    from tfwire._interface.new_files import replace_file

    distributions = {
        f"{name}{'[]' * is_list}": distribution
        for is_list in (False, True)
        for name in found.survey.features(lists=is_list)
        for distribution in found.distributions(name, is_list).values()
    }
    drawn, total = len(found.sample), found.survey.num_records
    title = f"{_shown_files(options.files)}: {drawn:,} of {plural(total, 'record')}"
    ending = options.plot[options.plot.rindex(".") :]
    replace_file(options.plot, [_draw_distributions(distributions, title, ending)])


def _read(name: str, options: argparse.Namespace, found: _Found, progress: Progress) -> int:
    """Adds the records of a file; returns the exit status."""
    from tfwire import TfwireWarning
    from tfwire._interface.contents import BatchReader
    from tfwire._interface.damage import damage_hint
    from tfwire._interface.files import make_options

    before = found.survey.num_records
    options_of_file = make_options(options.compression, on_corrupt="skip", max_record_size=None)
    reader = BatchReader([_arguments.input_file(name)], options_of_file)
    with warnings.catch_warnings(), reader:
        warnings.simplefilter("ignore", TfwireWarning)  # complain_of_damage says it
        while (batch := reader.next()) is not None:
            found.add(batch, reader.path)
            progress.update(name, reader.position.offset)
    progress.clear()
    regions, hint = reader.skipped, None
    if regions and found.survey.num_records == before and name != "-":
        hint = damage_hint(name, options.compression)
    _arguments.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


# ---- As text ----------------------------------------------------------------------------------
def _shown_files(files: list[str]) -> str:
    return show_path(files[0]) if len(files) == 1 else plural(len(files), "file")


def _print(found: _Found, files: list[str]) -> None:
    survey = found.survey
    size = plural(survey.payload_bytes, "byte")
    shortest, longest = survey.lengths
    mean = survey.payload_bytes / max(1, survey.num_records)
    print(
        f"{_shown_files(files)}: {plural(survey.num_records, 'record')} of {size}: "
        f"{shortest:,} to {longest:,}, mean {mean:,.1f}"
    )
    features = [
        (name, is_list, feature)
        for is_list in (False, True)
        for name, feature in survey.features(lists=is_list).items()
    ]
    if not features:
        return
    rows = [
        row
        for name, is_list, feature in features[:_SHOWN_FEATURES]
        for row in _rows(name, is_list, feature, found)
    ]
    drawn = plural(len(found.sample), "record")
    shown = [(*_TITLES, f"distribution of {drawn}"), *rows[:_SHOWN_FEATURES]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for name, kind, *numbers, distribution in shown:
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[2:-1], strict=True)]
        line = [f"{name:{widths[0]}}", f"{kind:{widths[1]}}", *cells, distribution]
        print("  ".join(line).rstrip())
    num_rows = sum(len(_presence(feature)) for _, _, feature in features)
    _arguments.print_more(num_rows, len(shown) - 1, "row")


def _rows(name: str, is_list: bool, feature: FeatureSurvey, found: _Found) -> list[tuple[str, ...]]:
    """A row for each kind."""
    title, num_records = show_key(name) + "[]" * is_list, found.survey.num_records
    counts = _range(feature.min_count, feature.max_count)
    if feature.max_steps is not None:
        counts = f"{_range(feature.min_steps, feature.max_steps)} of {counts}"
    encoding = sys.stdout.encoding or "ascii"  # io.StringIO has none
    distributions = found.distributions(name, is_list)
    rows = []
    for kind, records in _presence(feature).items():
        seen = feature.kinds.get(kind)
        numbers = [""] * 4 if seen is None else _numbers(kind, seen)
        drawn = distributions[kind].as_text(encoding) if kind in distributions else ""
        rows.append((title, kind, _share(records, num_records), counts, *numbers, drawn))
    return rows


def _presence(feature: FeatureSurvey) -> dict[str, int]:
    """How many records have a feature, by kind. Empty ones that say no kind count as those of the
    only kind, or else apart."""
    if len(feature.kinds) < 2:
        return dict.fromkeys(feature.kinds or ["empty"], feature.records)
    found = {kind: seen.records for kind, seen in feature.kinds.items()}
    return {**found, "empty": feature.kindless} if feature.kindless else found


def _numbers(kind: str, seen: KindSurvey) -> tuple[str, ...]:
    notes = f"{seen.nans:,} NaN" if seen.nans else ""
    if seen.min is None or seen.max is None:
        return ("", "", "", notes)
    mean = _mean(seen)
    if kind == "string":
        return (f"{seen.min:,} B", f"{mean:,.1f} B", f"{seen.max:,} B", notes)
    return (_number(seen.min), _number(mean), _number(seen.max), notes)


def _mean(seen: KindSurvey) -> float | None:
    count = seen.values - seen.nans
    return seen.sum / count if count else None


def _number(value: float | None) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if value is None else f"{value:.6g}"


def _range(least: int | None, most: int | None) -> str:
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _share(count: int, total: int) -> str:
    return f"{count:,} ({_percent(count, total)})"


def _percent(count: int, total: int) -> str:
    """Rounded, but 0 % and 100 % are exact."""
    share = 100 * count / total
    return f"{min(99, max(1, round(share))) if count < total else 100} %"


# ---- As JSON ----------------------------------------------------------------------------------
def _as_json(found: _Found) -> dict[str, Any]:
    survey = found.survey
    shortest, longest = survey.lengths
    features, lists = (
        {
            name: _feature_json(feature, found.distributions(name, is_list))
            for name, feature in survey.features(lists=is_list).items()
        }
        for is_list in (False, True)
    )
    return {
        "records": survey.num_records,
        "payload_bytes": survey.payload_bytes,
        "shortest": shortest,
        "longest": longest,
        "sampled": len(found.sample),
        "features": features,
        "feature_lists": lists,
    }


def _feature_json(
    feature: FeatureSurvey, distributions: dict[str, _Distribution]
) -> dict[str, Any]:
    found = feature._asdict()
    found["untyped"] = found.pop("kindless")
    if feature.max_steps is None:
        del found["min_steps"], found["max_steps"]
    found["kinds"] = {
        kind: {
            key: _finite(value) for key, value in {**seen._asdict(), "mean": _mean(seen)}.items()
        }
        for kind, seen in feature.kinds.items()
    }
    for kind, distribution in distributions.items():
        found["kinds"][kind].update(distribution.as_json())
    return found


def _finite(value: float | None) -> float | str | None:
    """JSON has no infinity: as protobuf's, a string."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


# ---- How values are distributed -----------------------------------------------------------------


_HISTOGRAM_PARTS = 16
_KEPT_STRINGS = 10
_STRINGS_IN_CELL = 3
_STRING_CHARACTERS = 16  # of a string
_BYTES_CHARACTERS = 24  # of one that is no text
_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", "._-=+*%#"


class _Distribution(NamedTuple):
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
            f"{_shown_string(value)} {_about(count, self.num_strings)}"
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
            from tfwire.cli._printing.cells import json_string

            found["distinct"] = self.distinct
            found["frequent"] = [
                {"value": json_string(value), "count": count} for value, count in self.frequent
            ]
        return found


def _distribution_of(sample: ValueSample) -> _Distribution:
    """The distribution of the values of a sample."""
    histogram, num_strings = sample.histogram(_HISTOGRAM_PARTS), len(sample.lengths)
    if not num_strings or not sample.all_short:
        return _Distribution(histogram, num_strings, None, [])
    frequent = sample.strings.most_common(_KEPT_STRINGS)
    return _Distribution(histogram, num_strings, len(sample.strings), frequent)


def _can_encode(encoding: str) -> bool:
    try:
        return bool(_BARS.encode(encoding))
    except (UnicodeEncodeError, LookupError):
        return False


def _shown_string(value: bytes) -> str:
    """Text, shortened; of other strings what they are, as in the table of records."""
    from tfwire.cli._printing.cells import json_string, string_text

    if not isinstance(json_string(value), str):
        return shorten(string_text(value, False), _BYTES_CHARACTERS)
    return shorten(show_key(value), _STRING_CHARACTERS)


def _about(count: int, total: int) -> str:
    share = 100 * count / total
    return f"{share:.0f} %" if share >= 1 else "<1 %"


_PLOT_ENDINGS = (".png", ".svg", ".pdf")
_COLUMNS = 4
_MOST_PLOTS = 60
_LONGEST_TITLE = 28  # characters


def _draw_distributions(
    distributions: Mapping[str, _Distribution], title: str, ending: str
) -> bytes:
    """A figure with a plot for each feature.

    Args:
        distributions: By the name to show.
        title: Of the figure.
        ending: One of _PLOT_ENDINGS.

    Raises:
        ImportError: matplotlib is not installed.
    """
    figure_class = _find_matplotlib()
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


def _find_matplotlib() -> Any:
    """matplotlib's class of figures; raises ImportError if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install 'tfwire[plot]'") from error
    return Figure


def _draw_one(axes: Any, name: str, distribution: _Distribution) -> None:
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
