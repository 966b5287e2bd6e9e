"""Writes what the runs of ``make fuzz`` add up to into a table of a page.

Usage: ``python tests/fuzz/report.py LOG_FOLDER PAGE``. A log is named for its target and time,
begins with the commit and ends with libFuzzer's statistics. The page has two marks that enclose
the table.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- fuzz: begin -->\n", "<!-- fuzz: end -->"
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


def main() -> None:
    folder, page = map(Path, sys.argv[1:])
    runs: dict[str, list[Run]] = defaultdict(list)
    for log in sorted(folder.glob("*.log")):
        if "stat::number_of_executed_units" in log.read_text(errors="replace"):
            runs[log.stem.split("-")[0]].append(read(log))
    table = [HEAD, "|---|---|---|---|---|---|"]
    table += [row(target, runs[target]) for target in sorted(runs)]
    before, rest = page.read_text().split(BEGIN)
    page.write_text(before + BEGIN + "\n".join(table) + "\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()
