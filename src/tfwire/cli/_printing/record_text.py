"""Records made readable: their features, protobuf's text and JSON, and what others may be."""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from heapq import nsmallest
from itertools import groupby
from typing import Any

from tfwire._interface.messages import plural, printable

_PREVIEW = 48  # bytes
_LINE_CHARACTERS = 160
_LONGEST_LIST = 10  # values
_LONGEST_TEXT = 1000  # lines
# A run of bytes that are not ASCII, or another escape.
_ESCAPED_BYTES = re.compile(r"((?:\\[23][0-7]{2})+)|\\.")

Decoded = tuple[dict[str, Any], dict[str, list[Any]]]
"""The features of an Example or of a context, and the feature lists."""


def decode_record(record: bytes) -> Decoded | None:
    """The values of an Example or SequenceExample; None if it is neither.

    Without feature lists, the bytes of the two are the same: the result is an Example. What has no
    features, but other fields, is neither.
    """
    from tfwire import ParseError, decode_sequence_example

    try:
        return decode_sequence_example(record)
    except ParseError:
        return None


def record_kind(decoded: Decoded | None) -> str:
    if decoded is None:
        return "other"
    return "SequenceExample" if decoded[1] else "Example"


def parse_record(record: bytes) -> Any:
    """A record as a message of protobuf; None if it is neither Example nor SequenceExample."""
    decoded = decode_record(record)
    if decoded is None:
        return None
    from tfwire import train
    from tfwire._examples.protobuf import parse_message

    return parse_message(train.SequenceExample if decoded[1] else train.Example, record)


def maps_of(message: Any) -> list[MutableMapping[str, Any]]:
    """The features of a message, and its feature lists."""
    if type(message).__name__ == "Example":
        return [message.features.feature]
    return [message.context.feature, message.feature_lists.feature_list]


def list_features(decoded: Decoded, most: int) -> tuple[list[tuple[str, str, str]], int]:
    """Name, kind and size of the first features, sorted by name, the context's before the feature
    lists; and the number of all features."""
    features, lists = decoded
    found = []
    for name in nsmallest(most, features):
        found.append((name, _kinds([features[name]]), _size_of([features[name]])))
    for name in nsmallest(most - len(found), lists):
        steps = lists[name]
        found.append((name, _kinds(steps), f"{plural(len(steps), 'step')}, {_size_of(steps)}"))
    return found, len(features) + len(lists)


def _kinds(steps: list[Any]) -> str:
    from tfwire.cli._printing.cells import kind_of

    return "/".join(sorted({kind_of(values) for values in steps} - {""})) or "empty"


def _size_of(steps: list[Any]) -> str:
    from tfwire.cli._printing.cells import kind_of

    text = plural(sum(map(len, steps)), "value")
    strings = [values for values in steps if kind_of(values) == "string"]
    size = sum(len(value) for values in strings for value in values)
    return f"{text}, {plural(size, 'byte')}" if strings else text


def text_of_record(message: Any, record: bytes, shorten: bool) -> str:
    """A record in protobuf's text format; one that is not a message (None) as a comment."""
    if message is None:
        content = _likely_content(record)
        hint = "" if content is None else f"# maybe {content}\n"
        return f"# {_preview(record)}\n{hint}"
    lines = list(map(_readable, str(message).split("\n")[:-1]))
    if shorten:
        lines = _shortened(lines)
    return printable_text(lines)


def printable_text(lines: Iterable[str]) -> str:
    """Lines of protobuf's text format, without characters that control a terminal."""
    return "".join(f"{printable(line, _octal)}\n" for line in lines)


def _readable(line: str) -> str:
    """A line of protobuf's text format, which escapes all but ASCII, with a string that is UTF-8 as
    text. It parses back to the same bytes."""

    def text(match: re.Match[str]) -> str:
        run = match[1]
        return bytes(int(code, 8) for code in run.split("\\")[1:]).decode() if run else match[0]

    try:
        return _ESCAPED_BYTES.sub(text, line)
    except UnicodeDecodeError:
        return line


def _octal(character: str) -> str:
    """The UTF-8 of a character in octal, as protobuf's text format escapes bytes."""
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def as_protojson(message: Any, record: bytes) -> str:
    """A record as one line of protobuf's JSON; {"other": ...} for one that is not a message."""
    import json

    from tfwire import example_to_json

    return json.dumps(other_as_json(record)) if message is None else example_to_json(message)


def other_as_json(record: bytes) -> dict[str, Any]:
    """What is known of a record that is not an Example."""
    preview = {"bytes": len(record), "hex": record[:_PREVIEW].hex()}
    content = _likely_content(record)
    return {"other": preview if content is None else {**preview, "maybe": content}}


def _likely_content(record: bytes) -> str | None:
    from tfwire.view import _media

    return _media.likely_content(record)


def _preview(record: bytes) -> str:
    head = record[:_PREVIEW]
    more = " ..." if len(record) > _PREVIEW else ""
    printable = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in head)
    return f"{head.hex(' ')}{more} |{printable}|" if record else "empty"


def _shortened(text: list[str]) -> list[str]:
    """Lines without the end of long lists, long strings and long texts; a comment says how much is
    missing."""
    lines: list[str] = []
    for value, group in groupby(text, lambda line: line.lstrip().startswith("value:")):
        found = list(group)
        if value and len(found) > _LONGEST_LIST:
            indent = found[0][: len(found[0]) - len(found[0].lstrip())]
            left = len(found) - _LONGEST_LIST
            found = [*found[:_LONGEST_LIST], f"{indent}# {left} more values"]
        lines += map(_shortened_line, found)
    left = len(lines) - _LONGEST_TEXT
    return lines if left <= 0 else [*lines[:_LONGEST_TEXT], f"# {left} more lines"]


def _shortened_line(line: str) -> str:
    if len(line) <= _LINE_CHARACTERS:
        return line
    return f"{line[:_LINE_CHARACTERS]}  # {len(line) - _LINE_CHARACTERS} more characters"
