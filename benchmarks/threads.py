"""parse_file with several threads beside one, in turn in one process, for cores that are idle.

    python benchmarks/threads.py [--threads=2,4] [--runs=7] [W2:16 W4:1024 ...]

Of each workload and batch size the medians: ns per record, how much faster than one thread, CPU
time and page faults. Where CPU time grows more than a little, caches are short; where it does not,
and there is no gain, threads wait.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from statistics import median
from typing import Any, NamedTuple

import tfwire as tfw
import workloads

CASES = ["W1:1024", "W2:16", "W2:64", "W2:1024", "W3:16", "W3:64", "W3:1024", "W4:1024", "W5:1024"]


class Run(NamedTuple):
    """Per record: seconds, and seconds of CPU time; in all: page faults."""

    wall: float
    cpu: float
    faults: float


def measure(parser: Any, path: Any, batch_size: int, num_threads: int) -> Run:
    before, start, count = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), 0
    for batch in parser.parse_file(path, batch_size, num_threads=num_threads):
        count += len(next(iter(batch.values())))
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall / count, cpu / count, after.ru_minflt - before.ru_minflt)


def medians(runs: list[Run]) -> Run:
    return Run(*map(median, zip(*runs, strict=True)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*", default=CASES)
    options.add_argument("--threads", default="2")
    options.add_argument("--runs", type=int, default=7)
    given = options.parse_args()
    threads = [1, *map(int, given.threads.split(","))]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':10}{'threads':>8}{'ns':>10}{'faster':>8}{'CPU ns':>10}{'faults':>8}")
    works = workloads.workloads()
    for case in given.cases:
        name, batch_size = case.split(":")
        work = works[name]
        parser = tfw.Parser(work.spec(tfw), bytes_as="column")
        runs: dict[int, list[Run]] = {n: [] for n in threads}
        for i in range(given.runs + 1):
            for n in threads:
                run = measure(parser, work.path, int(batch_size), n)
                if i:  # the first fills caches
                    runs[n].append(run)
        found = {n: medians(runs[n]) for n in threads}
        for n, run in found.items():
            print(
                f"{case:10}{n:8}{run.wall * 1e9:10.1f}{found[1].wall / run.wall:8.2f}"
                f"{run.cpu * 1e9:10.1f}{run.faults:8.0f}"
            )


if __name__ == "__main__":
    main()
