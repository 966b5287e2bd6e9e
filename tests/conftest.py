"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os
from typing import Any

import pytest
from hypothesis import settings

from reading import Bytes, read_outcome
from reference import Outcome
from tfwire._records import native_batches


def _no_fsync(fd: int) -> None:
    """Only a machine that stops would tell the difference, and tests wait for the disk as long as
    they compute."""
    os.fstat(fd)  # what is no open file stays an error


os.fsync = _no_fsync

settings.register_profile("emulated", max_examples=5, deadline=None, database=None)
settings.register_profile("campaign", max_examples=100_000, deadline=None, database=None)


def pytest_collection_finish() -> None:
    """Many tests collect garbage. What pytest keeps of 12,000 tests is not looked at each time."""
    gc.collect()
    gc.freeze()
    gc.collect()  # counts what is left, on which it depends how often Python collects by itself


@pytest.fixture(params=["file", "long reads", "object", "small reads"])
def outcome_of(request, tmp_path, monkeypatch):
    """A function that reads bytes as a file, as one of records that all count as long, as a file
    object, and a few bytes at a time."""
    if request.param == "long reads":
        monkeypatch.setattr(native_batches, "LONG", 1)

    def read(data: bytes, compression_type: Any = "auto", **options: Any) -> Outcome:
        if request.param in ("file", "long reads"):
            path = tmp_path / "data"
            path.unlink(missing_ok=True)  # file systems sync what is truncated and written anew
            path.write_bytes(data)
            return read_outcome(path, compression_type, **options)
        size = None if request.param == "object" else 7
        return read_outcome(Bytes(data, size), compression_type, **options)

    return read
