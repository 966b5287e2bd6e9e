"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os

from hypothesis import settings


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
