"""What tfwire split, merge and shuffle have in common: records into new files that appear
together, when all are complete."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tfwire._text import show_path
from tfwire.cli import _files, _outputs
from tfwire.cli._progress import Progress

if TYPE_CHECKING:
    from tfwire.sharding import ShardedWriter

_COMPRESSIONS = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
_EPILOG = (
    "No file appears before all are complete, and none when a record of the input is damaged "
    "(see tfwire repair) or the input is a set of shards that is half published. Exit status: 0, "
    "1 when the input is at fault, 2 for wrong usage."
)


def add_arguments(parser: argparse.ArgumentParser, output_help: str) -> None:
    """The output, and how it is written."""
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=output_help)
    parser.add_argument(
        "--output-compression",
        type=str.lower,
        choices=_COMPRESSIONS,
        default="none",
        help="compression of the output (default: none)",
    )
    parser.add_argument("--index", action="store_true", help="save an index beside every file")
    parser.add_argument(
        "--jobs",
        type=_files.positive,
        default=1,
        help="files written at a time (default: 1)",
    )
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.epilog = _EPILOG


def add_counts(parser: argparse.ArgumentParser, required: bool) -> None:
    """How many files to write."""
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument(
        "--shards",
        type=_files.positive,
        metavar="N",
        help="write N files in turn, a record each",
    )
    group.add_argument(
        "--shard-size",
        type=_files.size,
        metavar="SIZE",
        help="fill files of at most this size in turn, like 150MB or 1GiB",
    )


def read(options: argparse.Namespace) -> Iterator[list[bytes]]:
    """All records of the input in pieces, with progress."""
    from tfwire._records.payloads import chunks
    from tfwire.records import read_records

    progress = Progress(sum(map(_files.file_size, options.files)))
    for name in options.files:
        size, done = _files.file_size(name), 0
        records = read_records(_files.input_of(name), _files.compression_of(options))
        for piece in chunks(records):
            yield piece
            done += sum(map(len, piece))
            progress.update(name, min(done, size) if size else done)
        progress.update(name, size or done)
    progress.clear()


def write(options: argparse.Namespace, pieces: Iterable[Sequence[bytes]], **facts: Any) -> int:
    """Writes records to new files and reports them; the exit status.

    Args:
        options: With those that ``add_arguments`` and ``add_counts`` add.
        pieces: The records.
        facts: For the report.
    """
    from tfwire.sharding import ShardedWriter

    with ShardedWriter(
        options.output,
        shard_size=options.shard_size,
        num_shards=_num_shards(options),
        options=_COMPRESSIONS[options.output_compression],
        index=options.index,
        num_threads=options.jobs,
    ) as writer:
        for piece in pieces:
            writer.write_many(piece)
    _report(options, writer, facts)
    return 0


def _num_shards(options: argparse.Namespace) -> int | None:
    count: int | None = options.shards
    return 1 if count is None and options.shard_size is None else count


def output_is_valid(options: argparse.Namespace) -> bool:
    """Whether the output can be written; says why not. For before any input is read."""
    problem = _outputs.problem_of_pattern(options.output, _num_shards(options))
    problem = problem or _outputs.problem_of_output(options, options.files, pattern=True)
    if problem is not None:
        _files.complain(options, problem)
    return problem is None


def _report(options: argparse.Namespace, writer: ShardedWriter, facts: dict[str, Any]) -> None:
    paths = writer.paths or []
    if options.json:
        _files.print_json({"records": writer.num_records, "files": paths, **facts})
        return
    for path in paths:
        print(show_path(path))
    details = "".join(f", {name} {value}" for name, value in facts.items())
    files = _files.plural(len(paths), "file")
    print(f"{files}, {_files.plural(writer.num_records, 'record')}{details}")
