"""Names and sizes of the files of a dataset, as users write them."""

from __future__ import annotations

import os
import re

from tfwire._arguments import integer

__all__ = ["bytes_of_size", "names_of_shards"]

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000 ** (i + 1) for i, letter in enumerate("KMGT")},
    **{f"{letter}IB": 1024 ** (i + 1) for i, letter in enumerate("KMGT")},
}


def names_of_shards(name: str, count: int) -> list[str]:
    """The names that a pattern gives to so many files.

    Raises:
        ValueError: A name is not valid, or does not tell one file from another.
    """
    try:
        names = [name.format(shard=i, shards=count) for i in range(count)]
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{name!r} is not a pattern of {{shard}} and {{shards}}: {error}"
        ) from None
    for found in names:
        if found in ("", os.curdir, os.pardir) or "/" in found or "\0" in found:
            raise ValueError(f"{name!r} gives {found!r}, which is not the name of a file")
    if len(set(names)) < count:
        raise ValueError(f"{name!r} needs a field {{shard}}, to tell one file from another")
    return names


def bytes_of_size(size: int | str) -> int:
    """A size in bytes, from a number or a string with a unit."""
    if not isinstance(size, str):
        count = integer("shard_size", size)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
        if found is None or found[2].upper() not in _UNITS:
            raise ValueError(f"expected a size like '150MB' or '128MiB', found {size!r}")
        count = int(float(found[1]) * _UNITS[found[2].upper()])
    if count < 1:
        raise ValueError(f"a size must be positive, found {size!r}")
    return count
