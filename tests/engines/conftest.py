"""Tests with Beam, Ray and Spark, collected only where they are (make engines)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

PACKAGES = {"beam": "apache_beam", "ray": "ray", "spark": "pyspark"}
collect_ignore_glob = [
    f"test_{name}*.py" for name, package in PACKAGES.items() if find_spec(package) is None
]
# Of the engines, about themselves. Ray leaves its processes to the system when it shuts down; Beam
# leaves the files of a bundle that fails open until they are dropped.
THEIRS = ["DeprecationWarning", "FutureWarning", "ResourceWarning"]
THEIRS += ["pytest.PytestUnraisableExceptionWarning"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for name in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(f"ignore::{name}"), append=False)
