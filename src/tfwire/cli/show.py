"""tfwire head and tfwire cat: records as text, JSON or raw bytes."""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import islice
from typing import Any

from tfwire._base.text import show_path
from tfwire.cli import _files, _selection
from tfwire.cli._streams import colored


def add_head(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire head."""
    parser.add_argument(
        "-n",
        "--records",
        type=_files.count,
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
    _files.add_files(parser)
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
    _selection.add_selection(parser)
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
        return _files.refuse(options, "--follow takes one FILE")
    return _follow(options)


def _show(options: argparse.Namespace, limit: int | None, shorten: bool) -> int:
    """Shows at most ``limit`` records of every file; returns the exit status."""
    if _files.stdin_twice(options, options.files) or _raw_on_terminal(options):
        return 2
    if options.features and options.format == "raw":
        return _files.refuse(options, "--features needs --format text or json")
    chosen = _selection.RecordFilter(options.features, options.where)
    status = int(_files.half_published(options, options.files))
    for name in options.files:
        try:
            status |= _show_file(name, options, chosen, limit, shorten)
        except _files.FAULTS as error:
            status = 1
            _files.complain(options, _files.error_line(error, name))
    for line in chosen.complaints():
        _files.complain(options, line)
    return status


def _raw_on_terminal(options: argparse.Namespace) -> bool:
    """Whether raw records would go to a terminal, which their bytes could control; says so."""
    if options.format != "raw" or not sys.stdout.isatty():
        return False
    _files.complain(options, "--format raw is for a file or a pipe, not for a terminal")
    return True


def _show_file(
    name: str,
    options: argparse.Namespace,
    chosen: _selection.RecordFilter,
    limit: int | None,
    shorten: bool,
) -> int:
    from tfwire._base.errors import TfwireWarning
    from tfwire._records.reader import read_records
    from tfwire._records.verify import damage_hint

    with warnings.catch_warnings():  # complain_of_damage says it
        warnings.simplefilter("ignore", TfwireWarning)
        reader = read_records(
            _files.input_file(name),
            _files.chosen_compression(options),
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
        hint = damage_hint(name, _files.chosen_compression(options))
    _files.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


def _follow(options: argparse.Namespace) -> int:
    """Shows the records of a file as they are written, until interrupted."""
    from tfwire._records.following import follow_records

    if _raw_on_terminal(options):
        return 2
    (name,) = options.files
    chosen = _selection.RecordFilter(options.features, options.where)
    records = follow_records(
        name, _files.chosen_compression(options), interval=0.2, max_record_size=None
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
    chosen: _selection.RecordFilter,
    shorten: bool,
) -> None:
    if options.format == "raw":
        sys.stdout.buffer.write(record)
        return
    from tfwire.cli import _text

    message = _text.parse_record(record)
    if message is not None:
        chosen.keep_features(message)
    if options.format == "json":
        shown = _text.as_json(message, record)
    else:
        kind = _text.message_kind(message)
        place = f"record {index}" if offset is None else f"record {index}, byte {offset}"
        title = f"# {show_path(path or '<stdin>')}: {place}, {len(record)} bytes: {kind}"
        title = colored(title, "cyan", sys.stdout)
        shown = f"{title}\n{_text.text_of_record(message, record, shorten)}"
    print(shown)
