"""Stores in memory and folders, by their URLs, and what is in them."""

from __future__ import annotations

import fsspec
import pytest


@pytest.fixture(autouse=True)
def empty_memory():
    yield
    fsspec.filesystem("memory").store.clear()


@pytest.fixture(params=["memory", "local"])
def folder(request, tmp_path):
    return f"file://{tmp_path}" if request.param == "local" else "memory://folder"
