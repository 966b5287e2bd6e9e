"""Prints the branch coverage of the C core, a line per file, and the branches never taken.

Usage, in the root of the project: ``python tests/fuzz/coverage.py [--floor=PERCENT]
[--apart=FOLDER=PERCENT] [--missing] BUILD_FOLDER``, where BUILD_FOLDER holds the .gcda files of a
build with ``--coverage`` after its programs have run. ``make coverage`` makes one. A header's
branches are counted once, whichever files include it. Less than the floor of all branches is a
failure; a folder that is counted apart has a floor of its own. --missing also lists the branches
and the lines that were never run.
"""

from __future__ import annotations

import argparse
import json
import os
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
        branches: Lines = defaultdict(list)
        lines: Lines = defaultdict(list)
        for line in file["lines"]:  # of a template, a line is there for each that includes it
            number = line["line_number"]
            add(lines, {number: [line["count"]]})
            if line["branches"]:
                add(branches, {number: [branch["count"] for branch in line["branches"]]})
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
    for data in sorted(folder.rglob("*.gcda")):
        for path, file_branches, file_lines in read(data):
            name = os.path.relpath(path)
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


def print_missing(branches: dict[str, Lines], lines: dict[str, Lines]) -> None:
    for name in sorted(lines):
        source = Path(name).read_text().splitlines()
        for line, counts in sorted(lines[name].items()):
            taken = branches[name].get(line, [])
            if not any(counts):
                print(f"{name}:{line}: never run: {source[line - 1].strip()}")
            elif 0 in taken:
                missed = f"{taken.count(0)} of {len(taken)}"
                print(f"{name}:{line}: {missed} never: {source[line - 1].strip()}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--floor", type=float, default=0)
    parser.add_argument("--apart", action="append", default=[])
    parser.add_argument("--missing", action="store_true")
    options = parser.parse_args()
    branches, lines = collect(options.folder)
    print(f"{'file':24}{'branches taken':>22}{'lines run':>16}")
    for name in sorted(lines):
        print(row(name, flat(branches[name]), flat(lines[name])))
    everything = [count for name in branches for count in flat(branches[name])]
    print(row("all", everything, [count for name in lines for count in flat(lines[name])]))
    if options.missing:
        print_missing(branches, lines)
    floors = [part.split("=") for part in options.apart]
    for folder, floor in floors:
        check_floor([name for name in branches if name.startswith(folder)], branches, float(floor))
    others = [n for n in branches if not n.startswith(tuple(folder for folder, _ in floors))]
    check_floor(others, branches, options.floor)


def check_floor(names: list[str], branches: dict[str, Lines], floor: float) -> None:
    counts = [count for name in names for count in flat(branches[name])]
    if 100 * sum(map(bool, counts)) < floor * len(counts):
        sys.exit(f"less than {floor} % of the branches of {names[0]} and {len(names) - 1} others")


if __name__ == "__main__":
    main()
