"""tfwire head and tfwire cat: records as text, JSON or raw bytes."""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import islice
from typing import Any

from tfwire._interface.messages import show_path
from tfwire.cli import _arguments, _where
from tfwire.cli._streams import colored


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
    parser.set_defaults(run=_head)


def add_cat(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire cat."""
    _add_arguments(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="print the records of one file as they are written, until interrupted",
    )
    parser.set_defaults(run=_cat)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    _arguments.add_files(parser)
    parser.add_argument(
        "--format",
        choices=["text", "json", "raw"],
        default="text",
        help="protobuf's text format (default), one line of JSON per record, or the bytes of the "
        "records one after the other",
    )
    parser.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    _where.add_selection(parser)
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
        return _arguments.refuse(options, "--follow takes one FILE")
    return _follow(options)


def _show(options: argparse.Namespace, limit: int | None, shorten: bool) -> int:
    """Shows at most ``limit`` records of every file; returns the exit status."""
    if _arguments.stdin_twice(options, options.files) or _raw_on_terminal(options):
        return 2
    if options.features and options.format == "raw":
        return _arguments.refuse(options, "--features needs --format text or json")
    chosen = _where.RecordFilter(options.features, options.where)
    status = int(_arguments.half_published(options, options.files))
    for name in options.files:
        try:
            status |= _show_file(name, options, chosen, limit, shorten)
        except _arguments.FAULTS as error:
            status = 1
            _arguments.complain(options, _arguments.error_line(error, name))
    for line in chosen.complaints():
        _arguments.complain(options, line)
    return status


def _raw_on_terminal(options: argparse.Namespace) -> bool:
    """Whether raw records would go to a terminal, which their bytes could control; says so."""
    if options.format != "raw" or not sys.stdout.isatty():
        return False
    _arguments.complain(options, "--format raw is for a file or a pipe, not for a terminal")
    return True


def _show_file(
    name: str,
    options: argparse.Namespace,
    chosen: _where.RecordFilter,
    limit: int | None,
    shorten: bool,
) -> int:
    from tfwire import TfwireWarning, read_records
    from tfwire._interface.files import damage_hint

    with warnings.catch_warnings():  # complain_of_damage says it
        warnings.simplefilter("ignore", TfwireWarning)
        reader = read_records(
            _arguments.input_file(name),
            _arguments.chosen_compression(options),
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
        hint = damage_hint(name, _arguments.chosen_compression(options))
    _arguments.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


def _follow(options: argparse.Namespace) -> int:
    """Shows the records of a file as they are written, until interrupted."""
    from tfwire import follow_records

    if _raw_on_terminal(options):
        return 2
    (name,) = options.files
    chosen = _where.RecordFilter(options.features, options.where)
    records = follow_records(
        name, _arguments.chosen_compression(options), interval=0.2, max_record_size=None
    )
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
    chosen: _where.RecordFilter,
    shorten: bool,
) -> None:
    if options.format == "raw":
        sys.stdout.buffer.write(record)
        return
    from tfwire.cli import _record_text

    message = _record_text.parse_record(record)
    if message is not None:
        chosen.keep_features(message)
    if options.format == "json":
        shown = _record_text.as_json(message, record)
    else:
        kind = _record_text.message_kind(message)
        place = f"record {index}" if offset is None else f"record {index}, byte {offset}"
        title = f"# {show_path(path or '<stdin>')}: {place}, {len(record)} bytes: {kind}"
        title = colored(title, "cyan", sys.stdout)
        shown = f"{title}\n{_record_text.text_of_record(message, record, shorten)}"
    print(shown)
