"""The code of docs/huggingface.md, and the examples of the docstrings, as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import datasets
import numpy as np
import pytest
from builders import use_folder

import tfwire as tfw
import tfwire.huggingface
from helpers.documents import run_page


def test_datasets(tmp_path, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    use_folder(monkeypatch, tmp_path)
    found = run_page("huggingface.md", "datasets", "huggingface")
    assert 1000 == len(found["rows"]) == sum(1 for _ in found["stream"])
    assert (32, 32) == found["picture"].size
    assert 1000 == sum(1 for _ in tfw.read_records("shuffled.tfrecord"))
    written, first = tfw.read_records("written.tfrecord"), tfw.read_records("images.tfrecord")
    assert list(first) == list(written)


def test_examples_say_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with three files."""
    monkeypatch.chdir(tmp_path)
    use_folder(monkeypatch, tmp_path)
    rows = [{"name": f"row {i}", "x": np.full(8, i, np.float32)} for i in range(4)]
    for name in ("train-0", "train-1", "test"):
        tfw.write_records(f"{name}.tfrecord", rows)
    result = doctest.testmod(tfwire.huggingface, extraglobs={"tfw": tfw, "datasets": datasets})
    assert result.attempted > 4
    assert 0 == result.failed
