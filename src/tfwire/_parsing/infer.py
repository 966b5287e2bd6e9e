"""infer_schema: a specification that parses given files, from their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfwire._base.aliases import DetectedCompressionType, Input, OnCorrupt, StorageOptions
from tfwire._base.arguments import integer
from tfwire._base.errors import public, warn
from tfwire._base.text import html_of, plural, quoted, show_path
from tfwire._parsing.features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    to_dtype,
)
from tfwire._parsing.survey import FeatureSurvey, Survey, survey_files
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import input_paths
from tfwire._records.files.paths import is_path
from tfwire._records.reading.damage import display_name


class FeatureStatistics(NamedTuple):
    """Statistics of a feature in the records that were read.

    Attributes:
        present: Number of records that have it.
        kinds: Number of records by kind: "int64", "float32", "string". A feature in which no kind
            is set has none.
        min_count, max_count: Values in a record; in a feature list, in a step.
        min_steps, max_steps: Steps in a record; None if this is not a feature list.
        text: Whether all its strings are UTF-8; None without any.
        scalar: Whether each record has one value of it, or neither value nor kind.
    """

    present: int
    kinds: dict[str, int]
    min_count: int
    max_count: int
    min_steps: int | None = None
    max_steps: int | None = None
    text: bool | None = None
    scalar: bool = False


@public
class InferredSchema(dict[str, Feature]):
    """Feature specifications by key, for Parser and the parse functions; printed as code.

    Of SequenceExamples these are the context features; ``sequence_features`` are those of the
    feature lists.

    Attributes:
        sequence_features: Specifications of the feature lists; empty for Examples.
        num_records: Number of records that were read.
        complete: Whether these were all. Of some alone, a table has null where a record has not
            what they all have, and a warning names features that no column is of.
        statistics, sequence_statistics: FeatureStatistics by key.
    """

    def __init__(
        self,
        features: Mapping[str, Feature],
        sequence_features: Mapping[str, Feature] | None = None,
        num_records: int = 0,
        statistics: Mapping[str, FeatureStatistics] | None = None,
        sequence_statistics: Mapping[str, FeatureStatistics] | None = None,
        complete: bool = True,
    ) -> None:
        super().__init__(features)
        self.sequence_features: dict[str, Feature] = dict(sequence_features or {})
        self.num_records: int = num_records
        self.statistics: dict[str, FeatureStatistics] = dict(statistics or {})
        self.sequence_statistics: dict[str, FeatureStatistics] = dict(sequence_statistics or {})
        self.complete: bool = complete

    @property
    def context_features(self) -> InferredSchema:
        """The features themselves, under SequenceParser's name for them."""
        return self

    def _repr_html_(self) -> str | None:
        """The specifications as a table, for notebooks."""
        return html_of(self)

    def __repr__(self) -> str:
        if not self.sequence_features:
            return self._code("features", self, self.statistics)
        return (
            self._code("context_features", self, self.statistics)
            + "\n"
            + self._code("sequence_features", self.sequence_features, self.sequence_statistics)
        )

    def _code(
        self, name: str, features: Mapping[str, Any], statistics: Mapping[str, FeatureStatistics]
    ) -> str:
        lines = [f"{name} = {{"]
        for key, feature in features.items():
            seen = statistics.get(key)
            comment = _comment(seen, self.num_records) if seen else ""
            lines.append(f"    {_quoted(key)}: {_as_code(feature)},{comment}")
        return "\n".join([*lines, "}"])


