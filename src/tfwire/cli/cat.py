"""tfwire cat: all records."""

from __future__ import annotations

import argparse

from tfwire.cli import _files, _show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire cat."""
    _show.add_arguments(parser)
    parser.add_argument(
        "--follow",
        action="store_true",
        help="print the records of one file as they are written, until interrupted",
    )


def run(options: argparse.Namespace) -> int:
    """Shows every record whole."""
    if not options.follow:
        return _show.show(options, limit=None, shorten=False)
    if len(options.files) != 1 or options.files == ["-"]:
        _files.complain(options, "--follow takes one FILE")
        return 2
    return _show.follow(options)
