"""A table of features in Ray Data: rows to files in parallel, and statistics of batches.

Needs ``pip install 'tfwire[ray]'``. Runs in two processes of this machine, or where ray.init says.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import ray

import tfwire as tfw
from tfwire.ray import read_tfrecord, write_tfrecord

COUNT = 10_000
FEATURES = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "pixels": tfw.FixedLenFeature([16], tfw.float32),
}


def with_pixels(batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Some features of the rows; a real pipeline decodes images here."""
    random = np.random.default_rng(int(batch["id"][0]))
    count = len(batch["id"])
    return {
        "label": random.integers(10, size=count),
        "pixels": random.random((count, 16), np.float32),
    }


def main() -> None:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        write_tfrecord(ray.data.range(COUNT).map_batches(with_pixels), folder)
        files = sorted(Path(folder).glob("*.tfrecord"))
        for path in files:  # so that tasks can share a long file
            tfw.RecordIndex.build(path).save()

        dataset = read_tfrecord(files, FEATURES)
        assert dataset.count() == COUNT
        labels = dataset.select_columns(["label"])  # the only column that is parsed
        print(f"{COUNT} rows in {len(files)} files, mean of the labels {labels.mean('label'):.2f}")
    ray.shutdown()


if __name__ == "__main__":
    main()
