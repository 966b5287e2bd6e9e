"""What subcommands share: file arguments, checks of outputs, and messages.

Importing this imports neither numpy nor the native module: --help must be quick.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tfwire import Error
from tfwire._interface.messages import plural, printable, shorten, show_path, size_in_bytes
from tfwire.cli._streams import Progress, colored

if TYPE_CHECKING:
    from tfwire import FileReport, SkippedRegion, SkippedRegions
    from tfwire.typing import Compression

    DetectedCompression = Compression | Literal["auto"]

# Errors that are a file's, or its name's.
FAULTS = (OSError, ImportError, MemoryError, ValueError, Error)
Result = TypeVar("Result")
_SHOWN_REGIONS = 20  # listed by commands other than verify
_LARGEST_INT64 = 2**63 - 1
_FLAGS = {
    "binary_as: ": "--binary: ",
    "compression_type='auto' tried": "tried",
    "compression_type is GZIP": "--compression is gzip",
    "compression_type is ZLIB": "--compression is zlib",
    "compression_type is none": "--compression is none",
    "readers detect others with compression_type='auto'": "--compression auto detects others",
}
_ONE_FILE = re.compile(r"\bpath (must be one file, .*);.*")  # and what takes several
OUTPUT_COMPRESSIONS: dict[str, Compression] = {"none": "", "gzip": "GZIP", "zlib": "ZLIB"}
INPUT_COMPRESSIONS: dict[str, DetectedCompression] = {"auto": "auto", **OUTPUT_COMPRESSIONS}


class UsageError(Exception):
    """Wrong usage that argparse does not find."""


class NoFiles(str):
    """A name on the command line that stands for no files; ``fault`` says why."""

    fault: Exception


def check_files(name: str) -> None:
    """Raises the fault of a name that stands for no files."""
    if isinstance(name, NoFiles):
        raise name.fault


def each_result(read: Callable[[Sequence[str]], Any], names: Sequence[str]) -> Iterator[Any]:
    """The results of all files, in their order, or the faults that they raised. ``read`` returns an
    iterator over the results of some, up to the first fault, with ``close``. Standard input is read
    by itself, and so in this thread: reading it may block forever, and only the main thread can be
    interrupted."""
    done = 0
    alone = [i for i, name in enumerate(names) if name == "-" or isinstance(name, NoFiles)]
    while done < len(names):
        end = next((i for i in alone if i >= done), len(names))
        try:
            check_files(names[done])
            with closing(read(names[done : max(end, done + 1)])) as results:
                for result in results:
                    done += 1
                    yield result
        except FAULTS as error:
            done += 1
            yield error


def num_jobs(options: argparse.Namespace) -> int:
    """How many threads to use."""
    return options.jobs or os.cpu_count() or 1


def positive(text: str) -> int:
    """The type of arguments that are integers, 1 or more."""
    return _count(text, 1)


def count(text: str) -> int:
    """The type of arguments that are integers, 0 or more."""
    return _count(text, 0)


def _count(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not least <= value <= _LARGEST_INT64:
        found = shorten(repr(text))
        raise argparse.ArgumentTypeError(
            f"must be an integer from {least} to 2**63 - 1, found {found}"
        )
    return value


def byte_size(text: str) -> int:
    """The type of arguments that are numbers of bytes, like 150MB."""
    try:
        return size_in_bytes("size", text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


SHARED: dict[str, dict[str, Any]] = {
    "files": {
        "nargs": "+",
        "metavar": "FILE",
        "help": "a TFRecord file, a URL, a folder or a pattern; - for stdin",
    },
    "--compression": {
        "type": str.lower,
        "choices": INPUT_COMPRESSIONS,
        "default": "auto",
        "help": "compression of the input (default: auto, detected)",
    },
    "--jobs": {"type": positive, "help": "threads that read files (default: one per CPU)"},
    "--output-compression": {
        "type": str.lower,
        "choices": OUTPUT_COMPRESSIONS,
        "help": "compression of the output (default: as its name says, .gz or .zlib; else none)",
    },
    "--shards": {
        "dest": "num_shards",
        "type": positive,
        "metavar": "N",
        "help": "write N files in turn, a record each",
    },
    "--shard-size": {
        "type": byte_size,
        "metavar": "SIZE",
        "help": "fill files of at most this size in turn, like 150MB or 1GiB",
    },
    "--force": {"action": "store_true", "help": "replace files that exist"},
    "--json": {"action": "store_true", "help": "print JSON: a line for each file, or the report"},
}
"""Options that several commands have."""
_OTHER_NAMES = {"--jobs": ["-j"], "--shards": ["--num-shards"]}


def add_shared(parser: argparse._ActionsContainer, *names: str, **changes: Any) -> None:
    """Adds options that several commands have, with what is different in this one."""
    for name in names:
        words = sorted([*_OTHER_NAMES.get(name, []), name], key=len)
        parser.add_argument(*words, **{**SHARED[name], **changes})


def num_shards(options: argparse.Namespace) -> int | None:
    """How many new files there are; None if their size decides."""
    count: int | None = options.num_shards
    return 1 if count is None and options.shard_size is None else count


def input_file(name: str) -> Any:
    """What to read for a name on the command line."""
    # Not the buffer: an interrupt while a thread that reads ahead holds its lock is fatal.
    stdin: Any = sys.stdin.buffer
    return stdin.raw if name == "-" else name


def expand_patterns(names: Iterable[str]) -> list[str]:
    """The files that names stand for: of patterns, folders and sets of shards. Indexes beside files
    that are named too, as by a shell, are left out. A file that is missing stays, and a name that
    stands for no files is NoFiles: their errors come in their turn.
    """
    from tfwire._interface.files import without_indexes

    return [found for name in without_indexes(list(names)) for found in _files_named(name)]


def _files_named(name: str) -> list[str]:
    from tfwire._interface.files import input_paths

    try:
        return [name] if name == "-" else list(map(str, input_paths(name, None)))
    except FAULTS as error:
        none = NoFiles(name)
        none.fault = error
        return [none]


def check_stdin(names: Sequence[str]) -> None:
    """Raises UsageError if standard input is given more than once."""
    if names.count("-") > 1:
        raise UsageError("- (standard input) can be read once only")


def for_each_file(
    options: argparse.Namespace, read: Callable[[str], int], progress: Progress | None = None
) -> int:
    """Calls a function, which returns an exit status, with every file; returns that of all. A fault
    of a file is reported, and the others get their turn."""
    check_stdin(options.files)
    status = int(half_published(options, options.files))
    for name in options.files:
        try:
            check_files(name)
            status |= read(name)
        except FAULTS as error:
            status = 1
            if progress is not None:
                progress.clear()
            complain(options, error_line(error, name))
    return status


def same_file(path: str, names: Iterable[str]) -> str | None:
    """The input that is the file at a path; None if none is, or if there is no such file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    for name in names:
        try:
            found = os.fstat(sys.stdin.fileno()) if name == "-" else os.stat(name)
        except (OSError, ValueError):
            continue
        if os.path.samestat(status, found):
            return name
    return None