def infer_schema(
    paths: Input | Iterable[Input],
    num_records: int | None = 1000,
    *,
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> InferredSchema:
    """The specification that parses the records of files, Examples or SequenceExamples.

    A feature that every record has, always with the same number of values, is a FixedLenFeature:
    of shape ``[]`` for one value, else of rank 1. Any other is a VarLenFeature. Feature lists are
    FixedLenSequenceFeatures where every step has the same number of values, else VarLenFeatures.

    Args:
        paths: As for ``read_records``.
        num_records: How many records to read, in equal parts from the beginning of every file; at
            least one of each. None: all.
        compression_type, options, storage_options: As for read_records.
        on_corrupt: What to do at damage, as for read_records.

    Returns:
        A dict for Parser, with statistics; ``print`` shows it as code. For SequenceExamples, use
        ``SequenceParser(schema, schema.sequence_features)``.

    Raises:
        DataLossError: A file is damaged.
        ParseError: A record is neither an Example nor a SequenceExample.
        ValueError: There are no records, or ``num_records`` is below 1.

    Warns:
        TfwireWarning: A feature has more than one kind. No specification parses all of them; the
            most frequent kind is taken.

    Example:
        >>> records = [{"label": 1, "name": "cat"}, {"label": 2}]
        >>> _ = tfw.write_records("pets.tfrecord", records)
        >>> tfw.infer_schema("pets.tfrecord")
        features = {
            "label": tfw.FixedLenFeature([], tfw.int64),
            "name": tfw.VarLenFeature(tfw.string),  # in 1 of 2 records, 1 value
        }
    """
    compression_type = either_word(compression_type, options, "auto")
    if num_records is not None:
        num_records = integer("num_records", num_records, 1)
    files = list(input_paths(paths, storage_options))
    share = None if num_records is None else max(1, -(-num_records // max(1, len(files))))
    return schema_of_files(files, *survey_files(files, share, compression_type, on_corrupt))


def schema_of_files(files: Sequence[Any], survey: Survey, complete: bool) -> InferredSchema:
    """The specification that parses the records of a survey of files: of all records, or some.

    Raises:
        ValueError: There are no records.

    Warns:
        TfwireWarning: A feature has more than one kind.
    """
    if survey.num_records == 0:
        raise ValueError(f"{names_of_files(files)}: there are no records to infer a schema from")
    schema = schema_from_survey(survey, complete)
    statistics = [*schema.statistics.items(), *schema.sequence_statistics.items()]
    _warn_of_conflicts(names_of_files(files), statistics)
    return schema


def names_of_files(files: Sequence[Any]) -> str:
    """The first of several files, and how many others there are."""
    if not files:
        return "no files"
    name = show_path(files[0]) if is_path(files[0]) else display_name(None)
    return name if len(files) < 2 else f"{name} and {plural(len(files) - 1, 'more file')}"


def schema_from_survey(survey: Survey, complete: bool = True) -> InferredSchema:
    """The specification that parses the records of a survey; there must be some."""
    context, lists, count = survey.features(), survey.features(lists=True), survey.num_records
    return InferredSchema(
        {key: _feature(seen, count) for key, seen in context.items()},
        {key: _feature_list(seen, count) for key, seen in lists.items()},
        count,
        {key: _statistics(seen) for key, seen in context.items()},
        {key: _statistics(seen) for key, seen in lists.items()},
        complete,
    )


def _feature(seen: FeatureSurvey, num_records: int) -> Any:
    """The specification of a feature, but of a feature list."""
    if _is_fixed(seen) and seen.records == num_records:
        return FixedLenFeature(_shape(seen), _dtype(seen))
    return VarLenFeature(_dtype(seen))


def _feature_list(seen: FeatureSurvey, num_records: int) -> Any:
    if _is_fixed(seen):
        missing = seen.records < num_records
        return FixedLenSequenceFeature(_shape(seen), _dtype(seen), allow_missing=missing)
    return VarLenFeature(_dtype(seen))


def _is_fixed(seen: FeatureSurvey) -> bool:
    return seen.min_count == seen.max_count != 0 and len(seen.kinds) == 1


def _shape(seen: FeatureSurvey) -> list[int]:
    return [] if seen.max_count == 1 else [seen.max_count]


def _dtype(seen: FeatureSurvey) -> Any:
    """The most frequent kind; string for a feature without any kind."""
    return to_dtype(next(iter(seen.kinds), "string"))


def _statistics(seen: FeatureSurvey) -> FeatureStatistics:
    kinds = {kind: values.records for kind, values in seen.kinds.items()}
    counts = (seen.min_count, seen.max_count)
    steps = (seen.min_steps, seen.max_steps)
    num_values = sum(values.values for values in seen.kinds.values())
    scalar = seen.min_steps is None and seen.max_count == 1
    scalar = scalar and num_values == seen.records - seen.kindless
    return FeatureStatistics(seen.records, kinds, *counts, *steps, seen.text, scalar)


def _warn_of_conflicts(files: str, features: Iterable[tuple[str, FeatureStatistics]]) -> None:
    for key, seen in sorted(features, key=lambda item: item[0]):  # a list may have a feature's name
        if len(seen.kinds) > 1:
            found = ", ".join(f"{kind} in {count}" for kind, count in seen.kinds.items())
            warn(
                f"{files}: feature {quoted(key)} is of several kinds ({found} records), "
                "which no specification parses"
            )


# ---- As code ------------------------------------------------------------------------------------
def _as_code(value: Any) -> str:
    """A specification, or a part of one, as Python code."""
    if hasattr(value, "_fields"):
        defaults = value._field_defaults
        fields = [
            (name, item)
            for name, item in zip(value._fields, value, strict=True)
            if name not in defaults or item is not defaults[name]
        ]
        arguments = ", ".join(
            _as_code(to_dtype(item) if name.endswith("dtype") else item)
            if name not in defaults
            else f"{name}={_as_code(item)}"
            for name, item in fields
        )
        return f"tfw.{type(value).__qualname__}({arguments})"
    if hasattr(value, "as_numpy_dtype"):
        return f"tfw.{value.name}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_as_code, value))}]"
    return repr(value.tolist() if hasattr(value, "tolist") else value)


def _quoted(key: str) -> str:
    plain = key.isprintable() and not set('"\\') & set(key)
    return f'"{key}"' if plain else repr(key)


def _comment(seen: FeatureStatistics, num_records: int) -> str:
    """A comment with the statistics that the specification does not show."""
    notes = []
    if seen.present < num_records:
        notes.append(f"in {seen.present} of {num_records} records")
    if seen.min_steps is not None:
        notes.append(_range(seen.min_steps, seen.max_steps, "step"))
    if seen.min_count != seen.max_count or seen.present < num_records:
        notes.append(_range(seen.min_count, seen.max_count, "value"))
    if len(seen.kinds) > 1:
        notes.append("of several kinds: " + ", ".join(seen.kinds))
    return f"  # {', '.join(notes)}" if notes else ""


def _range(low: int, high: int | None, noun: str) -> str:
    numbers = str(low) if low == high else f"{low} to {high}"
    return f"{numbers} {noun}{'' if numbers == '1' else 's'}"
