"""Expressions that choose examples, as TFDS reads them: "train[:10%]+test"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from tfwire._interface.messages import quoted

_PART = re.compile(r"(?P<name>[\w-]+)(\[(?P<slice>[\d\w%:.-]+)\])?")
_BOUND = re.compile(r"(?P<value>-?[\d_.]+)?(?P<unit>%|shard)?")
ROUNDINGS = "closest", "pct1_dropremainder"


class Counted(Protocol):
    """A split of which it is known how many examples it has."""

    @property
    def num_examples(self) -> int: ...
    @property
    def shard_lengths(self) -> Sequence[int]: ...


class Piece(NamedTuple):
    """Consecutive examples of a split."""

    split: str
    start: int
    stop: int


def pieces_of(expression: str, splits: Mapping[str, Counted], rounding: str) -> list[Piece]:
    """The examples that an expression names.

    Raises:
        ValueError: It is none, there is no such split, or a bound lies outside of it.
    """
    parts = re.split(r"\s*\+\s*", expression.strip())
    return [piece for part in parts for piece in _pieces(part, splits, rounding)]


def _pieces(part: str, splits: Mapping[str, Counted], rounding: str) -> list[Piece]:
    match = _PART.fullmatch(part)
    if match is None:
        raise _unknown(part)
    name, bounds = match["name"], match["slice"]
    if name == "all" and name not in splits:
        if bounds is not None:
            raise ValueError(f"split {quoted(part)}: 'all' takes no slice; name the splits")
        return [Piece(each, 0, splits[each].num_examples) for each in splits]
    if name not in splits:
        raise ValueError(
            f"there is no split {quoted(name)}; found {', '.join(map(quoted, splits))}"
        )
    count = splits[name].num_examples
    start, stop = (0, count) if bounds is None else _range(part, bounds, splits[name], rounding)
    return [Piece(name, start, max(start, stop))]


def _unknown(part: str) -> ValueError:
    return ValueError(
        f"split {quoted(part)} is not understood: expected a name, or one with a slice such as "
        "'train[:10%]', 'train[100:200]' or 'train[2shard:]', joined by '+'"
    )


def _range(part: str, bounds: str, split: Counted, rounding: str) -> tuple[int, int]:
    """The first example of a slice, and the one after its last."""
    found = [_BOUND.fullmatch(bound) for bound in bounds.split(":")]
    values = [None if match is None else match["value"] for match in found]
    units = {match["unit"] for match in found if match is not None and match["unit"]}
    if None in found or len(found) > 2 or len(units) > 1 or values == [None] * len(found):
        raise _unknown(part)
    unit = units.pop() if units else ""
    if len(found) == 1:
        if unit != "shard":
            raise ValueError(f"split {quoted(part)}: one example is a slice, such as 'train[5:6]'")
        values.append(str(int(values[0] or 0) + 1))
    count = split.num_examples
    try:
        if unit == "shard":
            start, stop = _of_shards(values, split.shard_lengths)
        elif unit == "%":
            start, stop = (_of_percent(part, value, count, rounding) for value in values)
        else:
            start, stop = (None if value is None else int(value) for value in values)
    except ValueError as error:
        if str(error).startswith("split "):
            raise
        raise _unknown(part) from None
    start, stop = start or 0, count if stop is None else stop
    if max(abs(start), abs(stop)) > count:
        raise ValueError(f"split {quoted(part)} is not within its {count} examples")
    return (start + count if start < 0 else start), (stop + count if stop < 0 else stop)


def _of_percent(part: str, value: str | None, count: int, rounding: str) -> int | None:
    if value is None:
        return None
    percent = float(value)
    if abs(percent) > 100:
        raise ValueError(f"split {quoted(part)}: expected a percentage from -100 to 100")
    if rounding == "closest":
        return round(percent * count / 100.0)
    if count < 100:
        raise ValueError(
            f"split {quoted(part)}: rounding='pct1_dropremainder' needs 100 examples, found {count}"
        )
    return int(percent * (count // 100))


def _of_shards(
    values: Sequence[str | None], lengths: Sequence[int]
) -> tuple[int | None, int | None]:
    ends = [0, *accumulate(lengths)]
    start, stop = (None if value is None else int(value) for value in values)
    first = None if start is None else sum(lengths[:start])
    if stop is None:
        return first, None
    return first, ends[len(lengths[: stop + len(lengths) if stop <= 0 else stop])]


def even_parts(pieces: Sequence[Piece], count: int, drop_remainder: bool) -> list[list[Piece]]:
    """Each piece in this many parts, as even as they can be; the first ones are longer."""
    parts: list[list[Piece]] = []
    for index in range(count):
        part = []
        for piece in pieces:
            size, rest = divmod(piece.stop - piece.start, count)
            more = (0, 0) if drop_remainder else (min(index, rest), min(index + 1, rest))
            start, stop = (size * n + m for n, m in zip((index, index + 1), more, strict=True))
            part.append(Piece(piece.split, piece.start + start, piece.start + stop))
        parts.append(part)
    return parts
