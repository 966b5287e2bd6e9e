"""Training in JAX, by the example."""

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import tfwire as tfw

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


@pytest.mark.parametrize("rows", [slice(None, None, -1), [2, 0], np.array([True, False, True])])
def test_rows_of_arrays_of_jax_are_chosen(rows):
    ragged = tfw.RaggedTensor(jnp.arange(5), jnp.array([0, 2, 2, 5]))
    chosen = ragged[rows]
    assert isinstance(chosen.values, jnp.ndarray)
    assert np.array([[0, 1], [], [2, 3, 4]], object)[rows].tolist() == chosen.to_list()
