"""What benchmarks/growth.py measures: operations, and files of records with int64 features."""

from __future__ import annotations

import gc
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tfwire as tfw

BATCH = 1024  # records of a batch, for parsing
DECODED = 256  # records of a call, for decoding
ROWS, VALUES = 100_000, 1_000_000  # of a call, for encoding and writing: the lesser
SHARD = "written-{shard:05d}-of-{shards:05d}.tfrecord"


@dataclass(frozen=True)
class Size:
    """How much there is to do.

    Attributes:
        records: In all files together; the same number in each.
        files: How many they are in.
        features: Of a record: one int64 each.
        threads: How many threads may work.
    """

    records: int = 1
    files: int = 1
    features: int = 1
    threads: int = 1

    @property
    def values(self) -> int:
        return self.records * self.features

    def columns(self) -> Iterator[dict[str, Any]]:
        """All the columns, by seed, a block at a time. The same block is used again and again: it
        is what is done with it that is measured."""
        rows = min(self.records, ROWS, VALUES // self.features)
        values = np.random.default_rng(2026).integers(0, 1 << 21, (self.features, rows))
        block = {f"f{i:04d}": column for i, column in enumerate(values)}
        for done in range(0, self.records, rows):
            left = min(rows, self.records - done)
            yield block if left == rows else {name: c[:left] for name, c in block.items()}

    def paths(self, folder: Path) -> list[Path]:
        each = self.records // self.files
        return [folder / f"f{self.features}-r{each}-{i:04d}.tfrecord" for i in range(self.files)]

    def write_files(self, folder: Path) -> None:
        """Writes the files that are not there yet; a half-written one never has its name."""
        one = Size(self.records // self.files, features=self.features)
        for path in self.paths(folder):
            if not path.exists():
                with tfw.TFRecordWriter(path) as writer:
                    for block in one.columns():
                        writer.write_columns(block)


# ---- The operations: each returns how many records it handled ---------------------------------


def read(size: Size, paths: list[Path], scratch: Path) -> int:
    last = deque(enumerate(tfw.read_records(paths), 1), maxlen=1)
    return last[0][0]


def parse(size: Size, paths: list[Path], scratch: Path) -> int:
    spec = {f"f{i:04d}": tfw.FixedLenFeature([], tfw.int64) for i in range(size.features)}
    parser = tfw.Parser(spec)
    return sum(len(b["f0000"]) for b in parser.parse_file(paths, BATCH, num_threads=size.threads))


def decode(size: Size, paths: list[Path], scratch: Path) -> int:
    records = tfw.read_records(paths)
    return sum(len(tfw.decode_examples(batch)) for batch in batches(records, DECODED))


def index(size: Size, paths: list[Path], scratch: Path) -> int:
    return sum(map(len, tfw.RecordIndex.build_many(paths, num_threads=size.threads)))


def verify(size: Size, paths: list[Path], scratch: Path) -> int:
    return sum(report.num_records for report in tfw.verify_files(paths, num_threads=size.threads))


def encode(size: Size, paths: list[Path], scratch: Path) -> int:
    threads = size.threads
    return sum(
        len(tfw.encode_columns(block, bytes_as="column", num_threads=threads))
        for block in size.columns()
    )


def write(size: Size, paths: list[Path], scratch: Path) -> int:
    """To one file, or to several at once. Several threads write one file."""
    writer: Any
    if size.files == 1 or size.threads > 1:
        writer = tfw.TFRecordWriter(scratch / "written.tfrecord", num_threads=size.threads)
    else:
        writer = tfw.ShardedWriter(scratch / SHARD, num_shards=size.files)
    with writer:
        for block in size.columns():
            writer.write_columns(block)
    return size.records


OPERATIONS: dict[str, Callable[[Size, list[Path], Path], int]] = {
    function.__name__: function for function in (read, verify, index, parse, decode, encode, write)
}


def batches(items: Iterable[bytes], count: int) -> Iterator[list[bytes]]:
    rest = iter(items)
    while batch := list(itertools.islice(rest, count)):
        yield batch


# ---- Measuring, in a process of its own -------------------------------------------------------


class Run(NamedTuple):
    """The least of some runs: wall and CPU seconds; and the peak of the process in bytes."""

    wall: float
    cpu: float
    peak: int


def measure(operation: str, size: Size, folder: Path, scratch: Path, seconds: float) -> Run:
    """Runs an operation at least twice, and until so many seconds are over, but seven times at
    most."""
    function, paths = OPERATIONS[operation], size.paths(folder)
    walls: list[float] = []
    cpus: list[float] = []
    while len(walls) < 2 or (sum(walls) < seconds and len(walls) < 7):
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        count = function(size, paths, scratch)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        for written in scratch.iterdir():
            written.unlink()
        if count != size.records:
            raise ValueError(f"{operation} handled {count} of {size.records} records")
    return Run(min(walls), min(cpus), peak_memory())


def peak_memory() -> int:
    """Bytes: the largest resident size of this process so far."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def cached(paths: Iterable[Path]) -> None:
    """Reads files once, from the disk: then they are in the page cache as a reader leaves them,
    not as a writer does."""
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            piece = bytearray(1 << 20)
            while file.readinto(piece):
                pass
