"""JAX, in processes of its own: it is multithreaded, and warns of every fork after it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROWS = """
import jax.numpy as jnp, numpy as np, tfwire as tfw

ragged = tfw.RaggedTensor(jnp.arange(5), jnp.array([0, 2, 2, 5]))
for rows in (slice(None, None, -1), [2, 0], np.array([True, False, True])):
    chosen = ragged[rows]
    assert isinstance(chosen.values, jnp.ndarray)
    assert np.array([[0, 1], [], [2, 3, 4]], object)[rows].tolist() == chosen.to_list()
"""


def run(folder, *words):
    result = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_example_learns(tmp_path):
    shown = run(tmp_path, ROOT / "examples" / "jax_training.py")
    assert shown.startswith("accuracy after training: 99.")


def test_rows_of_arrays_of_jax_are_chosen(tmp_path):
    run(tmp_path, "-c", ROWS)
