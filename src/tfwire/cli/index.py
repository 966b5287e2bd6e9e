"""tfwire index: indexes of records, saved beside the files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tfwire._interface.messages import plural, show_path
from tfwire.cli import _arguments
from tfwire.cli._arguments import UsageError
from tfwire.cli._streams import Progress

if TYPE_CHECKING:
    from tfwire import RecordIndex


def add_index(parser: argparse.ArgumentParser) -> None:
    """The options of tfwire index."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a TFRecord file")
    _arguments.add_shared(parser, "--compression", "--json", "--jobs")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--text", action="store_true", help="write FILE.idx, in the text form of tfrecord2idx"
    )
    mode.add_argument(
        "--key",
        metavar="FEATURE",
        help="keep the values of a feature, by which TFRecordFile.by_key finds records: one int64 "
        "or string in each, which no two share",
    )
    mode.add_argument(
        "--check",
        action="store_true",
        help="write nothing; report whether the saved indexes exist and are fresh",
    )
    parser.epilog = (
        "Indexes are saved as FILE.tfwindex, where TFRecordFile looks for them. Where rapidgzip is "
        "installed (tfwire[gzip]), those of compressed files hold seek points. Exit status: 0, "
        "1 when a file is damaged or cannot be read, or its index is stale, 2 for wrong usage."
    )
    parser.set_defaults(run=_run, in_turn=True)


def _run(options: argparse.Namespace) -> int:
    """Indexes every file. Only headers are read, except in compressed files."""
    if "-" in options.files:
        raise UsageError("stdin cannot be indexed: an index is for a file")
    _check_clash(options)
    progress = Progress(sum(map(_arguments.file_size, options.files)))
    status = 0
    indexes = _arguments.each_result(partial(_indexes, options), options.files)
    for name, found in zip(options.files, indexes, strict=True):
        progress.update(name, _arguments.file_size(name))
        progress.clear()
        try:
            index, saved_as = _save(found, name, options)
        except _arguments.FAULTS as error:
            status = 1
            _arguments.complain(options, _arguments.error_line(error, name))
            continue
        if options.json:
            _arguments.print_json({"path": name, "records": len(index), "index": saved_as})
        else:
            state = "fresh" if options.check else "saved"
            count = plural(len(index), "record")
            print(f"{show_path(name)}: {count}, {show_path(saved_as)} {state}")
    return status


def _indexes(options: argparse.Namespace, names: Sequence[str]) -> Any:
    """The indexes of files in turn: those that are saved, or new ones."""
    from tfwire import RecordIndex
    from tfwire._interface.partitions import build_indexes
    from tfwire.typing import ParallelMap

    jobs = _arguments.num_jobs(options)
    if options.check:
        return ParallelMap(lambda name, check: RecordIndex.load(name), names, jobs)
    return build_indexes(names, options.compression, jobs, options.key)


def _save_path(name: str, options: argparse.Namespace) -> str:
    """Where the index of a file is saved."""
    from tfwire._interface.files import index_beside

    return f"{name}.idx" if options.text else index_beside(name)


def _check_clash(options: argparse.Namespace) -> None:
    """Raises UsageError if an index would overwrite one of the files."""
    for name in [] if options.check else options.files:
        path = _save_path(name, options)
        if _arguments.same_file(path, options.files):
            raise UsageError(f"{path}: is a FILE, and the index of another")


def _save(
    index: RecordIndex | Exception, name: str, options: argparse.Namespace
) -> tuple[RecordIndex, str]:
    """Saves an index that was built; returns it and its path. Only this thread writes files: others
    may end in the middle of one.

    Raises:
        Exception: There is no index, for this reason.
    """
    if isinstance(index, Exception):
        raise index
    path = _save_path(name, options)
    if options.text:
        index.write_text(path)
    elif not options.check:
        index.save()
    return index, path
