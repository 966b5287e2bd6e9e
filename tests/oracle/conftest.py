"""Tests against TensorFlow, collected only where it is installed (make oracle)."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tfwire as tfw

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))
os.environ["PYTHONPATH"] = str(ROOT / "src")  # for the processes that tests start

collect_ignore_glob = [] if find_spec("tensorflow") else ["test_*.py"]


@pytest.fixture
def path(tmp_path):
    """A file of three records."""
    tfw.write_records(tmp_path / "three", [b"first", b"second", b"third"])
    return tmp_path / "three"
