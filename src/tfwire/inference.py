"""The specification that parses given files, found by looking at their records."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from tfwire._arguments import integer
from tfwire._public import public
from tfwire._records.sources import split_paths
from tfwire._text import quoted
from tfwire._warnings import warn
from tfwire.errors import ParseError
from tfwire.example import decode_sequence_example
from tfwire.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    as_dtype,
    string,
)
from tfwire.records import read_records

__all__ = ["FeatureStatistics", "InferredSchema", "infer_schema"]


class FeatureStatistics(NamedTuple):
    """What was seen of a feature.

    Attributes:
        present: Number of records that have it.
        kinds: Number of records by kind: "int64", "float32", "string". An empty list of strings
            and a feature without a kind look the same and count for none.
        min_count, max_count: Values in a record; of a feature list, in a step.
        min_steps, max_steps: Steps in a record; None where it is no feature list.
    """

    present: int
    kinds: dict[str, int]
    min_count: int
    max_count: int
    min_steps: int | None = None
    max_steps: int | None = None


@public
class InferredSchema(dict[str, Any]):
    """Feature specifications by key, for Parser and the parse functions; printed as code.

    Of SequenceExamples these are the context features; ``sequence_features`` are those of the
    feature lists.

    Attributes:
        sequence_features: Specifications of the feature lists; empty for Examples.
        num_records: Number of records that were looked at.
        statistics, sequence_statistics: What was seen, as FeatureStatistics by key.
    """

    def __init__(
        self,
        features: Mapping[str, Any],
        sequence_features: Mapping[str, Any] | None = None,
        num_records: int = 0,
        statistics: Mapping[str, FeatureStatistics] | None = None,
        sequence_statistics: Mapping[str, FeatureStatistics] | None = None,
    ) -> None:
        super().__init__(features)
        self.sequence_features = dict(sequence_features or {})
        self.num_records = num_records
        self.statistics = dict(statistics or {})
        self.sequence_statistics = dict(sequence_statistics or {})

    @property
    def context_features(self) -> InferredSchema:
        """These features, by the name that SequenceParser has for them."""
        return self

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
            lines.append(f"    {_quoted(key)}: {_code_of(feature)},{comment}")
        return "\n".join([*lines, "}"])


def infer_schema(
    paths: Any, num_records: int | None = 1000, *, compression_type: Any = "auto"
) -> InferredSchema:
    """The specification that parses the records of files, Examples or SequenceExamples.

    A feature that every record has, always with the same number of values, is a FixedLenFeature:
    of shape ``[]`` for one value, else of rank 1. Any other is a VarLenFeature. Feature lists are
    FixedLenSequenceFeatures where every step has the same number of values, else VarLenFeatures.

    Args:
        paths: A path, or a list of them, as for read_records.
        num_records: How many records to look at, in equal parts from the beginning of every
            file; at least one of each. None: all.
        compression_type: As for read_records.

    Returns:
        A dict for Parser, with what was seen; ``print`` shows it as code. For SequenceExamples
        ``SequenceParser(schema, schema.sequence_features)``.

    Raises:
        ParseError: A record is neither an Example nor a SequenceExample.
        ValueError: There are no records, or none are to be looked at.

    Warns:
        TfwireWarning: A feature has more than one kind. No specification parses them all; the most
            frequent kind is taken.

    Example:
        >>> records = [{"label": 1, "name": "cat"}, {"label": 2}]
        >>> _ = tfw.write_records("pets.tfrecord", records)
        >>> tfw.infer_schema("pets.tfrecord")
        features = {
            "label": tfw.FixedLenFeature([], tfw.int64),
            "name": tfw.VarLenFeature(tfw.string),  # in 1 of 2 records, 1 value
        }
    """
    if num_records is not None:
        num_records = integer("num_records", num_records, 1)
    files = list(split_paths(paths))
    context: dict[str, _Seen] = {}
    lists: dict[str, _Seen] = {}
    count = 0
    for features, feature_lists in _decoded(files, num_records, compression_type):
        count += 1
        for key, values in features.items():
            context.setdefault(key, _Seen()).add([values])
        for key, steps in feature_lists.items():
            lists.setdefault(key, _Seen()).add(steps)
    if count == 0:
        raise ValueError(f"there are no records to infer a schema from in {reprlib.repr(files)}")
    _warn_of_conflicts({**context, **lists})
    return InferredSchema(
        {key: context[key].feature(count) for key in sorted(context)},
        {key: lists[key].feature_list(count) for key in sorted(lists)},
        count,
        {key: context[key].statistics() for key in sorted(context)},
        {key: lists[key].statistics(steps=True) for key in sorted(lists)},
    )


def _decoded(
    files: list[Any], num_records: int | None, compression_type: Any
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Context and feature lists of the records to look at; Examples have no feature lists."""
    share = None if num_records is None else max(1, -(-num_records // max(1, len(files))))
    for path in files:
        records = islice(read_records(path, compression_type), share)
        for i, record in enumerate(records):
            try:
                yield decode_sequence_example(record)
            except ParseError as error:
                raise ParseError(
                    f"{path}: record {i} is no Example: {error}",
                    path=path,
                    record_index=i,
                    reason="malformed",
                ) from None


class _Seen:
    """What is known of a feature after some records."""

    def __init__(self) -> None:
        self.present = 0
        self.kinds: Counter[str] = Counter()
        self.counts: set[int] = set()
        self.steps: set[int] = set()

    def add(self, steps: list[Any]) -> None:
        """A record's steps of values; a feature that is no list is one step."""
        self.present += 1
        self.steps.add(len(steps))
        self.counts.update(map(len, steps))
        self.kinds.update({kind for values in steps for kind in _kinds(values)})

    def feature(self, num_records: int) -> Any:
        if self._is_fixed() and self.present == num_records:
            return FixedLenFeature(self._shape(), self._dtype())
        return VarLenFeature(self._dtype())

    def feature_list(self, num_records: int) -> Any:
        if self._is_fixed():
            missing = self.present < num_records
            return FixedLenSequenceFeature(self._shape(), self._dtype(), allow_missing=missing)
        return VarLenFeature(self._dtype())

    def statistics(self, steps: bool = False) -> FeatureStatistics:
        return FeatureStatistics(
            self.present,
            dict(self.kinds.most_common()),
            min(self.counts, default=0),
            max(self.counts, default=0),
            min(self.steps) if steps else None,
            max(self.steps) if steps else None,
        )

    def _is_fixed(self) -> bool:
        return len(self.counts) == 1 and 0 not in self.counts and len(self.kinds) == 1

    def _shape(self) -> list[int]:
        return [] if self.counts == {1} else list(self.counts)

    def _dtype(self) -> Any:
        """The most frequent kind; a feature that never has a value may be of any."""
        return as_dtype(self.kinds.most_common(1)[0][0]) if self.kinds else string


def _kinds(values: Any) -> Iterable[str]:
    """The kind of decoded values, if they have one."""
    if isinstance(values, list):
        return ["string"] if values else []
    return ["string" if values.dtype == object else str(values.dtype)]


def _warn_of_conflicts(features: Mapping[str, _Seen]) -> None:
    for key, seen in sorted(features.items()):
        if len(seen.kinds) > 1:
            found = ", ".join(f"{kind} in {n}" for kind, n in seen.kinds.most_common())
            warn(
                f"feature {quoted(key)} is of several kinds ({found} records), "
                "which no specification parses"
            )


# ---- As code ------------------------------------------------------------------------------------


def _code_of(value: Any) -> str:
    """A specification, or a part of one, as the code that makes it."""
    if hasattr(value, "_fields"):
        defaults = value._field_defaults
        fields = [
            (name, item)
            for name, item in zip(value._fields, value, strict=True)
            if name not in defaults or item is not defaults[name]
        ]
        arguments = ", ".join(
            _code_of(as_dtype(item) if name.endswith("dtype") else item)
            if name not in defaults
            else f"{name}={_code_of(item)}"
            for name, item in fields
        )
        return f"tfw.{type(value).__qualname__}({arguments})"
    if hasattr(value, "as_numpy_dtype"):
        return f"tfw.{value.name}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_code_of, value))}]"
    return repr(value.tolist() if hasattr(value, "tolist") else value)


def _quoted(key: str) -> str:
    plain = key.isprintable() and not set('"\\') & set(key)
    return f'"{key}"' if plain else repr(key)


def _comment(seen: FeatureStatistics, num_records: int) -> str:
    """What a reader of the code should know and cannot see in it."""
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
