"""The code for torch of docs/datasets.md, and the examples of the docstrings, as they stand."""

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest
import torch

import tfwire as tfw
import tfwire.torch
from helpers.documents import run_page


def test_datasets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run_page("datasets.md", "torch")
    assert 1000 == sum(len(batch["x"]) for batch in found["loader"])


def test_examples_say_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with a file of four records."""
    monkeypatch.chdir(tmp_path)
    tfw.write_records("rows.tfrecord", [{"x": np.full(8, i, np.float32)} for i in range(4)])
    names = {"tfw": tfw, "np": np, "torch": torch}
    names.update((name, getattr(tfwire.torch, name)) for name in tfwire.torch.__all__)
    result = doctest.testmod(tfwire.torch, extraglobs=names)
    assert result.attempted > 15
    assert 0 == result.failed
