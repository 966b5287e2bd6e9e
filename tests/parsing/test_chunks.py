"""parse_file by chunks of a pipeline: files that change meanwhile, open files, calls into C."""

import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest

import tfwire as tfw
from helpers.reading import open_files
from helpers.reference import file_of, frame
from tfwire._parsing import file_chunks

FEATURES = {"n": tfw.FixedLenFeature([], tfw.int64), "s": tfw.FixedLenFeature([], tfw.string)}
BATCH, COUNT = 4, 12


def record(n):
    return tfw.encode_example({"n": n, "s": b"s" * (20 + 7 * (n % 3))})


RECORDS = [record(n) for n in range(COUNT)]


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("size", ["whole records", "part of a record", "nothing"])
def test_a_file_that_is_cut_while_it_is_read(tmp_path, monkeypatch, size, num_threads):
    """What was there is gone: an error, and no record is missing silently."""
    monkeypatch.setattr(file_chunks, "_PARSED_BYTES", 100)
    path = tmp_path / "x"
    path.write_bytes(file_of(RECORDS * 1000))
    left = {"whole records": len(file_of(RECORDS)), "nothing": 0}.get(size, 500)
    found, error = [], None
    try:
        for batch in tfw.Parser(FEATURES).parse_file(path, BATCH, num_threads=num_threads):
            found += batch["n"].tolist()
            os.truncate(path, left)
    except tfw.DataLossError as caught:
        error = caught.record_index, caught.reason
    assert (len(found), "truncated") == error
    assert (list(range(COUNT)) * 1000)[: len(found)] == found
    assert len(found) < COUNT * 1000


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("taken", [0, 1, 2, 100])
def test_no_file_stays_open(tmp_path, monkeypatch, taken, num_threads):
    monkeypatch.setattr(file_chunks, "_PARSED_BYTES", 100)
    path = tmp_path / "x"
    path.write_bytes(file_of(RECORDS))
    parser = tfw.Parser(FEATURES)
    list(parser.parse_file(path, BATCH, num_threads=num_threads))
    before = open_files()
    with parser.parse_file([path] * 3, BATCH, num_threads=num_threads) as batches:
        for _ in zip(range(taken), batches, strict=False):
            pass
    assert not open_files() - before


@pytest.mark.parametrize("num_threads", [1, 2])
def test_a_chunk_takes_few_calls(tmp_path, num_threads):
    """One for the chunk, one to look at it, one for its columns, however many, one for its batches,
    and none for a batch; cffi releases the GIL in those that it makes, and waits for it again."""
    path = tmp_path / "x"
    path.write_bytes(frame(record(1)) * 200_000)
    calls = Counter()

    def profile(frame, event, function):
        if event == "c_call" and function.__name__.startswith("tfw_"):
            calls[function.__name__] += 1

    parser = tfw.Parser(FEATURES, bytes_as="column")
    batches = parser.parse_file(path, 1000, num_threads=num_threads)
    sys.setprofile(profile)
    try:
        for _ in batches:
            pass
    finally:
        sys.setprofile(None)
    num_chunks = calls["tfw_chunk_get"]
    assert num_chunks >= 5
    per_iteration = 24
    assert sum(calls.values()) <= 4 * num_chunks + per_iteration, calls


@pytest.mark.parametrize("rest", [0, 7])
def test_threads_get_whole_batches_of_their_own(tmp_path, rest):
    """Those of a chunk are made without a turn."""
    path = tmp_path / "x"
    count = 3000 * BATCH + rest
    columns = {"n": np.arange(count), "s": [str(n).encode() for n in range(count)]}
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns(columns)
    parser = tfw.Parser(FEATURES, bytes_as="column")
    with parser.parse_file(path, BATCH) as batches, ThreadPoolExecutor(4) as threads:
        found = list(chain.from_iterable(threads.map(list, [batches] * 4)))
    for batch in found:
        assert list(map(int, batch["s"].to_list())) == batch["n"].tolist()
    numbers = np.sort(np.concatenate([batch["n"] for batch in found]))
    assert list(range(count)) == numbers.tolist()


def test_nothing_at_hand_is_given_after_close(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(file_of(RECORDS))
    batches = tfw.Parser(FEATURES).parse_file(path, BATCH)
    assert [0, 1, 2, 3] == next(batches)["n"].tolist()
    assert 1 == batches.place[2]
    batches.close()
    assert 1 == batches.place[2]
    assert [] == list(batches)


def test_a_pipe_in_a_list_is_opened_once(tmp_path):
    """Its writer would take whoever opens it for its reader."""
    path = tmp_path / "pipe"
    if not hasattr(os, "mkfifo"):
        pytest.skip("no pipes with names")
    os.mkfifo(path)
    tfw.write_records(tmp_path / "x", RECORDS)
    batches = tfw.Parser(FEATURES).parse_file([tmp_path / "x", path], 100, num_threads=3)
    writer = os.fork()
    if writer == 0:
        try:
            with open(path, "wb", 0) as sink:
                sink.write(file_of(RECORDS))
        finally:
            os._exit(0)
    found = [n for batch in batches for n in batch["n"].tolist()]
    assert os.waitpid(writer, 0) == (writer, 0)
    assert found == 2 * list(range(COUNT))
