"""tfwire head: the first records."""

from __future__ import annotations

import argparse

from tfwire.cli import _files, _show


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    _show.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Shows the first records; as text, long lists and strings are shortened."""
    return _show.show(options, limit=options.records, shorten=not options.full)
