"""What bounds several threads, in measured terms, and what 2 to 16 threads can reach by it.

    python benchmarks/thread_model.py [--runs=7] [--quick] [parse_file ...]

Work is cut into units: batches of records, or files. All times are CPU times, which other work on
the machine changes little. Per unit:

* T: all of it, with two threads.
* R: what threads read in turn. S: what the caller's thread does. G: what is outside of C, where the
  GIL is held. These are measured with the units made one after another in one thread, so that
  waiting is not among them; handing a unit over, measured by itself, is added to G.

With n threads a unit takes at best max((T - S) / n, R, S, G). If threads meet at the GIL, the turn
and the caller at random times, they wait: a closed network of queues, by mean value analysis.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import tfwire as tfw
import workloads
from table import lines
from tfwire._base.native import lib
from tfwire._base.workers import Workers

FILES = 8
FORETOLD = (2, 4, 8, 16)
SYSTEM = ("write", "writev", "pwrite", "pwritev", "read", "pread", "preadv")  # release the GIL
now = time.thread_time


class Watch:
    """Seconds of CPU time, in one thread.

    Attributes:
        in_c: In C and the system, which release the GIL, and `calls`: how often.
        made: Making units. turn, turn_c: reading them, and what of that is in C.
        made_c: What of `made` is in C.
        units: How many units there were.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.in_c = self.made = self.made_c = self.turn = self.turn_c = 0.0
        self.calls = self.units = 0

    def released(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that releases the GIL, timed."""

        def call(*arguments: Any) -> Any:
            start = now()
            try:
                return function(*arguments)
            finally:
                self.in_c += now() - start
                self.calls += 1

        return call


class OneByOne:
    """In the place of Workers: makes each unit when it is asked for, and times it."""

    forked = stopped = False
    watch: Watch

    def __init__(self, read: Any, work: Any, *arguments: Any, **options: Any) -> None:
        self._read, self._work = read, work

    def next(self) -> Any:
        watch, start, in_c = self.watch, now(), self.watch.in_c
        unit = self._read()
        watch.turn += now() - start
        watch.turn_c += watch.in_c - in_c
        made = self._work(unit)
        watch.made += now() - start
        watch.made_c += watch.in_c - in_c
        watch.units += 1
        return made

    def between_reads(self) -> Any:
        return nullcontext()

    def stop(self) -> None:
        pass

    def close(self, release: Callable[[], None] | None = None) -> None:
        if release is not None:
            release()


class TimedLibrary:
    """The C library, with every call timed; each releases the GIL."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        found = getattr(lib, name)
        if callable(found) and name != "tfw_free":  # which C calls, as a finalizer
            found = self._watch.released(found)
        self.__dict__[name] = found
        return found


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Has all that is loaded of tfwire work unit by unit in one thread, and tell the watch."""
    one_by_one = type("OneByOne", (OneByOne,), {"watch": watch})
    stand_ins = {"lib": (lib, TimedLibrary(watch)), "Workers": (Workers, one_by_one)}
    modules = [m for name, m in sys.modules.items() if name.startswith("tfwire.")]
    with ExitStack() as patches:
        for module, (name, (original, stand_in)) in product(modules, stand_ins.items()):
            if vars(module).get(name) is original:
                patches.enter_context(mock.patch.object(module, name, stand_in))
        for name in SYSTEM:
            timed = watch.released(getattr(os, name))
            patches.enter_context(mock.patch.object(os, name, timed))
        yield


def cost_of_watching() -> tuple[float, float]:
    """Seconds that timing adds to a call: within what is measured, and around it."""
    watch, times = Watch(), 20_000
    call, start = watch.released(lambda: None), now()
    for _ in range(times):
        call()
    return watch.in_c / times, (now() - start - watch.in_c) / times


def cost_of_handing_over() -> float:
    """Seconds of a unit of which nothing is to be made, from thread to thread."""
    times, owner = 2000, Watch()
    unit = SimpleNamespace(last=False)
    start = time.process_time()
    workers = Workers(lambda: unit, lambda unit: unit, 1, times, owner=owner)
    for _ in range(times):
        workers.next()
    seconds = time.process_time() - start
    workers.close()
    return seconds / times


# ---- The model --------------------------------------------------------------------------------


class Terms(NamedTuple):
    """CPU seconds of a unit of work.

    Attributes:
        total, held, caller, turn: T, G, S and R.
        caller_c, turn_c: What of S and R is in C.
        calls: Into C.
        units: How many units there were.
    """

    total: float
    held: float
    caller: float
    turn: float
    caller_c: float
    turn_c: float
    calls: float
    units: int

    def bound(self, threads: int) -> float:
        """Seconds of a unit with so many threads, at best."""
        return max((self.total - self.caller) / threads, self.caller, self.turn, self.held)

    def waiting(self, threads: int) -> float:
        """The same where they meet at random: a unit in each thread, and three places where only
        one can be at a time."""
        places = [self.held, self.turn_c, self.caller_c]
        delay = max(0.0, self.total - sum(places))
        queues, cycle = [0.0] * len(places), self.total
        for present in range(1, threads + 1):
            waits = [place * (1 + queue) for place, queue in zip(places, queues, strict=True)]
            cycle = delay + sum(waits)
            queues = [present * wait / cycle for wait in waits]
        return max(cycle / threads, self.bound(threads))


def terms_of(run: Callable[[int], int]) -> Terms:
    inside, around = cost_of_watching()
    watch = Watch()
    with watching(watch):
        run(2)  # each function of C is looked up once
        watch.clear()
        start = now()
        run(2)
        alone = now() - start - watch.calls * (inside + around)
    start = time.process_time()
    run(2)
    total = time.process_time() - start
    in_c = watch.in_c - watch.calls * inside
    caller, caller_c = max(0.0, alone - watch.made), watch.in_c - watch.made_c
    terms = (total, alone - in_c, caller, watch.turn, caller_c, watch.turn_c, watch.calls)
    units = max(1, watch.units)
    found = Terms(*(term / units for term in terms), units)
    return found._replace(held=found.held + cost_of_handing_over())


# ---- What is run ------------------------------------------------------------------------------


class Case(NamedTuple):
    """An operation on a workload: ``run(num_threads)`` returns how many records it handled."""

    name: str
    run: Callable[[int], int]


def cases(works: dict[str, workloads.Workload], scratch: Path) -> Iterator[Case]:
    for name, batch_size in (("W1", 1024), ("W2", 64), ("W3", 64), ("W4", 1024), ("W5", 1024)):
        yield Case(f"parse_file {name}, batches of {batch_size}", parsing(works[name], batch_size))
    for name in ("W1", "W5"):
        paths = [works[name].path] * FILES
        yield Case(f"verify_files {name}, {FILES} files", verifying(paths))
        yield Case(f"build_many {name}, {FILES} files", indexing(paths))
    for name in ("W1", "W5"):
        columns = works[name].columns
        yield Case(f"encode_columns {name}", encoding(columns))
        yield Case(f"write_columns {name}", writing(columns, scratch / "written.tfrecord"))


def parsing(work: workloads.Workload, batch_size: int) -> Callable[[int], int]:
    parser, first = tfw.Parser(work.spec(tfw), bytes_as="column"), next(iter(work.fields))
    paths = [work.path] * FILES

    def run(num_threads: int) -> int:
        batches: Any = parser.parse_file(paths, batch_size, num_threads=num_threads)
        return sum(len(batch[first]) for batch in batches)

    return run


def verifying(paths: list[Path]) -> Callable[[int], int]:
    return lambda threads: sum(r.num_records for r in tfw.verify_files(paths, num_threads=threads))


def indexing(paths: list[Path]) -> Callable[[int], int]:
    return lambda threads: sum(map(len, tfw.RecordIndex.build_many(paths, num_threads=threads)))


def encoding(columns: Any) -> Callable[[int], int]:
    return lambda threads: len(tfw.encode_columns(columns, bytes_as="column", num_threads=threads))


def writing(columns: Any, path: Path) -> Callable[[int], int]:
    def run(num_threads: int) -> int:
        with tfw.TFRecordWriter(path, num_threads=num_threads) as writer:
            writer.write_columns(columns)
        return len(next(iter(columns.values())))

    return run


# ---- The table --------------------------------------------------------------------------------

HEADER = [
    "a unit", "records", "us, one thread", "calls", "us in C each", "T", "R", "S", "G", "G of T",
    *(f"{n} threads" for n in FORETOLD), "2, measured",
]  # fmt: skip


def row(case: Case, runs: int) -> list[str]:
    """Of the run that took least CPU time: the terms, in us, and the speed over one thread's."""
    case.run(1)
    case.run(2)  # all is loaded, and the caches are filled
    rounds = [(timed(case.run, 1), timed(case.run, 2), terms_of(case.run)) for _ in range(runs)]
    count = rounds[0][0][0]
    wall, cpu = (min(found[0][i] for found in rounds) for i in (1, 2))
    two = min(found[1][1] for found in rounds)
    terms = min(found[2] for found in rounds)
    records = count / terms.units
    alone = cpu / count * records

    def foretold(threads: int) -> str:
        low, high = alone / terms.waiting(threads), alone / terms.bound(threads)
        return f"{low:.2g} to {high:.2g}" if f"{low:.2g}" != f"{high:.2g}" else f"{low:.2g}"

    us = [number(1e6 * term) for term in (terms.total, terms.turn, terms.caller, terms.held)]
    return [
        case.name,
        f"{records:,.0f}",
        number(1e6 * alone),
        f"{terms.calls:.0f}",
        number(1e6 * (terms.total - terms.held) / max(1, terms.calls)),
        *us,
        f"{100 * terms.held / terms.total:.0f} %",
        *map(foretold, FORETOLD),
        f"{wall / two:.2g}",
    ]


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 else f"{value:.1f}"


def timed(run: Callable[[int], int], num_threads: int) -> tuple[int, float, float]:
    """The count, wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    count = run(num_threads)
    return count, time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("only", nargs="*", help="parts of the names of cases")
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--quick", action="store_true", help="small data: says nothing of speed")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfwire-") as folder:
        works = workloads.workloads()
        if given.quick:
            workloads.CACHE = Path(folder)
            works = {
                name: workloads.Workload(name, 200, fields=fields)
                for name, fields in workloads.FIELDS.items()
            }
        chosen = [
            case
            for case in cases(works, Path(folder))
            if not given.only or any(part in case.name for part in given.only)
        ]
        print(lines([HEADER, *(row(case, given.runs) for case in chosen)]))


if __name__ == "__main__":
    main()
