"""tfwire.ray beside Ray Data's own functions, after the start of Ray.

    python benchmarks/ray_data.py [--records 100000] [--files 4] [--passes 3]

The passes of all jobs alternate, and the best of each counts. Ray's own needs TensorFlow, and is
slow: it has one pass.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ray

import tfwire as tfw
from tfwire.ray import read_tfrecord, write_tfrecord

FEATURES = {
    "feature0": tfw.FixedLenFeature([], tfw.int64),
    "feature1": tfw.FixedLenFeature([], tfw.int64),
    "feature2": tfw.FixedLenFeature([], tfw.string),
    "feature3": tfw.FixedLenFeature([], tfw.float32),
}
Job = Callable[[], int]  # returns the number of records it handled


def write_tutorial(folder: Path, count: int, files: int) -> list[str]:
    """The Examples of TensorFlow's tutorial."""
    random = np.random.default_rng(0)
    words = np.array([b"cat", b"dog", b"chicken", b"horse", b"goat"], object)
    paths = []
    for i in range(files):
        size = count // files
        kinds = random.integers(0, 5, size)
        paths.append(str(folder / f"{i}.tfrecord"))
        with tfw.TFRecordWriter(paths[-1]) as writer:
            writer.write_columns(
                {
                    "feature0": random.integers(0, 2, size),
                    "feature1": kinds,
                    "feature2": words[kinds],
                    "feature3": random.normal(size=size).astype(np.float32),
                }
            )
    return paths


def rows_of(dataset: Any) -> int:
    """All blocks are made; their rows are counted."""
    return int(dataset.materialize().count())


def jobs(folder: Path, paths: list[str]) -> dict[str, tuple[Job, Job]]:
    """Pairs of Ray's own and ours, by what they do."""
    table = read_tfrecord(paths, FEATURES, binary_as="binary").materialize()  # for Ray's own

    def written(write: Callable[[str], object]) -> int:
        target = folder / "written"
        shutil.rmtree(target, ignore_errors=True)
        write(str(target))
        return int(table.count())

    def theirs() -> int:
        return rows_of(ray.data.read_tfrecords(paths))

    return {
        "read": (theirs, lambda: rows_of(read_tfrecord(paths, FEATURES))),
        "read, features inferred": (theirs, lambda: rows_of(read_tfrecord(paths))),
        "read, one column": (
            lambda: rows_of(ray.data.read_tfrecords(paths).select_columns(["feature0"])),
            lambda: rows_of(read_tfrecord(paths, FEATURES).select_columns(["feature0"])),
        ),
        "write": (
            lambda: written(lambda target: table.write_tfrecords(target)),
            lambda: written(lambda target: write_tfrecord(table, target)),
        ),
    }


def seconds(job: Job, count: int) -> float:
    began = time.perf_counter()
    assert job() == count
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=4)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    count = options.records
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    with tempfile.TemporaryDirectory() as folder:
        paths = write_tutorial(Path(folder), count, options.files)
        print("| job | Ray, records/s | tfwire, records/s | times |\n|---|---|---|---|")
        for name, (theirs, ours) in jobs(Path(folder), paths).items():
            rival = seconds(theirs, count)
            best = min(seconds(ours, count) for _ in range(options.passes))
            times = f"{rival / best:.1f}"
            print(f"| {name} | {count / rival:,.0f} | {count / best:,.0f} | {times} |", flush=True)
    ray.shutdown()


if __name__ == "__main__":
    main()
