"""tfwire head and tfwire cat: records as text, JSON or raw bytes. Examples and SequenceExamples are
shown in protobuf's forms, others in hexadecimal.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from itertools import groupby, islice
from typing import Any, NamedTuple

from tfwire._interface.messages import printable, shorten, show_key, show_path
from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError
from tfwire.cli._streams import colored

_PREVIEW = 48  # bytes
_LINE_CHARACTERS = 160
_LONGEST_LIST = 10  # values
_LONGEST_TEXT = 1000  # lines
# A run of bytes that are not ASCII, or another escape.
_ESCAPED_BYTES = re.compile(r"((?:\\[23][0-7]{2})+)|\\.")


def add_head(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire head."""
    parser.add_argument(
        "-n",
        "--records",
        type=_arguments.count,
        default=10,
        metavar="N",
        help="number of records from each file (default: %(default)s)",
    )
    parser.add_argument(
        "--full", action="store_true", help="do not shorten long lists, strings and records"
    )
    _add_arguments(parser)
    parser.set_defaults(run=_head, in_turn=True)


def add_cat(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire cat."""
    _add_arguments(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="print the records of one file as they are written, until interrupted",
    )
    parser.set_defaults(run=_cat, in_turn=True)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_shared(parser, "files", "--compression")
    parser.add_argument(
        "--format",
        choices=["text", "json", "raw"],
        default="text",
        help="protobuf's text format with UTF-8 as text (default), one line of JSON per record, or "
        "the bytes of the records one after the other",
    )
    parser.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    _add_selection(parser)
    parser.epilog = (
        "Damaged records are left out and reported on stderr; the exit status is then 1. Of a "
        "record that is not an Example, text and JSON show the first bytes. For jq and its like: "
        "--json."
    )


def _head(options: argparse.Namespace) -> int:
    """Shows the first records; as text, long lists and strings are shortened."""
    return _show(options, limit=options.records, shorten=not options.full)


def _cat(options: argparse.Namespace) -> int:
    """Shows every record whole."""
    if not options.follow:
        return _show(options, limit=None, shorten=False)
    if len(options.files) != 1 or options.files == ["-"]:
        raise UsageError("--follow takes one FILE")
    return _follow(options)


def _show(options: argparse.Namespace, limit: int | None, shorten: bool) -> int:
    """Shows at most ``limit`` records of every file; returns the exit status."""
    _check_raw(options)
    if options.features and options.format == "raw":
        raise UsageError("--features needs --format text or json")
    chosen = RecordFilter(options.features, options.where)

    def show(name: str) -> int:
        return _show_file(name, options, chosen, limit, shorten)

    status = _arguments.for_each_file(options, show)
    for line in chosen.complaints():
        _arguments.complain(options, line)
    return status


def _check_raw(options: argparse.Namespace) -> None:
    """Raises UsageError if raw records would go to a terminal, which their bytes could control."""
    if options.format == "raw" and sys.stdout.isatty():
        raise UsageError("--format raw is for a file or a pipe, not for a terminal")


def _show_file(
    name: str,
    options: argparse.Namespace,
    chosen: RecordFilter,
    limit: int | None,
    shorten: bool,
) -> int:
    from tfwire import TfwireWarning, read_records
    from tfwire._interface.files import damage_hint

    with warnings.catch_warnings():  # complain_of_damage says it
        warnings.simplefilter("ignore", TfwireWarning)
        reader = read_records(
            _arguments.input_file(name),
            options.compression,
            on_corrupt="skip",
            max_record_size=None,  # as for verify: a valid record is not damage
        )
        with reader:
            shown = 0
            found = (each for each in reader.with_positions() if chosen.matches(each[3]))
            for position in islice(found, limit):
                _show_record(*position, options, chosen, shorten)
                shown += 1
            regions = reader.skipped
    hint = None
    if regions and not shown and name != "-":
        hint = damage_hint(name, options.compression)
    _arguments.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


def _follow(options: argparse.Namespace) -> int:
    """Shows the records of a file as they are written, until interrupted."""
    from tfwire import follow_records

    _check_raw(options)
    (name,) = options.files
    _arguments.check_files(name)
    chosen = RecordFilter(options.features, options.where)
    records = follow_records(name, options.compression, interval=0.2, max_record_size=None)
    for index, record in enumerate(records):
        if chosen.matches(record):
            _show_record(name, index, None, record, options, chosen, shorten=False)
            sys.stdout.flush()
    return 0


def _show_record(
    path: Any,
    index: int,
    offset: int | None,
    record: bytes,
    options: argparse.Namespace,
    chosen: RecordFilter,
    shorten: bool,
) -> None:
    if options.format == "raw":
        sys.stdout.buffer.write(record)
        return
    message = parse_record(record)
    if message is not None:
        chosen.keep_features(message)
    if options.format == "json":
        shown = as_json(message, record)
    else:
        kind = message_kind(message)
        place = f"record {index}" if offset is None else f"record {index}, byte {offset}"
        title = f"# {show_path(path or '<stdin>')}: {place}, {len(record)} bytes: {kind}"
        title = colored(title, "cyan", sys.stdout)
        shown = f"{title}\n{text_of_record(message, record, shorten)}"
    print(shown)


# ---- Records made readable ----------------------------------------------------------------------


def parse_record(record: bytes) -> Any:
    """A record as an Example or SequenceExample; None if it is neither.

    Without feature lists, the bytes of the two are the same: the result is an Example. What has no
    features, but other fields, is neither.
    """
    from tfwire import ParseError, decode_sequence_example, train
    from tfwire._examples.protobuf import parse_message

    try:
        message = parse_message(train.SequenceExample, record)
        if not (message.context.feature or message.feature_lists.feature_list):
            decode_sequence_example(record)
    except ParseError:
        return None
    if message.HasField("feature_lists"):
        return message
    return train.Example.FromString(record)


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


def as_json(message: Any, record: bytes) -> str:
    """A record as one line of protobuf's JSON; {"other": ...} for one that is not a message."""
    import json

    from tfwire import example_to_json

    if message is not None:
        return example_to_json(message)
    preview = {"bytes": len(record), "hex": record[:_PREVIEW].hex()}
    content = _likely_content(record)
    return json.dumps({"other": preview if content is None else {**preview, "maybe": content}})


def _likely_content(record: bytes) -> str | None:
    from tfwire.view._media import likely_content

    return likely_content(record)


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


# ---- Records and features that were asked for: --where and --features ---------------------------


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


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--features",
        type=lambda text: text.split(","),
        default=[],
        metavar="NAMES",
        help="show only these features, separated by commas",
    )
    parser.add_argument(
        "--where",
        type=_condition,
        action="append",
        default=[],
        metavar="COND",
        help="only records with a feature of this value: NAME=VALUE, or NAME~TEXT for strings that "
        "hold a text; of a feature list, some step must have it; given several times, all must "
        "hold",
    )


def _condition(text: str) -> Condition:
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
