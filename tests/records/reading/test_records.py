"""Reading records: sources, iteration, positions, threads, forks."""

from __future__ import annotations

import gc
import io
import os
import pickle
import socket
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.reading import Bytes, open_files
from helpers.reference import file_of, frame
from helpers.threads import at_once

RECORDS = [b"first", b"", b"\x00" * 376, bytes(range(256)) * 300, b"last"]
DATA = file_of(RECORDS)
OFFSETS = [len(file_of(RECORDS[:i])) for i in range(len(RECORDS))]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "data.tfrecord"
    path.write_bytes(DATA)
    return path


# ---- Sources ----------------------------------------------------------------------------------


class OnlyRead:
    """A file object with nothing but read."""

    def __init__(self, data):
        self.read = io.BytesIO(data).read


def test_any_kind_of_path_and_file_object_is_read(path):
    sources = [
        str(path),
        path,
        os.fsencode(path),
        np.str_(path),
        io.BytesIO(DATA),
        Bytes(DATA),
        Bytes(DATA, 1),
        OnlyRead(DATA),
    ]
    for source in sources:
        assert RECORDS == list(tfw.read_records(source)), source
    with path.open("rb") as buffered, path.open("rb", buffering=0) as raw:
        assert RECORDS == list(tfw.read_records(buffered))
        assert RECORDS == list(tfw.read_records(raw))
        assert not buffered.closed  # it was not opened here


def test_a_file_object_is_read_from_where_it_stands():
    source = io.BytesIO(b"preface" + DATA)
    source.seek(7)
    assert RECORDS == list(tfw.read_records(source))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_and_a_socket_are_read(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    thread = threading.Thread(target=fifo.write_bytes, args=(DATA,))
    thread.start()
    assert RECORDS == list(tfw.read_records(fifo))
    thread.join()

    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("rb") as source:
        thread = threading.Thread(target=lambda: (theirs.sendall(DATA), theirs.close()))
        thread.start()
        assert RECORDS == list(tfw.read_records(source))
        thread.join()


def test_a_url_without_fsspec_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"s3://bucket/key.*tfwire\[remote\]"):
        next(tfw.read_records("s3://bucket/key"))


def test_many_inputs_are_read_one_after_the_other(path):
    expected = RECORDS * 2
    assert expected == list(tfw.read_records([path, str(path)]))
    assert expected == list(tfw.read_records(p for p in (path, io.BytesIO(DATA))))
    assert expected == list(tfw.read_records(np.array([str(path)] * 2)))
    assert expected == list(tfw.read_records(np.array([str(path).encode()] * 2, dtype=object)))


def test_inputs_of_another_type_are_refused(path):
    with pytest.raises(TypeError, match="found int"):
        tfw.read_records(7)
    with pytest.raises(TypeError, match="found float"):
        next(tfw.read_records([1.5]))
    with path.open(encoding="latin-1") as text, pytest.raises(TypeError, match="text mode"):
        next(tfw.read_records(text))
    with pytest.raises(TypeError, match="text mode"):
        next(tfw.read_records(OnlyText()))


class OnlyText:
    def read(self, size):
        return "text"


def test_a_missing_file_and_an_empty_folder_are_named(tmp_path):
    missing = tfw.read_records(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) as caught:
        next(missing)
    assert str(tmp_path / "missing") == str(caught.value.filename)
    with pytest.raises(FileNotFoundError, match="no file of records is in the folder") as caught:
        tfw.read_records(tmp_path)
    assert str(tmp_path) == str(caught.value.filename)


def test_files_are_opened_only_when_they_are_reached(path, tmp_path):
    """The records of one file come before the error of the next."""
    for name in ("later", "missing"):
        records = tfw.read_records([path, tmp_path / name])
        assert RECORDS == [next(records) for _ in RECORDS]
        (tmp_path / "later").write_bytes(frame(b"later"))
        if name == "later":
            assert [b"later"] == list(records)
        else:
            with pytest.raises(FileNotFoundError):
                next(records)


