"""Training in JAX, by the example."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_learns(tmp_path):
    result = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "jax_training.py")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("accuracy after training: 99.")
