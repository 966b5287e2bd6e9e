"""Records made readable: Examples and SequenceExamples as text or JSON, others in hexadecimal."""

from __future__ import annotations

from heapq import nsmallest
from itertools import groupby
from typing import Any

from tfwire import train
from tfwire._examples.protobuf import parse_message
from tfwire._text import printable
from tfwire.errors import ParseError
from tfwire.json_format import example_to_json

__all__ = ["as_json", "as_text", "features_of", "kind_of", "message_of"]

_PREVIEW = 48  # bytes
_LONGEST_LINE = 160  # characters
_LONGEST_LIST = 10  # values
_LONGEST_TEXT = 1000  # lines


def message_of(record: bytes) -> Any:
    """The Example or SequenceExample that a record is, or None.

    A SequenceExample is an Example with feature lists, and the bytes do not say which of the two
    was meant where there are none: an Example then. Bytes of which protobuf knows no field are
    none of either.
    """
    try:
        message = parse_message(train.SequenceExample, record)
    except ParseError:
        return None
    if message.HasField("feature_lists"):
        return message
    return train.Example.FromString(record) if message.HasField("context") else None


def kind_of(message: Any) -> str:
    return "other" if message is None else type(message).__name__


def features_of(message: Any, most: int) -> tuple[list[tuple[str, str, str]], int]:
    """Name, kind and size of the first features, sorted by name, the context's before the lists;
    and how many there are in all."""
    sequence = kind_of(message) == "SequenceExample"
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


def as_text(record: bytes, shorten: bool) -> str:
    """A record in protobuf's text format; others as a comment in it."""
    message = message_of(record)
    if message is None:
        return f"# {_preview(record)}\n"
    lines = str(message).split("\n")[:-1]
    if shorten:
        lines = _shortened(lines)
    return "".join(f"{printable(line, _octal)}\n" for line in lines)


def _octal(character: str) -> str:
    """The UTF-8 of a character, as protobuf's text format writes bytes that it does not show."""
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def as_json(record: bytes) -> str:
    """A record as one line in protobuf's JSON form; {"other": ...} for what is no Example."""
    import json

    message = message_of(record)
    if message is not None:
        return example_to_json(message)
    preview = {"bytes": len(record), "hex": record[:_PREVIEW].hex()}
    return json.dumps({"other": preview})


def _preview(record: bytes) -> str:
    head = record[:_PREVIEW]
    more = " ..." if len(record) > _PREVIEW else ""
    printable = "".join(chr(b) if 0x20 <= b < 0x7F else "." for b in head)
    return f"{head.hex(' ')}{more} |{printable}|" if record else "empty"


def _shortened(text: list[str]) -> list[str]:
    """Long lists and long texts without their end, long strings without theirs; what is missing is
    said."""
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
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}  # {len(line) - _LONGEST_LINE} more characters"
