"""tfwire stats: the features of all records of files, and the ranges of their values."""

from __future__ import annotations

import argparse
import math
import sys
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, show_key, show_path
from tfwire.cli import _arguments
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire._interface.contents import FeatureSurvey, KindSurvey, SampledFeatures
    from tfwire.cli._histograms import Distribution

_SHOWN_FEATURES = 1000
_TITLES = ("feature", "kind", "records", "values", "min", "mean", "max", "")


def add_stats(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire stats."""
    _arguments.add_files(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument(
        "--plot",
        metavar="OUT",
        help="also draw the distributions: a file .png, .svg or .pdf; needs matplotlib",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.epilog = (
        "Every record of all files is read, and verified. The records of a feature are those that "
        "have it with this kind, also without values; --json counts those without a kind, too. Of "
        "strings, min, mean and max are "
        "lengths in bytes. A feature list is shown as NAME[], with the numbers of steps and of "
        "values in a step. Distributions are those of up to 1,000 records drawn at random: a "
        "histogram from the smallest to the largest value, or the most frequent strings and how "
        "many of these records' strings are different. Damaged records are left out and reported "
        "on stderr; the exit status is then 1, as when a record is not an Example."
    )
    parser.set_defaults(run=_stats)


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

    def distributions(self, name: str, is_list: bool) -> dict[str, Distribution]:
        """The distributions of a feature's values, by kind."""
        from tfwire.cli._histograms import distribution_of

        samples = self._sampled.of(name, is_list=is_list)
        return {kind: distribution_of(values) for kind, values in samples.items()}


def _stats(options: argparse.Namespace) -> int:
    if _arguments.stdin_twice(options, options.files):
        return 2
    problem = _problem_of_plot(options)
    if problem is not None:
        return _arguments.refuse(options, problem)
    found, progress = _Found(), Progress(sum(map(_arguments.file_size, options.files)))
    status = int(_arguments.half_published(options, options.files))
    for name in options.files:
        try:
            status |= _read(name, options, found, progress)
        except _arguments.FAULTS as error:
            status = 1
            progress.clear()
            _arguments.complain(options, _arguments.error_line(error, name))
    if found.survey.num_records == 0 and status:
        return status
    if options.plot is not None:
        _plot(found, options)
    if options.json:
        _arguments.print_json(_as_json(found))
    else:
        _print(found, options.files)
    return status


def _problem_of_plot(options: argparse.Namespace) -> str | None:
    """Why the plot cannot be drawn, before anything is read; None if it can."""
    if options.plot is None:
        return "--force needs --plot" if options.force else None
    from tfwire.cli._histograms import ENDINGS, find_matplotlib

    if not options.plot.endswith(ENDINGS):
        return "--plot OUT must end in .png, .svg or .pdf"
    find_matplotlib()
    options.output = options.plot
    return _arguments.problem_of_output(options, options.files, pattern=False)


def _plot(found: _Found, options: argparse.Namespace) -> None:
    from tfwire._interface.new_files import replace_file
    from tfwire.cli._histograms import draw_distributions

    distributions = {
        f"{name}{'[]' * is_list}": distribution
        for is_list in (False, True)
        for name in found.survey.features(lists=is_list)
        for distribution in found.distributions(name, is_list).values()
    }
    drawn, total = len(found.sample), found.survey.num_records
    title = f"{_shown_files(options.files)}: {drawn:,} of {plural(total, 'record')}"
    ending = options.plot[options.plot.rindex(".") :]
    replace_file(options.plot, [draw_distributions(distributions, title, ending)])


def _read(name: str, options: argparse.Namespace, found: _Found, progress: Progress) -> int:
    """Adds the records of a file; returns the exit status."""
    from tfwire import TfwireWarning
    from tfwire._interface.contents import BatchReader
    from tfwire._interface.files import damage_hint

    before = found.survey.num_records
    compression = _arguments.chosen_compression(options)
    reader = BatchReader(
        [_arguments.input_file(name)], compression, on_corrupt="skip", max_record_size=None
    )
    with warnings.catch_warnings(), reader:
        warnings.simplefilter("ignore", TfwireWarning)  # complain_of_damage says it
        while (batch := reader.next()) is not None:
            found.add(batch, reader.path)
            progress.update(name, reader.position.offset)
    progress.clear()
    regions, hint = reader.skipped, None
    if regions and found.survey.num_records == before and name != "-":
        hint = damage_hint(name, compression)
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
    num_rows = sum(max(1, len(feature.kinds)) for _, _, feature in features)
    _arguments.print_more(num_rows, len(shown) - 1, "row")


def _rows(name: str, is_list: bool, feature: FeatureSurvey, found: _Found) -> list[tuple[str, ...]]:
    """A row for each kind; a feature without any kind has one too."""
    title, num_records = show_key(name) + "[]" * is_list, found.survey.num_records
    counts = _range(feature.min_count, feature.max_count)
    if feature.max_steps is not None:
        counts = f"{_range(feature.min_steps, feature.max_steps)} of {counts}"
    if not feature.kinds:
        return [(title, "no kind", _share(feature.records, num_records), counts, *[""] * 5)]
    encoding = sys.stdout.encoding or "ascii"  # io.StringIO has none
    distributions = found.distributions(name, is_list)
    return [
        (
            title,
            kind,
            _share(seen.records, num_records),
            counts,
            *_numbers(kind, seen),
            distributions[kind].as_text(encoding) if kind in distributions else "",
        )
        for kind, seen in feature.kinds.items()
    ]


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


def _feature_json(feature: FeatureSurvey, distributions: dict[str, Distribution]) -> dict[str, Any]:
    found = feature._asdict()
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
