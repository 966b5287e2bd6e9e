"""Fixtures of all tests."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import reference
import tfwire as tfw


def read_outcome(paths: Any, compression_type: Any = "auto", **options: Any) -> reference.Outcome:
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
            assert f"record {error.record_index} at byte {error.offset}" in str(error)
            damage = reference.Damage(error.record_index, error.offset, error.reason)
    regions = [reference.Region(*region[1:]) for region in records.skipped]
    assert bool(regions) == bool(caught)
    return reference.Outcome(found, regions, damage)


@pytest.fixture(params=["file", "object", "small reads"])
def outcome_of(request, tmp_path):
    """A function that reads bytes as a file, as a file object, and a few bytes at a time."""

    def read(data: bytes, compression_type: Any = "auto", **options: Any) -> reference.Outcome:
        if request.param == "file":
            path = tmp_path / "data"
            path.unlink(missing_ok=True)  # file systems sync what is truncated and written anew
            path.write_bytes(data)
            return read_outcome(path, compression_type, **options)
        size = None if request.param == "object" else 7
        return read_outcome(Bytes(data, size), compression_type, **options)

    return read


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
