"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
CSRC = ROOT / "csrc"
PACKAGE = SOURCE / "tfwire"
DOCS = ROOT / "docs"
TESTS = ROOT / "tests"
GOLDEN = TESTS / "golden"
CASES = TESTS / "cases"
