"""How the tests read records: as the reference tells it, and from awkward objects."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import tfwire as tfw
from helpers.reference import Damage, Outcome, Region


def read_outcome(paths: Any, compression_type: Any = "auto", **options: Any) -> Outcome:
    """What read_records does with one file, in the reference's terms. That regions left out come
    with a warning, and nothing else does, is checked on the way."""
    records = tfw.read_records(paths, compression_type, **options)
    found: list[bytes] = []
    damage = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            for record in records:
                found.append(record)
        except tfw.DataLossError as error:
            damage = Damage(error.record_index, error.offset, error.reason)
    regions = [Region(*region[1:5]) for region in records.skipped]
    assert bool(regions) == bool(caught)
    return Outcome(found, regions, damage)


def write_anew(path: Any, data: bytes | bytearray) -> None:
    """Writes a file. File systems sync one that is truncated and written anew."""
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def damage(path: Any, at: int, copy: Any = None) -> None:
    """Flips a bit of a byte of a file, or of its copy."""
    data = bytearray(Path(path).read_bytes())
    data[at] ^= 1
    Path(copy or path).write_bytes(data)


def flip_byte(path: Any, place: int) -> None:
    """Flips a bit of a file, which damages or mends it."""
    content = bytearray(Path(path).read_bytes())
    content[place] ^= 1
    write_anew(Path(path), content)


WBITS = {"GZIP": 31, "ZLIB": 15}


@cache
def inflatable(data: bytes, name: str) -> tuple[bytes, Exception | None]:
    """All that zlib gives of gzip members or zlib streams, byte by byte, before it fails or the
    data end; and the failure. Zeros after one are padding."""
    found = b""
    while True:
        inflater = zlib.decompressobj(wbits=WBITS[name])
        size = 0
        try:
            while size < len(data) and not inflater.eof:
                found += inflater.decompress(data[size : size + 1], 1)
                while (more := inflater.decompress(inflater.unconsumed_tail, 1)) != b"":
                    found += more
                size += 1
        except zlib.error as error:
            return found, error
        data = data[size:].lstrip(b"\0")
        if data == b"" or not inflater.eof:
            return found, None if inflater.eof else EOFError()


class Bytes:
    """A file object that cannot seek and gives a few bytes at a time."""

    def __init__(self, data: bytes, at_once: int | None = None) -> None:
        self._rest = memoryview(data)
        self._at_once = at_once

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), len(self._rest), self._at_once or len(buffer))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def open_files() -> set[tuple[str, str]]:
    """The open files of this process, number and name; none where there is no /proc. What was
    opened since then, and is open still, is ``open_files() - before``; what others have closed in
    the meantime does not matter."""
    found = set()
    for number in os.listdir("/proc/self/fd") if sys.platform == "linux" else ():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found
