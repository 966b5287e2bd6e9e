"""Every example runs and finds what it expects."""

import os
import subprocess
import sys

import pytest

from helpers.paths import ROOT

# Run by tests/neighbours and tests/engines.
NEED_NEIGHBOURS = {"jax_training.py", "beam_features.py", "ray_features.py", "spark_table.py"}
EXAMPLES = sorted(p for p in (ROOT / "examples").glob("*.py") if p.name not in NEED_NEIGHBOURS)
SOURCE = ROOT / "src"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout
