"""Records and features that head and cat were asked for: --where and --features."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tfwire._interface.messages import shorten, show_key


class Condition(NamedTuple):
    """What a record must have.

    Attributes:
        name: Of a feature or feature list.
        text: One of its values, or part of one.
        whole: Whether the value must be equal.
    """

    name: str
    text: str
    whole: bool


def add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--features",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAMES",
        help="show only these features, separated by commas",
    )
    parser.add_argument(
        "--where",
        type=condition,
        action="append",
        default=[],
        metavar="COND",
        help="only records with a feature of this value: NAME=VALUE, or NAME~TEXT for strings that "
        "hold a text; of a feature list, some step must have it; given several times, all must "
        "hold",
    )


def condition(text: str) -> Condition:
    """The type of arguments that are conditions; the first = or ~ ends the name."""
    ends = [text.find(mark) for mark in "=~" if text.find(mark) > 0]
    if not ends:
        found = shorten(repr(text))
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE or NAME~TEXT, found {found}")
    end = min(ends)
    return Condition(text[:end], text[end + 1 :], text[end] == "=")


class RecordFilter:
    """Chooses records and features, and notes which of the names that were asked for occurred.

    Args:
        names: Of the features to keep; none: all.
        conditions: What a record must have.
    """

    def __init__(self, names: Iterable[str], conditions: Iterable[Condition]) -> None:
        self._conditions = list(conditions)
        self._names = _Names(names)
        self._conditioned = _Names(each.name for each in self._conditions)

    def matches(self, record: bytes) -> bool:
        """Whether a record is an Example or SequenceExample for which all conditions hold."""
        if not self._conditions:
            return True
        from tfwire import ParseError, decode_sequence_example

        try:
            context, lists = decode_sequence_example(record)
        except ParseError:
            return False
        self._conditioned.note(context, lists)
        return all(
            _holds(context.get(each.name), each)
            or any(_holds(step, each) for step in lists.get(each.name, ()))
            for each in self._conditions
        )

    def keep_features(self, message: Any) -> None:
        """Removes the features that were not asked for from an Example or SequenceExample."""
        if not self._names.asked:
            return
        sequence = type(message).__name__ == "SequenceExample"
        maps = [(message.context if sequence else message.features).feature]
        if sequence:
            maps.append(message.feature_lists.feature_list)
        self._names.note(*maps)
        for found in maps:
            for name in [name for name in found if name not in self._names.asked]:
                del found[name]

    def complaints(self) -> Iterator[str]:
        """A line for each name that was asked for, and that no record had."""
        for name in self._names.missing():
            yield f"--features: no record that is shown has {show_key(name)}"
        for name in self._conditioned.missing():
            yield f"--where: no record has {show_key(name)}"


class _Names:
    """Names that were asked for, and those of them that records had."""

    def __init__(self, names: Iterable[str]) -> None:
        self.asked = dict.fromkeys(names)  # in their order
        self._found: set[str] = set()
        self._num_records = 0

    def note(self, *features: Iterable[str]) -> None:
        """Adds the names of the features of a record."""
        self._num_records += 1
        for names in features:
            self._found.update(self.asked.keys() & set(names))

    def missing(self) -> list[str]:
        """Those that no record had; none of them if there was no record."""
        return [name for name in self.asked if name not in self._found] if self._num_records else []


def _holds(values: Any, wanted: Condition) -> bool:
    if values is None or not len(values):
        return False
    if isinstance(values, list):
        text = wanted.text.encode("utf-8", "surrogateescape")
        return any(text == value if wanted.whole else text in value for value in values)
    try:
        number = values.dtype.type(wanted.text)
    except (ValueError, OverflowError):
        return False
    return wanted.whole and bool((values == number).any())
