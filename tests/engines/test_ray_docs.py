"""The code of docs/ray.md and examples/ray_*.py."""

from __future__ import annotations

import pytest

from helpers.command import output_of_python
from helpers.documents import blocks, page_text
from helpers.paths import ROOT

PAGE = "".join(block[1] for block in blocks(page_text("ray.md"), "ray"))
EXAMPLES = sorted(f"examples/{path.name}" for path in (ROOT / "examples").glob("ray_*.py"))
SAID = {"docs/ray.md": "['id', 'weights'] 499500", "examples/ray_features.py": "10000 rows in"}


@pytest.mark.parametrize("name", ["docs/ray.md", *EXAMPLES])
def test_programs_run(name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PAGE if name.endswith(".md") else (ROOT / name).read_text())
    assert SAID[name] in output_of_python(program, cwd=tmp_path)
