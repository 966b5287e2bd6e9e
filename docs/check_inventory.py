"""Checks that the site's inventory, by which others link to it, has every public name of tfwire.

Usage: ``python docs/check_inventory.py build/docs/objects.inv``
"""

from __future__ import annotations

import re
import sys
import zlib
from pathlib import Path

from make_api import MODULES, RESULTS, all_of, exports

_TYPES = "tfwire.typing"


def names_in(inventory: bytes) -> set[str]:
    """The names of Python objects in an inventory: four lines of text, then compressed ones."""
    *_, packed = inventory.split(b"\n", 4)
    lines = zlib.decompress(packed).decode()
    return set(re.findall(r"^(\S+) py:\w+ -?\d+ \S+ .*$", lines, re.MULTILINE))


def main(path: str) -> int:
    wanted = {f"tfwire.{name}" for name in {*exports(), *MODULES} - {"__version__", "compat"}}
    wanted |= {f"{_TYPES}.{name}" for name in RESULTS}
    wanted |= {
        f"tfwire.{module}.{name}" for module in MODULES for name in all_of(f"tfwire.{module}")
    }
    missing = sorted(wanted - names_in(Path(path).read_bytes()))
    for name in missing:
        print(f"{path}: {name} is missing", file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