def test_an_empty_file_has_no_records(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    for compression in ("auto", None, "GZIP", "ZLIB"):
        assert [] == list(tfw.read_records(tmp_path / "empty", compression))


def test_errors_of_a_file_object_come_through(path):
    class Failing(Bytes):
        def readinto(self, buffer):
            return super().readinto(buffer) or self.fail()

        def fail(self):
            raise ConnectionResetError("gone")

    records = tfw.read_records(Failing(DATA))
    assert RECORDS == [next(records) for _ in RECORDS]
    with pytest.raises(ConnectionResetError, match="gone"):
        next(records)


def test_a_file_object_that_overruns_its_buffer_is_refused():
    class TooMuch:
        def read(self, size):
            return bytes(size + 1)

    class Lying:
        def readinto(self, buffer):
            return len(buffer) + 1

    with pytest.raises(OSError, match="claims"):
        next(tfw.read_records(TooMuch()))
    with pytest.raises(OSError, match="claims"):
        next(tfw.read_records(Lying()))


def test_a_file_object_without_data_yet_says_so():
    class Empty:
        def readinto(self, buffer):
            return None

    with pytest.raises(BlockingIOError):
        next(tfw.read_records(Empty()))


# ---- Arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize("buffer_size", [None, 0, 1, 100, 1 << 20])
def test_the_buffer_size_does_not_change_the_records(path, buffer_size):
    assert RECORDS == list(tfw.read_records(path, buffer_size=buffer_size))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 5000), max_size=60), st.sampled_from([None, 64, 3000]))
def test_records_of_any_lengths_come_as_they_were_written(lengths, buffer_size):
    """Short ones go through a pickle, long ones are sliced: by the mean of what is at hand."""
    records = [bytes([length & 255]) * length for length in lengths]
    data = file_of(records)
    assert records == list(tfw.read_records(Bytes(data), buffer_size=buffer_size))


# ---- Iteration --------------------------------------------------------------------------------


def test_next_and_for_draw_on_the_same_records(path):
    records = tfw.read_records([path, path])
    assert RECORDS[0] == next(records)
    for record in records:
        assert RECORDS[1] == record
        break
    assert RECORDS[2] == next(iter(records))
    assert RECORDS[3:] + RECORDS == list(records)
    assert [] == list(records)


def test_positions_tell_file_number_and_offset(path):
    positions = list(tfw.read_records([path, Bytes(DATA)]).with_positions())
    expected = [
        (name, i, offset, record)
        for name in (path, None)
        for i, (offset, record) in enumerate(zip(OFFSETS, RECORDS, strict=True))
    ]
    assert expected == positions


def test_positions_go_on_where_the_records_stand(path):
    records = tfw.read_records([path, path])
    assert RECORDS[:2] == [next(records), next(records)]
    positions = records.with_positions()
    assert (path, 2, OFFSETS[2], RECORDS[2]) == next(positions)
    assert (path, 3, OFFSETS[3], RECORDS[3]) == next(records.with_positions())
    with pytest.raises(ValueError, match="with positions"):
        next(records)
    assert [(path, 4, OFFSETS[4]), (path, 0, 0)] == [next(positions)[:3] for _ in range(2)]


def test_positions_of_small_records_in_a_large_file(tmp_path):
    """More than one batch, and offsets after the first window."""
    records = [b"%d" % i for i in range(10_000)]
    tfw.write_records(tmp_path / "large", records)
    offset = 0
    for i, position in enumerate(tfw.read_records(tmp_path / "large").with_positions()):
        assert (tmp_path / "large", i, offset, records[i]) == position
        offset += 16 + len(records[i])
    assert 10_000 == i + 1


def test_after_close_going_on_is_an_error(path):
    records = tfw.read_records(path)
    raw = iter(records)
    next(records)
    records.close()
    records.close()
    with tfw.read_records(path) as at_the_end:
        assert RECORDS == list(at_the_end)
    for iterator in (records, raw, records.with_positions(), at_the_end):
        with pytest.raises(ValueError, match="the record iterator is closed"):
            next(iterator)
    records = tfw.read_records(path)
    positions = records.with_positions()
    next(positions)
    records.close()
    with pytest.raises(ValueError, match="the record iterator is closed"):
        next(positions)


def test_iterators_refuse_to_be_pickled(path):
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(tfw.read_records(path))


