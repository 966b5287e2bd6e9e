"""What the subcommands share: their inputs, and how they speak of files and damage.

Nothing here imports numpy or the native module when it is imported: --help must be quick.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tfwire._text import printable, shorten, show_path
from tfwire.errors import Error

if TYPE_CHECKING:
    from tfwire._records.regions import SkippedRegion, SkippedRegions

# What can be wrong with a file, or with its name.
FAULTS = (OSError, ImportError, MemoryError, ValueError, Error)

_MOST_REGIONS = 20  # listed where all damage is not what was asked for
_MOST = 2**63 - 1
_COMPRESSIONS = {"auto": "auto", "none": "", "gzip": "GZIP", "zlib": "ZLIB"}


def add_files(parser: argparse.ArgumentParser) -> None:
    """FILE... and how they are compressed."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="a TFRecord file, - for stdin")
    add_compression(parser)


def add_compression(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--compression",
        type=str.lower,
        choices=_COMPRESSIONS,
        default="auto",
        help="compression of the input (default: auto, detected)",
    )


def positive(text: str) -> int:
    """An argument that counts something."""
    return _count(text, 1)


def count(text: str) -> int:
    """An argument that counts something, perhaps nothing."""
    return _count(text, 0)


def _count(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not least <= value <= _MOST:
        found = shorten(repr(text))
        raise argparse.ArgumentTypeError(
            f"must be an integer from {least} to 2**63 - 1, found {found}"
        )
    return value


def size(text: str) -> int:
    """An argument that is a number of bytes, like 150MB."""
    from tfwire._records.shard_arguments import bytes_of_size

    try:
        return bytes_of_size(text)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def compression_of(options: argparse.Namespace) -> str:
    return _COMPRESSIONS[options.compression]


def input_of(name: str) -> Any:
    """What to read for a name on the command line."""
    # Not its buffer: the lock of that, held by a thread that reads ahead, outlives no interrupt.
    stdin: Any = sys.stdin.buffer
    return stdin.raw if name == "-" else name


def refuse(options: argparse.Namespace, text: object) -> int:
    """Says what is wrong with the command line; the exit status."""
    complain(options, text)
    return 2


def stdin_twice(options: argparse.Namespace, names: Sequence[str]) -> bool:
    """Whether standard input is to be read more than once; says so."""
    if names.count("-") < 2:
        return False
    complain(options, "- (standard input) can be read once only")
    return True


def same_file(path: str, names: Iterable[str]) -> str | None:
    """Which of the inputs is the file at a path; None: none is, or there is no such file."""
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
    """Whether inputs belong to sets of shards that are half published; says of which sets."""
    from tfwire._records.markers import Markers
    from tfwire._records.sources import is_url

    markers = Markers()
    local = (name for name in names if name != "-" and not is_url(name))
    problems = [problem for name in local if (problem := markers.problem_of(name)) is not None]
    for problem in problems:
        complain(options, problem)
    return bool(problems)


# ---- Complaints -------------------------------------------------------------------------------


def complain(options: argparse.Namespace, text: object) -> None:
    """One line on stderr."""
    complain_of(options.command, text)


def complain_of(command: str | None, text: object) -> None:
    """One line on stderr, after what was printed before; without a command it goes on from a line
    of one."""
    if command is not None:
        sys.stdout.flush()
        text = f"tfwire {command}: {text}"
    print(printable(str(text)), file=sys.stderr)


def complain_of_damage(
    options: argparse.Namespace, name: str, regions: SkippedRegions, hint: str | None
) -> None:
    """A line on stderr for the first regions that were left out, the number of the others, and
    what the file looks like."""
    for region in regions[:_MOST_REGIONS]:
        complain(options, f"{name}: left out {describe_region(region)}")
    if regions.num_regions > _MOST_REGIONS:
        more = regions.num_regions - _MOST_REGIONS
        complain(
            options,
            f"{name}: left out {plural(more, 'more region')}, "
            f"{regions.num_bytes:,} bytes in all; tfwire verify lists them",
        )
    if hint is not None:
        complain(options, hint)


def reason_of(error: Exception, name: str | None = None) -> str:
    """An error in one line that names the file.

    Args:
        error: What was raised.
        name: The file that was worked on, where there is one.
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
    if name == "-":
        name = "standard input"
    if name is None or show_path(name) in text:
        return text
    return f"{show_path(name)}: {text}"


# ---- Output -----------------------------------------------------------------------------------


def print_json(value: dict[str, Any]) -> None:
    """One line of JSON Lines, in ASCII: every encoding has it, and it controls no terminal."""
    import json

    print(json.dumps(value))


def compression_name(compression: str) -> str:
    return compression.lower() or "none"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def describe_region(region: SkippedRegion) -> str:
    """A damaged stretch in one line, its numbers as other tools take them."""
    where = "compressed bytes" if region.reason == "compressed stream" else "bytes"
    return (
        f"{where} {region.begin} to {region.end} ({region.end - region.begin} bytes), "
        f"record {region.record_index}: {region.reason}"
    )


def print_more(total: int, shown: int, noun: str) -> None:
    """Says that there are more than were listed."""
    if total > shown:
        print(f"  of {plural(total, noun)} only {shown:,} are listed")


def region_json(region: SkippedRegion) -> dict[str, Any]:
    return {
        "begin": region.begin,
        "end": region.end,
        "record": region.record_index,
        "reason": region.reason,
    }


def file_size(name: str) -> int:
    """Bytes of a regular file, 0 where that is not known."""
    try:
        return 0 if name == "-" else os.stat(name).st_size
    except (OSError, ValueError):
        return 0
