"""One table from pytest-benchmark's JSON: rates, ratios to every peer, targets."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Collection
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import tfwire as tfw

BUSY = 0.93  # with less of a core than this, a time says little
PACKAGES = (
    "tensorflow-cpu", "protobuf", "numpy", "isal", "crc32c", "google-crc32c", "pyarrow", "polars",
    "pandas", "bagz",
)  # fmt: skip


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    packages = ", ".join(f"{name} {found}" for name in PACKAGES if (found := installed(name)))
    return (
        f"{cpu_model()}, {cores} core{'s' * (cores > 1)} used, {platform.system()} "
        f"{platform.release()}\nPython {platform.python_version()}, {packages}\n"
        f"tfwire {tfw.__version__}, CRC-32C by {tfw.checksum.crc32c_kernel()}"
    )


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.processor()


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def rows(report: dict[str, Any]) -> list[list[str]]:
    """A row per operation and peer; the rate of tfwire stands in the first of an operation."""
    found = []
    for benchmark in report["benchmarks"]:
        info = benchmark["extra_info"]
        head = [
            info["operation"],
            info["workload"],
            f"{info['records_per_second']:,.0f}",
            f"{info['bytes_per_second'] / 1e6:,.0f}",
        ]
        for peer in info["peers"] or [None]:
            found.append(head + peer_cells(peer, info["share"]))
            head = ["", "", "", ""]
    return found


def peer_cells(peer: dict[str, Any] | None, share: float) -> list[str]:
    if peer is None:
        return ["", "", "", "", ""]
    target = peer["target"]
    reached = "" if target is None else "yes" if peer["ratio"] >= target else "no"
    wanted = "" if target is None else f"{target:g}x"
    rate = f"{peer['records_per_second']:,.0f}"
    return [peer["name"], rate, ratio_text(peer, share), wanted, reached]


def ratio_text(peer: dict[str, Any], share: float) -> str:
    """A ratio, doubted where another process was in the way; share: what tfwire had of the core."""
    return f"{peer['ratio']:.3g}x{'?' if min(share, peer['share']) < BUSY else ''}"


HEADER = [
    "operation", "workload", "records/s", "MB/s", "peer", "its records/s", "ratio", "target", "met",
]  # fmt: skip


def markdown(report: dict[str, Any]) -> str:
    return lines([HEADER, *rows(report)], left={0, 1, 4})


def lines(cells: list[list[str]], left: Collection[int] = (0,)) -> str:
    """A table in Markdown, padded so that it reads well on a terminal too.

    Args:
        cells: By rows; the first is the header.
        left: The columns that are not aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]

    def line_of(row: list[str]) -> str:
        padded = [
            cell.ljust(widths[i]) if i in left else cell.rjust(widths[i])
            for i, cell in enumerate(row)
        ]
        return "| " + " | ".join(padded) + " |"

    rule = "|".join(
        "-" * (width + 2) if i in left else "-" * (width + 1) + ":"
        for i, width in enumerate(widths)
    )
    return "\n".join([line_of(cells[0]), f"|{rule}|", *map(line_of, cells[1:])])


def render(path: Path) -> str:
    """Machine facts and the table, as Markdown that reads well on a terminal."""
    table = markdown(json.loads(path.read_text()))
    note = ""
    if "x?" in table:
        note = "\n\n?: another process had more than 7 % of the core; run it on a quiet machine."
    return f"```\n{machine()}\n```\n\n{table}{note}"
