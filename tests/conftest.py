"""Fixtures of all tests."""

from __future__ import annotations

import gc
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings


def _no_fsync(fd: int) -> None:
    """Only a machine that stops would tell the difference, and tests wait for the disk as long as
    they compute."""
    os.fstat(fd)  # what is no open file stays an error


os.fsync = _no_fsync

# How many cases a test with @given has, where it does not say so itself. Machines may be slow.
PROFILES = {"emulated": 5, "day": 40, "night": 1000, "campaign": 100_000}
for name, count in PROFILES.items():
    kept = {} if name == "day" else {"database": None}
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    settings.register_profile(
        name, max_examples=count, deadline=None, suppress_health_check=slow, **kept
    )
settings.load_profile("day")


def pytest_collection_finish() -> None:
    """Many tests collect garbage. What pytest keeps of 12,000 tests is not looked at each time."""
    gc.collect()
    gc.freeze()
    gc.collect()  # counts what is left, on which it depends how often Python collects by itself


# ---- Windows ------------------------------------------------------------------------------------

_TESTS = str(Path(__file__).parent)
_MISSING = re.compile(
    r"module '(os|signal|socket)' has no attribute|No module named '(fcntl|resource|pty)'"
)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What a test says to need of POSIX."""
    mark = item.get_closest_marker("posix")
    if mark and sys.platform == "win32":
        pytest.skip(mark.args[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """A test that itself calls what Windows does not have, as os.fork, is skipped there. One over
    a package that does so fails."""
    try:
        return (yield)
    except (AttributeError, ImportError) as error:
        frames = pytest.ExceptionInfo.from_exception(error).traceback
        if sys.platform == "win32" and _MISSING.match(str(error)):
            if str(frames[-1].path).startswith(_TESTS):
                pytest.skip(f"Windows: {error}")
        raise


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
