"""The code of docs/ray.md and examples/ray_*.py."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from helpers.documents import blocks, page_text
from helpers.paths import ROOT, SOURCE

PAGE = "".join(block[1] for block in blocks(page_text("ray.md"), "ray"))
EXAMPLES = sorted(f"examples/{path.name}" for path in (ROOT / "examples").glob("ray_*.py"))
SAID = {"docs/ray.md": "['id', 'weights'] 499500", "examples/ray_features.py": "10000 rows in"}


@pytest.mark.parametrize("name", ["docs/ray.md", *EXAMPLES])
def test_programs_run(name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PAGE if name.endswith(".md") else (ROOT / name).read_text())
    result = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert SAID[name] in result.stdout
