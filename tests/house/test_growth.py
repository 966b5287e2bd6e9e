"""The programs of `make bench-growth` and `make bench-scale`, in their quick form: that they run,
not what they find."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import pytest

from helpers.command import output_of_python
from helpers.paths import ROOT

GROWTH, SCALE = (ROOT / "benchmarks" / f"{name}.py" for name in ("growth", "scale"))

pytestmark = [
    pytest.mark.unsanitized("forks, and needs the folder of benchmarks"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc, and forks"),
]


def rows_of(output):
    lines = [line for line in output.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


CELLS = {"records": 5, "files": 5, "features": 4, "threads": 5}


@pytest.mark.parametrize("axes", [["files"], pytest.param([*CELLS], marks=pytest.mark.slow)])
def test_growth(tmp_path, axes):
    words = "--quick", f"--folder={tmp_path}", *(f"--only={axis}" for axis in axes)
    header, _, *rows = rows_of(output_of_python(GROWTH, *words))
    assert "1 file" in [row[0] for row in rows]
    cell = re.compile(r"[\d.]+ \([\d.]+\), [\d.]+ MB")
    counts = [sum(bool(cell.fullmatch(text)) for text in row) for row in rows]
    assert [CELLS[axis] for axis in axes for _ in range(2)] == counts
    figure = ElementTree.fromstring((tmp_path / "growth.svg").read_text(encoding="utf-8"))
    texts = ["".join(node.itertext()) for node in figure.iter("{http://www.w3.org/2000/svg}text")]
    measured = {name for name, *cells in zip(header, *rows, strict=True) if any(cells)}
    assert {*axes, *measured} - {header[0]} <= set(texts)


@pytest.mark.parametrize("only", ["to columns, W1", pytest.param(", W", marks=pytest.mark.slow)])
def test_scale(only):
    words = "--quick", "--size=0.05", "--runs=1", "--threads=1,2"
    header, _, *rows = rows_of(output_of_python(SCALE, *words, only))
    assert ["operation, workload", "GB/s", "2 threads", "2 processes"] == header
    assert (5 if only == "to columns, W1" else 36) == len(rows)
    for name, *figures in rows:
        given = 3 if name.startswith("one file to columns") else 2
        assert all(float(figure) >= 0 for figure in figures[:given]), name


@pytest.mark.slow
def test_the_grid_of_sizes():
    _, _, *rows = rows_of(output_of_python(SCALE, "--quick", "--grid", "--runs=1", "--threads=1,2"))
    assert [5] * 6 == [len(row) for row in rows]
