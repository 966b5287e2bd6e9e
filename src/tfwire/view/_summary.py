"""What some records hold: for each feature its presence, values, a histogram, and its bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tfwire import InferredSchema
from tfwire._interface.contents import (
    Survey,
    ValueSample,
    measure_strings,
    schema_from_survey,
)
from tfwire._interface.messages import plural
from tfwire.view._drawings import BINS, bars, counts_of, share_bar
from tfwire.view._html import Html, bytes_text, element, join, number, small, title
from tfwire.view._media import find_media
from tfwire.view._records import FeatureName, Record

_MOST_KEPT = 100_000  # values of a feature, and different strings
_SUMMARIZED_FEATURES = 500
_MOST_SPECIFIED = 10_000  # features of a specification: more take seconds
_MOST_NAME_BYTES = 1_000_000
_SHOWN_STRINGS = 5


class _Observed:
    """The values of a feature in the records that were added."""

    def __init__(self) -> None:
        self.records = self.num_bytes = 0
        self.counts: list[int] = []
        self.values = ValueSample(_MOST_KEPT)
        self.kinds: Counter[str] = Counter()
        self._has_no_strings = False  # a list of strings, which is empty

    def add(self, steps: list[Any], *, is_list: bool) -> None:
        self.records += 1
        self.counts.append(len(steps) if is_list else len(steps[0]))
        for values in steps:
            if isinstance(values, np.ndarray) and values.dtype != object:
                self._add_numbers(values)
            elif len(values):
                self._add_strings(list(values))
            else:
                self._has_no_strings |= isinstance(values, np.ndarray)

    @property
    def kind(self) -> str:
        """The kinds of its values, the most frequent first."""
        kinds = [kind for kind, _ in self.kinds.most_common()]
        return ", ".join(kinds) or ("string" if self._has_no_strings else "empty")

    def _add_numbers(self, values: np.ndarray[Any, Any]) -> None:
        is_integer = values.dtype.kind == "i"
        self.kinds["int64" if is_integer else "float32"] += 1
        self.num_bytes += _encoded_size(values) if is_integer else values.nbytes
        self.values.add_numbers(values[:_MOST_KEPT].copy())  # not a view of all

    def _add_strings(self, values: list[bytes]) -> None:
        media = find_media(values[0])
        self.kinds["string" if media is None else media.type] += 1
        lengths, short = measure_strings(values)
        self.num_bytes += sum(lengths) + len(lengths)  # with tags
        self.num_bytes += _encoded_size(np.array(lengths, np.int64))
        self.values.add_strings(lengths[:_MOST_KEPT], [] if media is not None else short)


def _encoded_size(values: np.ndarray[Any, Any]) -> int:
    """How many bytes int64s take as varints."""
    size, rest = len(values), values.view(np.uint64)
    while (rest := rest[rest >= 0x80] >> np.uint64(7)).size:
        size += len(rest)
    return size


class FeatureSummary:
    """Features of some records, most bytes first.

    Args:
        records: Those to look at, with their payloads.
    """

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.num_records = self.num_bytes = 0
        self.num_partly = 0  # records of which only the first values were decoded
        self._features: dict[FeatureName, _Observed] = {}
        self._survey = Survey()
        self._most = 0  # features of a record
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Adds a record with its payload; damage is left out."""
        if not record.is_read:
            return
        if record.is_decoded:
            if max(record.left_out, self._survey.num_features) <= _MOST_SPECIFIED:
                self._survey.add_record(record.payload)
            self._most = max(self._most, len(record.names) + record.left_out)
        self.num_partly += bool(record.cuts)
        self.num_records += 1
        self.num_bytes += record.size
        for name in record.names:
            found = self._features.get(name)
            if found is None and len(self._features) < _SUMMARIZED_FEATURES:
                found = self._features[name] = _Observed()
            if found is not None:
                found.add(record.steps(name) or [], is_list=name.is_list)

    @property
    def num_features(self) -> int:
        """How many features there are, also those that are not among the rows."""
        return max(self._survey.num_features, self._most, len(self._features))

    @property
    def specification(self) -> InferredSchema | None:
        """The specification that parses the records; None if not all are Examples, or their
        features are too many, or have too long names."""
        survey = self._survey
        if survey.num_records != self.num_records or not self.num_records:
            return None
        if not 0 < survey.num_features <= _MOST_SPECIFIED or survey.name_bytes > _MOST_NAME_BYTES:
            return None
        return schema_from_survey(survey)

    def rows(self) -> Iterator[list[object]]:
        """Cells: name, kind, presence, number of values, values, bytes."""
        total = max(1, sum(f.num_bytes for f in self._features.values()))
        ordered = sorted(self._features.items(), key=lambda item: (-item[1].num_bytes, item[0]))
        for name, feature in ordered:
            present = f"{100 * feature.records / max(1, self.num_records):.3g} %"
            size = join(share_bar(feature.num_bytes / total), f" {feature.num_bytes / total:.1%}")
            key, counts = element("b", title(name, 60)), _range(feature.counts)
            yield [key, feature.kind, present, counts, _values(feature), size]


def _range(counts: list[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _values(feature: _Observed) -> Html:
    """A histogram and the range; of strings the most frequent ones, or their lengths."""
    values = feature.values
    if values.numbers:
        return _numbers(np.concatenate(values.numbers))
    if values.strings and values.all_short:
        common = values.strings.most_common(_SHOWN_STRINGS)
        if common[0][1] > 1 or len(values.strings) <= _SHOWN_STRINGS:
            found = (join(bytes_text(v, 24), " ", small(f"{n:,}")) for v, n in common)
            left = len(values.strings) - len(common)
            more = [" ", small(f"and {plural(left, 'other')}")] if left else ""
            return join(Html(", ".join(found)), more)
    if values.lengths:
        drawn = bars(values.histogram(BINS).counts)
        return join(drawn, f" {_range(values.lengths)} bytes")
    return Html()


def _numbers(values: np.ndarray[Any, Any]) -> Html:
    low, high, counts = counts_of(values)
    finite = values[np.isfinite(values)]
    if not len(finite):
        return join("no finite values")
    odd = len(values) - len(finite)
    note = f", {plural(odd, 'value')} not finite" if odd else ""
    if low == high:
        return join(f"always {number(low)}{note}")
    mean = number(finite.astype(float).mean())
    return join(bars(counts), f" {number(low)} to {number(high)}, mean {mean}{note}")
