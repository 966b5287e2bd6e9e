"""Short ranges of asynchronous filesystems: tasks of one event loop fetch them, not threads."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections import Counter

import fsspec
import numpy as np
import pytest

import tfwire as tfw
from helpers.remote.object_server import ASYNC_PROTOCOL, RECORDS
from helpers.threads import at_once, wait_for
from tfwire._records.files.urls import ObjectPath
from tfwire._records.index import remote_records
from tfwire._records.remote.random_ranges import _SHORT_IN_FLIGHT

pytestmark = pytest.mark.usefixtures("small")

NUMBERS = list(range(0, len(RECORDS), 6))  # none is the next of another


@pytest.fixture(autouse=True)
def apart(monkeypatch):
    monkeypatch.setattr(remote_records, "_GAP_BYTES", 0)  # each has a range of its own


@pytest.fixture
def records(server):
    index = tfw.RecordIndex.build(server.url("/a"))
    index.path = ObjectPath(server.url("/a", ASYNC_PROTOCOL), {})
    found = tfw.TFRecordFile(server.url("/a", ASYNC_PROTOCOL), index)
    server.ranges.clear()
    return found


def pieces(records):
    """The records of NUMBERS, piece by piece."""
    return records._access().many(np.array(NUMBERS))


def tasks():
    """How many tasks fsspec's event loop has, but for the one that counts them."""

    async def count():
        return len(asyncio.all_tasks()) - 1

    return asyncio.run_coroutine_threadsafe(count(), fsspec.asyn.get_loop()).result()


def settled(count):
    """A number once it has stayed the same for a while."""
    before, since = count(), time.monotonic()
    while time.monotonic() - since < 0.2:
        if before != (now := count()):
            before, since = now, time.monotonic()
        time.sleep(0.01)
    return before


def no_tasks_are_left():
    return wait_for(lambda: not tasks())


def test_records_come_in_their_order_whatever_the_order_of_answers(records, server):
    rng = random.Random(1)
    server.faults = lambda path, begin, end: time.sleep(rng.choice([0, 0, 0.002]))
    assert [RECORDS[i] for i in NUMBERS] == [
        record for piece in pieces(records) for record in piece
    ]
    assert sorted(server.ranges) == sorted(set(server.ranges))
    assert len(NUMBERS) == len(server.ranges)
    assert not any(each.name.startswith("tfwire-") for each in threading.enumerate())
    assert no_tasks_are_left()


@pytest.mark.parametrize("fault", ["reset", "short", 503, 429])
def test_requests_are_tried_again(records, server, fault):
    tried = Counter()

    def faults(path, begin, end):
        tried[end] += 1
        return fault if tried[end] <= 2 else None

    server.faults = faults
    assert [RECORDS[i] for i in NUMBERS[:20]] == records[NUMBERS[:20]]


def test_an_error_comes_after_the_records_before_it(records, server):
    bad = int(records.index.offsets[NUMBERS[50]])
    server.faults = lambda path, begin, end: 503 if begin == bad else None
    found = []
    with pytest.raises(OSError, match=rf"bytes {bad} to .* \(6 tries\)") as caught:
        found.extend(itertools.chain.from_iterable(pieces(records)))
    assert str(records.path) == caught.value.filename
    assert [RECORDS[i] for i in NUMBERS[:50]] == found
    assert no_tasks_are_left()
    server.faults = lambda path, begin, end: None
    assert [RECORDS[i] for i in NUMBERS] == records[NUMBERS]


def test_errors_of_all_ranges_are_one_error(records, server):
    server.faults = lambda path, begin, end: 403
    with pytest.raises(OSError, match=r"cannot be read \(1 try\)"):
        records[NUMBERS]
    assert no_tasks_are_left()
    assert len(server.ranges) <= _SHORT_IN_FLIGHT


def test_a_server_without_ranges_is_refused(records, server):
    server.ignores_ranges = True
    with pytest.raises(OSError, match="which the server ignores"):
        records[NUMBERS]
    assert no_tasks_are_left()


def test_a_slow_consumer_is_not_run_ahead_of(records, server):
    found = pieces(records)
    assert [RECORDS[0]] == next(found)
    assert settled(lambda: len(server.ranges)) == 2 * _SHORT_IN_FLIGHT
    assert [RECORDS[i] for i in NUMBERS[1:]] == [record for piece in found for record in piece]


def test_a_dropped_iterator_ends_its_requests(records, server):
    server.latency = 0.02
    found = pieces(records)
    next(found)
    found.close()
    assert no_tasks_are_left()
    assert len(server.ranges) < len(NUMBERS)
    server.latency = 0
    assert [RECORDS[i] for i in NUMBERS] == records[NUMBERS]


def test_tasks_that_others_cancel_do_not_leave_the_consumer_waiting(records, server):
    server.latency = 0.05
    found = pieces(records)
    next(found)

    async def cancel_all():
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run_coroutine_threadsafe(cancel_all(), fsspec.asyn.get_loop()).result()
    with pytest.raises(RuntimeError, match="ended the requests"):
        list(found)
    server.latency = 0
    assert [RECORDS[i] for i in NUMBERS] == records[NUMBERS]


def test_threads_share_what_may_be_in_flight(records, server):
    server.latency = 0.005
    assert [[RECORDS[i] for i in NUMBERS]] * 4 == at_once(lambda _: records[NUMBERS])
    assert server.most_in_flight <= 40
