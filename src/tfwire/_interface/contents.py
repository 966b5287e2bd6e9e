"""What records hold, for those who show it: surveys of all records, samples of some, and the first
parts of one.

* A ``Survey`` counts the features of all records that are added: a ``FeatureSurvey`` of each, with
  a ``KindSurvey`` for each kind. ``schema_from_survey`` turns them into
  specifications. ``BatchReader`` reads records in batches that stay in C, which surveys and samples
  add; ``span_table`` says where the records of one lie.
* A ``RecordSample`` draws some of the records that are added; its ``SampledFeatures`` are a
  ``ValueSample`` for each kind of a feature, with a ``Histogram``.
* Of a message, ``measure`` says what decoding would make, an ``Extent``; ``cut_message`` cuts it to
  one, and says what it left out of features, a ``Cut`` each. ``likely_message`` says what a record
  may be that is no Example.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.errors import ParseError
from tfwire._base.native import check, ffi, lib, new_error, text
from tfwire._examples.decode import decode_sequence_example, decode_sequence_examples
from tfwire._examples.other_messages import likely_message as likely_message
from tfwire._parsing.infer import (
    schema_from_survey as schema_from_survey,
)
from tfwire._parsing.survey import (
    FeatureSurvey as FeatureSurvey,
    KindSurvey as KindSurvey,
    Survey as Survey,
)
from tfwire._records.reading.batch_reader import BatchReader as BatchReader
from tfwire._records.reading.native_batches import span_table as span_table

_SAMPLED_RECORDS = 1000
_SHORT_RECORD = 1 << 16  # bytes
_DECODED_AT_ONCE = 64  # short records
_SAMPLED_FEATURES = 500  # of a record
_SAMPLED_VALUES = 64  # of a feature in a record
_LONGEST_STRING = 256  # bytes; of longer ones only the length is kept
_LONGEST_SKIP = 2.0**50  # records; the sum of many fits
_SEED = 1  # the same file gives the same sample


class Histogram(NamedTuple):
    """How numbers are distributed; NaN and infinities are left out.

    Attributes:
        low, high: The smallest and the largest; 0 without any.
        counts: How many lie in each of equal parts between them; empty if there is one value only.
    """

    low: float
    high: float
    counts: list[int]


def histogram(values: np.ndarray[Any, Any], parts: int) -> Histogram:
    """The histogram of an array of numbers."""
    values = values[np.isfinite(values)]
    if not len(values):
        return Histogram(0, 0, [])
    low, high = values.min(), values.max()
    # From the smallest: large integers that lie close together differ exactly.
    if values.dtype == np.int64:
        distances = (values.view(np.uint64) - low.view(np.uint64)).astype(float)
    else:
        distances = values.astype(float) - float(low)
    span = float(distances.max())
    counts = np.histogram(distances, parts, (0, span))[0].tolist() if span else []
    return Histogram(low.item(), high.item(), counts)


class ValueSample:
    """Values of a feature.

    Args:
        most: How many lengths and different strings are kept, and after how many numbers no more
            are.

    Attributes:
        numbers: Arrays of them.
        lengths: Of strings, in bytes.
        strings: The short ones, and how often each occurs.
    """

    def __init__(self, most: int) -> None:
        self.numbers: list[np.ndarray[Any, Any]] = []
        self.lengths: list[int] = []
        self.strings: Counter[bytes] = Counter()
        self._most, self._kept = most, 0

    def add_numbers(self, numbers: np.ndarray[Any, Any]) -> None:
        if self._kept < self._most:
            self.numbers.append(numbers)
            self._kept += len(numbers)

    def add_strings(self, lengths: list[int], short: list[bytes]) -> None:
        """Adds the lengths of strings, and those of them that are short."""
        lengths = lengths[: self._most - len(self.lengths)]
        self.lengths += lengths
        self.strings.update(short[: sum(map(_is_short, lengths))])

    @property
    def all_short(self) -> bool:
        """Whether every string is in ``strings``."""
        return len(self.lengths) == sum(self.strings.values())

    def histogram(self, parts: int) -> Histogram:
        """That of the numbers, or of the lengths of strings."""
        if self.numbers:
            return histogram(np.concatenate(self.numbers), parts)
        return histogram(np.array(self.lengths, np.int64), parts)


class _Strings(NamedTuple):
    """Strings that one record has: the lengths of all, and the short ones."""

    lengths: list[int]
    short: list[bytes]


_Features = dict[tuple[bool, str], list[Any]]
"""By (is a list, name): arrays of numbers and _Strings, each of a step, a record or several."""


class RecordSample:
    """Some records of those that are added; each is among them with the same chance.

    Which ones are drawn is decided by the skips of Li's Algorithm L (K.-H. Li, "Reservoir-Sampling
    Algorithms of Time Complexity O(n(1 + log(N/n)))", 1994): records between are not looked at.

    Most that are drawn make way for others: a short one is decoded when its values are asked for.
    """

    def __init__(self) -> None:
        self._records: list[bytes | _Features] = []
        self._draws = _Draws()
        self._seen = 0

    def add(self, batch: Any, count: int) -> None:
        """Draws from the first records of a ``tfw_batch``: Examples or SequenceExamples."""
        first = self._seen
        self._seen += count
        data, spans = ffi.buffer(batch.data, batch.data_len), batch.spans
        for slot, number in self._draws.below(self._seen).items():
            span = spans[number - first]
            record = data[span.offset : span.offset + span.length]
            kept = record if len(record) <= _SHORT_RECORD else _features(record)
            if slot == len(self._records):
                self._records.append(kept)
            else:
                self._records[slot] = kept

    def __len__(self) -> int:
        return len(self._records)

    def features(self) -> SampledFeatures:
        """The values of the records that were drawn."""
        found: _Features = defaultdict(list)
        short = [record for record in self._records if isinstance(record, bytes)]
        for begin in range(0, len(short), _DECODED_AT_ONCE):
            _add_records(found, short[begin : begin + _DECODED_AT_ONCE])
        for record in self._records:
            if not isinstance(record, bytes):
                for key, values in record.items():
                    found[key] += values
        return SampledFeatures(found)


class _Draws:
    """The numbers of the records that are drawn, and their slots in the sample.

    After the first ones, which fill the slots, they are computed many at a time by numpy. The
    random numbers are Python's, which are the same in every version.
    """

    def __init__(self) -> None:
        self._random = random.Random(_SEED)
        self._log_weight = 0.0
        self._slots = list(range(_SAMPLED_RECORDS))
        self._numbers = list(range(_SAMPLED_RECORDS))
        self._taken = 0  # of both

    def below(self, end: int) -> dict[int, int]:
        """Slots and numbers of the records below a number, once: of each slot the last record."""
        found: dict[int, int] = {}
        while True:
            begin, stop = self._taken, bisect_left(self._numbers, end, self._taken)
            found.update(zip(self._slots[begin:stop], self._numbers[begin:stop], strict=True))
            self._taken = stop
            if stop < len(self._numbers):
                return found
            self._draw(self._numbers[-1])

    def _draw(self, last: int) -> None:
        """Draws records after the last one."""
        draw = self._random.random
        drawn = np.array([draw() for _ in range(3 * _SAMPLED_RECORDS)], np.float64)
        uniform = 1 - drawn.reshape(3, -1)
        log_weights = (
            self._log_weight + np.cumsum(np.log(uniform[0]), dtype=np.float64) / _SAMPLED_RECORDS
        )
        self._log_weight = float(log_weights[-1])
        skips = np.log(uniform[1]) / np.log1p(-np.exp(log_weights))
        steps = 1 + np.minimum(skips, _LONGEST_SKIP).astype(np.int64)
        self._numbers = (last + np.cumsum(steps, dtype=steps.dtype)).tolist()
        self._slots = ((1 - uniform[2]) * _SAMPLED_RECORDS).astype(np.int64).tolist()
        self._taken = 0


class SampledFeatures:
    """Values of features."""

    def __init__(self, values: _Features) -> None:
        self._values = values

    def of(self, name: str, *, is_list: bool) -> dict[str, ValueSample]:
        """The values of a feature, or of a feature list, by their kind."""
        most = _SAMPLED_RECORDS * _SAMPLED_VALUES
        found: dict[str, ValueSample] = defaultdict(lambda: ValueSample(most))
        for values in self._values.get((is_list, name), ()):
            if isinstance(values, _Strings):
                found["string"].add_strings(*values)
            else:
                found["int64" if values.dtype == np.int64 else "float32"].add_numbers(values)
        return found


def _features(record: bytes) -> _Features:
    """Some values of a record."""
    context, lists = decode_sequence_example(record)
    found: _Features = {}
    for name, values in islice(context.items(), _SAMPLED_FEATURES):
        if len(values):
            found[False, name] = [_some(values)]
    _add_lists(found, lists)
    return found


def _add_records(found: _Features, records: list[bytes]) -> None:
    """Adds some values of records. Those that a feature has in all of them become one array, since
    most have one value in each."""
    strings: dict[str, list[bytes]] = defaultdict(list)
    numbers: dict[str, list[Any]] = defaultdict(list)
    for context, lists in decode_sequence_examples(records):
        for name, values in islice(context.items(), _SAMPLED_FEATURES):
            if isinstance(values, list):
                strings[name] += _spread(values)
            else:
                numbers[name].append(_spread(values))
        _add_lists(found, lists)
    for name, found_strings in strings.items():
        if found_strings:
            found[False, name].append(_Strings(*measure_strings(found_strings)))
    for name, arrays in numbers.items():
        for dtype in (np.int64, np.float32):
            same = [array for array in arrays if array.dtype == dtype]
            if any(map(len, same)):
                found[False, name].append(np.concatenate(same))


def _add_lists(found: _Features, lists: dict[str, Any]) -> None:
    """Adds some values of the feature lists of a record."""
    for name, steps in islice(lists.items(), _SAMPLED_FEATURES):
        some = [_some(values) for values in _spread(steps) if len(values)]
        found.setdefault((True, name), []).extend(some)


def _some(values: Any) -> Any:
    """At most this many of the values of a feature, copied."""
    if isinstance(values, list):
        return _Strings(*measure_strings(_spread(values)))
    return _spread(values).copy()


def measure_strings(strings: Sequence[bytes]) -> tuple[list[int], list[bytes]]:
    """Their lengths, and those of them that are short."""
    lengths = [len(string) for string in strings]
    return lengths, [string for string in strings if _is_short(len(string))]


def _is_short(length: int) -> bool:
    return length <= _LONGEST_STRING


def _spread(values: Any) -> Any:
    """At most this many values, evenly spread over all."""
    if len(values) <= _SAMPLED_VALUES:
        return values
    return values[:: -(-len(values) // _SAMPLED_VALUES)]


# ---- Messages cut short -----------------------------------------------------------------------


class Extent(NamedTuple):
    """What decode_sequence_example makes of a message; or limits of it.

    Attributes:
        features: Features and feature lists; as a limit, of each.
        objects: Of Python: features, steps and strings.
        num_bytes: Of keys, strings and numbers.
    """

    features: int
    objects: int
    num_bytes: int

    def holds(self, other: Extent) -> bool:
        """Whether this, as limits, leaves the other as it is."""
        return all(most >= found for most, found in zip(self, other, strict=True))


class Cut(NamedTuple):
    """How many values, and of a feature list how many steps, are left out."""

    values: int
    steps: int = 0


class Shortened(NamedTuple):
    """A message with its first parts.

    Attributes:
        message: Serialized.
        left_out: How many features and feature lists are not in it.
        cuts: Those that are in it without all of their values: by name, and whether it is a list.
    """

    message: bytes
    left_out: int
    cuts: dict[tuple[str, bool], Cut]


def measure(message: bytes) -> Extent:
    """What decoding would make, in memory that does not depend on it.

    Raises:
        ParseError: Not a well-formed message.
    """
    extent, error = ffi.new("tfw_extent *"), new_error()
    _check(lib.tfw_measure(ffi.from_buffer(message), len(message), extent, error), error)
    return Extent(extent.features, extent.objects, extent.bytes)


def cut_message(message: bytes, most: Extent) -> Shortened:
    """The first features and feature lists, each with its equal share of the limits.

    Raises:
        ParseError: Not a well-formed message.
    """
    out, capacity, error = bytearray(len(message)), 2 * most.features, new_error()
    cuts = ffi.new("tfw_cut[]", capacity)
    sizes, left_out = ffi.new("size_t[2]"), ffi.new("uint64_t *")
    status = lib.tfw_shorten(
        *(ffi.from_buffer(message), len(message), ffi.new("tfw_extent *", tuple(most))),
        *(ffi.from_buffer(out), sizes, cuts, capacity, sizes + 1, left_out, error),
    )
    _check(status, error)
    found = {}
    for cut in cuts[0 : sizes[1]]:
        key = message[cut.key_at : cut.key_at + cut.key_len].decode("utf-8", "surrogateescape")
        found[key, bool(cut.is_list)] = Cut(cut.values, cut.steps)
    return Shortened(bytes(memoryview(out)[: sizes[0]]), left_out[0], found)


def _check(status: int, error: Any) -> None:
    if status == lib.TFW_E_WIRE:
        raise ParseError(f"the message is malformed: {text(error.text)}", reason="malformed")
    check(status, error)