def half_published(options: argparse.Namespace, names: Iterable[str]) -> bool:
    """Whether inputs belong to half-published sets of shards; says which sets."""
    from tfwire._interface import files

    problems = files.problems_of_sets(name for name in names if name != "-")
    for problem in problems:
        complain(options, problem)
    return bool(problems)


# ---- Complaints -------------------------------------------------------------------------------
def complain(options: argparse.Namespace, text: object) -> None:
    """One line on stderr."""
    print_error(options.command, text)


def print_error(command: str | None, text: object) -> None:
    """One line on stderr, after what was printed before. Without a command it continues the line
    before it."""
    line = as_flags(printable(str(text)))
    if command is not None:
        sys.stdout.flush()
        line = f"{colored(f'tfwire {command}:', 'red', sys.stderr)} {line}"
    print(line, file=sys.stderr)


def as_flags(text: str) -> str:
    """A message of the library with the flags of the command in place of Python's arguments."""
    for argument, flag in _FLAGS.items():
        text = text.replace(argument, flag)
    return _ONE_FILE.sub(r"FILE \1", text)


def complain_of_damage(
    options: argparse.Namespace,
    name: str,
    regions: SkippedRegions,
    hint: str | None,
    compression: str | None = None,
) -> None:
    """Lines on stderr for the first regions that were left out, for the number of the others, and
    for what the file looks like.

    Args:
        options: Of the command.
        name: The file.
        regions: What was left out of it.
        hint: What it looks like, if something is to be said of that.
        compression: Of the file; None: it is looked at, if anything was left out.
    """
    if compression is None and regions:
        compression = found_compression(name, regions, options.compression)
    for region in regions[:_SHOWN_REGIONS]:
        complain(options, f"{name}: left out {describe_region(region, compression)}")
    if regions.num_regions > _SHOWN_REGIONS:
        more = regions.num_regions - _SHOWN_REGIONS
        complain(
            options,
            f"{name}: left out {plural(more, 'more region')}, "
            f"{regions.num_bytes:,} bytes in all; tfwire verify lists them",
        )
    if hint is not None:
        complain(options, hint)


