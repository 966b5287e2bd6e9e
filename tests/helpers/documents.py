"""The Python code of the documentation, as a reader copies it out."""

from __future__ import annotations

import re
from typing import Any

from paths import DOCS

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NEIGHBOUR = re.compile(r"^(?:import|from) (grain|polars|torch)\b", re.MULTILINE)


def run_page(name: str, neighbour: str | None = None) -> dict[str, Any]:
    """Runs the blocks of a page in their order, in one namespace; returns that. Of those that
    import other packages only the neighbour's are run."""
    names: dict[str, Any] = {}
    text = (DOCS / name).read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        needed = _NEIGHBOUR.search(block[1])
        if needed is None or needed[1] == neighbour:
            above = "\n" * text.count("\n", 0, block.start(1))  # so that tracebacks tell the line
            exec(compile(above + block[1], DOCS / name, "exec"), names)
    return names
