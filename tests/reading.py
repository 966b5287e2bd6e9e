"""How the tests read records: as the reference tells it, and from awkward objects."""

from __future__ import annotations

import warnings
from typing import Any

import tfwire as tfw
from reference import Damage, Outcome, Region


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
    regions = [Region(*region[1:]) for region in records.skipped]
    assert bool(regions) == bool(caught)
    return Outcome(found, regions, damage)


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
