"""Instructions of the hot loops, counted by emulators: they repeat where times do not.

python benchmarks/counts/counts.py [--record]

Compares with counts.json, which --record renews. x86-64 is counted by valgrind's callgrind, which
knows no AVX-512: the counts are of the portable code and of SSE4.2 to AVX2, and the AVX-512 tier is
kept by its ratio to memcpy (make bench). ARM64 is counted in qemu's trace of a cross-compiled
program, with fewer records. Another compiler or C library does otherwise: the tolerance is wider
then. A machine that lacks an emulator or the cross compiler goes without its counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "counts"
RECORDED = HERE / "counts.json"

TOLERANCE = 0.03
OTHER_TOOLCHAIN = 0.25

Counts = dict[str, dict[str, float]]  # by loop and tier: instructions per item


class Machine(NamedTuple):
    """A kind of CPU: how programs are compiled for it, and run so that instructions are counted."""

    name: str
    compiler: str
    flags: list[str]
    emulator: str
    tiers: dict[str, int]  # csrc/base/cpu.h: the features that a CPU is left with
    count_tier: Callable[[Path, str, dict[str, str]], dict[str, float]]

    def toolchain(self) -> str:
        """What the counts depend on beside our sources: "gcc 12, glibc 2.36"."""
        run = [self.compiler, "-E", "-dM", "-include", "features.h", "-x", "c", os.devnull]
        text = subprocess.run(run, capture_output=True, text=True, check=True).stdout
        macros = dict(re.findall(r"^#define (\w+) (\d+)$", text, re.MULTILINE))
        glibc = f"glibc {macros['__GLIBC__']}.{macros['__GLIBC_MINOR__']}"
        return f"gcc {macros['__GNUC__']}, {glibc}"

    def build(self) -> Path:
        """The driver with the library, optimised as the Python module is, without its hardening."""
        BUILD.mkdir(parents=True, exist_ok=True)
        program = BUILD / self.name
        flags = ["-std=c11", "-O3", "-DTFW_TEST_FAULTS", f"-I{ROOT}/csrc", f"-I{ROOT}/tests/c"]
        sources = [HERE / "counts.c", *sorted((ROOT / "csrc").glob("*/*.c"))]
        subprocess.run([self.compiler, *flags, *self.flags, *sources, "-o", program], check=True)
        return program

    def count_all(self) -> Counts:
        program = self.build()
        tiers = {
            tier: self.count_tier(program, tier, {**os.environ, "TFWIRE_TEST_CPU": str(features)})
            for tier, features in self.tiers.items()
        }
        return {loop: {tier: tiers[tier][loop] for tier in tiers} for loop in tiers["portable"]}


def items_of(output: str) -> dict[str, int]:
    """What the driver says: items by loop."""
    lines = (line.split("\t") for line in output.splitlines())
    return {name: int(items) for name, items in lines}


def count_by_callgrind(program: Path, tier: str, environment: dict[str, str]) -> dict[str, float]:
    """Instructions per item by loop."""
    output = BUILD / f"{tier}.callgrind"
    output.unlink(missing_ok=True)
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--combine-dumps=yes",
         f"--callgrind-out-file={output}", program],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        raise SystemExit(f"{run.stderr}\ncounts: the {tier} tier failed")
    dumps = r"^desc: Trigger: Client Request: (.*)\n(?:.*\n)*?summary: (\d+)$"
    instructions = dict(re.findall(dumps, output.read_text(), re.MULTILINE))
    items = items_of(run.stdout)
    return {name: round(int(instructions[name]) / n, 1) for name, n in items.items()}


def count_by_qemu(program: Path, tier: str, environment: dict[str, str]) -> dict[str, float]:
    """Instructions per item by loop, on a CPU that takes the same functions of the C library
    everywhere."""
    with subprocess.Popen(
        ["qemu-aarch64-static", "-cpu", "cortex-a72", "-d", "in_asm,exec,nochain",
         "-D", "/dev/stderr", program],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        assert run.stdout is not None
        assert run.stderr is not None
        loops = instructions_between_marks(run.stderr)
        items = items_of(run.stdout.read().decode())
    if run.returncode != 0 or len(loops) != len(items):
        raise SystemExit(f"counts: the {tier} tier failed")
    counts = zip(items.items(), loops, strict=True)
    return {name: round(instructions / n, 1) for (name, n), instructions in counts}


def instructions_between_marks(trace: Iterable[bytes]) -> list[int]:
    """Of each part of qemu's trace from count_begin to count_end.

    The trace shows every block of instructions once, when it is translated ("IN: function", then a
    line for each, which begins with its address), and a line for every time that it runs.
    """
    sizes: dict[bytes, int] = {}  # by the address of a block's first instruction
    runs: Counter[bytes] | None = None
    first = b""
    loops = []
    for line in trace:
        if line.startswith(b"Trace"):
            address = line.split(b"/", 2)[1]
            if line.endswith(b" count_begin\n"):
                runs = Counter()
            elif runs is not None and line.endswith(b" count_end\n"):
                loops.append(sum(sizes[block] * n for block, n in runs.items()))
                runs = None
            elif runs is not None:
                runs[address] += 1
        elif line.startswith(b"IN:"):
            first = b""
        elif line.startswith(b"0x"):
            if not first:
                first = line[2 : line.index(b":")].zfill(16)
                sizes[first] = 0
            sizes[first] += 1
    return loops


MACHINES = [
    Machine(
        name="x86_64",
        compiler="gcc",
        flags=[],
        emulator="valgrind",
        tiers={"portable": 0x00, "avx2": 0x0F},
        count_tier=count_by_callgrind,
    ),
    Machine(
        name="aarch64",
        compiler="aarch64-linux-gnu-gcc",
        flags=["-static", "-DCOUNT_BY_TRACE", "-DCOUNT_RECORDS=64"],
        emulator="qemu-aarch64-static",
        tiers={"portable": 0x000, "neon": 0x700},
        count_tier=count_by_qemu,
    ),
]


def compare(machine: Machine, recorded: Counts, found: Counts, tolerance: float) -> bool:
    """Prints the table; whether no loop takes more than it did, by more than the tolerance."""
    good = True
    title = f"{machine.name}: instructions per item"
    print(f"{title:36}" + "".join(f"{tier:>24}" for tier in machine.tiers))
    for loop, counts in found.items():
        cells = []
        for tier, now in counts.items():
            before = recorded.get(loop, {}).get(tier)
            change = "new" if before is None else f"{now / before - 1:+.1%}"
            slower = before is not None and now > before * (1 + tolerance)
            good &= not slower
            cells.append(f"{now:>13,.1f} {change:>8}{' !' if slower else '  '}")
        print(f"{loop:36}" + "".join(cells))
    for loop in recorded.keys() - found.keys():
        print(f"{loop}: recorded, but not counted any more")
    return good


def cannot_count(machine: Machine) -> str | None:
    """Why this machine cannot, or None."""
    if platform.machine() != "x86_64":
        return "counting is set up for x86-64"
    for program in (machine.compiler, machine.emulator):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if machine.name == "x86_64" and "avx2" not in Path("/proc/cpuinfo").read_text():
        return "this CPU has no AVX2"
    return None


def check(machine: Machine, toolchain: str, counts: Counts) -> bool:
    here, tolerance = machine.toolchain(), TOLERANCE
    if here != toolchain:
        tolerance = OTHER_TOOLCHAIN
        print(f"{here} here, {toolchain} recorded: tolerance {tolerance:.0%}")
    good = compare(machine, counts, machine.count_all(), tolerance)
    if not good:
        print(
            f"!: more than {tolerance:.0%} above {RECORDED.name}; "
            "if that is meant: make bench-record"
        )
    return good


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Counts instructions of the hot loops.")
    parser.add_argument("--record", action="store_true", help="write counts.json")
    options = parser.parse_args(arguments)
    facts = json.loads(RECORDED.read_text())
    good = True
    for machine in MACHINES:
        if problem := cannot_count(machine):
            print(f"{machine.name}: no instruction counts: {problem}")
            good &= not options.record
        elif options.record:
            facts[machine.name] = {"toolchain": machine.toolchain(), "counts": machine.count_all()}
            RECORDED.write_text(json.dumps(facts, indent=2) + "\n")
        else:
            good &= check(machine, **facts[machine.name])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
