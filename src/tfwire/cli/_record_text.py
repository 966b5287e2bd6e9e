"""A record made readable: Examples and SequenceExamples as text or JSON, others in hexadecimal."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nsmallest
from itertools import groupby
from typing import Any

from tfwire import ParseError, example_to_json, train
from tfwire._examples.protobuf import parse_message
from tfwire._interface.messages import printable
from tfwire.view._media import likely_content

_PREVIEW = 48  # bytes
_LINE_CHARACTERS = 160
_LONGEST_LIST = 10  # values
_LONGEST_TEXT = 1000  # lines


def parse_record(record: bytes) -> Any:
    """A record as an Example or SequenceExample; None if it is neither.

    Without feature lists, the bytes of the two are the same: the result is an Example. Bytes
    without any known field are neither.
    """
    try:
        message = parse_message(train.SequenceExample, record)
    except ParseError:
        return None
    if message.HasField("feature_lists"):
        return message
    return train.Example.FromString(record) if message.HasField("context") else None


def message_kind(message: Any) -> str:
    return "other" if message is None else type(message).__name__


def list_features(message: Any, most: int) -> tuple[list[tuple[str, str, str]], int]:
    """Name, kind and size of the first features, sorted by name, the context's before the feature
    lists; and the number of all features."""
    sequence = message_kind(message) == "SequenceExample"
    context = (message.context if sequence else message.features).feature
    lists = message.feature_lists.feature_list if sequence else {}
    found = []
    for name in nsmallest(most, context):
        found.append((name, _kind(context[name]), _values([context[name]])))
    for name in nsmallest(most - len(found), lists):
        steps = lists[name].feature
        kinds = sorted({_kind(step) for step in steps}) or ["no kind"]
        found.append((name, "/".join(kinds), f"{len(steps)} steps, {_values(steps)}"))
    return found, len(context) + len(lists)


def _kind(feature: Any) -> str:
    kind = feature.WhichOneof("kind")
    return "no kind" if kind is None else str(kind).removesuffix("_list")


def _values(features: Any) -> str:
    count = size = 0
    strings = False
    for feature in features:
        kind = feature.WhichOneof("kind")
        if kind is not None:
            values = getattr(feature, kind).value
            count += len(values)
            if kind == "bytes_list":
                strings = True
                size += sum(map(len, values))
    text = f"{count} value" if count == 1 else f"{count} values"
    return f"{text}, {size} bytes" if strings else text


def text_of_record(message: Any, record: bytes, shorten: bool) -> str:
    """A record in protobuf's text format; one that is not a message (None) as a comment."""
    if message is None:
        content = likely_content(record)
        hint = "" if content is None else f"# maybe {content}\n"
        return f"# {_preview(record)}\n{hint}"
    lines = str(message).split("\n")[:-1]
    if shorten:
        lines = _shortened(lines)
    return printable_text(lines)


def printable_text(lines: Iterable[str]) -> str:
    """Lines of protobuf's text format, without characters that control a terminal."""
    return "".join(f"{printable(line, _octal)}\n" for line in lines)


def _octal(character: str) -> str:
    """The UTF-8 of a character in octal, as protobuf's text format escapes bytes."""
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def as_json(message: Any, record: bytes) -> str:
    """A record as one line of protobuf's JSON; {"other": ...} for one that is not a message."""
    import json

    if message is not None:
        return example_to_json(message)
    preview = {"bytes": len(record), "hex": record[:_PREVIEW].hex()}
    content = likely_content(record)
    return json.dumps({"other": preview if content is None else {**preview, "maybe": content}})


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
