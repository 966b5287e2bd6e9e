"""parse_file with several threads beside one, in turn in one process, for cores that are idle.

    python benchmarks/threads.py [--threads=2,4] [--runs=7] [W2:16 W4:1024 ...]

Of each workload and batch size: ns per record, how much faster than one thread, CPU time and page
faults. Where CPU time grows, caches and memory are short; where it does not, and there is no gain,
threads wait. The last row of each has two processes with one thread each: what the machine gives.
The best of the runs, each over 200 MB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from typing import Any, NamedTuple

import tfwire as tfw
import workloads

SIZE = 200_000_000  # bytes of a run
CASES = ["W1:1024", "W2:16", "W2:64", "W2:1024", "W3:16", "W3:64", "W3:1024", "W4:1024", "W5:1024"]


class Run(NamedTuple):
    """Per record: seconds, and seconds of CPU time; in all: page faults."""

    wall: float
    cpu: float
    faults: float


def measure(parser: Any, paths: list[Any], batch_size: int, num_threads: int) -> Run:
    before, start, count = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter(), 0
    for batch in parser.parse_file(paths, batch_size, num_threads=num_threads):
        count += len(next(iter(batch.values())))
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall / count, cpu / count, after.ru_minflt - before.ru_minflt)


def paths_of(work: Any) -> list[Any]:
    """The file of a workload, as often as makes SIZE."""
    return [work.path] * -(-SIZE // os.path.getsize(work.path))


def in_process(name: str, batch_size: int, num_runs: int, together: Any, runs: Any) -> None:
    """Runs with one thread, each begun together with those of the other processes."""
    work = workloads.workloads()[name]
    parser, paths = tfw.Parser(work.spec(tfw), bytes_as="column"), paths_of(work)
    for _ in range(num_runs + 1):
        together.wait()
        runs.put(measure(parser, paths, batch_size, 1))


def in_processes(name: str, batch_size: int, num_runs: int, number: int) -> Run:
    """The best run of some processes; as many at a time take a record each."""
    context = multiprocessing.get_context("spawn")
    together, runs = context.Barrier(number), context.Queue()
    arguments = name, batch_size, num_runs, together, runs
    processes = [context.Process(target=in_process, args=arguments) for _ in range(number)]
    for process in processes:
        process.start()
    found = [runs.get() for _ in range(number * (num_runs + 1))]
    for process in processes:
        process.join()
    best = best_of(found[number:])
    return Run(best.wall / number, best.cpu, best.faults)


def best_of(runs: list[Run]) -> Run:
    return Run(*map(min, zip(*runs, strict=True)))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("cases", nargs="*", default=CASES)
    options.add_argument("--threads", default="2")
    options.add_argument("--runs", type=int, default=7)
    given = options.parse_args()
    threads = [1, *map(int, given.threads.split(","))]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':10}{'threads':>12}{'ns':>10}{'faster':>8}{'CPU ns':>10}{'faults':>8}")
    works = workloads.workloads()
    for case in given.cases:
        name, batch_size = case.split(":")
        work = works[name]
        parser, paths = tfw.Parser(work.spec(tfw), bytes_as="column"), paths_of(work)
        runs: dict[int, list[Run]] = {n: [] for n in threads}
        for i in range(given.runs + 1):
            for n in threads:
                run = measure(parser, paths, int(batch_size), n)
                if i:  # the first fills caches
                    runs[n].append(run)
        found = {str(n): best_of(runs[n]) for n in threads}
        found["2 processes"] = in_processes(name, int(batch_size), given.runs, 2)
        for label, run in found.items():
            print(
                f"{case:10}{label:>12}{run.wall * 1e9:10.1f}{found['1'].wall / run.wall:8.2f}"
                f"{run.cpu * 1e9:10.1f}{run.faults:8.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
