"""A speed table for the demo: tfwire, protobuf, and TensorFlow where it is importable.

Every operation does the same work on the same data in the same run, on one thread; the figure is
the best of a few rounds. ``make bench`` is the full comparison.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import tfwire as tfw
from tfwire.cli._readers import PARSE, READ, READERS, Reader, Subject, tensorflow

WRITE = "write examples to a file"
ROUNDS = 3  # the first warms up

Columns = dict[str, Any]
Operation = Callable[[], int]  # the number of records it handled


def compare(path: Path, count: int) -> None:
    """Prints the table for count records of the tutorial's four features."""
    from tfwire.cli._walkthrough import OBSERVATION_SPEC, observation_columns

    file = Subject(str(path), "", OBSERVATION_SPEC)
    writers = _writers(path, observation_columns(count))
    print(
        f"  {count:,} records, checksums verified ({tfw.checksum.crc32c_kernel()}); "
        "records per second"
    )
    print(f"  {'':26}" + "".join(f"{name:>22}" for name in writers))
    for operation in (WRITE, READ, PARSE):
        systems = writers if operation == WRITE else _readers(operation, file)
        times = {name: _best_time(work, count) for name, work in systems.items()}
        cells = [_cell(times, name, count) for name in writers]
        print(f"  {operation:26}" + "".join(cells))
    if "TensorFlow" not in writers:
        print("  (TensorFlow is not installed here; with it, the table has one more column.)")


def _cell(times: dict[str, float], name: str, count: int) -> str:
    if name not in times:
        return f"{'-':>22}"
    rate = count / times[name]
    if name == "tfwire":
        return f"{rate:>22,.0f}"
    return f"{rate:>13,.0f} ({times[name] / times['tfwire']:5.1f}x)"


def _best_time(operation: Operation, expected: int) -> float:
    """Seconds of the fastest round; every round must handle all records."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        found = operation()
        times.append(time.perf_counter() - begin)
        if found != expected:
            raise ValueError(f"an operation handled {found} of {expected} records")
    return min(times)


def _readers(operation: str, file: Subject) -> dict[str, Operation]:
    def whole_pass(reader: Reader) -> int:
        return sum(reader.read(file))

    return {
        reader.name: partial(whole_pass, reader)
        for reader in READERS
        if reader.operation == operation and reader.installed
    }


# ---- Writing ----------------------------------------------------------------------------------


def _writers(path: Path, columns: Columns) -> dict[str, Operation]:
    found: dict[str, Operation] = {
        "tfwire": partial(_write_columns, path, columns),
        "protobuf messages": partial(_write_messages, path.with_suffix(".protobuf"), columns),
    }
    if find_spec("tensorflow") is not None:
        found["TensorFlow"] = partial(_write_tensorflow, path.with_suffix(".tensorflow"), columns)
    return found


def _write_columns(path: Path, columns: Columns) -> int:
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(columns)
    return len(columns["feature0"])


def _write_messages(path: Path, columns: Columns) -> int:
    """What one does with protobuf alone; it has no record files, so ours frames its messages."""
    with tfw.TFRecordWriter(path) as writer:
        for message in _messages(tfw.train, columns):
            writer.write(message)
    return len(columns["feature0"])


def _write_tensorflow(path: Path, columns: Columns) -> int:
    tf = tensorflow()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for message in _messages(tf.train, columns):
            writer.write(message)
    return len(columns["feature0"])


def _messages(train: Any, columns: Columns) -> Any:
    """Serialized messages, built as the tutorials build them."""
    for f0, f1, f2, f3 in zip(*(column.tolist() for column in columns.values()), strict=True):
        feature = {
            "feature0": train.Feature(int64_list=train.Int64List(value=[int(f0)])),
            "feature1": train.Feature(int64_list=train.Int64List(value=[f1])),
            "feature2": train.Feature(bytes_list=train.BytesList(value=[f2])),
            "feature3": train.Feature(float_list=train.FloatList(value=[f3])),
        }
        yield train.Example(features=train.Features(feature=feature)).SerializeToString()
