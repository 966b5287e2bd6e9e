"""Prints the branch coverage of the C core, a line per file, and the branches never taken.

Usage: ``python tests/fuzz/coverage.py BUILD_FOLDER [--missing]``, where BUILD_FOLDER holds the
.gcda files of a build with ``--coverage`` after its programs have run. ``make coverage`` makes
one. A header's branches are counted once, whichever files include it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

Lines = dict[int, list[int]]  # by line: how often each branch was taken


def read(data: Path) -> list[tuple[str, Lines, Lines]]:
    """Branches and lines of each source file, as one object file saw them."""
    command = ["gcov", "--branch-probabilities", "--json-format", "--stdout", data.name]
    output = subprocess.run(command, cwd=data.parent, capture_output=True, check=True).stdout
    files = []
    for file in json.loads(output)["files"]:
        branches = {
            line["line_number"]: [branch["count"] for branch in line["branches"]]
            for line in file["lines"]
            if line["branches"]
        }
        lines = {line["line_number"]: [line["count"]] for line in file["lines"]}
        files.append((file["file"], branches, lines))
    return files


def add(total: Lines, seen: Lines) -> None:
    for line, counts in seen.items():
        known = total[line]
        longest = max(len(known), len(counts))
        known += [0] * (longest - len(known))
        for i, count in enumerate(counts):
            known[i] += count


def collect(folder: Path) -> tuple[dict[str, Lines], dict[str, Lines]]:
    branches: dict[str, Lines] = defaultdict(lambda: defaultdict(list))
    lines: dict[str, Lines] = defaultdict(lambda: defaultdict(list))
    for data in sorted(folder.glob("*.gcda")):
        for name, file_branches, file_lines in read(data):
            if name.startswith("csrc/"):
                add(branches[name], file_branches)
                add(lines[name], file_lines)
    return branches, lines


def row(name: str, branches: list[int], lines: list[int]) -> str:
    taken, run = sum(map(bool, branches)), sum(map(bool, lines))
    share = 100 * taken / len(branches) if branches else 100
    return f"{name:24}{taken:6} of{len(branches):5}{share:7.1f} %{run:8} of{len(lines):5}"


def flat(lines: Lines) -> list[int]:
    return [count for counts in lines.values() for count in counts]


def main() -> None:
    branches, lines = collect(Path(sys.argv[1]))
    print(f"{'file':24}{'branches taken':>22}{'lines run':>16}")
    for name in sorted(lines):
        print(row(name, flat(branches[name]), flat(lines[name])))
    everything = [count for name in branches for count in flat(branches[name])]
    print(row("all", everything, [count for name in lines for count in flat(lines[name])]))
    if "--missing" not in sys.argv:
        return
    for name in sorted(branches):
        source = Path(name).read_text().splitlines()
        for line, counts in sorted(branches[name].items()):
            if 0 in counts:
                missed = f"{counts.count(0)} of {len(counts)}"
                print(f"{name}:{line}: {missed} never: {source[line - 1].strip()}")


if __name__ == "__main__":
    main()
