"""Fixtures of the tests of records."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.reading import Bytes, read_outcome, write_anew
from helpers.reference import Outcome


@pytest.fixture
def path(tmp_path):
    """Where no file is yet."""
    return tmp_path / "data.tfrecord"


@pytest.fixture(params=["file", "object", "small reads"])
def outcome_of(request, tmp_path):
    """A function that reads bytes as a file, as a file object, and a few bytes at a time: at most a
    thousand times."""

    def read(data: bytes, compression_type: Any = "auto", **options: Any) -> Outcome:
        if request.param == "file":
            path = tmp_path / "data"
            write_anew(path, data)
            return read_outcome(path, compression_type, **options)
        size = None if request.param == "object" else max(7, len(data) // 1000)
        return read_outcome(Bytes(data, size), compression_type, **options)

    return read


@pytest.fixture
def small(monkeypatch):
    """Objects are read by small ranges, and no thread is left in the end."""
    from helpers.remote.object_server import small_ranges  # not everywhere is fsspec installed

    with small_ranges(monkeypatch):
        yield


@pytest.fixture
def server(small):
    """A server of objects."""
    from helpers.remote.object_server import serving_records

    with serving_records() as server:
        yield server
