"""Pipelines of C from Python: chunks, stops, and the life of threads and memory."""

import gc
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import tfwire as tfw
from helpers.processes.forks import forked
from helpers.reference import frame
from tfwire._base.native import lib
from tfwire._examples.encode import encode_columns
from tfwire._parsing.chunk_columns import rows_of_chunk
from tfwire._parsing.spec_cache import compiled_example
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.pipeline import (
    Chunk,
    FilePlace,
    NativePipeline,
    PipelineOptions,
    Stop,
)
from tfwire._records.reading.receipts import Receipt

SIZES = [40_000, 0, 3, 25_000]
RANGE = 1 << 16
VERIFY = PipelineOptions(lib.TFW_PIPELINE_VERIFY, range_bytes=RANGE)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of Examples whose feature i is their number over all files."""
    folder, first, paths = tmp_path_factory.mktemp("files"), 0, []
    for number, size in enumerate(SIZES):
        paths.append(folder / f"{number}.tfrecord")
        tfw.write_records(paths[-1], encode_columns({"i": np.arange(first, first + size)}))
        first += size
    return paths


def schemas():
    return compiled_example({"i": tfw.FixedLenFeature([], tfw.int64)}).schemas


def parsing(**options):
    [schema] = schemas()
    mode = PipelineOptions(lib.TFW_PIPELINE_PARSE, schema.handle, batch_size=100)
    return mode._replace(range_bytes=RANGE, **options)


def numbers(chunk):
    [[column]] = rows_of_chunk(chunk, schemas()).parts
    return column.values


def drawn(pipeline):
    """All results up to the end."""
    return list(iter(pipeline.next, None))


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_chunks_come_in_order_and_say_where_they_are(files, num_threads):
    pipeline = NativePipeline(files, parsing(num_threads=num_threads))
    chunks = drawn(pipeline)
    assert np.concatenate([numbers(chunk) for chunk in chunks]).tolist() == list(range(sum(SIZES)))
    assert [chunk.num_records % 100 for chunk in chunks[:-1]] == [0] * (len(chunks) - 1)
    assert chunks[0].begin == FilePlace()
    end = RecordPosition(SIZES[-1], os.path.getsize(files[-1]))
    assert chunks[-1].end == FilePlace(3, end)
    assert pipeline.next() is None
    pipeline.close()


@pytest.mark.parametrize("num_threads", [1, 3])
def test_arrays_keep_their_memory_and_may_be_written_to(files, num_threads):
    pipeline = NativePipeline(files, parsing(num_threads=num_threads))
    kept = []
    while isinstance(chunk := pipeline.next(), Chunk):
        kept.append(numbers(chunk))
        kept[-1][:] *= -1
    del chunk
    pipeline.close()
    gc.collect()
    assert np.concatenate(kept).tolist() == [-i for i in range(sum(SIZES))]


@pytest.mark.parametrize("num_threads", [1, 3])
def test_totals_are_those_of_the_records(files, num_threads):
    flags = lib.TFW_PIPELINE_TALLY
    pipeline = NativePipeline(files, VERIFY._replace(num_threads=num_threads, flags=flags))
    total = Receipt()
    for chunk in drawn(pipeline):
        tally = chunk.info.tally
        total += Receipt(tally.records, tally.payload_bytes, tally.hash)
    assert total == Receipt.of(tfw.read_records(files))


@pytest.mark.parametrize("num_threads", [1, 3])
def test_it_begins_and_goes_on_where_it_is_told(files, num_threads, tmp_path):
    damaged = tmp_path / "damaged.tfrecord"
    data = bytearray(files[0].read_bytes())
    size = len(data) // SIZES[0]  # about that of a record
    [(_, index, begin, _)] = list(tfw.read_records(files[0]).with_positions())[20_000:20_001]
    data[begin + 14] ^= 1
    damaged.write_bytes(data)
    pipeline = NativePipeline(
        [damaged, files[2]], VERIFY._replace(num_threads=num_threads), FilePlace(0)
    )
    found = next(item for item in iter(pipeline.next, None) if isinstance(item, Stop))
    assert found.status == lib.TFW_E_DATA_CRC
    assert found.place == FilePlace(0, RecordPosition(index, begin))
    assert found.next is None
    assert pipeline.next().place == found.place  # it is told again
    with pytest.raises(ValueError, match="before the end"):
        pipeline.seek(FilePlace(0, RecordPosition(index - 1, begin - size)))
    pipeline.seek(FilePlace(1))
    assert [chunk.num_records for chunk in drawn(pipeline)] == [SIZES[2]]


def test_a_file_that_is_missing_or_no_file_is_a_stop(files, tmp_path):
    for path, status in (
        (tmp_path / "missing", lib.TFW_E_IO),
        (tmp_path, lib.TFW_E_IO if sys.platform == "win32" else lib.TFW_E_UNSUPPORTED),
    ):
        pipeline = NativePipeline([path, files[2]], VERIFY)
        found = pipeline.next()
        assert (found.status, found.place) == (status, FilePlace())


def test_what_no_pipeline_can_do_is_refused(files):
    with pytest.raises(ValueError, match="unknown mode"):
        NativePipeline(files, PipelineOptions(99))
    with pytest.raises(ValueError, match="has not stopped"):
        NativePipeline(files, VERIFY).seek(FilePlace(1))


@pytest.mark.parametrize("num_threads", [1, 3])
def test_cancelled_and_closed_it_says_so(files, num_threads):
    pipeline = NativePipeline(files, parsing(num_threads=num_threads))
    chunk = pipeline.next()
    other = threading.Thread(target=pipeline.cancel)
    other.start()
    other.join()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cancelled"):
            pipeline.next()
    pipeline.close()
    pipeline.close()
    pipeline.cancel()
    with pytest.raises(RuntimeError, match="closed"):
        pipeline.next()
    assert numbers(chunk)[:3].tolist() == [0, 1, 2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_in_a_forked_child_it_says_so(files):
    pipeline = NativePipeline(files, parsing(num_threads=3))
    first = numbers(pipeline.next())
    pipeline.next()  # threads run

    def in_child():
        with pytest.raises(RuntimeError, match="did not survive the fork"):
            pipeline.next()
        pipeline.cancel()
        pipeline.close()
        return first[:3].tolist() == [0, 1, 2]

    assert forked(in_child)()
    assert all(isinstance(chunk, Chunk) for chunk in drawn(pipeline))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")
@pytest.mark.parametrize("num_threads", [1, 3])
def test_interrupts_lose_no_memory(files, num_threads):
    def interrupt(*_):
        raise KeyboardInterrupt

    def draw_all(pipeline, delay):
        signal.setitimer(signal.ITIMER_REAL, delay)
        while pipeline.next() is not None:
            pass
        time.sleep(1)  # a fast machine

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in (1e-4, 3e-4, 1e-3, 3e-3):
            pipeline = NativePipeline(files * 20, parsing(num_threads=num_threads))
            with pytest.raises(KeyboardInterrupt):
                draw_all(pipeline, delay)
            pipeline.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_range_of_long_records_is_no_longer_than_others(tmp_path):
    """Their headers are walked over; most of them are not read further."""
    path, size = tmp_path / "long", 20_000
    path.write_bytes(frame(bytes(size)) * 300)
    options = PipelineOptions(lib.TFW_PIPELINE_SPANS, range_bytes=5 * size, num_threads=2)
    pipeline, found = NativePipeline([path], options), 0
    while (chunk := pipeline.next()) is not None:
        assert chunk.num_records <= 6
        found += chunk.num_records
    assert 300 == found


@pytest.mark.skipif(sys.platform != "linux", reason="counts the threads of /proc")
@pytest.mark.parametrize("sizes", [[10], [100] * 50, [2_000_000]])
def test_little_is_read_by_the_caller_alone(tmp_path, sizes):
    def num_native():
        return len(os.listdir("/proc/self/task"))

    paths = [tmp_path / str(number) for number in range(len(sizes))]
    for path, size in zip(paths, sizes, strict=True):
        path.write_bytes(frame(bytes(84)) * (size // 100 + 1))
    before, most = num_native(), 0
    pipeline = NativePipeline(paths, PipelineOptions(lib.TFW_PIPELINE_VERIFY, num_threads=3))
    while pipeline.next() is not None:
        most = max(most, num_native())
    pipeline.close()
    assert (before + 2 if sum(sizes) > 1 << 20 else before) == most
