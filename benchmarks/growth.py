"""make bench-growth: how time and memory grow with records, files, features and threads.

    python benchmarks/growth.py [--quick] [--document] [--folder=build/bench-growth] [--only=files]

Each cell of the table is measured in a process of its own. The folder keeps the files of records,
about 4 GB, and gets results.json and growth.svg. --quick takes a second and says nothing about
speed. --document also puts the table into docs/growth.md, and the figure beside it.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from growth_figure import draw
from growth_operations import OPERATIONS, Run, Size, cached, measure
from table import lines, machine

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "bench-growth"
DOCUMENT = HERE.parent / "docs" / "growth.md"
HEADING = "## Results\n\n"
FIGURE = "![Time and peak memory by records, files, features and threads](growth.svg)\n\n"
SECONDS = 0.7  # of a cell, but at least two runs

Numbers = tuple[int, ...]


class Axis(NamedTuple):
    """What grows.

    Attributes:
        operations: What is measured.
        points: At how many, in the full form and in the quick one.
        size: The work at a point, in the full form or (True) in the quick one.
        unit: What times are divided by.
    """

    operations: tuple[str, ...]
    points: tuple[Numbers, Numbers]
    size: Callable[[int, bool], Size]
    unit: str = "record"


AXES = {
    "records": Axis(
        ("read", "verify", "index", "parse", "write"),
        ((10**4, 10**5, 10**6, 10**7, 10**8), (100, 1000)),
        lambda n, quick: Size(n),
    ),
    "files": Axis(
        ("read", "verify", "index", "parse", "write"),
        ((1, 10, 100, 1000), (1, 3)),
        lambda n, quick: Size(n * (100 if quick else 10_000), files=n),
    ),
    "features": Axis(
        ("parse", "decode", "encode", "write"),
        ((1, 10, 100, 1000), (1, 1000)),
        lambda n, quick: Size((2000 if quick else 2_000_000) // n, features=n),
        "value",
    ),
    "threads": Axis(
        ("verify", "index", "parse", "encode", "write"),
        ((1, 2, 4, 8, 16), (1, 2)),
        lambda n, quick: Size(160 if quick else 1_600_000, files=16, features=10, threads=n),
    ),
}


class Cell(NamedTuple):
    """Of a point of an axis: ns of wall and CPU time per unit, and bytes of memory."""

    axis: str
    at: int
    operation: str
    wall: float
    cpu: float
    memory: int


def in_a_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns when a new process calls it."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=lambda: sender.send(function(*arguments)))
    process.start()
    sender.close()
    with receiver:
        found = receiver.recv()
    process.join()
    return found


def cells(names: list[str], folder: Path, scratch: Path, quick: bool) -> Iterator[Cell]:
    """Measures every point of some axes."""
    one = Size()
    one.write_files(folder)
    for operation in OPERATIONS:  # for the processes to have all modules
        measure(operation, one, folder, scratch, 0.0)
    gc.freeze()
    least = {
        operation: in_a_process(measure, operation, one, folder, scratch, 0.0).peak
        for operation in OPERATIONS
    }
    for name in names:
        axis = AXES[name]
        for at in axis.points[quick]:
            size = axis.size(at, quick)
            in_a_process(size.write_files, folder)
            in_a_process(cached, size.paths(folder))
            for operation in axis.operations:
                seconds = 0.0 if quick else SECONDS
                run: Run = in_a_process(measure, operation, size, folder, scratch, seconds)
                ns = 1e9 / (size.values if axis.unit == "value" else size.records)
                memory = max(0, run.peak - least[operation])
                yield Cell(name, at, operation, run.wall * ns, run.cpu * ns, memory)


# ---- The table --------------------------------------------------------------------------------


def markdown(found: list[Cell]) -> str:
    """A row per point, a column per operation."""
    by_place = {(cell.axis, cell.at, cell.operation): cell for cell in found}
    rows = [["ns per record or value, MB", *OPERATIONS]]
    for axis, at in dict.fromkeys((cell.axis, cell.at) for cell in found):
        named = f"{at:,} {axis if at > 1 else axis[:-1]}"
        rows.append([named, *(text_of(by_place.get((axis, at, name))) for name in OPERATIONS)])
    return lines(rows)


def text_of(cell: Cell | None) -> str:
    return "" if cell is None else f"{short(cell.wall)} ({short(cell.cpu)}), {mb(cell.memory)}"


def short(number: float) -> str:
    """Two digits, or all before the point."""
    return f"{number:.0f}" if number >= 9.95 else f"{number:.1f}"


def mb(size: int) -> str:
    return f"{short(size / 1e6)} MB"


# ---- The program ------------------------------------------------------------------------------


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """For files that are written and deleted: in memory, where there is a tmpfs with room."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 8e9
    with tempfile.TemporaryDirectory(prefix="tfwire-", dir=memory if roomy else None) as folder:
        yield Path(folder)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--quick", action="store_true")
    options.add_argument("--document", action="store_true")
    options.add_argument("--folder", type=Path, default=FOLDER)
    options.add_argument("--only", choices=AXES, action="append")
    given = options.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    with scratch_folder() as scratch:
        found = []
        for cell in cells(given.only or list(AXES), given.folder, scratch, given.quick):
            found.append(cell)
            print(f"{cell.axis:9}{cell.at:12,} {cell.operation:7}{text_of(cell)}", file=sys.stderr)
    (given.folder / "results.json").write_text(json.dumps([cell._asdict() for cell in found]))
    report(found, given.folder, given.document)


def report(found: list[Cell], folder: Path, document: bool) -> None:
    table = f"```\n{machine()}\n```\n\n{markdown(found)}\n"
    print(table)
    units = {name: axis.unit for name, axis in AXES.items()}
    (folder / "growth.svg").write_text(draw(found, units))
    if document:
        shutil.copy(folder / "growth.svg", DOCUMENT.with_suffix(".svg"))
        text, _, _ = DOCUMENT.read_text().partition(HEADING)
        DOCUMENT.write_text(f"{text}{HEADING}{FIGURE}{table}")


if __name__ == "__main__":
    main()
