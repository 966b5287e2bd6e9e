"""tfwire count: how many records files hold."""

from __future__ import annotations

import argparse

from tfwire._text import show_path
from tfwire.cli import _files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire count."""
    _files.add_files(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON per file")


def run(options: argparse.Namespace) -> int:
    """Counts the records that verify; damage is said on stderr."""
    from tfwire.verification import verify_file

    if _files.stdin_twice(options, options.files):
        return 2
    total, status = 0, int(_files.half_published(options, options.files))
    for name in options.files:
        try:
            report = verify_file(
                _files.input_of(name), compression_type=_files.compression_of(options)
            )
        except _files.FAULTS as error:
            status = 1
            _files.complain(options, _files.reason_of(error, name))
            continue
        total += report.records
        if options.json:
            _files.print_json(
                {"path": report.path, "records": report.records, "intact": report.intact}
            )
        else:
            print(f"{report.records:>12} {show_path(report.path)}")
        status |= not report.intact
        _files.complain_of_damage(options, report.path, report.regions, report.hint)
    if len(options.files) > 1 and not options.json:
        print(f"{total:>12} total")
    return status
