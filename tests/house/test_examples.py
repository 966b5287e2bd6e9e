"""Every example runs and finds what it expects."""

import pytest

from helpers.command import output_of_python
from helpers.paths import ROOT

# Run by tests/neighbours and tests/engines.
NEED_NEIGHBOURS = {"jax_training.py", "beam_features.py", "ray_features.py", "spark_table.py"}
EXAMPLES = sorted(p for p in (ROOT / "examples").glob("*.py") if p.name not in NEED_NEIGHBOURS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    assert output_of_python("-W", "error", path, cwd=tmp_path)