def test_closing_releases_the_file_and_so_does_the_end(path):
    if sys.platform != "linux":
        pytest.skip("needs /proc")
    before = open_files()
    with tfw.read_records(path) as records:
        first = next(records)
    del records
    gc.collect()
    assert (RECORDS[0], bytes) == (first, type(first))  # it outlives its iterator
    assert RECORDS == list(tfw.read_records(path))
    next(tfw.read_records(path))  # dropped half-way
    gc.collect()
    assert set() == open_files() - before


def test_long_records_are_read_by_themselves_between_short_ones(tmp_path):
    """With positions, and without a copy of the file in memory."""
    sizes = [3, 100_000, 70_000, 65_536, 65_535, 200_000, 300_000, 0, 1_000_000, 90_000, 80_000]
    records = [bytes([i]) * size for i, size in enumerate(sizes * 3)]
    tfw.write_records(tmp_path / "long", records)
    assert records == list(tfw.read_records(tmp_path / "long"))
    assert records == list(tfw.read_records(tmp_path / "long", verify=False))
    offset = 0
    shared = tfw.read_records([tmp_path / "long"] * 2, buffer_size=100_000)
    assert records[:4] == [next(shared) for _ in range(4)]
    for i, position in enumerate(shared.with_positions()):
        number = (i + 4) % len(records)
        offset = sum(sizes[k % 11] + 16 for k in range(number))
        assert (tmp_path / "long", number, offset, records[number]) == position
    assert 2 * len(records) == i + 5


# ---- Threads and forks ------------------------------------------------------------------------


@pytest.mark.parametrize("as_object", [False, True])
def test_threads_share_an_iterator_and_every_record_is_given_once(tmp_path, as_object):
    records = [b"%d" % i for i in range(20_000)]
    tfw.write_records(tmp_path / "data", records)
    source = Bytes((tmp_path / "data").read_bytes(), 1000) if as_object else tmp_path / "data"
    shared = tfw.read_records(source, buffer_size=4096)
    # By one call, which takes a batch at a time, and one by one.
    shares = at_once(lambda i: list(shared) if i % 2 else list(iter(shared.__next__, None)))
    assert sorted(records) == sorted(record for share in shares for record in share)


PARSER = tfw.Parser({"n": tfw.VarLenFeature("int64")})


class Pieces:
    """A source that gives a file in the pieces that an iterator makes."""

    def __init__(self, pieces):
        self.pieces = pieces

    def read(self, size=-1):
        return next(self.pieces, b"")


@pytest.mark.posix("it forks beside a thread that waits")
@pytest.mark.parametrize(
    "iterate",
    [
        lambda generate: tfw.read_records(Pieces(map(frame, generate())), ""),
        lambda generate: PARSER.parse_file(Pieces(map(frame, generate())), compression_type=""),
        lambda generate: iter(tfw.Dataset.from_generator(generate)),
    ],
    ids=["records", "batches", "dataset"],
)
@FORKS_BESIDE_THREADS
def test_a_fork_while_a_thread_is_in_an_iterator_is_told(iterate):
    """Nobody in the child would ever let go of the lock."""
    inside, go_on = threading.Event(), threading.Event()

    def generate():
        inside.set()
        go_on.wait()
        yield b""

    shared = iterate(generate)
    thread = threading.Thread(target=list, args=(shared,))
    thread.start()
    inside.wait()

    def ask():
        with pytest.raises(RuntimeError, match="fork"):
            next(shared)
        return True

    ended = forked(ask)
    go_on.set()
    thread.join()
    assert ended()


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_a_fork_goes_on_with_its_own_position(path, options):
    records = [b"%d" % i for i in range(20_000)]
    tfw.write_records(path, records, options)
    shared = tfw.read_records(path, buffer_size=4096)
    first = [next(shared) for _ in range(1000)]
    ended = forked(lambda: records == first + list(shared))
    assert records == first + list(shared)
    assert ended()


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "data"
    tfw.write_records(path, [b"x" * 1000] * 1000)
    records = tfw.read_records(path, buffer_size=4096)
    next(records)
    os.truncate(path, 500_000)
    with pytest.raises(tfw.DataLossError) as caught:
        list(records)
    assert "truncated" == caught.value.reason


def test_a_file_that_grows_is_read_to_where_it_ends(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(frame(b"one"))
    records = tfw.read_records(path)
    assert b"one" == next(records)
    with path.open("ab") as file:
        file.write(frame(b"two"))
    assert [b"two"] == list(records)
