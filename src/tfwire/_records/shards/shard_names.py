"""The names of the files of a set, from a pattern."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from string import Formatter

from tfwire._base.text import printable

# The format of an integer, up to 3 digits wide: file names have at most 255 bytes.
_INTEGER_FORMAT = re.compile(r"(.?[<>=^])?[-+ ]?#?0?\d{0,3}[,_]?[bdoxXn]?", re.DOTALL)


def _check_fields(name: str) -> None:
    """Checks that a pattern has no fields but {shard} and {shards}.

    Raises:
        ValueError: It has others.
    """
    try:
        parts = list(Formatter().parse(name))
    except ValueError as error:
        raise ValueError(
            f"{name!r} is not a pattern of {{shard}} and {{shards}}: {error}"
        ) from None
    for _, field, spec, conversion in parts:
        if field is None:
            continue
        if (
            field not in ("shard", "shards")
            or conversion
            or not _INTEGER_FORMAT.fullmatch(spec or "")
        ):
            raise ValueError(
                f"{name!r} is not a pattern: expected fields {{shard}} and {{shards}} with formats "
                f"of integers, such as {{shard:05d}}, found {{{_field(field, spec, conversion)}}}"
            )


def _field(name: str, spec: str | None, conversion: str | None) -> str:
    """A field as the user wrote it."""
    return printable(name + f"!{conversion}" * bool(conversion) + f":{spec}" * bool(spec))


_NAME_CHARACTERS = 4096  # no file system has longer paths
# If the number of files is not known, names are checked as for this many files: those of the first
# files, up to two digits in any base, and the name of the last, which is the longest. A format that
# gives the same name to two longer numbers also does so here: for a number and its first digit,
# padded with that digit.
_ASSUMED_FILES = 1_000_000
_SAMPLE_FILES = 257


def some_names_of_shards(name: str, count: int | None) -> list[str]:
    """The names of some of the files of a pattern. If these are valid and distinct, all are.

    Args:
        name: The pattern.
        count: The number of files; None if not known.

    Raises:
        ValueError, OSError: As ``names_of_shards``.
    """
    count = _ASSUMED_FILES if count is None else count
    return names_of_shards(name, count, [*range(min(count - 1, _SAMPLE_FILES)), count - 1])


def names_of_shards(name: str, count: int, numbers: Iterable[int] | None = None) -> list[str]:
    """The names of the files of a pattern.

    Args:
        name: The pattern.
        count: The number of files.
        numbers: The files to name; None: all.

    Raises:
        ValueError: A name is invalid, or two files have the same.
        OSError: A name is too long.
    """
    _check_fields(name)
    names = []
    for number in range(count) if numbers is None else numbers:
        try:
            names.append(found := name.format(shard=number, shards=count))
        except ValueError as error:
            raise ValueError(
                f"{name!r} is not a pattern of {{shard}} and {{shards}}: {error}"
            ) from None
        if len(found) > _NAME_CHARACTERS:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
        if found in ("", os.curdir, os.pardir) or os.path.basename(found) != found or "\0" in found:
            raise ValueError(f"{name!r} gives {found!r}, which is not the name of a file")
    if len(set(names)) < len(names):
        raise ValueError(f"{name!r} needs a field {{shard}}, to tell one file from another")
    return names
