"""Threads that change what others are reading: the cases of test_changing_inputs.py."""

import random
import threading
import time
from contextlib import suppress

import numpy as np

import tfwire as tfw
from helpers.threads import quick_switches

# What a call may raise when its arguments change under it.
FAIR = (ValueError, TypeError, IndexError, RuntimeError, KeyError, tfw.Error)

COUNT = 300
LONG_KEY = "k" * 3000

SPEC = {
    "i": tfw.FixedLenFeature([], tfw.int64),
    "f": tfw.FixedLenFeature([3], tfw.float32),
    "s": tfw.FixedLenFeature([], tfw.string),
    "v": tfw.VarLenFeature(tfw.int64),
}
ROWS = [{"i": n, "f": [float(n)] * 3, "s": b"s%d" % n, "v": [n] * (n % 4)} for n in range(COUNT)]
MESSAGES = tfw.encode_examples(ROWS)
SEQUENCES = [tfw.encode_sequence_example({"i": n}, {"l": [[n]] * (n % 5)}) for n in range(COUNT)]
PARSER = tfw.Parser(SPEC)
COLUMN_PARSER = tfw.Parser(SPEC, bytes_as="column")
SEQUENCE_PARSER = tfw.SequenceParser(
    {"i": tfw.FixedLenFeature([], tfw.int64)},
    {"l": tfw.FixedLenSequenceFeature([1], tfw.int64)},
)

CASES = {}


def case(make):
    """Registers a function of a random.Random that returns the call, what the other thread does
    again and again, and a check of the result."""
    CASES[make.__name__] = make
    return make


def run(make, seconds, seed):
    """Runs a case for some seconds; how many calls returned something."""
    call, change, check = make(random.Random(seed))
    stop, failures, results = threading.Event(), [], 0

    def changing():
        try:
            while not stop.is_set():
                change()
        except Exception as error:
            failures.append(error)

    other = threading.Thread(target=changing)
    with quick_switches():
        other.start()
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end and not failures:
                with suppress(*FAIR):
                    result = call()
                    results += 1
                    check(result)
        finally:
            stop.set()
            other.join(60)
    assert not failures
    assert not other.is_alive()
    return results


# ---- How inputs change --------------------------------------------------------------------------


def change_list(rng, items, others=()):
    """A list, and a change of it."""
    held = list(items)
    pool = [*items, *others]

    def change():
        what = rng.randrange(5)
        if what == 0:
            held.clear()
        elif what == 1:
            del held[rng.randrange(len(held) + 1) :]
        elif what == 2:
            held.extend(rng.sample(pool, min(len(pool), 50)))
        elif what == 3 and held:
            held[rng.randrange(len(held))] = rng.choice(pool)
        else:
            held[:] = items

    return held, change


def change_bytes(rng, data, values):
    """A change of the bytes of a buffer: another value all over, or what was there at first."""
    view = np.frombuffer(data, np.uint8)
    first = view.copy()

    def change():
        what = rng.randrange(4)
        if what == 0:
            view[:] = first
        elif what == 1:
            view[:] = rng.choice(values)
        elif what == 2:
            begin = rng.randrange(len(view))
            view[begin : begin + 100] = rng.choice(values)
        else:
            view[rng.randrange(len(view))] = rng.choice(values)

    return change


def change_numbers(rng, array, values):
    flat = array.reshape(-1)
    first = flat.copy()

    def change():
        if rng.randrange(3) == 0:
            flat[:] = first
        else:
            flat[rng.randrange(len(flat))] = rng.choice(values)

    return change


EDGES = [0, 1, -1, 7, 2**31, 2**40, 2**62, -(2**63), 2**63 - 1]


def anything(_):
    pass


def are_rows(result):
    """Every row of a parsed batch is one of ROWS."""
    for n, i in enumerate(result["i"].tolist()):
        row = ROWS[i]
        assert result["f"][n].tolist() == row["f"]
        assert result["s"][n] == row["s"]
