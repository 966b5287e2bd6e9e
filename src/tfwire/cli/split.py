"""tfwire split: the records of files in others, of equal number or size."""

from __future__ import annotations

import argparse

from tfwire.cli import _files, _reshard


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire split."""
    _files.add_files(parser)
    _reshard.add_arguments(
        parser, "the new files, like 'train-{shard:05d}-of-{shards:05d}.tfrecord'"
    )
    _reshard.add_counts(parser, required=True)


def run(options: argparse.Namespace) -> int:
    """Verifies every record on its way."""
    if _files.stdin_twice(options, options.files) or not _reshard.output_is_valid(options):
        return 2
    if _files.half_published(options, options.files):
        return 1
    return _reshard.write(options, _reshard.read(options))
