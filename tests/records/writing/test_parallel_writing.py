"""encode_columns and write_columns by several threads: the same records, and nothing is left."""

from __future__ import annotations

import errno
import gc
import gzip
import os
import threading
import weakref
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import tfwire as tfw
from helpers.products import diagonals
from helpers.threads import nothing_left, threads_of_tfwire, wait_for
from tfwire._base import system
from tfwire._base.native import lib
from tfwire._examples import dealing_encoder, parallel_encoder
from tfwire._examples.encoder_inputs import inputs_from_columns
from tfwire._examples.native_encoder import FRAME_ROOM, native_inputs

THREADS = [2, 5]
COUNT = 700
RNG = np.random.default_rng(3)
LENGTHS = RNG.integers(0, 60, COUNT)

COLUMNS = {
    "scalars": {"i": np.arange(COUNT) - 5, "f": RNG.random(COUNT, np.float32)},
    "rows": {"m": RNG.integers(-(2**60), 2**60, (COUNT, 7)), "name": ["a", "bc"] * (COUNT // 2)},
    "ragged": {
        "r": tfw.RaggedTensor(
            np.arange(int(LENGTHS.sum())), np.concatenate([[0], np.cumsum(LENGTHS)])
        ),
        "s": [[b"x" * (i % 5), b""] * (i % 3) for i in range(COUNT)],
    },
    "growing": {"x": [bytes(i // 2 if i % 50 else 30_000 + i) for i in range(COUNT)]},
    "first ones short": {"x": [b""] * 100 + [bytes(9000)] * 40 + [b""] * 100},
    "longer than a block": {"x": [bytes(100), bytes(50_000), b"", bytes(20_000)] * 30},
    "one": {"x": [1]},
    "none": {"x": np.empty(0)},
    "no features": {},
}


columns_of_all_kinds = pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Many blocks from few records; no thread and no open file at the end."""
    monkeypatch.setattr(parallel_encoder, "_ENCODED_RANGE", 5000)
    monkeypatch.setattr(parallel_encoder, "_FEW_BYTES_OF_COLUMNS", 100)
    for name in ("_PART_BYTES", "_SMALL_PART_BYTES"):
        monkeypatch.setattr(dealing_encoder, name, 3000)
    monkeypatch.setattr(dealing_encoder, "_LEAST_PART_BYTES", 100)
    monkeypatch.setattr(dealing_encoder, "_FEW_BYTES", 700)
    with nothing_left():
        yield


def written(path, columns, options=None, **arguments):
    """The writer, closed, and what is in its file."""
    with tfw.TFRecordWriter(path, options, **arguments) as writer:
        writer.write_columns(columns)
    return writer, path.read_bytes()


@columns_of_all_kinds
def test_messages_do_not_depend_on_the_number_of_threads(columns):
    expected = tfw.encode_columns(columns)
    unsorted = tfw.encode_columns(columns, sort_keys=False)
    for threads in THREADS:
        assert expected == tfw.encode_columns(columns, num_threads=threads)
        found = tfw.encode_columns(columns, bytes_as="column", num_threads=threads)
        assert expected == found.to_list()
        assert found.offsets.dtype == np.int64
        assert unsorted == tfw.encode_columns(columns, sort_keys=False, num_threads=threads)


@columns_of_all_kinds
def test_files_do_not_depend_on_the_number_of_threads(columns, tmp_path):
    expected, plain = written(tmp_path / "1", columns)
    for threads in THREADS:
        found, same = written(tmp_path / f"{threads}", columns, num_threads=threads)
        assert plain == same
        assert (expected.receipt, expected.file_crc32c) == (found.receipt, found.file_crc32c)
        for options, inflate in [("GZIP", gzip.decompress), ("ZLIB", zlib.decompress)]:
            path = tmp_path / f"{threads}-{options}"
            found, data = written(path, columns, options, num_threads=threads)
            assert plain == inflate(data)
            assert expected.receipt == found.receipt
            assert tfw.crc32c(data) == found.file_crc32c
            assert tfw.verify_file(path).intact


@pytest.mark.parametrize("level", [None, 0, 1, 6, 9])
@pytest.mark.parametrize("flush_mode", [None, zlib.Z_SYNC_FLUSH])
def test_members_are_compressed_as_the_options_say(level, flush_mode, tmp_path):
    options = tfw.TFRecordOptions("GZIP", compression_level=level, flush_mode=flush_mode)
    columns = COLUMNS["ragged"]
    _, plain = written(tmp_path / "1", columns)
    with tfw.TFRecordWriter(tmp_path / "n", options, num_threads=2) as writer:
        options.compression_type = "ZLIB"  # changes nothing any more
        writer.write_columns(columns)
    data = (tmp_path / "n").read_bytes()
    assert plain == gzip.decompress(data)
    assert data.count(b"\x1f\x8b\x08") > 3
    assert (len(data) > len(plain)) == (level == 0)


@pytest.mark.parametrize("options", [None, "GZIP", "ZLIB"])
def test_all_ways_of_writing_keep_their_order(options, tmp_path):
    path, columns = tmp_path / "data", COLUMNS["growing"]
    rows = tfw.encode_columns(columns)
    with tfw.TFRecordWriter(path, options, num_threads=3) as writer:
        writer.write(b"first")
        writer.write_columns(columns)
        writer.write_many([b"1", b"2"])
        writer.flush()
        assert [b"first", *rows, b"1", b"2"] == list(tfw.read_records(path, on_corrupt="tail"))
        writer.write_columns(columns)
        writer.write_columns({"x": []})
        writer.write_columns(columns)
    assert [b"first", *rows, b"1", b"2", *rows, *rows] == list(tfw.read_records(path))
    assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c


@pytest.mark.parametrize("options", [None, "GZIP"])
def test_files_can_be_continued(options, tmp_path):
    path, columns = tmp_path / "data", COLUMNS["ragged"]
    written(path, columns, options, num_threads=2)
    writer, data = written(path, columns, options, num_threads=2, append=True)
    assert tfw.encode_columns(columns) * 2 == list(tfw.read_records(path))
    assert tfw.crc32c(data) == writer.file_crc32c


@pytest.mark.parametrize(
    ("columns", "arguments"),
    diagonals(
        *(0, 3, COLUMNS.values()),
        [{"num_shards": 3}, {"shard_size": 9000}, {"shard_size": 9000, "options": "GZIP"}],
    ),
)
def test_shards_do_not_depend_on_the_number_of_threads(columns, arguments, tmp_path):
    """And are those of the messages, written one by one."""
    contents = []
    for number, each in enumerate((0, 1, *THREADS)):
        pattern = tmp_path / f"{number}-{{shard}}-{{shards}}"
        with tfw.ShardedWriter(pattern, num_threads=each or 1, **arguments) as writer:
            writer.write(b"first")
            if each:
                writer.write_columns(columns)
            else:
                writer.write_many(tfw.encode_columns(columns))
            writer.write_many([b"x", b"last"])
        files = [Path(path).read_bytes() for path in writer.paths]
        assert list(map(tfw.crc32c, files)) == writer.file_crc32cs
        if "options" in arguments:
            files = list(map(gzip.decompress, files))
        contents.append((files, writer.receipt, writer.num_records))
    assert contents[1:] == contents[:-1]


# ---- Failures ---------------------------------------------------------------------------------


def failing(calls, error):
    """A writev that writes 3000 bytes at a time, so often, and then raises."""
    writev, left = system.writev, [calls]

    def write(fd, views):
        if left[0] == 0:
            raise error
        left[0] -= 1
        return writev(fd, [memoryview(b"".join(views))[:3000]])

    return write


@pytest.mark.parametrize("threads", [1, *THREADS])
@pytest.mark.parametrize("calls", [0, 1, 5, 17])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_whole_records_and_no_threads(
    threads, calls, error, tmp_path, monkeypatch
):
    path, columns = tmp_path / "data", COLUMNS["ragged"]
    writer = tfw.TFRecordWriter(path, num_threads=threads)
    monkeypatch.setattr(system, "writev", failing(calls, error))
    with pytest.raises(type(error)):
        writer.write_columns(columns)
    assert wait_for(lambda: not threads_of_tfwire())
    for call in (lambda: writer.write_columns(columns), writer.flush, writer.close):
        with pytest.raises((OSError, RuntimeError), match=r"full|interrupted"):
            call()
    records = list(tfw.read_records(path))
    assert tfw.encode_columns(columns)[: len(records)] == records
    assert tfw.Receipt.of(records) == writer.receipt
    assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c


@pytest.mark.parametrize("threads", THREADS)
def test_a_file_that_is_not_complete_never_appears(threads, tmp_path, monkeypatch):
    (tmp_path / "data").write_bytes(b"old")
    monkeypatch.setattr(system, "writev", failing(3, OSError(errno.ENOSPC, "full")))
    for make in (
        lambda: tfw.TFRecordWriter(tmp_path / "data", atomic=True, num_threads=threads),
        lambda: tfw.ShardedWriter(tmp_path / "{shard}", num_shards=2, num_threads=threads),
    ):
        with pytest.raises(OSError, match="full"):
            write_twice(make())
        assert ["data"] == os.listdir(tmp_path)
    assert b"old" == (tmp_path / "data").read_bytes()


def write_twice(writer):
    with writer:
        writer.write_columns(COLUMNS["ragged"])
        writer.write_columns(COLUMNS["ragged"])


@pytest.mark.parametrize("record", [1, 2, 3, 4, 60, 333, COUNT - 1])
def test_a_column_at_fault_is_an_error_after_the_records_before_it(record, tmp_path):
    data, offsets = np.zeros(COUNT * 10, np.uint8), np.arange(0, COUNT * 10 + 1, 10)
    expected = tfw.encode_columns({"x": tfw.BytesColumn(data, offsets)})
    columns = {"x": tfw.BytesColumn(data, offsets)}
    offsets[record + 1] = 3  # before the string begins
    for threads in (1, *THREADS):
        path = tmp_path / str(threads)
        writer = tfw.TFRecordWriter(path, num_threads=threads)
        with pytest.raises(ValueError, match=f"'x': record {record}: .* decrease"):
            writer.write_columns(columns)
        writer.close()
        assert expected[:record] == list(tfw.read_records(path))
        for bytes_as in ("object", "column"):
            with pytest.raises(ValueError, match=f"record {record}: "):
                tfw.encode_columns(columns, bytes_as=bytes_as, num_threads=threads)


def dealt(records, count):
    return [records[i::count] for i in range(count)]


def records_of_shards(writer):
    return [list(tfw.read_records(path)) for path in writer.paths]


@pytest.mark.parametrize("threads", [1, *THREADS])
@pytest.mark.parametrize("record", [0, 1, 2, 50, 300, COUNT - 1])
def test_shards_get_the_records_before_one_at_fault(record, threads, tmp_path):
    """And the writer goes on with the shard whose turn it is."""
    data, offsets = np.arange(COUNT * 40, dtype=np.uint8), np.arange(0, COUNT * 40 + 1, 40)
    expected = tfw.encode_columns({"x": tfw.BytesColumn(data, offsets)})[:record]
    columns = {"x": tfw.BytesColumn(data, offsets)}
    offsets[record + 1] = -1
    pattern = tmp_path / "{shard}-{shards}"
    with tfw.ShardedWriter(pattern, num_shards=4, num_threads=threads, index=True) as writer:
        writer.write(b"first")
        with pytest.raises(ValueError, match=f"'x': record {record}: .* decrease"):
            writer.write_columns(columns)
        assert record + 1 == writer.num_records
        writer.write_many([b"x", b"last"])
    assert dealt([b"first", *expected, b"x", b"last"], 4) == records_of_shards(writer)
    assert tfw.Receipt.of([b"first", *expected, b"x", b"last"]) == writer.receipt


@pytest.mark.parametrize("threads", [1, *THREADS])
@pytest.mark.parametrize("shards", [1, 3, 40])
def test_shards_are_dealt_records_of_any_lengths(shards, threads, tmp_path):
    """Parts that are full before the others are cut at the same record."""
    lengths = RNG.choice([0, 5, 400, 9000], COUNT, p=[0.6, 0.3, 0.08, 0.02])
    lengths[::shards] *= 3
    columns = {"x": list(map(bytes, lengths))}
    expected = tfw.encode_columns(columns)
    pattern = tmp_path / "{shard}-{shards}"
    with tfw.ShardedWriter(pattern, num_shards=shards, num_threads=threads) as writer:
        for _ in range(2):
            writer.write_columns(columns)
    assert dealt(expected * 2, shards) == records_of_shards(writer)


def test_threads_may_share_a_writer_of_shards(tmp_path):
    """Every record is there once, and shards differ by one record at most."""
    columns, threads = COLUMNS["ragged"], []
    with tfw.ShardedWriter(tmp_path / "{shard}", num_shards=3, num_threads=2) as writer:
        for _ in range(3):
            threads.append(threading.Thread(target=writer.write_columns, args=(columns,)))
            threads[-1].start()
        for thread in threads:
            thread.join()
    records = [record for shard in records_of_shards(writer) for record in shard]
    assert sorted(tfw.encode_columns(columns) * 3) == sorted(records)
    assert {COUNT} == set(map(len, records_of_shards(writer)))


@pytest.mark.parametrize("options", [None, "GZIP"])
@pytest.mark.parametrize("threads", THREADS)
def test_another_thread_may_close_meanwhile(options, threads, tmp_path, monkeypatch):
    """Whole records are in the file, and the call that writes is told."""
    path, columns = tmp_path / "data", COLUMNS["ragged"]
    writer = tfw.TFRecordWriter(path, options, num_threads=threads)
    writev, begun = system.writev, threading.Event()

    def write(fd, views):
        begun.set()
        return writev(fd, views)

    monkeypatch.setattr(system, "writev", write)
    errors = []

    def write_on():
        try:
            while True:
                writer.write_columns(columns)
        except ValueError as error:
            errors.append(str(error))

    thread = threading.Thread(target=write_on, daemon=True)
    thread.start()
    assert begun.wait(30)
    writer.close()
    thread.join(30)
    assert not thread.is_alive()
    assert ["Writer is closed."] == errors
    records = list(tfw.read_records(path))
    rows = tfw.encode_columns(columns)
    assert (rows * (len(records) // COUNT + 1))[: len(records)] == records


def test_wrong_columns_begin_no_thread(tmp_path):
    with tfw.TFRecordWriter(tmp_path / "data", num_threads=2) as writer:
        with pytest.raises(TypeError):
            writer.write_columns({"x": [[None]] * 5000})
        with pytest.raises(ValueError, match=r"differ|records"):
            writer.write_columns({"x": [1, 2], "y": [1]})
    assert b"" == (tmp_path / "data").read_bytes()


@pytest.mark.parametrize("kept", [0, 4])
def test_memory_does_not_grow_with_the_columns(kept):
    """Blocks that were dropped serve again, and those that were kept stay as they are."""
    count, threads = 50_000, 3
    inputs, _ = inputs_from_columns({"x": np.arange(count)}, True)
    expected = tfw.encode_columns({"x": np.arange(count)})
    encoder = parallel_encoder.ParallelEncoder(threads, FRAME_ROOM)
    found, places, held = [], set(), []
    with closing(encoder), closing(encoder.blocks(native_inputs(inputs), count)) as blocks:
        for block in blocks:
            places.add(block.memory.ctypes.data)
            found += block.strings()
            held = [*held, (block, block.strings())][-kept:] if kept else []
            assert all(each.strings() == before for each, before in held)
            del block
    assert expected == found
    assert len(places) <= threads + 2 + 1 + kept


def test_columns_outlive_threads_that_an_interrupt_leaves_at_work(monkeypatch):
    class Interrupted:
        def __getattr__(self, name):
            return getattr(lib, name)

        def tfw_encoder_begin(self, *arguments):
            raise KeyboardInterrupt

    column = np.arange(100_000)
    watched = weakref.ref(column)
    encoder = parallel_encoder.ParallelEncoder(2, FRAME_ROOM)
    inputs, _ = inputs_from_columns({"x": column}, True)
    blocks = encoder.blocks(native_inputs(inputs), len(column))
    next(blocks)
    monkeypatch.setattr(parallel_encoder, "lib", Interrupted())
    with pytest.raises(KeyboardInterrupt):
        blocks.close()
    del column, inputs, blocks
    gc.collect()
    assert watched() is not None
    encoder.close()
    del encoder
    gc.collect()
    assert watched() is None
