"""tfwire merge: the records of files, one after the other, in one."""

from __future__ import annotations

import argparse

from tfwire.cli import _files, _reshard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire merge."""
    _files.add_files(parser)
    _reshard.add_arguments(parser, "the new file")
    parser.set_defaults(shards=None, shard_size=None)


def run(options: argparse.Namespace) -> int:
    """Verifies every record on its way."""
    if _files.stdin_twice(options, options.files) or not _reshard.output_is_valid(options):
        return 2
    if _files.half_published(options, options.files):
        return 1
    return _reshard.write(options, _reshard.read(options))
