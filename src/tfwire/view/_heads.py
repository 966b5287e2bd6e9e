"""What the records of a page have in a column: of which kind the values are, in how many records,
and a small histogram."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire.view._drawings import bars, counts_of
from tfwire.view._html import Html, join, number, shown_text, small, title
from tfwire.view._media import find_media, readable_text
from tfwire.view._pictures import first_picture
from tfwire.view._records import FeatureName, Record

_BINS = 16
_VALUES_OF_RECORD = 1000
_MOST_STRINGS = 16  # different ones
_MOST_DIGITS = 10**9  # longer integers are shortened


def column_head(name: FeatureName, records: Sequence[Record]) -> Html:
    """The name of a feature, and what these records have of it."""
    found = [(record, steps) for record in records if (steps := record.steps(name)) is not None]
    kinds: Counter[str] = Counter()
    numbers: list[Any] = []
    strings: list[bytes] = []
    for record, steps in found:
        values = next((values for values in steps if len(values)), ())
        if len(values):
            kinds[_kind(record, name, values)] += 1
        for part in steps[:_VALUES_OF_RECORD]:
            first = part[: max(1, _VALUES_OF_RECORD // len(steps))]
            if isinstance(part, np.ndarray):
                numbers.append(first)
            else:
                strings += first
    said = " or ".join(kind for kind, _ in kinds.most_common(3)) or "no values"
    if len(found) < sum(record.is_decoded for record in records):
        said += f", in {len(found):,}"
    described = found[0][0].described.get(name.text)
    if described is not None and described.classes:
        said += f", {len(described.classes):,} classes"
    text, drawn = _of_numbers(numbers, name) if numbers and not strings else _of_strings(strings)
    return join(title(name, 40), small(said), drawn, small(text) if text else "")


def _kind(record: Record, name: FeatureName, values: Any) -> str:
    picture = first_picture(record, name)
    if picture is not None and picture.is_of_numbers:
        return "pixels"
    if isinstance(values, np.ndarray):
        return "int64" if values.dtype.kind == "i" else "float32"
    media = find_media(values[0])
    if media is not None:
        return media.type.partition("/")[2].upper()
    return "bytes" if readable_text(values[0]) is None else "text"


def _of_numbers(arrays: list[Any], name: FeatureName) -> tuple[object, Html]:
    kinds = {array.dtype for array in arrays if len(array)}
    if len(kinds) != 1:
        return "", Html()
    values = np.concatenate([array for array in arrays if len(array)])
    low, high, counts = counts_of(values, _BINS)
    if values.dtype.kind == "i" and max(-low, high) < _MOST_DIGITS:
        low, high = int(low), int(high)
    ends = [str(end) if isinstance(end, int) else f"{end:.4g}" for end in (low, high)]
    said = " to ".join(ends) if counts else f"always {number(low)}"
    if not np.isfinite(values).any():
        return "not finite", Html()
    return said, bars(counts, join(title(name, 40), f": {said}"))


def _of_strings(strings: list[bytes]) -> tuple[object, Html]:
    """How often each of a few texts is there, or how many there are."""
    if not strings or any(readable_text(value) is None for value in strings[:_MOST_STRINGS]):
        return "", Html()
    counts = Counter(strings)
    if len(counts) == len(strings) > 1:
        return "all different", Html()
    if len(counts) > _MOST_STRINGS:
        return f"{len(counts):,} different", Html()
    common = [(readable_text(value) or "", count) for value, count in counts.most_common()]
    if len(common) == 1:
        return join("always ", shown_text(common[0][0], 20)), Html()
    said = Html(", ".join(f"{shown_text(text, 20)} {count}" for text, count in common[:3]))
    more = f" and {len(common) - 3} others" if len(common) > 3 else ""
    return f"{len(common)} different", bars([count for _, count in common], join(said, more))
