"""tfwire shuffle: the records of files in an order of which every one is equally likely."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfwire.cli import _files, _reshard
from tfwire.cli._progress import Progress

if TYPE_CHECKING:
    from tfwire.index import TFRecordFiles


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire shuffle."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a TFRecord file")
    _reshard.add_arguments(parser, "the new file, or files: as for tfwire split")
    _reshard.add_counts(parser, required=False)
    parser.add_argument(
        "--seed",
        type=_files.count,
        help="the same seed gives the same order (default: another every time)",
    )
    parser.add_argument(
        "--memory",
        type=_files.size,
        default="512MB",
        metavar="SIZE",
        help="memory for records (default: %(default)s)",
    )


def run(options: argparse.Namespace) -> int:
    """Reads the records by an index, saved beside the files or made in memory."""
    import secrets

    from tfwire.index import TFRecordFiles

    if "-" in options.files:
        reason = "stdin cannot be shuffled: records are read by their numbers"
        return _files.refuse(options, reason)
    if not _reshard.output_is_valid(options):
        return 2
    if _files.half_published(options, options.files):
        return 1
    seed = secrets.randbits(32) if options.seed is None else options.seed
    with TFRecordFiles(options.files) as records:
        return _reshard.write(options, _shuffled(records, seed, options.memory), seed=seed)


def _shuffled(records: TFRecordFiles, seed: int, memory: int) -> Iterator[list[bytes]]:
    """All records in random order, in pieces of about so many bytes, with progress."""
    import numpy as np

    size = sum(int(index.offsets[-1]) for index in records.indexes)
    order = np.arange(len(records), dtype=np.uint32 if len(records) < 1 << 32 else np.uint64)
    np.random.default_rng(seed).shuffle(order)
    at_once = max(1, memory * len(records) // max(1, size))
    progress = Progress(size)
    for first in range(0, len(order), at_once):
        yield records[order[first : first + at_once].astype(np.int64)]
        progress.update("", size * min(first + at_once, len(order)) // len(order))
    progress.clear()
