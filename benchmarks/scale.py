"""make bench-scale: how much faster several threads are than one, on a machine with idle cores.

    python benchmarks/scale.py [--threads=1,2,4] [--size=200] [--runs=5] [--quick] [--document]
                               [--grid] [part of a name ...]

Of each operation: GB of record file a second with one thread, and how many times as much with more,
the medians of runs that alternate. The files, of so many MB each, lie in memory. Beside parse_file
is what as many processes do, of one thread each: the most that the machine gives.
--grid instead compares file sizes and batch sizes: more threads should never be slower than one.
--document puts the table into docs/benchmarks.md, and the figure beside it.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tfwire as tfw
import workloads
from table import lines, machine
from tfwire.arrow import open_reader

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- scale -->\n", "<!-- /scale -->\n"
FILES = 16
BATCHES = {"W1": 1024, "W2": 1024, "W3": 64, "W4": 1024, "W5": 1024}
GRID_SIZES = 10**3, 10**4, 10**5, 10**6, 10**7, 10**8
GRID_BATCHES = 16, 128, 1024, 8192
LEAST_SECONDS = 0.02  # of a run in the grid: short ones are repeated

Run = Callable[[int], object]  # with a number of threads


class Case(NamedTuple):
    """An operation: ``run(num_threads)`` passes over num_bytes of record files."""

    name: str
    run: Run
    num_bytes: int


class Files:
    """The files of a workload in a folder, each made when it is first asked for.

    Args:
        work: The workload.
        folder: Where they lie.
        size: Bytes of the large file; sixteen small ones have as much together.
    """

    def __init__(self, work: workloads.Workload, folder: Path, size: int) -> None:
        self.work, self.spec = work, work.spec(tfw)
        self._folder, self._size = folder, size

    def of_size(self, size: int, suffix: str = "") -> Path:
        """A file of about so many bytes: the workload's records, again and again."""
        path = self._folder / f"{self.work.name}-{size}.tfrecord{suffix}"
        if not path.exists():
            index = tfw.RecordIndex.build(self.work.path)
            whole = Path(self.work.path).read_bytes()
            part = size % len(whole)
            end = int(index.offsets[np.searchsorted(index.offsets, part)])
            with open(path, "wb") as file:
                file.writelines([whole] * (size // len(whole)))
                file.write(whole[:end])
            if suffix:
                plain = path.rename(path.with_suffix(".plain"))
                tfw.write_records(path, tfw.read_records(plain), "GZIP")
                plain.unlink()
        return path

    @property
    def one(self) -> Path:
        return self.of_size(self._size)

    def many(self, suffix: str = "") -> list[Path]:
        return [self.of_size(self._size // FILES, suffix)] * FILES


# ---- What is run --------------------------------------------------------------------------------


def drain(batches: Any) -> int:
    """Draws everything, and keeps nothing."""
    return sum(1 for _ in batches)


def parse(parser: Any, paths: Any, batch_size: int, num_threads: int) -> int:
    return drain(parser.parse_file(paths, batch_size, num_threads=num_threads))


def to_arrow(path: Path, spec: Any, num_threads: int) -> int:
    return drain(open_reader(path, spec, num_threads=num_threads))


def verify(paths: list[Path], num_threads: int) -> int:
    return drain(tfw.verify_files(paths, num_threads=num_threads))


def index(paths: list[Path], num_threads: int) -> int:
    return drain(tfw.RecordIndex.build_many(paths, num_threads=num_threads))


def exact_shuffle(paths: list[Path], spec: Any, num_threads: int) -> int:
    records: Any = tfw.TFRecordDataset(paths, indexed=True).shuffle(2**31 - 1, seed=1)
    return drain(records.batch(1024).parse_example(spec, num_threads=num_threads))


def buffered_shuffle(paths: list[Path], spec: Any, num_threads: int) -> int:
    records: Any = tfw.TFRecordDataset(paths).shuffle(10_000, seed=1)
    return drain(records.batch(1024).parse_example(spec, num_threads=num_threads))


def encode(columns: Any, num_threads: int) -> int:
    return len(tfw.encode_columns(columns, bytes_as="column", num_threads=num_threads))


def write(columns: Any, path: Path, num_threads: int) -> None:
    with tfw.TFRecordWriter(path, num_threads=num_threads) as writer:
        writer.write_columns(columns)


def write_shards(columns: Any, pattern: Path, num_threads: int) -> None:
    with tfw.ShardedWriter(pattern, num_shards=FILES, num_threads=num_threads) as writer:
        writer.write_columns(columns)


def cases(files: dict[str, Files], folder: Path) -> Iterator[Case]:
    for name, own in files.items():
        parser, batch = tfw.Parser(own.spec, bytes_as="column"), BATCHES[name]
        size = os.path.getsize(own.one)
        yield Case(f"one file to columns, {name}", partial(parse, parser, own.one, batch), size)
        yield Case(f"16 files to columns, {name}", partial(parse, parser, own.many(), batch), size)
    for name in ("W1", "W3", "W5"):
        own = files[name]
        size = os.path.getsize(own.one)
        yield Case(f"verify one file, {name}", partial(verify, [own.one]), size)
        yield Case(f"verify 16 files, {name}", partial(verify, own.many()), size)
        yield Case(f"index one file, {name}", partial(index, [own.one]), size)
        yield Case(f"index 16 files, {name}", partial(index, own.many()), size)
    for name in ("W1", "W5"):
        yield from cases_of(name, files[name], folder)


def cases_of(name: str, own: Files, folder: Path) -> Iterator[Case]:
    """What is measured of the workloads with short records alone."""
    parser, paths, columns = tfw.Parser(own.spec, bytes_as="column"), own.many(), own.work.columns
    size, written = os.path.getsize(own.one), own.work.size
    gzipped = partial(parse, parser, own.many(".gz"), BATCHES[name])
    yield Case(f"one file to Arrow, {name}", partial(to_arrow, own.one, own.spec), size)
    yield Case(f"16 gzip files to columns, {name}", gzipped, size)
    yield Case(f"exact shuffle to columns, {name}", partial(exact_shuffle, paths, own.spec), size)
    yield Case(
        f"buffered shuffle to columns, {name}", partial(buffered_shuffle, paths, own.spec), size
    )
    yield Case(f"encode_columns, {name}", partial(encode, columns), written)
    yield Case(f"write_columns, one file, {name}", partial(write, columns, folder / "out"), written)
    shards = partial(write_shards, columns, folder / "{shard}-of-{shards}.tfrecord")
    yield Case(f"write_columns, 16 shards, {name}", shards, written)


# ---- Measuring ----------------------------------------------------------------------------------


def seconds(run: Run, num_threads: int) -> float:
    gc.collect()
    start = time.perf_counter()
    run(num_threads)
    return time.perf_counter() - start


def medians(run: Run, threads: list[int], num_runs: int) -> list[float]:
    """Seconds with each number of threads; the first runs fill caches and do not count."""
    rounds = [[seconds(run, n) for n in threads] for _ in range(num_runs + 1)]
    return [statistics.median(found) for found in zip(*rounds[1:], strict=True)]


def in_process(case: Case, num_runs: int, together: Any, found: Any) -> None:
    for _ in range(num_runs):
        together.wait()
        found.put(seconds(case.run, 1))


def in_processes(case: Case, number: int, num_runs: int) -> float:
    """GB a second of so many processes at once."""
    context = multiprocessing.get_context("fork")
    together, found = context.Barrier(number), context.Queue()
    arguments = case, num_runs, together, found
    processes = [context.Process(target=in_process, args=arguments) for _ in range(number)]
    for process in processes:
        process.start()
    taken = [found.get() for _ in range(number * num_runs)]
    for process in processes:
        process.join()
    return float(number * case.num_bytes / statistics.median(taken) / 1e9)


def measured(case: Case, threads: list[int], num_runs: int) -> list[float]:
    """GB a second with one thread, how many times as much with more, and, of parse_file, with as
    many processes as the most of threads."""
    taken = medians(case.run, threads, num_runs)
    rate = case.num_bytes / taken[0] / 1e9
    found = [rate, *(taken[0] / other for other in taken[1:])]
    if case.name.startswith("one file to columns"):
        found.append(in_processes(case, threads[-1], min(num_runs, 3)) / rate)
    return found


def table(rows: dict[str, list[float]], threads: list[int]) -> str:
    header = ["operation, workload", "GB/s", *(f"{n} threads" for n in threads[1:])]
    header.append(f"{threads[-1]} processes")
    cells = [
        [name, *(f"{value:.2f}" for value in found), *[""] * (len(header) - 1 - len(found))]
        for name, found in rows.items()
    ]
    return lines([header, *cells])


def grid(files: dict[str, Files], threads: list[int], num_runs: int) -> str:
    """The least speed over one thread, of W1 and W4 by the size of a file and of batches."""
    rows = [["bytes of the file", *(f"batches of {batch}" for batch in GRID_BATCHES)]]
    for size in GRID_SIZES:
        row = [f"{size:,}"]
        for batch in GRID_BATCHES:
            ratios = []
            for own in (files["W1"], files["W4"]):
                parser, path = tfw.Parser(own.spec, bytes_as="column"), own.of_size(size)
                once = partial(parse, parser, path, batch)
                times = max(1, int(LEAST_SECONDS / seconds(once, 1)))
                taken = medians(partial(repeated, once, times), threads, num_runs)
                ratios += [taken[0] / other for other in taken[1:]]
            row.append(f"{min(ratios):.2f}")
        rows.append(row)
    return lines(rows)


def repeated(run: Run, times: int, num_threads: int) -> None:
    for _ in range(times):
        run(num_threads)


# ---- The figure ---------------------------------------------------------------------------------


def draw(rows: dict[str, list[float]], threads: list[int], path: Path) -> None:
    """Times over one thread, by threads: a panel for each operation, a line for each workload."""
    import matplotlib.pyplot as plt

    from plots import COLOURS, PARAMETERS

    names = list(dict.fromkeys(name.rpartition(", ")[0] for name in rows))
    with plt.rc_context(PARAMETERS):
        columns = 4
        height = -(-len(names) // columns)
        figure, axes = plt.subplots(height, columns, figsize=(9, 1.9 * height), squeeze=False)
        for i, panel in enumerate(axes.flat):
            panel.set_visible(i < len(names))
            if i >= len(names):
                continue
            panel.plot(threads, threads, color="#bbbbbb", linewidth=0.8)
            for name, found in rows.items():
                operation, _, work = name.rpartition(", ")
                if operation == names[i]:
                    times = [1.0, *found[1 : len(threads)]]
                    colour = COLOURS[int(work[1:]) - 1]
                    panel.plot(threads, times, "o-", color=colour, label=work, markersize=3)
            panel.set_title(names[i], loc="left", fontsize=7.5)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log", base=2)
            panel.set_xticks(threads, list(map(str, threads)))
            panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
            panel.grid(color="#eeeeee", linewidth=0.5)
            panel.legend(frameon=False, fontsize=6.5)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def document(text: str, rows: dict[str, list[float]], threads: list[int]) -> None:
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}{text}\n{END}{after}")
    draw(rows, threads, DOCUMENT.parent / "scale.svg")


def main() -> None:
    most = len(os.sched_getaffinity(0))
    usual = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most]
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("only", nargs="*", help="parts of the names of operations")
    options.add_argument("--threads", default=",".join(map(str, usual)))
    options.add_argument("--size", type=float, default=200, help="MB of a file")
    options.add_argument("--runs", type=int, default=5)
    options.add_argument("--quick", action="store_true", help="small data: says nothing of speed")
    options.add_argument("--grid", action="store_true")
    options.add_argument("--document", action="store_true")
    given = options.parse_args()
    threads = [int(n) for n in given.threads.split(",")]
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=memory if memory.is_dir() else None, prefix="tfwire-"))
    try:
        works = workloads.workloads()
        if given.quick:
            workloads.CACHE = folder
            fields = workloads.FIELDS.items()
            works = {name: workloads.Workload(name, 200, fields=of) for name, of in fields}
        size = int(given.size * 1e6)
        files = {name: Files(works[name], folder, size) for name in BATCHES}
        if given.grid:
            print(grid(files, threads, given.runs))
            return
        rows = {}
        for case in cases(files, folder):
            if not given.only or any(part in case.name for part in given.only):
                rows[case.name] = measured(case, threads, given.runs)
                print(case.name, *(f"{value:.2f}" for value in rows[case.name]), flush=True)
        text = f"```\n{machine()}\n```\n\n{table(rows, threads)}\n"
        print(text)
        if given.document:
            document(text, rows, threads)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
