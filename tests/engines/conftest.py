"""Tests with Beam, Ray and Spark, collected only where they are (make engines)."""

from __future__ import annotations

from importlib.util import find_spec

PACKAGES = {"beam": "apache_beam", "ray": "ray", "spark": "pyspark"}
collect_ignore_glob = [
    f"test_{name}*.py" for name, package in PACKAGES.items() if find_spec(package) is None
]
