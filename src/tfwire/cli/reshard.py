"""tfwire split, merge and shuffle: the records of files in new files, which appear together."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, show_path
from tfwire.cli import _arguments
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire import ShardedWriter, TFRecordFiles

_EPILOG = (
    "No file appears before all are complete, and none when a record of the input is damaged "
    "(see tfwire repair) or the input is a set of shards that is half published. Exit status: 0, "
    "1 when the input is at fault, 2 for wrong usage."
)


def add_split(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire split."""
    _arguments.add_shared(parser, "files", "--compression")
    _add_output(parser, "the new files, like 'train-{shard:05d}-of-{shards:05d}.tfrecord'")
    _add_counts(parser, required=True)
    parser.set_defaults(run=_reshard)


def add_merge(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire merge."""
    _arguments.add_shared(parser, "files", "--compression")
    _add_output(parser, "the new file")
    parser.set_defaults(run=_reshard, num_shards=None, shard_size=None)


def add_shuffle(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire shuffle."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a TFRecord file")
    _add_output(parser, "the new file, or files: as for tfwire split")
    _add_counts(parser, required=False)
    parser.add_argument(
        "--seed",
        type=_arguments.count,
        help="the same seed gives the same order (default: another every time)",
    )
    parser.add_argument(
        "--memory",
        type=_arguments.byte_size,
        default="512MB",
        metavar="SIZE",
        help="memory for records (default: %(default)s)",
    )
    parser.set_defaults(run=_shuffle)


def _add_output(parser: argparse.ArgumentParser, output_help: str) -> None:
    """The output, and how it is written."""
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=output_help)
    _arguments.add_shared(parser, "--output-compression", "--force", "--json")
    parser.add_argument("--index", action="store_true", help="save an index beside every file")
    parser.add_argument(
        "-j",
        "--jobs",
        type=_arguments.positive,
        default=1,
        help="files written at a time (default: 1)",
    )
    parser.epilog = _EPILOG


def _add_counts(parser: argparse.ArgumentParser, required: bool) -> None:
    """The number or size of the new files."""
    group = parser.add_mutually_exclusive_group(required=required)
    _arguments.add_shared(group, "--shards", "--shard-size")


def _reshard(options: argparse.Namespace) -> int:
    """Copies records in their order; every one is verified."""
    _arguments.check_stdin(options.files)
    _check_output(options)
    if _arguments.half_published(options, options.files):
        return 1
    return _write(options, _read(options))


def _shuffle(options: argparse.Namespace) -> int:
    """Reads records in random order, by saved indexes or by indexes built in memory."""
    import secrets

    from tfwire import TFRecordFiles

    if "-" in options.files:
        reason = "stdin cannot be shuffled: records are read by their numbers"
        raise _arguments.UsageError(reason)
    _check_output(options)
    if _arguments.half_published(options, options.files):
        return 1
    seed = secrets.randbits(32) if options.seed is None else options.seed
    with TFRecordFiles(options.files) as records:
        return _write(options, _shuffled(records, seed, options.memory), seed=seed)


def _shuffled(records: TFRecordFiles, seed: int, memory: int) -> Iterator[list[bytes]]:
    """All records in random order, in pieces of about ``memory`` bytes, with progress."""
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


def _read(options: argparse.Namespace) -> Iterator[list[bytes]]:
    """All records of the input in pieces, with progress."""
    from tfwire import read_records
    from tfwire._interface.files import chunks

    progress = Progress(sum(map(_arguments.file_size, options.files)))
    for name in options.files:
        size, done = _arguments.file_size(name), 0
        records = read_records(
            _arguments.input_file(name), options.compression, max_record_size=None
        )
        for piece in chunks(records):
            yield piece
            done += sum(map(len, piece))
            progress.update(name, min(done, size) if size else done)
        progress.update(name, size or done)
    progress.clear()


def _write(options: argparse.Namespace, pieces: Iterable[Sequence[bytes]], **facts: Any) -> int:
    """Writes records to new files and reports them; returns the exit status.

    Args:
        options: With those of ``_add_output`` and ``_add_counts``.
        pieces: The records.
        facts: More values for the report.
    """
    from tfwire import ShardedWriter

    with ShardedWriter(
        options.output,
        shard_size=options.shard_size,
        num_shards=_arguments.num_shards(options),
        options=_arguments.OUTPUT_COMPRESSIONS[options.output_compression],
        index=options.index,
        num_threads=options.jobs,
    ) as writer:
        for piece in pieces:
            writer.write_many(piece)
    _report(options, writer, facts)
    return 0


def _check_output(options: argparse.Namespace) -> None:
    """Before any input is read."""
    _arguments.choose_compression(options)
    _arguments.check_output(
        options.output, options.files, options.force, _arguments.num_shards(options)
    )


def _report(options: argparse.Namespace, writer: ShardedWriter, facts: dict[str, Any]) -> None:
    paths = writer.paths or []
    if options.json:
        _arguments.print_json({"records": writer.num_records, "files": paths, **facts})
        return
    for path in paths:
        print(show_path(path))
    details = "".join(f", {name} {value}" for name, value in facts.items())
    files = plural(len(paths), "file")
    print(f"{files}, {plural(writer.num_records, 'record')}{details}")
