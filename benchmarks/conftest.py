"""The fixtures of the benchmarks: workloads, and a comparison whose rounds are interleaved."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import workloads as standard

ROUNDS = 7

Operation = Callable[[], int]  # returns the number of records it handled


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="workloads of full size")


@pytest.fixture(scope="session")
def work(request: pytest.FixtureRequest) -> dict[str, standard.Workload]:
    """W1 to W7 by name."""
    return standard.workloads(request.config.getoption("--full"))


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for written files, in memory where there is a tmpfs."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path_factory.mktemp("written")
        return
    folder = memory / f"tfwire-bench-{time.time_ns()}"
    folder.mkdir()
    yield folder
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


class Timings:
    """Wall and CPU seconds of the rounds of one operation."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.count = operation()  # once before it counts, to warm everything up
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def round(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        if self.operation() != self.count:
            raise ValueError("rounds handled different numbers of records")
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)

    @property
    def per_record(self) -> float:
        return statistics.median(self.wall) / self.count

    @property
    def share(self) -> float:
        """Of a core: well below 1, another process had it and the time says little."""
        return statistics.median(self.cpu) / statistics.median(self.wall)


class Versus:
    """Times an operation of tfwire and its peers in turn, so that both see the same machine."""

    def __init__(self, benchmark: Any) -> None:
        self.benchmark = benchmark

    def __call__(
        self,
        operation: str,
        workload: str,
        ours: Operation,
        peers: dict[str, tuple[Operation, float | None]],
        record_size: float,
        at_most: float | None = None,
    ) -> None:
        """peers: per name the operation and how many times faster tfwire is to be.

        record_size: Bytes that count as one record, for MB/s.
        at_most: Seconds that a record may take, where no peer does the same.
        """
        mine = Timings(ours)
        theirs = {name: Timings(peer) for name, (peer, _) in peers.items()}

        def time_peers() -> None:
            for timings in theirs.values():
                timings.round()

        self.benchmark.pedantic(mine.round, setup=time_peers, rounds=ROUNDS, iterations=1)
        self.benchmark.extra_info.update(
            operation=operation,
            workload=workload,
            records_per_second=1 / mine.per_record,
            bytes_per_second=record_size / mine.per_record,
            share=mine.share,
            peers=[
                {
                    "name": name,
                    "records_per_second": 1 / timings.per_record,
                    "ratio": timings.per_record / mine.per_record,
                    "target": peers[name][1],
                    "share": timings.share,
                }
                for name, timings in theirs.items()
            ]
            + ([limit(at_most, mine)] if at_most is not None else []),
        )


def limit(seconds: float, mine: Timings) -> dict[str, Any]:
    """A peer that would take so long for a record."""
    return {
        "name": f"(at most {seconds * 1e6:g} microseconds)",
        "records_per_second": 1 / seconds,
        "ratio": seconds / mine.per_record,
        "target": 1,
        "share": mine.share,
    }


@pytest.fixture
def all_cores() -> Iterator[None]:
    """Lets one benchmark and its peers use every core; the others keep to one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def versus(benchmark: Any) -> Versus:
    return Versus(benchmark)
