"""tfwire.beam beside Beam's own transforms, in pipelines of FnApiRunner in one process.

    python benchmarks/beam.py [--records 100000] [--passes 5]

The passes of all pipelines alternate, and the best of each counts, less the time of a pipeline of
one element. Beam's own parses Examples by protobuf. Needs apache-beam and google-crc32c.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam.io import tfrecordio

import tfwire as tfw
from tfwire.beam import (
    ReadAllFromTFRecord,
    ReadBatchesFromTFRecord,
    ReadFromTFRecord,
    WriteToTFRecord,
)

FEATURES = {
    "feature0": tfw.FixedLenFeature([], tfw.int64),
    "feature1": tfw.FixedLenFeature([], tfw.int64),
    "feature2": tfw.FixedLenFeature([], tfw.string),
    "feature3": tfw.FixedLenFeature([], tfw.float32),
}
Step = Callable[[Any], Any]


def write_tutorial(path: Path, count: int) -> None:
    """The Examples of TensorFlow's tutorial, as one file without an index and one with."""
    random = np.random.default_rng(0)
    words = np.array([b"cat", b"dog", b"chicken", b"horse", b"goat"], object)
    kinds = random.integers(0, 5, count)
    columns = {
        "feature0": random.integers(0, 2, count),
        "feature1": kinds,
        "feature2": words[kinds],
        "feature3": random.normal(size=count).astype(np.float32),
    }
    for name in ("plain", "indexed"):
        with tfw.TFRecordWriter(path / name) as writer:
            writer.write_columns(columns)
    tfw.RecordIndex.build(path / "indexed").save()


def size_of(batch: Any) -> int:
    return len(batch["feature0"])


def pipelines(folder: Path, count: int) -> dict[str, tuple[Step, Step]]:
    """Pairs of Beam's own and ours, by what they do. Each makes its transforms anew."""
    plain, indexed, out = (str(folder / name) for name in ("plain", "indexed", "out"))

    def read(make: Any, path: str = plain) -> Step:
        return lambda pipeline: pipeline | make(path) | beam.combiners.Count.Globally()

    def read_all(make: Any) -> Step:
        return lambda pipeline: (
            pipeline | beam.Create([plain]) | make() | beam.combiners.Count.Globally()
        )

    def read_and_parse(pipeline: Any) -> Any:
        examples = beam.Map(tfw.train.Example.FromString)
        records = pipeline | tfrecordio.ReadFromTFRecord(plain)
        return records | examples | beam.combiners.Count.Globally()

    def batches(**options: Any) -> Step:
        def step(pipeline: Any) -> Any:
            read = ReadBatchesFromTFRecord(plain, FEATURES, **options)
            return pipeline | read | beam.Map(size_of) | beam.CombineGlobally(sum)

        return step

    def write(make: Any, num_shards: int) -> Step:
        def step(pipeline: Any) -> Any:
            numbers = pipeline | beam.Create(range(100), reshuffle=False)
            records = numbers | beam.FlatMap(lambda _: [bytes(100)] * (count // 100))
            return records | make(out + "/o", num_shards=num_shards)

        return step

    theirs = read(tfrecordio.ReadFromTFRecord)
    return {
        "read, bytes": (theirs, read(ReadFromTFRecord)),
        "read, bytes, with an index": (theirs, read(ReadFromTFRecord, indexed)),
        "read all, bytes": (
            read_all(tfrecordio.ReadAllFromTFRecord),
            read_all(ReadAllFromTFRecord),
        ),
        "parsed, RecordBatches": (read_and_parse, batches()),
        "parsed, numpy": (read_and_parse, batches(batches_as="numpy")),
        "parsed, one column": (read_and_parse, batches(columns=["feature0"])),
        "write, a file per bundle": (
            write(tfrecordio.WriteToTFRecord, 0),
            write(WriteToTFRecord, 0),
        ),
        "write, 4 files": (write(tfrecordio.WriteToTFRecord, 4), write(WriteToTFRecord, 4)),
    }


def seconds(step: Step) -> float:
    began = time.perf_counter()
    with beam.Pipeline("FnApiRunner") as pipeline:
        step(pipeline)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--passes", type=int, default=5)
    options = parser.parse_args()
    count = options.records
    with tempfile.TemporaryDirectory() as folder:
        write_tutorial(Path(folder), count)
        rows = pipelines(Path(folder), count)
        steps: list[Step] = [lambda pipeline: pipeline | beam.Create([1]) | beam.Map(abs)]
        steps += [step for pair in rows.values() for step in pair]
        best = [float("inf")] * len(steps)
        for _ in range(options.passes):
            best = [min(was, seconds(step)) for was, step in zip(best, steps, strict=True)]
    fixed, *best = best
    print(f"{count:,} records; a pipeline of one element takes {fixed:.2f} s\n")
    print("| pipeline | Beam, records/s | tfwire, records/s | times |\n|---|---|---|---|")
    for name, theirs, ours in zip(rows, best[::2], best[1::2], strict=True):
        theirs, ours = theirs - fixed, ours - fixed
        print(f"| {name} | {count / theirs:,.0f} | {count / ours:,.0f} | {theirs / ours:.1f} |")


if __name__ == "__main__":
    main()
