"""Instructions of the hot loops, counted by callgrind: they repeat where times do not.

python benchmarks/counts/counts.py [--record]

Compares with counts.json, which --record renews. valgrind knows no AVX-512, so the counts are of
the portable code and of SSE4.2 to AVX2; the AVX-512 tier is kept by its ratio to memcpy
(make bench). Another compiler or C library does otherwise: the tolerance is wider then.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "counts"
RECORDED = HERE / "counts.json"

COMPILER = "gcc"
TIERS = {"portable": 0x00, "avx2": 0x0F}  # csrc/base/cpu.h: the features that a CPU is left with
TOLERANCE = 0.03
OTHER_TOOLCHAIN = 0.25

Counts = dict[str, dict[str, float]]  # by loop and tier: instructions per item


def toolchain() -> str:
    """What the counts depend on beside our sources: "gcc 12, glibc 2.36"."""
    version = subprocess.run([COMPILER, "-dumpversion"], capture_output=True, text=True, check=True)
    return f"{COMPILER} {version.stdout.split('.')[0].strip()}, {os.confstr('CS_GNU_LIBC_VERSION')}"


def build() -> Path:
    """The driver with the library, optimised as the Python module is, without its hardening."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "counts"
    flags = ["-std=c11", "-O3", "-DTFW_TEST_FAULTS", f"-I{ROOT}/csrc", f"-I{ROOT}/tests/c"]
    sources = [HERE / "counts.c", *sorted((ROOT / "csrc").glob("*/*.c"))]
    subprocess.run([COMPILER, *flags, *sources, "-o", program], check=True)
    return program


def count(program: Path, tier: str) -> dict[str, float]:
    """Instructions per item by loop."""
    output = BUILD / f"{tier}.callgrind"
    output.unlink(missing_ok=True)
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--combine-dumps=yes",
         f"--callgrind-out-file={output}", program],
        env={**os.environ, "TFWIRE_TEST_CPU": str(TIERS[tier])}, capture_output=True, text=True,
    )  # fmt: skip
    if run.returncode != 0:
        raise SystemExit(f"{run.stderr}\ncounts: the {tier} tier failed")
    dumps = r"^desc: Trigger: Client Request: (.*)\n(?:.*\n)*?summary: (\d+)$"
    instructions = dict(re.findall(dumps, output.read_text(), re.MULTILINE))
    items = dict(line.split("\t") for line in run.stdout.splitlines())
    return {name: round(int(instructions[name]) / int(n), 1) for name, n in items.items()}


def count_all() -> Counts:
    program = build()
    tiers = {tier: count(program, tier) for tier in TIERS}
    return {loop: {tier: tiers[tier][loop] for tier in TIERS} for loop in tiers["portable"]}


def compare(recorded: Counts, found: Counts, tolerance: float) -> bool:
    """Prints the table; whether no loop takes more than it did, by more than the tolerance."""
    good = True
    print(f"{'instructions per item':36}" + "".join(f"{tier:>24}" for tier in TIERS))
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


def cannot_count() -> str | None:
    """Why this machine cannot, or None."""
    if platform.machine() != "x86_64":
        return "the recorded counts are of x86-64"
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        return "this CPU has no AVX2"
    return None


def check(recorded: dict[str, Any]) -> int:
    here, tolerance = toolchain(), TOLERANCE
    if here != recorded["toolchain"]:
        tolerance = OTHER_TOOLCHAIN
        print(f"{here} here, {recorded['toolchain']} recorded: tolerance {tolerance:.0%}")
    if compare(recorded["counts"], count_all(), tolerance):
        return 0
    print(
        f"!: more than {tolerance:.0%} above {RECORDED.name}; if that is meant: make bench-record"
    )
    return 1


def record() -> None:
    facts = {"toolchain": toolchain(), "counts": count_all()}
    RECORDED.write_text(json.dumps(facts, indent=2) + "\n")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Counts instructions of the hot loops.")
    parser.add_argument("--record", action="store_true", help="write counts.json")
    options = parser.parse_args(arguments)
    if problem := cannot_count():
        print(f"no instruction counts: {problem}")
        return 1 if options.record else 0
    if options.record:
        record()
        return 0
    return check(json.loads(RECORDED.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
