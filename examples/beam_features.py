"""A table of features in Apache Beam: rows to sharded TFRecord files, and statistics of columns.

Needs ``pip install 'tfwire[beam]'``. Runs in this process; give another runner its options.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

import apache_beam as beam
import numpy as np

import tfwire as tfw
from tfwire.beam import ReadBatchesFromTFRecord, WriteToTFRecord

COUNT = 10_000
FEATURES = {
    "label": tfw.FixedLenFeature([], tfw.int64),
    "pixels": tfw.FixedLenFeature([16], tfw.float32),
}


def rows(seed: int) -> list[dict[str, object]]:
    """Some rows; a real pipeline reads them from a database or from images."""
    random = np.random.default_rng(seed)
    return [
        {"label": int(random.integers(10)), "pixels": random.random(16, np.float32)}
        for _ in range(COUNT // 10)
    ]


def statistics(batch: dict[str, np.ndarray]) -> tuple[int, float]:
    return len(batch["label"]), float(batch["pixels"].sum(dtype=np.float64))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder) / "train")
        with beam.Pipeline("FnApiRunner") as pipeline:
            (
                pipeline
                | beam.Create(range(10))
                | beam.FlatMap(rows)
                | beam.Map(tfw.encode_example)
                | WriteToTFRecord(prefix, file_name_suffix=".tfrecord", num_shards=4)
            )
        files = sorted(Path(folder).iterdir())
        assert len(files) == 4
        for path in files:  # so that runners can split them
            tfw.RecordIndex.build(path).save()

        read = ReadBatchesFromTFRecord(f"{prefix}-*.tfrecord", FEATURES, batches_as="numpy")
        with beam.Pipeline("FnApiRunner") as pipeline:
            sums = pipeline | read | beam.Map(statistics)
            sums | beam.CombineGlobally(combined) | beam.Map(report)


def combined(pairs: Iterable[tuple[int, float]]) -> tuple[int, float]:
    count, total = 0, 0.0
    for more, pixels in pairs:
        count, total = count + more, total + pixels
    return count, total


def report(total: tuple[int, float]) -> None:
    count, pixels = total
    assert count == COUNT
    print(f"{count} rows, mean of the pixels {pixels / (16 * count):.3f}")


if __name__ == "__main__":
    main()
