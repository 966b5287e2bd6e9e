"""Names and sizes of the files of a dataset, as users write them."""

from __future__ import annotations

import operator
import re

__all__ = ["bytes_of_size", "check_pattern"]

_UNITS = {
    "": 1,
    "B": 1,
    **{f"{letter}B": 1000 ** (i + 1) for i, letter in enumerate("KMGT")},
    **{f"{letter}IB": 1024 ** (i + 1) for i, letter in enumerate("KMGT")},
}


def check_pattern(name: str) -> None:
    """Raises ValueError where a file's name does not tell one shard from another."""
    try:
        tells = name.format(shard=0, shards=2) != name.format(shard=1, shards=2)
    except (LookupError, ValueError) as error:
        raise ValueError(f"{name!r} is no pattern of {{shard}} and {{shards}}: {error}") from None
    if not tells:
        raise ValueError(f"{name!r} needs a field {{shard}}, to tell one file from another")


def bytes_of_size(size: int | str) -> int:
    """A size in bytes, from a number or a string with a unit."""
    if not isinstance(size, str):
        count = operator.index(size)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
        if found is None or found[2].upper() not in _UNITS:
            raise ValueError(f"expected a size like '150MB' or '128MiB', found {size!r}")
        count = int(float(found[1]) * _UNITS[found[2].upper()])
    if count < 1:
        raise ValueError(f"a size must be positive, found {size!r}")
    return count
