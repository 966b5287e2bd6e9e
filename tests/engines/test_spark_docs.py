"""The code of docs/spark.md and examples/spark_*.py, with Spark itself."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import pytest

from helpers.command import output_of_python
from helpers.documents import blocks, page_text
from helpers.paths import ROOT

pytestmark = pytest.mark.skipif(find_spec("pysail") is not None, reason="Sail has no local[2]")
PAGE = "".join(block[1] for block in blocks(page_text("spark.md"), "pyspark", "spark"))


@pytest.mark.parametrize("name", ["docs/spark.md", "examples/spark_table.py"])
def test_programs_run(name, tmp_path):
    program = tmp_path / "page.py"
    program.write_text(PAGE if name.endswith(".md") else (ROOT / name).read_text())
    shown = output_of_python(program, cwd=tmp_path, PYSPARK_PYTHON=sys.executable)
    assert "name='cat'" in shown
