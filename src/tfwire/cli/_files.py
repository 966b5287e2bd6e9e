"""What the subcommands share: their inputs, and how they speak of files and damage.

Nothing here imports numpy or the native module when it is imported: --help must be quick.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfwire._records.regions import SkippedRegion

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
        help="how the input is compressed (default: look at it)",
    )


def positive(text: str) -> int:
    """An argument that counts something."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, found {text}")
    return value


def size(text: str) -> int:
    """An argument that is a number of bytes, like 150MB."""
    from tfwire._records.shard_arguments import bytes_of_size

    try:
        return bytes_of_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def compression_of(options: argparse.Namespace) -> str:
    return _COMPRESSIONS[options.compression]


def input_of(name: str) -> Any:
    """What to read for a name on the command line."""
    # Not its buffer: the lock of that, held by a thread that reads ahead, outlives no interrupt.
    stdin: Any = sys.stdin.buffer
    return stdin.raw if name == "-" else name


def complain(options: argparse.Namespace, text: object) -> None:
    """One line on stderr."""
    sys.stdout.flush()  # in the order in which things happened, where both are one terminal
    print(f"tfwire {options.command}: {text}", file=sys.stderr)


def complain_of_damage(
    options: argparse.Namespace, name: str, regions: Iterable[SkippedRegion], hint: str | None
) -> None:
    """A line on stderr for every region that was left out, and what the file looks like."""
    for region in regions:
        complain(options, f"{name}: left out {describe_region(region)}")
    if hint is not None:
        complain(options, hint)


class OutputError(OSError):
    """Standard output takes no more; no file that is read is to blame."""


@contextlib.contextmanager
def output() -> Iterator[None]:
    """Where standard output is written to, and nothing else is done.

    Raises:
        OutputError: It takes no more.
        BrokenPipeError: Its reader has left.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror, "standard output") from None


def reason_of(error: OSError, name: str) -> str:
    """An error in one line that names the file."""
    return f"{name}: {error.strerror or error}"


def print_json(value: dict[str, Any]) -> None:
    """One line of JSON Lines."""
    import json

    print(json.dumps(value, ensure_ascii=False))


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
    except OSError:
        return 0
