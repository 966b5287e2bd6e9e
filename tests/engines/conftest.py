"""Tests with Ray, Beam and Spark, collected only where they are (make engines)."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = {"beam": "apache_beam", "ray": "ray", "spark": "pyspark"}
collect_ignore_glob = [
    f"test_{name}*.py" for name, package in PACKAGES.items() if find_spec(package) is None
]


def pytest_configure(config):
    # Ray leaves its processes to the system when it shuts down.
    config.addinivalue_line(
        "filterwarnings", "ignore:subprocess .* is still running:ResourceWarning"
    )
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
