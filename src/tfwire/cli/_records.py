"""Records made readable: Examples and SequenceExamples as text or JSON, others in hexadecimal."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from tfwire import train
from tfwire._examples.protobuf import parse_message
from tfwire.errors import ParseError
from tfwire.json_format import example_to_json

__all__ = ["as_json", "as_text", "features_of", "kind_of", "message_of"]

_PREVIEW = 48  # bytes
_LONGEST_LINE = 160  # characters
_LONGEST_LIST = 10  # values


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


def features_of(message: Any) -> list[tuple[str, str, str]]:
    """Name, kind and size of every feature, sorted by name, the context's before the lists."""
    sequence = kind_of(message) == "SequenceExample"
    context = (message.context if sequence else message.features).feature
    found = [(name, _kind(context[name]), _values([context[name]])) for name in sorted(context)]
    if sequence:
        lists = message.feature_lists.feature_list
        for name in sorted(lists):
            steps = lists[name].feature
            kinds = sorted({_kind(step) for step in steps}) or ["no kind"]
            found.append((name, "/".join(kinds), f"{len(steps)} steps, {_values(steps)}"))
    return found


def _kind(feature: Any) -> str:
    kind = feature.WhichOneof("kind")
    return "no kind" if kind is None else str(kind).removesuffix("_list")


def _values(features: Any) -> str:
    kinds = [(feature, feature.WhichOneof("kind")) for feature in features]
    lists = [getattr(feature, kind).value for feature, kind in kinds if kind is not None]
    count = sum(map(len, lists))
    text = f"{count} value" if count == 1 else f"{count} values"
    if any(kind == "bytes_list" for _, kind in kinds):
        text += f", {sum(len(v) for values in lists for v in values if isinstance(v, bytes))} bytes"
    return text


def as_text(record: bytes, shorten: bool) -> str:
    """A record in protobuf's text format; others as a comment in it."""
    message = message_of(record)
    if message is None:
        return f"# {_preview(record)}\n"
    text = str(message)
    return _shortened(text) if shorten else text


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


def _shortened(text: str) -> str:
    """Long lists without their middle, long strings without their end; what is missing is said."""
    lines: list[str] = []
    for value, group in groupby(text.splitlines(), lambda line: line.lstrip().startswith("value:")):
        found = list(group)
        if value and len(found) > _LONGEST_LIST:
            indent = found[0][: len(found[0]) - len(found[0].lstrip())]
            left = len(found) - _LONGEST_LIST
            found = [*found[:_LONGEST_LIST], f"{indent}# {left} more values"]
        lines += map(_shortened_line, found)
    return "".join(f"{line}\n" for line in lines)


def _shortened_line(line: str) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[:_LONGEST_LINE]}  # {len(line) - _LONGEST_LINE} more characters"
