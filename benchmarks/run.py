"""make bench: runs the benchmarks on one core, prints one table, writes build/bench/results.json.

python benchmarks/run.py [--full] [--document] [any option of pytest, such as -k parse_file]

--document also puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "build" / "bench" / "results.json"
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"


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
    from table import render

    rendered = render(RESULTS)
    print(rendered)
    if document:
        text, _, _ = DOCUMENT.read_text().partition("## Results\n")
        DOCUMENT.write_text(f"{text}## Results\n\n{rendered}\n")


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent / "src")]
    sys.exit(main(sys.argv[1:]))
