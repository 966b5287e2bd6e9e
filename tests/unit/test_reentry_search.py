"""Random programs whose callbacks use open objects: see tests/helpers/reentered_objects.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import reentrance
from command import ENVIRONMENT
from search import FIRST_SEED


@pytest.mark.parametrize("seconds", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_callbacks_may_use_anything_that_is_open(tmp_path, seconds):
    """In a process of its own, which a case that hangs ends with the stacks of its threads."""
    seconds = os.environ.get("TFWIRE_SEARCH_SECONDS", str(seconds))
    found = subprocess.run(
        [sys.executable, Path(reentrance.__file__), seconds, str(FIRST_SEED), tmp_path],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-5000:]
    assert "cases" in found.stdout
