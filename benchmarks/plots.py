"""The figures of docs/benchmarks.md, from pytest-benchmark's JSON: ratios with their targets, and
tfwire's rates by workload."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from table import ratio_text

# Colours that can be distinguished without telling red from green (Okabe and Ito).
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#999999"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#D55E00", "#000000")
PARAMETERS = {
    "font.size": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "svg.hashsalt": "tfwire",  # the same figure gives the same file
    "svg.fonttype": "none",  # text stays text: a tenth of the size
}


def draw(results: Path, folder: Path, machine: str) -> list[Path]:
    """Writes ratios.svg and rates.svg."""
    benchmarks = [b["extra_info"] for b in json.loads(results.read_text())["benchmarks"]]
    with plt.rc_context(PARAMETERS):
        figures = {"ratios": ratios(benchmarks), "rates": rates(benchmarks)}
        for name, figure in figures.items():
            figure.text(0.01, 0.003, machine, va="bottom", color="#555555")
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
            plt.close(figure)
    return [folder / f"{name}.svg" for name in figures]


def new_figure(rows: int, title: str) -> tuple[Any, Any]:
    """A figure whose height fits so many rows, and its axes, with the first row on top."""
    inches = 0.19 * max(rows, 1) + 1.3
    figure, axes = plt.subplots(figsize=(9, inches))
    figure.subplots_adjust(left=0.47, right=0.94, top=1 - 0.65 / inches, bottom=0.75 / inches)
    axes.set_title(title, loc="left", x=-0.85, fontsize=11, fontweight="bold", pad=14)
    axes.set_xscale("log")
    axes.set_ylim(rows - 0.4, -0.6)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def ratios(benchmarks: list[dict[str, Any]]) -> Any:
    """How many times a peer's rate tfwire has, with a tick at the target."""
    rows = [(b, peer) for b in benchmarks for peer in b["peers"]]
    figure, axes = new_figure(len(rows), "tfwire's rate over a peer's, same work in the same run")
    for y, (benchmark, peer) in enumerate(rows):
        ratio, target = peer["ratio"], peer["target"]
        met = target is None or ratio >= target
        axes.barh(y, ratio - 1, left=1, height=0.55, color=BLUE if met else ORANGE, zorder=2)
        if target is not None:
            axes.plot(target, y, "|", color="black", markersize=8, zorder=3)
        end = max(ratio, target or 0, 1)
        text = ratio_text(peer, benchmark["share"])
        axes.annotate(text, (end, y), (5, 0), textcoords="offset points", va="center")
    axes.axvline(1, color="black", linewidth=0.8)
    labels = [f"{b['operation']}, {b['workload']}  |  {short(peer['name'])}" for b, peer in rows]
    axes.set_yticks(range(len(rows)), labels)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_xlabel("ratio, logarithmic; 1x: as fast as the peer; ?: measured on a busy machine")
    legend = {
        "target met, or none set": (BLUE, "-", 5),
        "below its target": (ORANGE, "-", 5),
        "target": ("black", "", 0),
    }
    handles = [
        plt.Line2D([], [], color=colour, linestyle=style, linewidth=width, label=label,
                   marker="" if style else "|", markersize=8)
        for label, (colour, style, width) in legend.items()
    ]  # fmt: skip
    axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False,
                fontsize=7, borderaxespad=0)  # fmt: skip
    return figure


def short(peer: str) -> str:
    return {
        "TFRecordDataset.batch.map(parse_example)": "tf.data",
        "TFRecordDataset.batch.map(parse_sequence_example)": "tf.data",
    }.get(peer, peer)


def rates(benchmarks: list[dict[str, Any]]) -> Any:
    """What tfwire reaches in bytes of the record file per second: a row per operation, a point per
    workload; memcpy is the line."""
    operations = list(dict.fromkeys(b["operation"] for b in benchmarks if is_workload(b)))
    figure, axes = new_figure(len(operations), "tfwire's rate by operation and workload")
    workloads = sorted({b["workload"] for b in benchmarks if is_workload(b)})
    for workload, colour, marker in zip(workloads, COLOURS, "osD^vP*", strict=False):
        points = [b for b in benchmarks if b["workload"] == workload]
        x = [b["bytes_per_second"] / 1e6 for b in points]
        y = [operations.index(b["operation"]) for b in points]
        axes.plot(x, y, marker, color=colour, label=workload, markersize=6,
                  markeredgecolor="white", markeredgewidth=0.5)  # fmt: skip
    for benchmark in benchmarks:
        if benchmark["operation"] == "memcpy":
            axes.axvline(benchmark["bytes_per_second"] / 1e6, color=GREY, linestyle="--",
                         label="memcpy")  # fmt: skip
    axes.hlines(range(len(operations)), *axes.get_xlim(), color="#eeeeee", linewidth=0.6, zorder=0)
    axes.set_yticks(range(len(operations)), operations)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_xlabel("MB/s of the uncompressed record file, logarithmic")
    if workloads:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=8, frameon=False,
                    borderaxespad=0, columnspacing=1, handletextpad=0.4)  # fmt: skip
    return figure


def is_workload(benchmark: dict[str, Any]) -> bool:
    return str(benchmark["workload"]).startswith("W")