def error_line(error: Exception, name: str | None = None) -> str:
    """An error in one line that names the file.

    Args:
        error: What was raised.
        name: The file, if there is one.
    """
    if isinstance(error, OSError):
        if isinstance(error.filename, (str, bytes, os.PathLike)):
            name = os.fsdecode(error.filename)
        text = error.strerror or str(error)
    elif isinstance(error, MemoryError):
        text = os.strerror(errno.ENOMEM)
    elif isinstance(error, FAULTS):
        text = str(error)
    else:
        text = f"unexpected {type(error).__name__}: {shorten(str(error), 200)}"
    if name is None:
        return text
    shown = "standard input" if name == "-" else show_path(name) or "''"
    if re.search(rf"(^|\s|['\"]){re.escape(shown)}['\":]", text):
        return text
    return f"{shown}: {text}"


# ---- Printing ---------------------------------------------------------------------------------
def print_json(value: dict[str, Any]) -> None:
    """Prints one line of JSON in ASCII, which every encoding has and which controls no terminal."""
    import json

    print(json.dumps(value))


def show_compression(compression: str) -> str:
    return compression.lower() or "none"


def found_compression(name: str, regions: SkippedRegions, compression: DetectedCompression) -> str:
    """How a file is compressed of which regions were left out."""
    if compression != "auto":
        return compression
    if any(region.reason == "compressed stream" for region in regions):
        return "GZIP"  # or ZLIB
    from tfwire._interface.damage import detected_compression

    return "" if name == "-" else detected_compression(name)


def describe_region(region: SkippedRegion, compression: str | None) -> str:
    """A damaged region in one line; its numbers have no separators, for use in other tools."""
    where = "decompressed bytes" if compression else "bytes"
    if region.reason == "compressed stream":
        where = "compressed bytes"
    return (
        f"{where} {region.begin} to {region.end} ({region.end - region.begin} bytes), "
        f"record {region.record_index}: {region.reason}"
    )


def print_more(total: int, shown: int, noun: str) -> None:
    """Says how many there are if not all were listed."""
    if total > shown:
        print(f"  of {plural(total, noun)} only {shown:,} are listed")


def report_json(report: FileReport, most: int | None = None) -> dict[str, Any]:
    """What was found in a file, with at most so many regions."""
    return {
        "path": report.path,
        "intact": report.intact,
        "compression": show_compression(report.compression),
        "records": report.num_records,
        "payload_bytes": report.payload_bytes,
        "num_regions": report.skipped.num_regions,
        "regions": [region_json(region) for region in report.skipped[:most]],
    }


def region_json(region: SkippedRegion) -> dict[str, Any]:
    return {
        "begin": region.begin,
        "end": region.end,
        "record": region.record_index,
        "reason": region.reason,
    }


