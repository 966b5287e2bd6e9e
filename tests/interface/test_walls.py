"""What stands on the interface uses no private attributes of what is behind it."""

import ast
import re
from collections import defaultdict

import pytest

from helpers.paths import PACKAGE

pytestmark = pytest.mark.outside_c

# Python's names of named tuples, and an attribute of Beam's sources of files.
THEIRS = {"_fields", "_replace", "_pattern"}


def test_neighbours_use_no_private_attributes():
    """Those of a dataset, of which theirs derive, are in the text of _interface.pipelines."""
    defined, used, neighbours = defaultdict(set), defaultdict(set), set()
    for path in PACKAGE.rglob("*.py"):
        room = path.relative_to(PACKAGE).with_suffix("").parts[0]
        text = path.read_text(encoding="utf-8")
        if room != "_interface" and "from tfwire._interface" in text:
            neighbours.add(room)
        for node in ast.walk(ast.parse(text)):
            names = (getattr(node, kind, None) for kind in ("attr", "name", "id"))
            name = next((name for name in names if isinstance(name, str)), "")
            if re.match("_(?!_)", name):
                is_use = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
                (used if is_use else defined)[room].add(name)
    inner = set().union(*(names for room, names in defined.items() if room not in neighbours))
    stated = (PACKAGE / "_interface" / "pipelines.py").read_text(encoding="utf-8")
    allowed = THEIRS | set(re.findall(r"``(_\w+)", stated))
    found = {room: used[room] & inner - defined[room] - allowed for room in neighbours}
    assert len(neighbours) > 7
    assert {} == {room: names for room, names in found.items() if names}
