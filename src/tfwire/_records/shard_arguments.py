"""Names and sizes of the files of a dataset, as users write them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable
from fractions import Fraction
from string import Formatter

from tfwire._arguments import integer
from tfwire._text import printable, shorten

__all__ = ["bytes_of_size", "names_of_shards", "some_names_of_shards"]

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000 ** (i + 1) for i, letter in enumerate("KMGT")},
    **{f"{letter}IB": 1024 ** (i + 1) for i, letter in enumerate("KMGT")},
}


# A format of integers. File names have 255 bytes at most.
_INTEGER = re.compile(r"(.?[<>=^])?[-+ ]?#?0?\d{0,3}[,_]?[bdoxXn]?", re.DOTALL)


def _check_fields(name: str) -> None:
    """Checks that a pattern holds nothing but text and the fields {shard} and {shards}.

    Raises:
        ValueError: It does not.
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
        if field not in ("shard", "shards") or conversion or not _INTEGER.fullmatch(spec or ""):
            raise ValueError(
                f"{name!r} is not a pattern: expected fields {{shard}} and {{shards}} with formats "
                f"of integers, such as {{shard:05d}}, found {{{_field(field, spec, conversion)}}}"
            )


def _field(name: str, spec: str | None, conversion: str | None) -> str:
    """A field as the user wrote it."""
    return printable(name + f"!{conversion}" * bool(conversion) + f":{spec}" * bool(spec))


_LONGEST_NAME = 4096  # characters; no file system has longer paths

# When the number of files is not known, their names are checked as those of so many: of the first,
# up to two digits of any base, and of the last, which is as long as any will be. Fields by which
# two of more digits agree make two of these agree: a number and its first digit, filled with it.
_MANY = 1_000_000
_SAMPLE = 257


def some_names_of_shards(name: str, count: int | None) -> list[str]:
    """The names that a pattern gives to some of the files, to be checked before any work. If they
    are valid and differ, those of all files do.

    Args:
        name: The pattern.
        count: How many files there are; None: that is not known.

    Raises:
        ValueError, OSError: As ``names_of_shards``.
    """
    count = _MANY if count is None else count
    return names_of_shards(name, count, [*range(min(count - 1, _SAMPLE)), count - 1])


def names_of_shards(name: str, count: int, numbers: Iterable[int] | None = None) -> list[str]:
    """The names that a pattern gives to files.

    Args:
        name: The pattern.
        count: How many files there are.
        numbers: Which of them to name; None: all.

    Raises:
        ValueError: A name is not valid, or does not tell one file from another.
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
        if len(found) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
        if found in ("", os.curdir, os.pardir) or "/" in found or "\0" in found:
            raise ValueError(f"{name!r} gives {found!r}, which is not the name of a file")
    if len(set(names)) < len(names):
        raise ValueError(f"{name!r} needs a field {{shard}}, to tell one file from another")
    return names


def bytes_of_size(size: int | str) -> int:
    """A size in bytes, from a number or a string with a unit."""
    if not isinstance(size, str):
        count = integer("shard_size", size)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size, re.ASCII)
        if found is None or found[2].upper() not in _UNITS:
            found_text = shorten(repr(size))
            raise ValueError(f"expected a size like '150MB' or '128MiB', found {found_text}")
        count = int(Fraction(found[1]) * _UNITS[found[2].upper()])
    if not 1 <= count < 1 << 63:
        raise ValueError(
            f"a size must be positive and fit into 64 bits, found {shorten(repr(size))}"
        )
    return count
