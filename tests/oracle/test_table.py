"""The case table of tests/cases is still what TensorFlow answers."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from cases import differences, generate

CASES = Path(generate.__file__).parent


def load(path):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The table made anew, in a process that forks before TensorFlow has done anything."""
    folder = tmp_path_factory.mktemp("cases")
    subprocess.run([sys.executable, generate.__file__, folder], check=True, timeout=1800)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", generate.FILES)
def test_regenerated_table_is_the_stored_one(fresh, name):
    stored, made = load(CASES / name), load(fresh / name)
    assert len(stored) == len(made)
    changed = [(a, b) for a, b in zip(stored, made, strict=True) if a != b]
    assert [] == changed[:3]


def test_every_difference_of_the_table_still_differs():
    """A difference that TensorFlow no longer shows must leave the table and the documents."""
    differing = set()
    for name in generate.FILES:
        for case in load(CASES / name):
            if "difference" in case:
                assert differences.clashes(case, case["tensorflow"], case["expected"])
                differing.add(case["difference"])
    assert {*differences.PATTERNS, "process-dies"} == differing
