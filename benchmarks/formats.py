"""Other formats and readers beside tfwire, on the same records: docs/which-tool.md.

    python benchmarks/formats.py      # with tfwire, tfrecord, webdataset and array_record

Each cell is records per second of CPU time, all threads of the process together, the best of three
rounds in turn. Every reader gives a dict for each record.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import tfwire as tfw

ROUNDS = 3
Row = dict[str, Any]


def small(count: int = 2_000) -> list[Row]:
    """The tutorial's records: two small integers, a word, a float."""
    rng = np.random.default_rng(0)
    words = [b"cat", b"dog", b"chicken", b"horse", b"goat"]
    numbers, weights = rng.integers(0, 5, count), rng.random(count).astype(np.float32)
    return [
        {"a": i % 2, "b": int(b), "c": words[b], "d": float(d)}
        for i, (b, d) in enumerate(zip(numbers, weights, strict=True))
    ]


def images(count: int = 500) -> list[Row]:
    """100 KB of random bytes and a label."""
    rng = np.random.default_rng(0)
    return [{"jpg": rng.bytes(100_000), "cls": i % 10} for i in range(count)]


# ---- Writers: each returns the paths of what it wrote --------------------------------------------
def write_tfwire(rows: list[Row]) -> None:
    with tfw.TFRecordWriter("x.tfrecord") as writer:
        writer.write_many(rows)


def write_vahidk(rows: list[Row]) -> None:
    from tfrecord.writer import TFRecordWriter

    kinds = {int: "int", float: "float", bytes: "byte"}
    writer = TFRecordWriter("vahidk.tfrecord")
    for row in rows:
        writer.write({name: (value, kinds[type(value)]) for name, value in row.items()})
    writer.close()


def write_webdataset(rows: list[Row]) -> None:
    import webdataset

    with webdataset.TarWriter("x.tar") as writer:
        for i, row in enumerate(rows):
            parts = {n: v if isinstance(v, bytes) else str(v).encode() for n, v in row.items()}
            writer.write({"__key__": f"{i:08d}", **parts})


def write_array_record(rows: list[Row]) -> None:
    """Of Examples, as TFDS writes them."""
    from array_record.python.array_record_module import ArrayRecordWriter

    writer = ArrayRecordWriter("x.array_record", "group_size:1")
    for record in tfw.encode_examples(rows):
        writer.write(record)
    writer.close()


# ---- Readers -------------------------------------------------------------------------------------
def read_dicts(features: Any) -> int:
    return sum(1 for r in tfw.read_records("x.tfrecord") if tfw.decode_example(r))


def read_vahidk(features: Any) -> int:
    from tfrecord.reader import tfrecord_loader

    names = {tfw.int64: "int", tfw.float32: "float", tfw.string: "byte"}
    kinds = {name: names[feature.dtype] for name, feature in features.items()}
    return sum(1 for _ in tfrecord_loader("x.tfrecord", None, kinds))


def read_webdataset(features: Any) -> int:
    import webdataset

    return sum(1 for _ in webdataset.WebDataset("x.tar", shardshuffle=False))


def read_array_record(features: Any) -> int:
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader("x.array_record")
    total, found = reader.num_records(), 0
    for begin in range(0, total, 1024):
        records = reader.read(list(range(begin, min(begin + 1024, total))))
        found += sum(1 for record in records if tfw.decode_example(record))
    return found


def pick_tfwire(numbers: list[int]) -> int:
    with tfw.TFRecordFile("x.tfrecord") as records:
        return sum(1 for i in numbers if records[i])


def pick_array_record(numbers: list[int]) -> int:
    from array_record.python.array_record_module import ArrayRecordReader

    reader = ArrayRecordReader("x.array_record", "readahead_buffer_size:0")
    return sum(1 for i in numbers if reader.read([i]))


# ---- Measuring -----------------------------------------------------------------------------------
def rates(functions: dict[str, Callable[[Any], Any]], given: Any, count: int) -> dict[str, float]:
    """Records per second of CPU time, the functions in turn."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(ROUNDS):
        for name, function in functions.items():
            begin = time.process_time()
            function(given)
            best[name] = min(best[name], time.process_time() - begin)
    return {name: count / seconds for name, seconds in best.items()}


def measure(title: str, rows: list[Row]) -> Iterator[tuple[str, str, dict[str, float]]]:
    writers = {
        "tfwire": write_tfwire,
        "tfrecord": write_vahidk,
        "webdataset": write_webdataset,
        "array_record": write_array_record,
    }
    yield title, "write dicts", rates(writers, rows, len(rows))
    features = dict(tfw.infer_schema("x.tfrecord"))
    readers = {
        "tfwire": read_dicts,
        "tfrecord": read_vahidk,
        "webdataset": read_webdataset,
        "array_record": read_array_record,
    }
    yield title, "read", rates(readers, features, len(rows))
    numbers = np.random.default_rng(1).permutation(len(rows)).tolist()
    pickers = {"tfwire": pick_tfwire, "array_record": pick_array_record}
    yield title, "bytes by number", rates(pickers, numbers, len(rows))
    files = {"tfwire": "x.tfrecord", "webdataset": "x.tar", "array_record": "x.array_record"}
    yield title, "bytes a record", {n: os.path.getsize(f) / len(rows) for n, f in files.items()}


def damage() -> Iterator[tuple[str, str]]:
    """What each reader says to one flipped bit in the middle of a file of small records."""
    readers = {
        "tfwire": (read_dicts, "x.tfrecord"),
        "tfrecord": (read_vahidk, "x.tfrecord"),
        "webdataset": (read_webdataset, "x.tar"),
    }
    features = dict(tfw.infer_schema("x.tfrecord"))
    for name, (read, file) in readers.items():
        content = bytearray(Path(file).read_bytes())
        content[content.index(b"cat", len(content) // 2)] ^= 1
        Path(file).write_bytes(content)
        try:
            yield name, f"nothing: {read(features):,} records"
        except Exception as error:
            yield name, f"{type(error).__name__}: {str(error)[:80]}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for title, rows in (("images", images()), ("small", small())):
            for row in measure(title, rows):
                numbers = ", ".join(f"{name} {value:,.0f}" for name, value in row[2].items())
                print(f"{row[0]}, {row[1]}: {numbers}", flush=True)
        for name, answer in damage():
            print(f"one flipped bit, {name}: {answer}", flush=True)
        os.chdir("/")


if __name__ == "__main__":
    main()
