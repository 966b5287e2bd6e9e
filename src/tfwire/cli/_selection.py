"""Records and features that head and cat were asked for: --where and --features."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any, NamedTuple

from tfwire._base.text import shorten

__all__ = ["Condition", "add_selection", "condition", "has_all", "keep_features"]


class Condition(NamedTuple):
    """What a record must have.

    Attributes:
        name: Of a feature.
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
        metavar="NAMES",
        help="show only these features, between commas",
    )
    parser.add_argument(
        "--where",
        type=condition,
        action="append",
        default=[],
        metavar="COND",
        help="only records with a feature of this value: NAME=VALUE, or NAME~TEXT for strings that "
        "hold a text; given several times, all must hold",
    )


def condition(text: str) -> Condition:
    """The type of arguments that are conditions; the first = or ~ ends the name."""
    ends = [text.find(mark) for mark in "=~" if text.find(mark) > 0]
    if not ends:
        found = shorten(repr(text))
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE or NAME~TEXT, found {found}")
    end = min(ends)
    return Condition(text[:end], text[end + 1 :], text[end] == "=")


def has_all(record: bytes, conditions: Iterable[Condition]) -> bool:
    """Whether a record is an Example, or has a context, for which all conditions hold."""
    from tfwire._base.errors import ParseError
    from tfwire._examples.decode import decode_sequence_example

    try:
        features, _ = decode_sequence_example(record)
    except ParseError:
        return False
    return all(_holds(features.get(each.name), each) for each in conditions)


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


def keep_features(message: Any, names: Iterable[str]) -> None:
    """Removes the other features of an Example or SequenceExample."""
    kept = set(names)
    sequence = type(message).__name__ == "SequenceExample"
    maps = [(message.context if sequence else message.features).feature]
    if sequence:
        maps.append(message.feature_lists.feature_list)
    for found in maps:
        for name in [name for name in found if name not in kept]:
            del found[name]
