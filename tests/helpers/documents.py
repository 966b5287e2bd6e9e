"""The Python code of the documentation, as a reader copies it out, and what makes docs/api."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

from helpers.paths import DOCS

# The program that makes docs/api.
sys.path.insert(0, str(DOCS))
api = import_module("make_api")
sys.path.remove(str(DOCS))

# Pages whose every print says in a comment what it prints (tests/house/test_docs.py).
TUTORIALS = sorted(str(path.relative_to(DOCS)) for path in (DOCS / "tutorials").glob("*.md"))
PRINTING = ["../README.md", "index.md", "arrow.md", "tutorial.md", *TUTORIALS]
PRINTING += ["robotics.md", "tfds.md", "other-messages.md", "genomics.md", "dali.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEIGHBOUR = re.compile(
    r"^(?:import|from) (?:tfwire\.)?"
    r"(accelerate|apache_beam|beam|daft|dask|datasets|duckdb|grain|huggingface|jax|keras|lance"
    r"|lightning|pandas|polars|pyarrow|pyspark|ray|spark|torch|torchdata)\b",
    re.MULTILINE,
)


def run_page(name: str, *neighbours: str) -> dict[str, Any]:
    """Runs the blocks of a page in their order, in one namespace; returns that. Of those that
    import other packages only those of the neighbours are run."""
    names: dict[str, Any] = {}
    text = page_text(name)
    for block in blocks(text, *neighbours):
        above = "\n" * text.count("\n", 0, block.start(1))  # so that tracebacks tell the line
        exec(compile(above + block[1], DOCS / name, "exec"), names)
    return names


def page_text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(text: str, *neighbours: str) -> list[re.Match[str]]:
    """The blocks of Python, [1] of each match, that need no other package than the neighbours."""
    found = _BLOCK.finditer(text)
    return [block for block in found if set(_NEIGHBOUR.findall(block[1])) <= set(neighbours)]
