"""A search: random calls of everything that reads, over files that another process changes.

    PYTHONPATH=src:tests python -m helpers.records.changing --seconds 600 --seed 1

Every record tells where it lies, so that one delivered can be held against the place it is said to
come from, whatever the file was at that moment. The other process appends, cuts, overwrites,
empties, replaces and removes. What is found: records that were nowhere, errors of other kinds than
the documentation names, crashes, and (by the time limit of the caller) calls that do not return.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import itertools
import json
import os
import random
import signal
import struct
import sys
import tempfile
import threading
import time
import traceback
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import tfwire as tfw
from helpers.reference import frame
from tfwire._records.files import inflate_ahead
from tfwire._records.index.random_access import TFRecordFile, TFRecordFiles
from tfwire._records.index.record_index import RecordIndex

NAMES = {"plain": "", "gzip": "GZIP", "zlib": "ZLIB"}
EXPECTED = (tfw.DataLossError, OSError)
LEAST = 50  # records, so that a search on a slow machine has seen some

_PLACE = struct.Struct("<QI")
_SIZES = [0, 1, 20, 100, 300, 5_000, 40_000, 70_000]
_MOST_BYTES = 1 << 20


# ---- Records that tell where they lie -----------------------------------------------------------


def record_at(offset: int, seed: int) -> bytes:
    head = _PLACE.pack(offset, seed)
    return head + random.Random(f"{offset} {seed}").randbytes(_SIZES[seed % len(_SIZES)])


def check_record(record: bytes, offset: int | None) -> None:
    """Whether a record was written, and there; an offset that is not known is not looked at."""
    found, seed = _PLACE.unpack_from(record)
    assert record_at(found, seed) == record, "a record that nobody wrote"
    assert offset in (None, found), f"a record of byte {found} is said to be of byte {offset}"


def content_from(offset: int, count: int, choice: random.Random) -> bytes:
    data = b""
    for _ in range(count):
        data += frame(record_at(offset + len(data), choice.randrange(1 << 20)))
    return data


# ---- The other process ---------------------------------------------------------------------------


class Changer:
    """Changes files without end."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._choice = random.Random(seed)

    def run(self, parent: int) -> None:
        while os.getppid() == parent:
            name = self._choice.choice(list(NAMES))
            with contextlib.suppress(OSError):
                self._change(self._folder / name, NAMES[name])
            time.sleep(self._choice.choice([0, 0, 0.001, 0.01, 0.03]))

    def _change(self, path: Path, compression: str) -> None:
        change = self._choice.choice(
            [self._append, self._append, self._cut, self._overwrite, self._rewrite, self._replace]
            + [self._remove] * (self._choice.random() < 0.1)
        )
        change(path, compression)

    def _new(self, compression: str, offset: int = 0) -> bytes:
        data = content_from(offset, self._choice.choice([0, 1, 3, 30, 100]), self._choice)
        if compression == "GZIP":
            half = len(data) // 2 * self._choice.randrange(2)
            return gzip.compress(data[:half], 1) * bool(half) + gzip.compress(data[half:], 1)
        return zlib.compress(data, 1) if compression else data

    def _append(self, path: Path, compression: str) -> None:
        """In pieces, as a writer that is seen at work."""
        with path.open("ab", buffering=0) as file:
            if file.tell() > _MOST_BYTES:
                return
            data = self._new(compression, 0 if compression else file.tell())
            for begin in range(0, len(data), 50_000):
                file.write(data[begin : begin + 50_000])

    def _cut(self, path: Path, compression: str) -> None:
        os.truncate(path, self._choice.randrange(path.stat().st_size + 1))

    def _overwrite(self, path: Path, compression: str) -> None:
        """Some bytes, which often get their time back, or their values."""
        status = path.stat()
        with path.open("r+b", buffering=0) as file:
            place = self._choice.randrange(status.st_size + 1)
            before = os.pread(file.fileno(), self._choice.choice([1, 8, 5000]), place)
            os.pwrite(file.fileno(), self._choice.randbytes(len(before)), place)
            if self._choice.random() < 0.5:
                os.pwrite(file.fileno(), before, place)
        if self._choice.random() < 0.5:
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _rewrite(self, path: Path, compression: str) -> None:
        path.write_bytes(self._new(compression))

    def _replace(self, path: Path, compression: str) -> None:
        new = path.with_name(path.name + ".new")
        new.write_bytes(self._new(compression))
        os.utime(new, ns=(0, self._choice.choice([10**9, 2 * 10**9])))
        new.rename(path)

    def _remove(self, path: Path, compression: str) -> None:
        path.unlink()
        path.write_bytes(self._new(compression))


# ---- What is called ------------------------------------------------------------------------------


