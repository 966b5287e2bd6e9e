"""Writes what the runs of ``make fuzz``, ``differential`` and ``campaign`` add up to into a page.

Usage: ``python tests/fuzz/report.py LOG_FOLDER PAGE``. A log of fuzzing is named for its target and
time, begins with the commit and ends with libFuzzer's statistics; ``campaign*.txt`` are pytest's
output with hypothesis' statistics. Two marks on the page enclose each of the tables.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

HEAD = "| target | executions | a second | edges | last commit | date |"


class Run(NamedTuple):
    date: str
    commit: str
    executions: int
    seconds: float
    edges: int


def read(log: Path) -> Run:
    text = log.read_text(errors="replace")
    date = log.stem.split("-")[1]
    executions = int(re.findall(r"stat::number_of_executed_units: (\d+)", text)[-1])
    rate = int(re.findall(r"stat::average_exec_per_sec: +(\d+)", text)[-1])
    return Run(
        date=f"{date[:4]}-{date[4:6]}-{date[6:]}",
        commit=text.split(maxsplit=2)[1],
        executions=executions,
        seconds=executions / max(rate, 1),
        edges=max(map(int, re.findall(r" cov: (\d+) ", text)), default=0),
    )


def row(target: str, runs: list[Run]) -> str:
    executions = sum(run.executions for run in runs)
    rate = executions / sum(run.seconds for run in runs)
    edges = max(run.edges for run in runs)
    last = runs[-1]
    return (
        f"| {target} | {executions:,} | {rate:,.0f} | {edges or '-'} "
        f"| {last.commit} | {last.date} |"
    )


def fuzz_table(folder: Path) -> list[str]:
    runs: dict[str, list[Run]] = defaultdict(list)
    for log in sorted(folder.glob("*.log")):
        if "stat::number_of_executed_units" in log.read_text(errors="replace"):
            runs[log.stem.split("-")[0]].append(read(log))
    return [HEAD, "|---|---|---|---|---|---|"] + [row(name, runs[name]) for name in sorted(runs)]


def campaign_table(folder: Path) -> list[str]:
    cases: dict[str, int] = defaultdict(int)
    for log in sorted(folder.glob("campaign*.txt")):
        pattern = r"::(\w+):\n(?:.*\n)*? *- (\d+) passing, 0 failing"
        for name, count in re.findall(pattern, log.read_text()):
            cases[name] += int(count)
    head = ["| test of tests/api/test_hostile.py | cases |", "|---|---|"]
    return head + [f"| {name} | {cases[name]:,} |" for name in sorted(cases)]


def replace(page: str, name: str, table: list[str]) -> str:
    """The page with another table between its marks."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, rest = page.split(begin)
    return before + begin + "\n".join(table) + "\n" + end + rest.split(end)[1]


def main() -> None:
    folder, page = map(Path, sys.argv[1:])
    text = replace(page.read_text(), "fuzz", fuzz_table(folder))
    page.write_text(replace(text, "campaign", campaign_table(folder)))


if __name__ == "__main__":
    main()
