"""Values of records drawn at random from a stream of unknown length, in bounded memory."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.native import ffi
from tfwire._examples.decode import decode_sequence_example

__all__ = ["RecordSample", "ValueSample", "measure_strings"]

_SAMPLED_RECORDS = 1000
_SHORT_RECORD = 1 << 16  # bytes
_SAMPLED_FEATURES = 500  # of a record
_SAMPLED_VALUES = 64  # of a feature in a record
_LONGEST_STRING = 256  # bytes; of longer ones only the length is kept
_SEED = 1  # the same file gives the same sample


class ValueSample:
    """Values of a feature that are of one kind.

    Args:
        most: How many numbers, lengths and different strings are kept.

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
        if len(self.lengths) < self._most:
            self.lengths += lengths
            self.strings.update(short)

    @property
    def all_short(self) -> bool:
        """Whether every string is in ``strings``."""
        return len(self.lengths) == sum(self.strings.values())

    @property
    def measured(self) -> np.ndarray[Any, Any]:
        """What a histogram shows: the numbers as float64, or the lengths of strings."""
        if self.numbers:
            return np.concatenate(self.numbers).astype(float)
        return np.array(self.lengths, float)


class _Values(NamedTuple):
    """Values that one record has."""

    kind: str
    numbers: np.ndarray[Any, Any] | None
    lengths: list[int]
    short: list[bytes]


_Features = dict[tuple[bool, str], list[_Values]]
"""Values of a record by (is a list, name)."""


class RecordSample:
    """Some records of those that are added; each is among them with the same chance.

    Which ones are drawn is decided by the skips of Li's Algorithm L (K.-H. Li, "Reservoir-Sampling
    Algorithms of Time Complexity O(n(1 + log(N/n)))", 1994): records between are not looked at.

    Most that are drawn make way for others: a short one is decoded when its values are asked for.
    """

    def __init__(self) -> None:
        self._records: list[bytes | _Features] = []
        self._random = random.Random(_SEED)
        self._seen = self._next = 0
        self._weight = 1.0

    def add(self, batch: Any, count: int) -> None:
        """Draws from the first records of a ``tfw_batch``: Examples or SequenceExamples."""
        while self._next < self._seen + count:
            span = batch.spans[self._next - self._seen]
            record = bytes(ffi.buffer(batch.data + span.offset, span.length))
            self._keep(record if len(record) <= _SHORT_RECORD else _features(record))
            self._next += 1 if len(self) < _SAMPLED_RECORDS else self._skip()
        self._seen += count

    def __len__(self) -> int:
        return len(self._records)

    def _keep(self, record: bytes | _Features) -> None:
        if len(self) < _SAMPLED_RECORDS:
            self._records.append(record)
        else:
            self._records[self._random.randrange(_SAMPLED_RECORDS)] = record

    def _skip(self) -> int:
        """How far behind the last record that was drawn the next one lies."""
        self._weight *= math.exp(math.log(1 - self._random.random()) / _SAMPLED_RECORDS)
        left_out = math.log(1 - self._random.random()) / math.log1p(-self._weight)
        return 1 + int(min(left_out, 2.0**62))

    def values(self, name: str, *, is_list: bool) -> dict[str, ValueSample]:
        """The values of a feature, or of a feature list, by their kind."""
        found: dict[str, ValueSample] = {}
        for i, record in enumerate(self._records):
            if isinstance(record, bytes):
                record = self._records[i] = _features(record)
            for values in record.get((is_list, name), ()):
                sample = found.setdefault(
                    values.kind, ValueSample(_SAMPLED_RECORDS * _SAMPLED_VALUES)
                )
                if values.numbers is None:
                    sample.add_strings(values.lengths, values.short)
                else:
                    sample.add_numbers(values.numbers)
        return found


def _features(record: bytes) -> _Features:
    """Some values of a record; nothing of them refers to it."""
    context, lists = decode_sequence_example(record)
    found = {}
    for name, values in islice(context.items(), _SAMPLED_FEATURES):
        found[False, name] = [_some(values)] if len(values) else []
    for name, steps in islice(lists.items(), _SAMPLED_FEATURES):
        found[True, name] = [_some(values) for values in _spread(steps) if len(values)]
    return found


def _some(values: Any) -> _Values:
    if isinstance(values, np.ndarray) and values.dtype != object:
        kind = "int64" if values.dtype.kind == "i" else "float32"
        return _Values(kind, _spread(values).copy(), [], [])
    return _Values("string", None, *measure_strings(_spread(values)))


def measure_strings(strings: Sequence[bytes]) -> tuple[list[int], list[bytes]]:
    """Their lengths, and those of them that are short."""
    lengths = [len(string) for string in strings]
    return lengths, [string for string in strings if len(string) <= _LONGEST_STRING]


def _spread(values: Any) -> Any:
    """At most so many values, evenly spread over all."""
    return values[:: -(-len(values) // _SAMPLED_VALUES) or 1]
