"""Runs random programs of reentered_objects.py, and prints how many::

python reentrance.py SECONDS SEED FOLDER
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import itertools
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import tfwire as tfw
from reentered_objects import (
    COUNT,
    LIMIT,
    SPEC,
    Access,
    Garbage,
    Parsing,
    Program,
    Read,
    ReadInto,
    Source,
    Write,
    Writer,
)


class Maker:
    """Makes the objects of a program."""

    def __init__(self, program):
        self.program, self.chance = program, program.chance
        self.records = [tfw.encode_example({"n": number}) for number in range(COUNT)]
        self.path = str(program.folder / "records")
        tfw.write_records(self.path, self.records)
        self.zipped = str(program.folder / "records.gz")
        tfw.write_records(self.zipped, self.records, "GZIP")
        self.damaged = bytearray(Path(self.path).read_bytes())
        size = len(self.damaged) // COUNT
        self.damaged[20 * size + 13] ^= 1
        self.numbered = itertools.count()

    def any(self):
        kinds = [self.reader, self.dataset, self.dataset, self.access, self.parsing, self.writer]
        made = self.chance.choice(kinds)()
        self.program.objects.append(made)

    def file(self, data=None):
        kind = self.chance.choice([ReadInto, Read])
        if data is None:
            data = Path(self.chance.choice([self.path, self.zipped])).read_bytes()
        return kind(self.program, data)

    def number(self, record):
        return tfw.parse_example([record], SPEC)["n"].item()

    def reader(self):
        kind = self.chance.randrange(7)
        numbers, chance = range(COUNT), self.chance
        batch = chance.choice([1, 4])
        extra = ["position", "skipped", "tail"]
        paths = [self.path, self.zipped, self.file()]
        if kind == 0:
            path = chance.choice(paths)
            return self.source("read_records", lambda: Records(path), extra=extra)
        if kind == 1:
            damaged = self.file(bytes(self.damaged))
            return Source(
                self.program,
                "skipping",
                lambda: Records(damaged, None, on_corrupt="skip"),
                [number for number in numbers if number != 20],
                extra,
                self.number,
            )
        if kind == 2:
            parser = functools.partial(tfw.Parser(SPEC).parse_file, batch_size=1)
            threads = chance.choice([1, 2, 3])
            path = chance.choice([*paths, self.file()])
            return Source(
                self.program,
                f"parse_file, {threads} threads",
                lambda: parser(path, num_threads=threads, receipt=True),
                numbers,
                ["skipped", "receipt"],
                lambda batch: batch["n"].item(),
            )
        if kind == 3:
            return self.source("follow_records", lambda: self.followed())
        if kind == 4:
            file = self.file()
            return self.source("positions", lambda: Positions(file), value=lambda e: e[1])
        if kind == 5:
            files = [self.file() for _ in range(5)]
            return Source(
                self.program,
                "verify_files",
                lambda: Numbered(
                    tfw.verify_files(
                        files,
                        num_threads=chance.choice([1, 2]),
                        progress=lambda *_: self.program.callback(),
                    )
                ),
                range(5),
            )
        path = self.path
        return self.source(f"dataset, {batch}", lambda: iter(tfw.TFRecordDataset([path])))

    def followed(self):
        return tfw.follow_records(self.path, timeout=0.01, interval=0.001)

    def source(self, name, make, extra=(), value=None):
        return Source(self.program, name, make, range(COUNT), extra, value or self.number)

    def dataset(self):
        chance = self.chance
        name, dataset = "range", tfw.Dataset.range(COUNT)
        if chance.random() < 0.3:
            name = "generator"
            dataset = tfw.Dataset.from_generator(lambda: map(self.passed, range(COUNT)))
        elif chance.random() < 0.3:
            name, path = "file", chance.choice([self.path, self.file()])
            dataset = tfw.TFRecordDataset([path], **self.plain(path))
            dataset = dataset.map(self.number)
        for _ in range(chance.randrange(4)):
            step = chance.randrange(7)
            name += f" {step}"
            if step == 0:
                dataset = dataset.map(self.passed)
            elif step == 1:
                dataset = dataset.map(self.passed, num_parallel_calls=2)
            elif step == 2:
                dataset = dataset.filter(lambda each: self.passed(each) >= 0)
            elif step == 3:
                dataset = dataset.prefetch(chance.choice([1, 3]))
            elif step == 4:
                dataset = dataset.shuffle(chance.choice([1, 7]), seed=1)
            elif step == 5:
                dataset = dataset.batch(1).map(lambda each: each[0])
            else:
                dataset = dataset.take(COUNT)
        extra = ["state_dict"]
        return Source(self.program, f"dataset {name}", lambda: iter(dataset), range(COUNT), extra)

    def plain(self, path):
        return {} if isinstance(path, str) else {"compression_type": "auto"}

    def passed(self, element):
        self.program.callback()
        return element

    def access(self):
        kind = self.chance.randrange(3)
        if kind == 0:
            made = tfw.TFRecordFile(self.path)
        elif kind == 1:
            made = tfw.TFRecordFile(self.zipped)
        else:
            made = tfw.TFRecordFiles([self.path, self.path], max_open_files=1)
        records = self.records * (2 if kind == 2 else 1)
        return Access(self.program, type(made).__name__, made, records)

    def parsing(self):
        return Parsing(self.program, "parsing", tfw.Parser(SPEC))

    def writer(self):
        name = f"out-{next(self.numbered)}"
        path, chance = self.program.folder / name, self.chance
        kind = chance.randrange(5)
        options = chance.choice([None, None, "GZIP"])
        threads = chance.choice([1, 2])
        if kind <= 1:
            file = Write(self.program)
            made = tfw.TFRecordWriter(file, options, num_threads=threads)
            return Writer(self.program, f"writer of a file object {options}", made, file.read)
        if kind == 2:
            made = tfw.ShardedWriter(
                f"{path}-{{shard}}", num_shards=2, options=options, num_threads=threads
            )
            return Writer(self.program, "shards", made, lambda: tfw.read_records(made.paths))
        made = tfw.TFRecordWriter(path, options, atomic=kind == 3, num_threads=threads)
        return Writer(self.program, f"writer {options}", made, lambda: tfw.read_records(path))


class Records:
    """read_records, whose elements come from ``next`` as from a loop."""

    def __init__(self, *arguments, **options):
        self._records = tfw.read_records(*arguments, **options)

    def __iter__(self):
        return iter(self._records)

    def __getattr__(self, name):
        return getattr(self._records, name)


class Positions:
    def __init__(self, file):
        self._records = tfw.read_records(file)
        self._positions = self._records.with_positions()

    def __iter__(self):
        return self._positions

    def close(self):
        self._records.close()


class Numbered:
    """Results that are all alike, numbered."""

    def __init__(self, results):
        self._results, self._numbers = results, itertools.count()

    def __iter__(self):
        return ((next(self._numbers), each)[0] for each in self._results)

    def close(self):
        self._results.close()


def run(seed, folder):
    """Runs one program; returns its faults."""
    program = Program(seed, folder)
    maker, chance = Maker(program), program.chance
    for _ in range(chance.choice([1, 2, 2, 3, 5])):
        maker.any()
    threads = [
        threading.Thread(target=work, args=(program,), daemon=True)
        for _ in range(chance.choice([0, 0, 1, 2]))
    ]
    signals = None
    if chance.random() < 0.3:
        signal.signal(signal.SIGUSR1, program.harmless)
        signals = threading.Thread(target=send, args=(program,), daemon=True)
        signals.start()
    collect = chance.random() < 0.4
    gc.set_threshold(*((chance.choice([20, 100]), 2, 2) if collect else (700, 10, 10)))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = program.harmless
        for thread in threads:
            thread.start()
        work(program, collect)
        for thread in threads:
            thread.join()
        program.over = True
        if signals is not None:
            signals.join()
        for each in program.objects:
            each.end()
    gc.set_threshold(700, 10, 10)
    names = [each.name for each in program.objects]
    return [f"{names}, {len(threads)} threads: {fault}" for fault in program.faults]


def work(program, collect=False):
    for _ in range(program.chance.choice([5, 20, 40])):
        if collect:
            Garbage(program)
        program.chance.choice(program.objects).use()


def send(program):
    while not program.over:
        time.sleep(program.chance.random() * 0.003)
        os.kill(os.getpid(), signal.SIGUSR1)


def main(seconds, seed, folder):
    for name in tfw.__all__:  # a signal handler that imports may wait for ever: locks of Python's
        getattr(tfw, name)
    end, first = time.monotonic() + seconds, seed
    while seed == first or time.monotonic() < end:
        faulthandler.dump_traceback_later(LIMIT, exit=True)
        place = Path(folder) / str(seed)
        place.mkdir()
        print(f"seed {seed}", file=sys.stderr, flush=True)
        faults = run(seed, place)
        for file in place.iterdir():
            file.unlink()
        place.rmdir()
        if faults:
            print(f"seed {seed}: {len(faults)} faults", *faults[:3], sep="\n")
            sys.stdout.flush()
            os._exit(1)
        seed += 1
    faulthandler.cancel_dump_traceback_later()
    print(f"{seed - first} cases")


if __name__ == "__main__":
    sys.setswitchinterval(1e-4)
    main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