def file_size(name: str) -> int:
    """The size of a file in bytes, 0 if unknown."""
    try:
        return 0 if name == "-" else os.stat(name).st_size
    except (OSError, ValueError):
        return 0


# ---- Checks of the output, before any file is read or written ------------------------------------

_REPLACEMENT_FIELD = re.compile(r"(\{[^{}]*\})")
_DECIMAL = re.compile(r"\{\w+(?::\d*d?)?\}")


def check_output(
    output: str, inputs: Sequence[str], force: bool, num_shards: int | None = 0
) -> None:
    """Checks that an output can be written.

    Args:
        output: Its path.
        inputs: The files that are read.
        force: Files that exist are replaced.
        num_shards: The output is a pattern of {shard} and {shards}, for so many files; None: their
            number is not known; 0: it is one file.

    Raises:
        UsageError: It cannot.
        OSError: Its folder does not exist.
    """
    from tfwire._interface.files import is_url

    if num_shards != 0:
        _check_pattern(output, num_shards)
    if output == "-":
        raise UsageError("OUT must be a file, as it appears only when it is complete")
    if is_url(output):
        raise UsageError(f"{output}: OUT must be a file: it gets its name by renaming, URLs cannot")
    folder, name = os.path.split(output)
    if name in ("", os.curdir, os.pardir):
        raise UsageError(f"{output!r}: OUT must be the name of a file")
    if not stat.S_ISDIR(_status_of_folder(output).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), output)
    is_output, found = name.__eq__ if num_shards == 0 else _matcher(name), ""
    for name in sorted(filter(is_output, os.listdir(folder or os.curdir))):
        found = os.path.join(folder, name)
        if same_file(found, inputs):
            raise UsageError(f"{found}: is one of the inputs, and may be one of the new files")
        if os.path.exists(found) and not os.path.isfile(found):
            raise UsageError(f"{found}: is not a regular file, and is not replaced")
    if found and not force:
        raise UsageError(f"{found}: exists; --force replaces it")


def choose_compression(
    options: argparse.Namespace,
    default: str = "none",
    compressions: Iterable[str] = OUTPUT_COMPRESSIONS,
) -> None:
    """Sets the compression of an output where it is not asked for: what its name says, or else the
    default.

    Raises:
        UsageError: The name says another compression than the option, or one that the files cannot
            have.
    """
    from tfwire._interface.new_files import split_name

    said = show_compression(split_name(options.output)[1])
    asked = options.output_compression
    if said != "none" and (asked or said) not in (said, "none"):
        raise UsageError(
            f"{show_path(options.output)}: the name says {said}, and --output-compression {asked}"
        )
    if asked is None and said not in ("none", *compressions):
        remedy = "choose a name in .gz" if "gzip" in compressions else "choose another name"
        raise UsageError(
            f"{show_path(options.output)}: the name says {said}, and such files are not compressed "
            f"by it as a whole; {remedy}"
        )
    if asked is None:
        options.output_compression = default if said == "none" else said


def _check_pattern(pattern: str, num_shards: int | None) -> None:
    from tfwire._interface.new_files import some_names_of_shards

    try:
        some_names_of_shards(os.path.basename(pattern), num_shards)
    except (OSError, ValueError) as error:
        raise UsageError(error_line(error, pattern)) from None


def _status_of_folder(path: str) -> os.stat_result:
    try:
        return os.stat(os.path.dirname(path) or os.curdir)
    except OSError as error:
        error.filename = path  # the output that was asked for
        raise


def _matcher(pattern: str) -> Callable[[str], object]:
    """A function that finds existing files that the files of a pattern would replace, or could be
    confused with."""
    parts = _REPLACEMENT_FIELD.split(pattern)  # text, a field, text, ...
    parts[::2] = map(re.escape, parts[::2])
    parts[1::2] = [r"\d+" if _DECIMAL.fullmatch(part) else ".*" for part in parts[1::2]]
    return re.compile("".join(parts), re.DOTALL).fullmatch
