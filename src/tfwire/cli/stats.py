"""tfwire stats: the features of all records of files, and the ranges of their values."""

from __future__ import annotations

import argparse
import math
import warnings
from typing import TYPE_CHECKING, Any

from tfwire._base.arguments import plural, show_key, show_path
from tfwire.cli import _files
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire._parsing.survey import FeatureSurvey, KindSurvey, Survey

_SHOWN_FEATURES = 1000
_TITLES = ("feature", "kind", "records", "values", "min", "mean", "max", "")


def add_stats(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire stats."""
    _files.add_files(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.epilog = (
        "Every record of all files is read, and verified. Of strings, min, mean and max are "
        "lengths in bytes. A feature list is shown as NAME[], with the numbers of steps and of "
        "values in a step. Damaged records are left out and reported on stderr; the exit status is "
        "then 1, as where a record is not an Example."
    )
    parser.set_defaults(run=_stats)


def _stats(options: argparse.Namespace) -> int:
    from tfwire._parsing.survey import Survey

    if _files.stdin_twice(options, options.files):
        return 2
    survey, progress = Survey(), Progress(sum(map(_files.file_size, options.files)))
    status = int(_files.half_published(options, options.files))
    for name in options.files:
        try:
            status |= _read(name, options, survey, progress)
        except _files.FAULTS as error:
            status = 1
            progress.clear()
            _files.complain(options, _files.error_line(error, name))
    if survey.num_records == 0 and status:
        return status
    if options.json:
        _files.print_json(_as_json(survey))
    else:
        _print(survey, options.files)
    return status


def _read(name: str, options: argparse.Namespace, survey: Survey, progress: Progress) -> int:
    """Adds the records of a file; returns the exit status."""
    from tfwire._base.errors import TfwireWarning
    from tfwire._records.batch_reader import BatchReader
    from tfwire._records.verify import damage_hint

    before = survey.num_records
    compression = _files.chosen_compression(options)
    reader = BatchReader(
        [_files.input_file(name)], compression, on_corrupt="skip", max_record_size=None
    )
    with warnings.catch_warnings(), reader:
        warnings.simplefilter("ignore", TfwireWarning)  # complain_of_damage says it
        while (batch := reader.next()) is not None:
            survey.add(batch, reader.path)
            progress.update(name, reader.position.offset)
    progress.clear()
    regions, hint = reader.skipped, None
    if regions and survey.num_records == before and name != "-":
        hint = damage_hint(name, compression)
    _files.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


# ---- As text ----------------------------------------------------------------------------------
def _print(survey: Survey, files: list[str]) -> None:
    name = show_path(files[0]) if len(files) == 1 else plural(len(files), "file")
    size = plural(survey.payload_bytes, "byte")
    shortest, longest = survey.lengths
    mean = survey.payload_bytes / max(1, survey.num_records)
    print(
        f"{name}: {plural(survey.num_records, 'record')} of {size}: "
        f"{shortest:,} to {longest:,}, mean {mean:,.1f}"
    )
    rows = [
        row
        for lists in (False, True)
        for name, feature in survey.features(lists=lists).items()
        for row in _rows(show_key(name) + "[]" * lists, feature, survey.num_records)
    ]
    if not rows:
        return
    shown = [_TITLES, *rows[:_SHOWN_FEATURES]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        name, kind, *numbers = row
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[2:], strict=True)]
        print("  ".join([f"{name:{widths[0]}}", f"{kind:{widths[1]}}", *cells]).rstrip())
    _files.print_more(len(rows), len(shown) - 1, "row")


def _rows(name: str, feature: FeatureSurvey, num_records: int) -> list[tuple[str, ...]]:
    """A row for each kind; a feature without any kind has one too."""
    counts = _range(feature.min_count, feature.max_count)
    if feature.max_steps is not None:
        counts = f"{_range(feature.min_steps, feature.max_steps)} of {counts}"
    if not feature.kinds:
        return [(name, "no kind", _share(feature.records, num_records), counts, *[""] * 4)]
    return [
        (name, kind, _share(seen.records, num_records), counts, *_numbers(kind, seen))
        for kind, seen in feature.kinds.items()
    ]


def _numbers(kind: str, seen: KindSurvey) -> tuple[str, ...]:
    notes = f"{seen.nans:,} NaN" if seen.nans else ""
    if seen.min is None or seen.max is None:
        return ("", "", "", notes)
    mean = _mean(seen)
    unit = " B" if kind == "string" else ""
    return (_number(seen.min) + unit, _number(mean) + unit, _number(seen.max) + unit, notes)


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
def _as_json(survey: Survey) -> dict[str, Any]:
    shortest, longest = survey.lengths
    return {
        "records": survey.num_records,
        "payload_bytes": survey.payload_bytes,
        "shortest": shortest,
        "longest": longest,
        "features": {n: _feature_json(f) for n, f in survey.features().items()},
        "feature_lists": {n: _feature_json(f) for n, f in survey.features(lists=True).items()},
    }


def _feature_json(feature: FeatureSurvey) -> dict[str, Any]:
    found = feature._asdict()
    if feature.max_steps is None:
        del found["min_steps"], found["max_steps"]
    found["kinds"] = {
        kind: {
            key: _finite(value) for key, value in {**seen._asdict(), "mean": _mean(seen)}.items()
        }
        for kind, seen in feature.kinds.items()
    }
    return found


def _finite(value: float | None) -> float | str | None:
    """JSON has no infinity: as protobuf's, a string."""
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
