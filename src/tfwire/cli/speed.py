"""A speed table: tfwire against protobuf, and against TensorFlow where it is importable.

Every operation does the same work on the same data in the same run, on one thread; the figure is
the best of a few rounds. ``make bench`` is the full comparison.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tfwire as tfw

Operations = dict[str, Callable[[], int]]

WRITE = "write examples to a file"
READ = "read records as bytes"
PARSE = "file to columns"


def tfwire_operations(path: Path, columns: dict[str, Any], spec: dict[str, Any]) -> Operations:
    """Each returns the number of records it handled."""

    def write() -> int:
        with tfw.TFRecordWriter(path) as writer:
            writer.write_examples(columns)
        return len(columns["feature0"])

    def read() -> int:
        return sum(1 for _ in tfw.read_records(path))

    def parse() -> int:
        parser = tfw.Parser(spec)
        return sum(len(batch["feature0"]) for batch in parser.parse_file(path))

    return {WRITE: write, READ: read, PARSE: parse}


def protobuf_operations(path: Path, columns: dict[str, Any]) -> Operations:
    """What one does with protobuf messages alone; it has no record files, so ours frames them."""
    train = tfw.train
    other = path.with_suffix(".protobuf")

    def write() -> int:
        with tfw.TFRecordWriter(other) as writer:
            for values in zip(*(column.tolist() for column in columns.values()), strict=True):
                example = train.Example()
                feature = example.features.feature
                feature["feature0"].int64_list.value.append(int(values[0]))
                feature["feature1"].int64_list.value.append(values[1])
                feature["feature2"].bytes_list.value.append(values[2])
                feature["feature3"].float_list.value.append(values[3])
                writer.write(example.SerializeToString())
        return len(columns["feature0"])

    def parse() -> int:
        count = 0
        for record in tfw.read_records(path):
            feature = train.Example.FromString(record).features.feature
            _ = (
                feature["feature0"].int64_list.value[0],
                feature["feature1"].int64_list.value[0],
                feature["feature2"].bytes_list.value[0],
                feature["feature3"].float_list.value[0],
            )
            count += 1
        return count

    return {WRITE: write, PARSE: parse}


def tensorflow_operations(path: Path, columns: dict[str, Any], spec: dict[str, Any]) -> Operations:
    """TensorFlow's own reader, writer and parser, without tf.data's autotuning: with it on, the
    end of every iteration waits on a timer, which would flatter us."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    other = path.with_suffix(".tensorflow")
    dtypes = {"int64": tf.int64, "float32": tf.float32, "string": tf.string}
    tf_spec = {
        name: tf.io.FixedLenFeature(feature.shape, dtypes[feature.dtype.name])
        for name, feature in spec.items()
    }
    options = tf.data.Options()
    options.autotune.enabled = False
    train = tf.train

    def write() -> int:
        with tf.io.TFRecordWriter(str(other)) as writer:
            for f0, f1, f2, f3 in zip(*(c.tolist() for c in columns.values()), strict=True):
                feature = {
                    "feature0": train.Feature(int64_list=train.Int64List(value=[int(f0)])),
                    "feature1": train.Feature(int64_list=train.Int64List(value=[f1])),
                    "feature2": train.Feature(bytes_list=train.BytesList(value=[f2])),
                    "feature3": train.Feature(float_list=train.FloatList(value=[f3])),
                }
                example = train.Example(features=train.Features(feature=feature))
                writer.write(example.SerializeToString())
        return len(columns["feature0"])

    def read() -> int:
        return sum(1 for _ in tf.compat.v1.io.tf_record_iterator(str(path)))

    def parse() -> int:
        dataset = tf.data.TFRecordDataset([str(path)]).with_options(options).batch(1024)
        dataset = dataset.map(lambda records: tf.io.parse_example(records, tf_spec))
        return sum(len(batch["feature0"]) for batch in dataset.as_numpy_iterator())

    return {WRITE: write, READ: read, PARSE: parse}


def best_time(operation: Callable[[], int], expected: int, rounds: int = 3) -> float:
    """Seconds of the fastest round; every round must handle all records."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        found = operation()
        times.append(time.perf_counter() - begin)
        if found != expected:
            raise ValueError(f"an operation handled {found} of {expected} records")
    return min(times)


def compare(path: Path, count: int) -> None:
    """Prints the table for count records of the tutorial's four features."""
    from tfwire.cli.demo import OBSERVATION_SPEC, observation_columns

    columns = observation_columns(count)
    systems = {"tfwire": tfwire_operations(path, columns, OBSERVATION_SPEC)}
    systems["protobuf"] = protobuf_operations(path, columns)
    if find_spec("tensorflow") is not None:
        systems["tensorflow"] = tensorflow_operations(path, columns, OBSERVATION_SPEC)
    print(f"  {count:,} records, checksums verified ({tfw.crc32c_kernel()}); records per second")
    print(f"  {'':26}" + "".join(f"{name:>22}" for name in systems))
    for operation in (WRITE, READ, PARSE):
        ours = best_time(systems["tfwire"][operation], count)
        cells = [f"{count / ours:>22,.0f}"]
        for name in list(systems)[1:]:
            if operation not in systems[name]:
                cells.append(f"{'-':>22}")
                continue
            theirs = best_time(systems[name][operation], count, rounds=2)  # the first warms up
            cells.append(f"{count / theirs:>13,.0f} ({theirs / ours:5.1f}x)")
        print(f"  {operation:26}" + "".join(cells))
    if "tensorflow" not in systems:
        print("  (TensorFlow is not installed here; with it, the table has one more column.)")
