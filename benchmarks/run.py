"""make bench: runs the benchmarks on one core and prints one table; build/bench has it all: the
timings as results.json, and ratios.svg and rates.svg where matplotlib is installed.

python benchmarks/run.py [--full] [--document] [any option of pytest, such as -k parse_file]

--document also puts the table into docs/benchmarks.md, and the figures beside it.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "build" / "bench" / "results.json"
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"
HEADING = "## Results\n\n"
FIGURES = """![How many times a peer's rate tfwire has](ratios.svg)

![Bytes per second by operation and workload](rates.svg)

"""


def main(arguments: list[str]) -> int:
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import pytest

    document = "--document" in arguments
    options = ["-q", "-c", str(HERE / "pytest.ini"), f"--benchmark-json={RESULTS}", str(HERE)]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.unlink(missing_ok=True)
    status = pytest.main(options + [option for option in arguments if option != "--document"])
    if RESULTS.exists():
        report(document)
    return int(status)


def report(document: bool) -> None:
    from table import machine, render

    rendered = render(RESULTS)
    print(rendered)
    if find_spec("matplotlib") is not None:
        from plots import draw

        draw(RESULTS, DOCUMENT.parent if document else RESULTS.parent, machine())
    if document:
        text, _, _ = DOCUMENT.read_text().partition(HEADING)
        DOCUMENT.write_text(f"{text}{HEADING}{FIGURES}{rendered}\n")


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
    sys.exit(main(sys.argv[1:]))
