"""Writers between threads, signals and the end of the interpreter: nothing lost, nothing hangs."""

from __future__ import annotations

import collections
import gc
import os
import random
import re
import subprocess
import sys
import time
from functools import partial

import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT, output_of_python
from helpers.reference import file_of
from helpers.search import FIRST_SEED
from helpers.threads import quick_switches, together
from tfwire._base import system

needs_full = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")


# For so many seconds each search runs; the slow tests take minutes, a campaign hours.
SECONDS = float(os.environ.get("TFWIRE_SEARCH_SECONDS", "0"))


@pytest.fixture
def often():
    with quick_switches():
        yield


def rounds(least, seconds):
    """Seeds, at least so many and for at least so long."""
    begin, i = time.monotonic(), FIRST_SEED
    while i < FIRST_SEED + least or time.monotonic() < begin + seconds:
        yield i
        i += 1


# ---- Threads ----------------------------------------------------------------------------------


class Model:
    """What some threads asked of a writer, and what must come of it.

    A call that returned has all its records in the output. One that raised ValueError has none, or
    those before some record of write_many.
    """

    def __init__(self, seed):
        self.seed = seed
        self.done = collections.defaultdict(list)  # (thread, call) to its records
        self.refused = {}

    def run(self, writer, thread, calls, closes):
        rng = random.Random(f"{self.seed} {thread}")
        for call in range(calls):
            size = rng.choice([0, 0, 0, 10, 1000, 70_000])
            count = rng.choice([1, 1, 1, 3, 70, 1500]) if size < 1000 else 1
            records = [b"%d %d %d " % (thread, call, i) + bytes(size) for i in range(count)]
            try:
                if closes and rng.random() < 2 / calls:
                    writer.close()
                elif rng.random() < 0.05 and hasattr(writer, "flush"):
                    writer.flush()
                else:
                    if count == 1:
                        writer.write(records[0])
                    else:
                        writer.write_many(records)
                    self.done[thread, call] = records
            except ValueError:  # it is closed
                self.refused[thread, call] = records

    def check(self, found):
        calls = collections.defaultdict(list)
        last = collections.defaultdict(lambda: (-1, -1))
        for record in found:
            thread, call, number = map(int, record.split(b" ")[:3])
            assert (call, number) > last[thread], "not in the order of its thread"
            last[thread] = call, number
            calls[thread, call].append(record)
        for key, records in calls.items():
            expected = self.done.get(key) or self.refused[key][: len(records)]
            assert expected == records
            assert key in self.done or len(self.refused[key]) > len(records)
        assert {key for key, records in self.done.items() if records} <= set(calls)


