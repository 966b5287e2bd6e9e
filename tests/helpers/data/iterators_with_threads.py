"""Iterators that have threads, or that threads share, each of them able to wait at a gate.

As a program, for what can only be tried in a process of its own::

    python -m helpers.data.iterators_with_threads interrupt TRIES SEED FOLDER NAME...
    python -m helpers.data.iterators_with_threads exit FOLDER
"""

from __future__ import annotations

import functools
import gc
import io
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path

import tfwire as tfw
from helpers.records.gated_files import REGULAR_FILES
from tfwire import Dataset, TFRecordDataset
from tfwire._base import shared_iterator, workers

LIMIT = 30  # seconds after which something hangs
SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}
PARSER = tfw.Parser(SPEC)


class Gate:
    """Counts the threads that come, lets the first few pass, stops the others until it opens."""

    def __init__(self, passes=None):
        self.passes = passes  # None: all
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.fails = False  # instead of stopping the others

    def __call__(self, number):
        if self.passes is not None and number >= self.passes:
            self.reached.set()
            if self.fails:
                raise OSError("of the gate")
            self.opened.wait(3 * LIMIT)  # longer than what waits for it may take
        return number


class GatedPipe:
    """The end of a pipe into which a thread puts records, as many as pass the gate."""

    kept = None  # where interrupts come, a list of all pipes: Python loses one that hits __del__

    def __init__(self, gate):
        if GatedPipe.kept is not None:
            GatedPipe.kept.append(self)
        self._readable, writable = os.pipe()
        thread = threading.Thread(target=self._write, args=(gate, writable), daemon=True)
        thread.start()

    def readinto(self, buffer):
        piece = os.read(self._readable, len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def __del__(self):
        os.close(self._readable)

    @staticmethod
    def _write(gate, writable):
        try:
            for number in range(40):
                gate(number)
                record = io.BytesIO()
                with tfw.TFRecordWriter(record) as writer:
                    writer.write(tfw.encode_example({"n": number}))
                os.write(writable, record.getvalue())
        except OSError:  # nobody reads any more, or an error of the gate
            pass
        os.close(writable)


class GatedFile:
    """A file object that stops at the gate between two records."""

    def __init__(self, gate, path):
        self._gate, self._data, self._at = gate, Path(path).read_bytes(), 0
        self._size = len(self._data) // 40

    def read(self, size=-1):
        if self._at < len(self._data):
            self._gate(self._at // self._size)
        piece = self._data[self._at : self._at + self._size]
        self._at += len(piece)
        return piece


class GatedFirstRead(io.BytesIO):
    """A file that stops at the gate when it is read first."""

    def __init__(self, data, gate, number):
        super().__init__(data)
        self._pass = functools.partial(gate, number)

    def readinto(self, buffer):
        if self.tell() == 0:
            self._pass()
        return super().readinto(buffer)


def verified(gate, path, num_threads):
    data = Path(path).read_bytes()
    files = [GatedFirstRead(data, gate, number) for number in range(40)]
    return tfw.verify_files(files, num_threads=num_threads)


def write(path):
    """A file of 40 records of one size."""
    with tfw.TFRecordWriter(path) as writer:
        for number in range(40):
            writer.write(tfw.encode_example({"n": 1000 + number}))
    return str(path)


def numbers(gate):
    return Dataset.range(40).map(gate)


def generated(gate):
    return Dataset.from_generator(functools.partial(map, gate, range(40)))


def parsed(gate, path, **options):
    return PARSER.parse_file(GatedFile(gate, path), 1, compression_type=None, **options)


def batches(gate, path, shuffle=None):
    dataset = TFRecordDataset([GatedFile(gate, path)], compression_type="")
    if shuffle is not None:
        dataset = dataset.shuffle(shuffle)
    return dataset.batch(1).parse_example(SPEC, num_threads=2)


# Functions of a gate and a file that make an iterator of 40 elements, of which the gate stops one.
DATASETS = {
    "prefetch": lambda gate, path: iter(numbers(gate).prefetch(2)),
    "prefetch of a generator": lambda gate, path: iter(generated(gate).prefetch(1)),
    "prefetch of prefetch": lambda gate, path: iter(numbers(gate).prefetch(2).prefetch(3)),
    "shuffle of prefetch": lambda gate, path: iter(numbers(gate).prefetch(2).shuffle(1)),
    "batches of prefetch": lambda gate, path: iter(numbers(gate).prefetch(2).batch(1)),
    "prefetch, repeated": lambda gate, path: iter(numbers(gate).take(20).prefetch(2).repeat(2)),
    "zip of prefetch": lambda gate, path: iter(
        Dataset.zip(numbers(gate).prefetch(2), Dataset.range(40).prefetch(1))
    ),
    "mapped by threads": lambda gate, path: iter(Dataset.range(40).map(gate, 2)),
    "mapped by threads, ahead": lambda gate, path: iter(numbers(gate).map(abs, 2)),
    "no thread": lambda gate, path: iter(numbers(gate)),
}
FILES = {
    "records": lambda gate, path: iter(
        TFRecordDataset([GatedFile(gate, path)], compression_type="").prefetch(2)
    ),
    "dataset, 2 threads": lambda gate, path: iter(batches(gate, path)),
    "shuffled, 2 threads": lambda gate, path: iter(batches(gate, path, shuffle=1)),
    "parsed, 1 thread": lambda gate, path: parsed(gate, path),
    "parsed, 2 threads": lambda gate, path: parsed(gate, path, num_threads=2),
    "parsed, 3 threads": lambda gate, path: parsed(gate, path, num_threads=3),
    "verified, 1 thread": lambda gate, path: verified(gate, path, 1),
    "verified, 2 threads": lambda gate, path: verified(gate, path, 2),
    "parsed, skip": lambda gate, path: parsed(gate, path, num_threads=2, on_parse_error="skip"),
}
PIPES = {
    "pipe": lambda gate, path: PARSER.parse_file(
        GatedPipe(gate), 1, compression_type=None, num_threads=2
    ),
    "pipe, skip": lambda gate, path: PARSER.parse_file(
        GatedPipe(gate), 1, compression_type=None, num_threads=2, on_parse_error="skip"
    ),
    "records of a pipe": lambda gate, path: iter(
        TFRecordDataset([GatedPipe(gate)], compression_type="").prefetch(1)
    ),
}
ITERATORS = {**DATASETS, **FILES, **REGULAR_FILES, **PIPES}


def within_limit(function, *arguments):
    """What function gives or raises; AssertionError if it takes too long."""
    result = []

    def run():
        try:
            result.extend([function(*arguments), None])
        except BaseException as error:
            result.extend([None, error])

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert result, f"{function} hangs"
    if result[1] is not None:
        raise result[1]
    return result[0]


# ---- As a program -------------------------------------------------------------------------------


def interrupt(tries, seed, folder, names):
    """Interrupts iterators of each kind at random moments; what comes of it must be an interrupt or
    nothing, and the iterator can be closed afterwards, by any thread."""
    path, chance = write(Path(folder) / "interrupted"), random.Random(seed)
    workers.PATIENCE, shared_iterator._WAITS = 0.1, (0.01, 0.1)
    GatedPipe.kept = []
    # Python loses an interrupt that arrives when a thread object is dropped, in the callback of the
    # WeakSet that has it. A set keeps all threads.
    threading._dangling = set(threading._dangling)
    import resource  # which Windows lacks

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each try keeps a pipe open
    gc.freeze()  # what was imported is not looked at each time
    interrupted = 0
    for name in names * tries:
        try:
            interrupted += interrupted_once(name, path, chance)
        except BaseException:
            print(name, file=sys.stderr)
            raise
        gc.collect()  # not during the next try: Python loses an interrupt that hits a finalizer
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        if thread.is_alive():  # one that was interrupted in start() never is
            thread.join(LIMIT)  # one that writes to a pipe while Python ends would say so
    print(interrupted)


def interrupted_once(name, path, chance):
    """Whether the interrupt came while there was an iterator."""
    elements, interrupted = None, False
    waits = name in PIPES or chance.random() < 0.3
    places = 20 if "repeated" in name else 40  # elements that reach the gate
    gate = Gate(chance.randrange(places) if waits else None)
    delay = chance.random() * 10 ** chance.uniform(-5, -2)
    noticed = threading.Event()
    sender = threading.Thread(target=interrupt_soon, args=(delay, gate if waits else None, noticed))
    try:
        sender.start()
        elements = ITERATORS[name](gate, path)
        for _element in elements:
            pass
        while sender.is_alive():
            time.sleep(0.0001)
        time.sleep(0.01)
    except KeyboardInterrupt:
        interrupted = True
        noticed.set()
    gate_open_later = threading.Timer(0.02, gate.opened.set)
    gate_open_later.start()
    sender.join()
    if elements is not None:
        close = chance.choice([elements.close, functools.partial(list, elements)])
        within_limit(close)
        within_limit(elements.close)
        assert [] == list(elements)
    gate.opened.set()
    gate_open_later.cancel()
    return interrupted


def interrupt_soon(delay, gate, noticed):
    if gate is not None:
        gate.reached.wait(LIMIT)
    time.sleep(delay)
    os.kill(os.getpid(), signal.SIGINT)
    # A signal that comes when Python is about to wait in C is noticed with the next one.
    if not noticed.wait(0.1):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGWINCH)


def leave(folder):
    """Ends with an iterator of every kind in use."""
    path = write(Path(folder) / "left")
    for name, make in ITERATORS.items():
        elements = make(Gate(5), path)
        next(elements)
        globals()[f"kept {name}"] = elements, [elements]
        cycle = [make(Gate(5), path)]
        cycle.append(cycle)
        next(cycle[0])
    print("left")


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    signal.signal(signal.SIGWINCH, lambda number, frame: None)
    if sys.argv[1] == "interrupt":
        interrupt(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5:])
    else:
        leave(sys.argv[2])
