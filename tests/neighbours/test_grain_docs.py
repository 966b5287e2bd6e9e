"""The code for Grain of docs/datasets.md, and the examples of the docstrings, as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import grain
import numpy as np
import pytest

import tfwire as tfw
import tfwire.grain
from helpers.documents import run_page


def test_datasets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run_page("datasets.md", "grain")
    assert [256, 256, 256] == [len(batch["x"]) for batch in found["pipeline"]][:3]
    assert (256, 8) == next(iter(found["stream"]))["x"].shape


def test_examples_say_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with a file of four records."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("rows.tfrecord", [{"x": np.full(8, i, np.float32)} for i in range(4)])
    names = {"tfw": tfw, "np": np, "grain": grain}
    result = doctest.testmod(tfwire.grain, extraglobs=names)
    assert result.attempted > 5
    assert 0 == result.failed
