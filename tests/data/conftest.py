"""Fixtures of the tests of datasets and of iterators with threads."""

import pytest

from helpers.data import iterators_with_threads as kinds
from tfwire._base import shared_iterator, workers


@pytest.fixture
def little_patience(monkeypatch):
    """Not to wait a second each time."""
    monkeypatch.setattr(workers, "PATIENCE", 0.1)
    monkeypatch.setattr(shared_iterator, "_WAITS", (0.01, 0.1))


@pytest.fixture
def path(tmp_path):
    """A file of 40 records."""
    return kinds.write(tmp_path / "records")