class Caller:
    """Random calls. Each method is one kind, and checks what it gets."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._choice = random.Random(seed)
        self._positions: dict[str, Any] = {}
        self._files: list[TFRecordFile] = []
        self.records = 0
        self.calls: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    def call(self) -> None:
        """Something; errors that the documentation names are counted."""
        kinds = [name for name in dir(self) if name.startswith("do_")]
        kind = self._choice.choice(kinds)
        name = self._choice.choice(list(NAMES))
        self.calls[kind] += 1
        try:
            getattr(self, kind)(name, self._folder / name)
        except EXPECTED as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            self.errors[reason] += 1

    def _take(self, records: Any, offsets: bool) -> None:
        count = self._choice.choice([0, 1, 5, 50, None])
        for _, _, offset, record in itertools.islice(records, count):
            check_record(record, offset if offsets else None)
            self.records += 1

    def do_read(self, name: str, path: Path) -> None:
        policy = self._choice.choice(["raise", "skip", "tail", "stop"])
        options = {
            "on_corrupt": policy,
            "buffer_size": self._choice.choice([None, 100, 5000]),
            "receipt": self._choice.random() < 0.3,
            "start": self._positions.get(name) if self._choice.random() < 0.3 else None,
        }
        opened = self._choice.random() < 0.3
        with path.open("rb") if opened else memoryview(b"") as file:
            records = tfw.read_records(file if opened else path, NAMES[name], **options)
            try:
                # Behind damage that was left out, a stream has other offsets than its writer saw,
                # and so it has where members were appended.
                self._take(records.with_positions(), not NAMES[name])
                self._positions[name] = records.position
            finally:
                assert records.tail is None or records.tail.present >= 0
                assert records.skipped.num_regions >= len(records.skipped) or policy == "raise"
                if self._choice.random() < 0.5:
                    records.close()

    def do_read_both_sides_of_a_fork(self, name: str, path: Path) -> None:
        if self._choice.random() > 0.1:
            return
        records = tfw.read_records(path, NAMES[name], buffer_size=100)
        next(records, None)
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            try:
                for record in records:
                    check_record(record, None)
            except (*EXPECTED, RuntimeError):
                pass
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert (child, 0) == os.waitpid(child, 0)
        for record in records:
            check_record(record, None)

    def do_share_and_close(self, name: str, path: Path) -> None:
        """One thread iterates, this one closes."""
        records = tfw.read_records([path] * 3, NAMES[name], buffer_size=100)
        failures: list[BaseException] = []

        def consume() -> None:
            try:
                for record in records:
                    check_record(record, None)
            except (*EXPECTED, ValueError):
                pass
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=consume)
        thread.start()
        time.sleep(self._choice.choice([0, 0.001, 0.01]))
        records.close()
        thread.join()
        assert not failures, failures

    def do_follow(self, name: str, path: Path) -> None:
        followed = tfw.follow_records(path, NAMES[name], interval=0.001, timeout=0.005)
        for record in itertools.islice(followed, self._choice.choice([1, 20, 100])):
            check_record(record, None)

    def do_index(self, name: str, path: Path) -> None:
        index = RecordIndex.build(path, NAMES[name])
        assert (np.diff(index.offsets) >= 16).all()
        assert index == index
        index.save()
        index.write_text(f"{path}.idx")
        tfw.RecordIndex.read_text(path, f"{path}.idx")
        RecordIndex.load(path, ignore_mtime=self._choice.random() < 0.5)

    def do_open(self, name: str, path: Path) -> None:
        """A file stays open for a while, whatever becomes of it."""
        index = None
        if self._choice.random() < 0.3:
            index = RecordIndex.load(path, ignore_mtime=True)
        self._files.append(TFRecordFile(path, index))
        if len(self._files) > 5:
            self._files.pop(self._choice.randrange(5)).close()

    def do_get(self, name: str, path: Path) -> None:
        if not self._files:
            return
        file = self._choice.choice(self._files)
        count = len(file)
        numbers = [self._choice.randrange(count) for _ in range(min(count, 20))]
        if self._choice.random() < 0.5:
            found = file[numbers]
        else:
            found = [file[number] for number in numbers]
        for number, record in zip(numbers, found, strict=True):
            check_record(record, None if file.index.compression else file.index.offsets[number])
            self.records += 1

    def do_iterate(self, name: str, path: Path) -> None:
        for record in TFRecordFiles([path, self._folder / "plain"]):
            check_record(record, None)
            self.records += 1

    def do_verify(self, name: str, path: Path) -> None:
        report = tfw.verify_file(path, compression_type=NAMES[name], file_crc32c=True, receipt=True)
        assert report.num_records == report.receipt.num_records
        if report.first is not None:
            check_record(report.first, None)

    def do_repair(self, name: str, path: Path) -> None:
        out = self._folder / "repaired"
        correct = self._choice.random() < 0.5
        tfw.repair_file(path, out, compression_type=NAMES[name], correct=correct, overwrite=True)
        for record in tfw.read_records(out):
            check_record(record, None)

    def do_detect(self, name: str, path: Path) -> None:
        for record in tfw.read_records(path):
            check_record(record, None)


def search(folder: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Calls for so many seconds, and until some records came; what they add up to."""
    inflate_ahead._UNIT, inflate_ahead.system.num_cpus = 5_000, lambda: 2  # threads for short files
    for name in NAMES:
        (folder / name).touch()
    parent = os.getpid()
    changer = os.fork()
    if changer == 0:
        try:
            Changer(folder, seed).run(parent)
        finally:
            os._exit(0)
    caller = Caller(folder, seed)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end or caller.records < LEAST:
            caller.call()
    finally:
        os.kill(changer, signal.SIGKILL)
        os.waitpid(changer, 0)
    return {
        "calls": sum(caller.calls.values()),
        "records": caller.records,
        "kinds": caller.calls,
        "errors": caller.errors,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # of regions left out, and of forks beside threads
    with tempfile.TemporaryDirectory() as folder:
        found = search(Path(folder), options.seconds, options.seed)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
