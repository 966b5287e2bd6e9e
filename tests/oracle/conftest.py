"""Tests against TensorFlow, collected only where it is installed (make oracle)."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

collect_ignore_glob = [] if find_spec("tensorflow") else ["test_*.py"]
