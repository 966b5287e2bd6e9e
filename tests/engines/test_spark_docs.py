"""The code of docs/spark.md and examples/spark_*.py, with Spark itself."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from helpers.documents import blocks, page_text
from helpers.paths import ROOT, SOURCE

pytestmark = pytest.mark.skipif(find_spec("pysail") is not None, reason="Sail has no local[2]")
PAGE = "".join(block[1] for block in blocks(page_text("spark.md"), "pyspark", "spark"))


@pytest.mark.parametrize("name", ["docs/spark.md", "examples/spark_table.py"])
def test_programs_run(name, tmp_path):
    program = tmp_path / "page.py"
    program.write_text(PAGE if name.endswith(".md") else (ROOT / name).read_text())
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, program]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert "name='cat'" in result.stdout