@pytest.mark.parametrize("kind", ["", "GZIP", "append", "atomic"])
@pytest.mark.parametrize("seconds", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_what_write_returned_from_is_in_the_file(path, often, kind, seconds):
    """Whatever the other threads do, closing among it."""
    arguments = {kind: True} if kind in ("append", "atomic") else {"options": kind}
    for seed in rounds(6, max(seconds, SECONDS)):
        path.unlink(missing_ok=True)
        model = Model(seed)
        writer = tfw.TFRecordWriter(path, **arguments)
        together(*(partial(model.run, writer, i, 40, closes=i == 0) for i in range(4)))
        writer.close()
        model.check(list(tfw.read_records(path)))


@pytest.mark.parametrize("counts", [{"num_shards": 3}, {"shard_size": 30_000}])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seconds", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_what_a_sharded_writer_took_is_in_its_files(tmp_path, often, counts, threads, seconds):
    for seed in rounds(3, max(seconds, SECONDS)):
        model = Model(seed)
        writer = tfw.ShardedWriter(tmp_path / "{shard}", num_threads=threads, **counts)
        together(*(partial(model.run, writer, i, 15, closes=i == 0) for i in range(3)))
        writer.close()
        found = collections.Counter()
        for file in writer.paths:
            found.update(tfw.read_records(file))
        done = collections.Counter()
        for records in model.done.values():
            done.update(records)
        assert not done - found
        refused = {record for records in model.refused.values() for record in records}
        assert set(found - done) <= refused
        assert writer.num_records == sum(found.values())


def test_a_write_that_returns_beside_close_is_never_lost(path, often):
    """The simplest case, very often."""
    for _ in range(100):
        writer = tfw.TFRecordWriter(path)
        written = []

        def write(writer=writer, written=written):
            try:
                for i in range(1000):
                    writer.write(b"%d" % i)
                    written.append(b"%d" % i)
            except ValueError:
                pass

        together(write, writer.close)
        writer.close()
        assert file_of(written) == path.read_bytes()


# ---- Signals ----------------------------------------------------------------------------------

_SIGNALLED = """
import faulthandler, random, signal, sys, time
import tfwire as tfw
faulthandler.dump_traceback_later(100, exit=True)
path, kind, seed, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
rng = random.Random(seed)
asked, refused, handled = [], 0, 0

def handle(*_):
    global refused, handled
    handled += 1
    name = b"handler %d" % handled
    calls = [writer.flush, lambda: writer.write(name), lambda: writer.write_many([name])]
    call = writer.close if handled == last else rng.choice(calls)
    try:
        call()
        if call in calls[1:]:
            asked.append(name)
    except RuntimeError as error:
        assert "in use by this thread" in str(error)
        refused += 1
    except ValueError:
        assert handled > last
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 3e-4))

last = rng.randrange(50, int(3000 * seconds))
if kind == "sharded":
    writer = tfw.ShardedWriter(path + "-{shard}", num_shards=2)
    writer.flush = lambda: None
else:
    writer = tfw.TFRecordWriter(path, kind)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 1e-4)
end = time.monotonic() + seconds
i = 0
try:
    while time.monotonic() < end:
        for _ in range(300):
            i += 1
            size = 10 if i % 30 else 30000
            name = b"main %d " % i + bytes(size)
            if i % 7:
                writer.write(name)
            else:
                writer.write_many([name])
            asked.append(name)
except ValueError as error:
    assert "closed" in str(error)
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
writer.close()
paths = writer.paths if kind == "sharded" else [path]
found = [record for file in paths for record in tfw.read_records(file)]
assert len(found) == len(set(found))
missing = set(asked) - set(found)
assert not missing, sorted(missing)[:3]
extra = set(found) - set(asked)
assert not extra, sorted(extra)[:3]
print(handled, refused)
"""


@pytest.mark.posix("it sets timers")
@pytest.mark.parametrize("kind", ["", "GZIP", "sharded"])
@pytest.mark.parametrize(
    ("count", "seconds"), [(1, 0.1), pytest.param(6, 1, marks=pytest.mark.slow)]
)
def test_a_signal_handler_may_use_the_writer_that_it_interrupts(tmp_path, kind, count, seconds):
    """It does what was asked, or raises RuntimeError; it never waits for itself."""
    handled = 0
    for seed in rounds(count, SECONDS):
        words = _SIGNALLED, tmp_path / f"data{seed}", kind, seed, seconds
        handled += int(output_of_python("-c", *words).split()[0])
    assert handled > 10


@pytest.mark.parametrize("call", ["flush", "close", "write"])
def test_a_call_from_within_a_write_is_refused(path, monkeypatch, call):
    writer = tfw.TFRecordWriter(path)
    writev = system.writev
    refused = []

    def interrupting(fd, views):
        arguments = [b"x" * 300_000] if call == "write" else []
        try:
            getattr(writer, call)(*arguments)
        except RuntimeError as error:
            refused.append(str(error))
        return writev(fd, views)

    writer.write(b"1")
    monkeypatch.setattr(system, "writev", interrupting)
    together(writer.flush)
    monkeypatch.undo()
    assert 1 == len(refused)
    assert "in use by this thread" in refused[0]
    writer.write(b"2")
    writer.close()
    assert file_of([b"1", b"2"]) == path.read_bytes()


# ---- The end of the interpreter, and of a writer ----------------------------------------------

_OPEN_AT_EXIT = """
import sys
import tfwire as tfw
folder = sys.argv[1]
class Holder: pass
holder = Holder()
holder.writers = [
    tfw.TFRecordWriter(folder + "/plain"),
    tfw.TFRecordWriter(folder + "/GZIP", "GZIP"),
    tfw.TFRecordWriter(folder + "/atomic", atomic=True),
    tfw.ShardedWriter(folder + "/{shard}", num_shards=3, num_threads=2),
    tfw.TFRecordWriter("/dev/full"),
]
for writer in holder.writers:
    for i in range(1000):
        writer.write(b"%d" % i)
holder.itself = holder
sys.modules["kept"] = holder
"""


@needs_full
def test_writers_that_are_open_at_exit_say_nothing_odd(tmp_path):
    command = [sys.executable, "-c", _OPEN_AT_EXIT, tmp_path]
    run = subprocess.run(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True, check=True)
    assert "Exception" not in run.stderr
    assert "Traceback" not in run.stderr
    assert 1 == run.stderr.count("was not closed, and records were lost: ")
    assert ["GZIP", "plain"] == sorted(os.listdir(tmp_path))
    for name in ("GZIP", "plain"):
        found = list(tfw.read_records(tmp_path / name))
        assert [b"%d" % i for i in range(1000)] == found


_DAEMON = """
import sys, threading, time
import tfwire as tfw
writer = tfw.TFRecordWriter(sys.argv[1])
ready = threading.Event()
class Slow:
    def write(self, data):
        ready.set()
        time.sleep(10**6)
blocked = tfw.TFRecordWriter(Slow())
blocked.write(b"x")
threading.Thread(target=blocked.flush, daemon=True).start()
ready.wait()
writer.write(b"kept")
"""


def test_a_thread_that_is_stuck_in_a_writer_does_not_keep_the_interpreter(path):
    output_of_python("-c", _DAEMON, path)
    assert [b"kept"] == list(tfw.read_records(path))


@needs_full
def test_a_writer_that_cannot_write_what_it_has_warns_when_it_is_dropped(recwarn):
    writer = tfw.TFRecordWriter("/dev/full")
    writer.write(b"1")
    del writer
    gc.collect()
    assert [RuntimeWarning, ResourceWarning] == [warning.category for warning in recwarn]
    assert re.search("records were lost: .*No space left", str(recwarn[0].message))


@needs_full
def test_a_failure_that_was_reported_is_not_reported_again_at_the_end(recwarn):
    writer = tfw.TFRecordWriter("/dev/full")
    writer.write(b"1")
    with pytest.raises(OSError, match="No space left"):
        writer.flush()
    del writer
    gc.collect()
    assert {ResourceWarning} == {warning.category for warning in recwarn}
