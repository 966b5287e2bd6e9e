"""tfwire head and tfwire cat: records as a table, text, JSON or raw bytes. Examples and
SequenceExamples are shown by their features, others by their first bytes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterable, Iterator, MutableMapping
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from tfwire._interface.messages import plural, shorten, show_key, show_path
from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError
from tfwire.cli._printing import record_text
from tfwire.cli._streams import colored

if TYPE_CHECKING:
    from tfwire.cli._printing.table import Key, Table

_FIRST_RECORDS = 100  # that decide the columns of a table
_FEATURES_OF_RECORD = 1000  # of a record in a table, or one under the other


def add_head(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire head."""
    parser.add_argument(
        "-n",
        "--limit",
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
    parser.set_defaults(run=_cat, in_turn=True, full=False)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_shared(parser, "files", "--compression")
    parser.add_argument(
        "--format",
        choices=["table", "records", "json", "protojson", "text", "raw"],
        help="a table fitted to the terminal; the features of a record one under the other; a line "
        "of JSON per record; protobuf's JSON, or its text format with UTF-8 as text; or the bytes "
        "of the records one after the other (default: table on a terminal, else text)",
    )
    for name, of_what in ("records", "one record under the other"), ("json", "plain rows"):
        parser.add_argument(
            f"--{name}",
            dest="format",
            action="store_const",
            const=name,
            help=f"{of_what}: the same as --format {name}",
        )
    _add_selection(parser)
    parser.epilog = (
        "JSON: a feature of one value is that value, others are lists; strings that are not UTF-8 "
        'are {"base64": "..."}. '
        "Damaged records are left out and reported on stderr; the exit status is then 1. Of a "
        "record that is not an Example, the first bytes are shown."
    )


def _head(options: argparse.Namespace) -> int:
    """Shows the first records; long lists and strings are shortened."""
    return _show(options, options.limit)


def _cat(options: argparse.Namespace) -> int:
    """Shows every record."""
    if not options.follow:
        return _show(options, None)
    if len(options.files) != 1 or options.files == ["-"]:
        raise UsageError("--follow takes one FILE")
    return _follow(options)


def _choose_format(options: argparse.Namespace) -> None:
    """Sets the format if none is asked for.

    Raises:
        UsageError: Raw records would go to a terminal, which their bytes could control.
    """
    on_terminal = sys.stdout.isatty()
    if options.format == "raw" and on_terminal:
        raise UsageError("--format raw is for a file or a pipe, not for a terminal")
    if options.format == "raw" and options.features:
        raise UsageError("--features needs another format than raw")
    if options.format is None:
        by_record = options.full or getattr(options, "follow", False)
        options.format = ("records" if by_record else "table") if on_terminal else "text"


def _show(options: argparse.Namespace, limit: int | None) -> int:
    """Shows at most ``limit`` records of every file; returns the exit status."""
    _choose_format(options)
    chosen = RecordFilter(options.features, options.where)

    def show(name: str) -> int:
        return _show_file(name, options, chosen, limit)

    status = _arguments.for_each_file(options, show)
    for line in chosen.complaints():
        _arguments.complain(options, line)
    return status


def _show_file(
    name: str, options: argparse.Namespace, chosen: RecordFilter, limit: int | None
) -> int:
    from tfwire import TfwireWarning, read_records

    with warnings.catch_warnings():  # complain_of_damage says it
        warnings.simplefilter("ignore", TfwireWarning)
        reader = read_records(
            _arguments.input_file(name),
            options.compression,
            on_corrupt="skip",
            max_record_size=None,  # as for verify: a valid record is not damage
        )
        with reader, _Printer(options, chosen, name) as printer:
            found = (each for each in reader.with_positions() if chosen.matches(each[3]))
            for position in islice(found, limit):
                printer.show(*position)
            regions = reader.skipped
    hint = None
    if regions and not printer.shown and name != "-":
        from tfwire._interface.damage import damage_hint

        hint = damage_hint(name, options.compression)
    _arguments.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


def _follow(options: argparse.Namespace) -> int:
    """Shows the records of a file as they are written, until interrupted."""
    from tfwire import follow_records

    _choose_format(options)
    (name,) = options.files
    _arguments.check_files(name)
    chosen = RecordFilter(options.features, options.where)
    records = follow_records(name, options.compression, interval=0.2, max_record_size=None)
    with _Printer(options, chosen, name, at_once=True) as printer:
        for index, record in enumerate(records):
            if chosen.matches(record):
                printer.show(name, index, None, record)
                sys.stdout.flush()
    return 0


class _Printer:
    """Prints the records of a file in the format that was asked for.

    Args:
        options: Of the command.
        chosen: The features to show.
        name: The file.
        at_once: A table does not wait for more records.

    Attributes:
        shown: How many there were.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        chosen: RecordFilter,
        name: str,
        at_once: bool = False,
    ) -> None:
        self._options, self._chosen, self._name = options, chosen, name
        self._first = 1 if at_once else _FIRST_RECORDS
        self._table: Table | None = None
        self.shown = 0

    def __enter__(self) -> _Printer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._table is not None and error[0] is None:
            self._table.end()
        elif not self.shown and self._options.format == "table" and error[0] is None:
            print(f"{show_path(self._name)}: no records")

    def show(self, path: Any, index: int, offset: int | None, record: bytes) -> None:
        """Prints a record; in a table, when the first ones are known."""
        self.shown += 1
        form, shorten = self._options.format, self._options.command == "head"
        shorten = shorten and not self._options.full
        if form == "raw":
            sys.stdout.buffer.write(record)
        elif form == "table":
            self._add_row(index, record)
        elif form == "records":
            from tfwire.cli._printing.table import record_lines
            from tfwire.cli._printing.terminal import table_width

            self._print_title(path, index, offset, record)
            width = table_width() if shorten else sys.maxsize
            cells, left_out = self._cells(record, not shorten)
            more = [f"  and {plural(left_out, 'more feature')}"] if left_out else []
            print("\n".join([*record_lines(cells, width), *more]), end="\n\n")
        elif form == "json":
            print(self._json_line(record))
        else:
            message = record_text.parse_record(record)
            if message is not None:
                self._chosen.keep_features(*record_text.maps_of(message))
            if form == "protojson":
                print(record_text.as_protojson(message, record))
            else:
                self._print_title(path, index, offset, record)
                print(record_text.text_of_record(message, record, shorten))

    def _print_title(self, path: Any, index: int, offset: int | None, record: bytes) -> None:
        place = f"record {index}" if offset is None else f"record {index}, byte {offset}"
        kind = record_text.record_kind(record_text.decode_record(record))
        title = f"# {show_path(path or '<stdin>')}: {place}, {len(record)} bytes: {kind}"
        print(colored(title, "cyan", sys.stdout))

    def _add_row(self, index: int, record: bytes) -> None:
        if self._table is None:
            from tfwire.cli._printing.table import Table

            if len(self._options.files) > 1:
                print(colored(f"{show_path(self._name)}:", "cyan", sys.stdout))
            self._table = Table(self._first, self._options.features)
        self._table.add(index, *self._cells(record, False))

    def _cells(self, record: bytes, whole: bool) -> tuple[dict[Key, Any], int]:
        """The cells of the first features of a record, or of all; how many others there are."""
        from tfwire.cli._printing import cells, table

        decoded = record_text.decode_record(record)
        if decoded is None:
            return {table.OTHER: cells.cell_of_record(record, whole)}, 0
        self._chosen.keep_features(*decoded)
        found: dict[Key, Any] = {
            (is_list, name): cells.cell_of(values[name], is_list, whole)
            for is_list, values in zip((False, True), decoded, strict=True)
            for name in (values if whole else nsmallest(_FEATURES_OF_RECORD, values))
        }
        return found, sum(map(len, decoded)) - len(found)

    def _json_line(self, record: bytes) -> str:
        import json

        from tfwire.cli._printing.cells import json_row

        decoded = record_text.decode_record(record)
        if decoded is None:
            return json.dumps(record_text.other_as_json(record))
        self._chosen.keep_features(*decoded)
        return json.dumps(json_row(*decoded))


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
        self._misfits: dict[Condition, str] = {}  # the kind of values that no condition can fit
        self._fitting: set[Condition] = set()  # those whose feature has values of another kind
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
        held = [
            self._is_held(each, [context.get(each.name), *lists.get(each.name, ())])
            for each in self._conditions
        ]
        return all(held)

    def _is_held(self, wanted: Condition, steps: Iterable[Any]) -> bool:
        """Whether some step holds what is wanted."""
        is_held = False
        for values in steps:
            if values is not None and len(values):
                kind = _misfit(values, wanted)
                if kind is None:
                    self._fitting.add(wanted)
                    is_held |= _holds(values, wanted)
                else:
                    self._misfits[wanted] = kind
        return is_held

    def keep_features(self, *maps: MutableMapping[str, Any]) -> None:
        """Removes the features that were not asked for from those of a record."""
        if not self._names.asked:
            return
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
        for wanted, kind in self._misfits.items():
            if wanted not in self._fitting:
                why = (
                    f"no {kind} is {show_key(wanted.text)}" if wanted.whole else "~ is for strings"
                )
                yield f"--where: {show_key(wanted.name)} has {kind} values, and {why}"


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


def _number(values: Any, wanted: Condition) -> float | None:
    """What one of numbers may equal, as in the viewer's search."""
    from tfwire._interface.searches import float_of_text, int64_of_text

    return (int64_of_text if values.dtype == "int64" else float_of_text)(wanted.text)


def _misfit(values: Any, wanted: Condition) -> str | None:
    """The kind of values, if none of that kind can be what is wanted."""
    if isinstance(values, list) or (wanted.whole and _number(values, wanted) is not None):
        return None
    return "int64" if values.dtype == "int64" else "float"


def _holds(values: Any, wanted: Condition) -> bool:
    if isinstance(values, list):
        text = wanted.text.encode("utf-8", "surrogateescape")
        return any(text == value if wanted.whole else text in value for value in values)
    return bool((values == _number(values, wanted)).any())
