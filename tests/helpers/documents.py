"""The Python code of the documentation, as a reader copies it out."""

from __future__ import annotations

import re
from typing import Any

from paths import DOCS

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEIGHBOUR = re.compile(
    r"^(?:import|from) (?:tfwire\.)?"
    r"(accelerate|apache_beam|beam|daft|dask|datasets|duckdb|grain|huggingface|jax|keras|lance"
    r"|lightning|pandas|polars|pyarrow|torch|torchdata)\b",
    re.MULTILINE,
)


def run_page(name: str, *neighbours: str) -> dict[str, Any]:
    """Runs the blocks of a page in their order, in one namespace; returns that. Of those that
    import other packages only those of the neighbours are run."""
    names: dict[str, Any] = {}
    text = (DOCS / name).read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        if set(_NEIGHBOUR.findall(block[1])) <= set(neighbours):
            above = "\n" * text.count("\n", 0, block.start(1))  # so that tracebacks tell the line
            exec(compile(above + block[1], DOCS / name, "exec"), names)
    return names
