"""What tfwire head and tfwire cat have in common: records, one after the other, on stdout."""

from __future__ import annotations

import argparse
import sys
import warnings
from itertools import islice
from typing import Any

from tfwire._text import show_path
from tfwire.cli import _files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """FILE... and --format."""
    _files.add_files(parser)
    parser.add_argument(
        "--format",
        choices=["text", "json", "raw"],
        default="text",
        help="protobuf's text format (default), one line of JSON per record, or the bytes of the "
        "records one after the other",
    )
    parser.epilog = (
        "Damaged records are left out and reported on stderr; the exit status is then 1. Of a "
        "record that is not an Example, text and JSON show the first bytes."
    )


def show(options: argparse.Namespace, limit: int | None, shorten: bool) -> int:
    """Shows at most limit records of every file."""
    if _files.stdin_twice(options, options.files) or _raw_on_terminal(options):
        return 2
    status = int(_files.half_published(options, options.files))
    for name in options.files:
        try:
            status |= _show_file(name, options, limit, shorten)
        except _files.FAULTS as error:
            status = 1
            _files.complain(options, _files.reason_of(error, name))
    return status


def _raw_on_terminal(options: argparse.Namespace) -> bool:
    """Whether records, which may hold any bytes, would control a terminal; says so."""
    if options.format != "raw" or not sys.stdout.isatty():
        return False
    _files.complain(options, "--format raw is for a file or a pipe, not for a terminal")
    return True


def _show_file(name: str, options: argparse.Namespace, limit: int | None, shorten: bool) -> int:
    from tfwire.errors import TfwireWarning
    from tfwire.records import read_records
    from tfwire.verification import hint_of

    with warnings.catch_warnings():  # what was left out is said here
        warnings.simplefilter("ignore", TfwireWarning)
        reader = read_records(
            _files.input_of(name), _files.compression_of(options), on_corrupt="skip"
        )
        with reader:
            shown = 0
            for position in islice(reader.with_positions(), limit):
                _show_record(*position, options.format, shorten)
                shown += 1
            regions = reader.skipped
    hint = None
    if regions and not shown and name != "-":
        hint = hint_of(name, _files.compression_of(options))
    _files.complain_of_damage(options, name, regions, hint)
    return int(bool(regions))


def follow(options: argparse.Namespace) -> int:
    """Shows the records of a file as they are written, without end."""
    from tfwire.records import follow_records

    if _raw_on_terminal(options):
        return 2
    (name,) = options.files
    records = follow_records(name, _files.compression_of(options), interval=0.2)
    for index, record in enumerate(records):
        _show_record(name, index, None, record, options.format, shorten=False)
        sys.stdout.flush()
    return 0


def _show_record(
    path: Any, index: int, offset: int | None, record: bytes, format_name: str, shorten: bool
) -> None:
    if format_name == "raw":
        sys.stdout.buffer.write(record)
        return
    from tfwire.cli import _records

    if format_name == "json":
        shown = _records.as_json(record)
    else:
        kind = _records.kind_of(_records.message_of(record))
        place = f"record {index}" if offset is None else f"record {index}, byte {offset}"
        title = f"# {show_path(path or '<stdin>')}: {place}, {len(record)} bytes: {kind}"
        shown = f"{title}\n{_records.as_text(record, shorten)}"
    print(shown)
