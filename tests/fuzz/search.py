"""Runs libFuzzer on the targets in build/fuzz: ``make fuzz`` builds them, and gives what to do.

The environment says how long: T seconds (60) or N executions of each of FUZZ_TARGETS (all), with
more flags in FUZZ_FLAGS. What is learned stays in build/fuzz/corpus, the logs in build/fuzz/log,
which report.py adds up.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "fuzz"
LIMITS = "-max_len=65536 -len_control=1000 -rss_limit_mb=512 -timeout=5 -print_final_stats=1"


def search(target: str, commit: str) -> None:
    """Runs one target; its log begins with the commit. The end of the log is printed."""
    name = target.removeprefix("fuzz_")
    learned, logs = BUILD / "corpus" / name, BUILD / "log"
    for folder in (learned, logs):
        folder.mkdir(parents=True, exist_ok=True)
    log = logs / time.strftime(f"{name}-%Y%m%d-%H%M%S.log", time.gmtime())
    chosen = [f"-max_total_time={os.environ.get('T', 60)}", f"-runs={os.environ.get('N', -1)}"]
    flags = [*chosen, *LIMITS.split(), *os.environ.get("FUZZ_FLAGS", "").split()]
    command = [BUILD / target, *flags, f"-artifact_prefix={BUILD}/{name}-"]
    environment = {**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=16:malloc_context_size=1"}
    with log.open("w") as output:
        print("commit", commit, file=output, flush=True)
        done = subprocess.run(
            [*command, learned, HERE / "corpus" / name],
            stdout=output,
            stderr=output,
            env=environment,
        )
    lines = log.read_text(errors="replace").splitlines()
    print(*lines[-8 if done.returncode == 0 else -60 :], sep="\n", flush=True)
    if done.returncode != 0:
        sys.exit(f"{target} ended with status {done.returncode}; {log}")


def main() -> None:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    targets = sorted(path.stem for path in HERE.glob("fuzz_*.c"))
    for target in os.environ.get("FUZZ_TARGETS", "").split() or targets:
        search(target, found.stdout.strip() or "unknown")


if __name__ == "__main__":
    main()
