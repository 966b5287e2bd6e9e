"""Fixtures that several of the unit tests use."""

import pytest


@pytest.fixture
def small(monkeypatch):
    """Objects are read by small ranges, and no thread is left in the end."""
    from object_server import small_ranges  # not everywhere is fsspec installed

    with small_ranges(monkeypatch):
        yield


@pytest.fixture
def server(small):
    """A server of objects."""
    from object_server import serving_records

    with serving_records() as server:
        yield server
