"""Records that are parsed by their numbers: as the objects of them are."""

import gc
import os
import pickle
import threading
import weakref

import numpy as np
import pytest

import tfwire as tfw
from helpers.processes.forks import forked
from tfwire._base.native import ffi
from tfwire._parsing.fetched_batches import FetchedBatches, NumberedParser
from tfwire._records.index.record_numbers import indexed_table

SPEC = {
    "n": tfw.FixedLenFeature([2], tfw.int64),
    "name": tfw.FixedLenFeature([], tfw.string),
    "more": tfw.VarLenFeature(tfw.float32),
    "ragged": tfw.RaggedFeature(tfw.int64, row_splits_dtype=tfw.int64),
}
SIZES = [300, 0, 1, 150]


def message(i):
    row = {
        "n": [i, -i],
        "name": [b"x" * (i % 70)],
        "more": [1.5] * (i % 3),
        "ragged": [i] * (i % 4),
    }
    return tfw.encode_example(row)


@pytest.fixture
def files(tmp_path):
    paths, first = [], 0
    for number, size in enumerate(SIZES):
        paths.append(tmp_path / f"{number}.tfrecord")
        tfw.write_records(paths[-1], map(message, range(first, first + size)))
        first += size
    return tfw.TFRecordFiles(paths)


KEYS = [
    [0],
    [450, 0, 300, 0],
    range(451),
    range(450, -1, -7),
    np.random.default_rng(0).permutation(451),
]


def plain(value):
    """A result as lists."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, tfw.SparseTensor):
        return [part.tolist() for part in (value.indices, value.values, value.dense_shape)]
    return value.to_list() if hasattr(value, "to_list") else value.tolist()


def outcome(call, *arguments):
    try:
        return plain(call(*arguments))
    except (tfw.DataLossError, tfw.ParseError, OSError) as error:
        return type(error), str(error), vars(error)


def check(numbered, parser, files):
    def parse_objects(numbers):
        return parser.parse(files[numbers])

    for key in KEYS:
        numbers = np.array(key, np.int64)
        expected = outcome(parse_objects, numbers)
        assert expected == outcome(numbered.parse, numbers)
        assert expected == outcome(numbered.parse, np.repeat(numbers, 2)[::2])  # not contiguous


@pytest.mark.parametrize("bytes_as", ["object", "column"])
def test_batches_are_those_of_objects(files, bytes_as):
    parser = tfw.Parser(SPEC, bytes_as=bytes_as)
    numbered = NumberedParser(parser, files)
    check(numbered, parser, files)
    assert len(numbered._unused) == 1  # it is used again and again
    none = numbered.parse(np.empty(0, np.int64))
    assert plain(parser.parse([])) == plain(none)
    check(pickle.loads(pickle.dumps(numbered)), parser, files)


def test_sequences(tmp_path):
    messages = [
        tfw.encode_sequence_example({"n": i}, {"words": [[i] * (k % 3) for k in range(i % 5)]})
        for i in range(100)
    ]
    tfw.write_records(tmp_path / "a", messages)
    files = tfw.TFRecordFiles([tmp_path / "a"])
    context = {"n": tfw.FixedLenFeature([], tfw.int64)}
    for lists in ({"words": tfw.VarLenFeature(tfw.int64)}, {"words": tfw.RaggedFeature(tfw.int64)}):
        for parser in (
            tfw.SequenceParser(context, lists),
            tfw.SequenceParser(None, lists),
            tfw.SequenceParser(context),
        ):
            numbers = np.array([5, 99, 0, 5])
            found = NumberedParser(parser, files).parse(numbers)
            assert plain(parser.parse(files[numbers])) == plain(found)


def write(path, data):
    stat = os.stat(path)
    with open(path, "r+b") as file:
        file.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("offset", [2, 20, -1])
def test_damage_is_that_of_objects(files, offset):
    parser, path = tfw.Parser(SPEC), files.paths[0]
    numbered = NumberedParser(parser, files)
    check(numbered, parser, files)
    data = bytearray(path.read_bytes())
    end = int(files.indexes[0].offsets[101])
    data[(int(files.indexes[0].offsets[100]) if offset >= 0 else end) + offset] ^= 1
    write(path, data)
    check(numbered, parser, files)
    data[:] = bytes(len(data))
    write(path, data)
    check(numbered, parser, files)
    os.truncate(path, 100)
    check(numbered, parser, files)


def test_misfits_are_those_of_objects(tmp_path):
    tfw.write_records(
        tmp_path / "a", [message(i) for i in range(300)] + [b"none"] + [message(1)] * 200
    )
    files, parser = tfw.TFRecordFiles([tmp_path / "a"]), tfw.Parser(SPEC)
    check(NumberedParser(parser, files), parser, files)


def test_what_c_cannot_read_comes_of_objects(tmp_path, files):
    path = tmp_path / "compressed"
    tfw.write_records(path, map(message, range(451)), "GZIP")
    others, parser = tfw.TFRecordFiles([path]), tfw.Parser(SPEC)
    assert indexed_table(others) is None
    check(NumberedParser(parser, others), parser, others)
    assert indexed_table(tfw.TFRecordFiles(files.paths, max_open_files=3)) is None
    files.close()
    with pytest.raises(ValueError, match="closed"):
        NumberedParser(parser, files).parse(np.array([1]))


def test_threads_and_children_share_it(files):
    numbered = NumberedParser(tfw.Parser(SPEC), files)
    numbers = np.arange(451)
    expected, found = plain(numbered.parse(numbers)), []

    def parse():
        for _ in range(20):
            found.append(plain(numbered.parse(numbers)))

    threads = [threading.Thread(target=parse) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert forked(lambda: expected == plain(numbered.parse(numbers)))()
    for thread in threads:
        thread.join()
    assert [expected] * 80 == found


def test_cancelled_and_closed(files):
    batches = FetchedBatches(tfw.Parser(SPEC), indexed_table(files), 10, 2)
    batches.order(np.arange(100))
    batches.cancel()
    with pytest.raises(RuntimeError, match="cancelled"):
        batches.take(100)
    batches.close()
    batches.close()
    with pytest.raises(RuntimeError, match="closed"):
        batches.take(100)


def test_files_that_are_closed_are_read_to_the_end(files):
    table = indexed_table(files)
    expected = plain(tfw.Parser(SPEC).parse(files[:]))
    files.close()
    batches = FetchedBatches(tfw.Parser(SPEC), table, 451, 2)
    del files, table
    gc.collect()
    batches.order(np.arange(451))
    assert expected == plain(batches.take(451)[0])
    batches.close()


@pytest.mark.parametrize("in_cycle", [False, True])
def test_what_the_threads_use_goes_after_them(files, in_cycle):
    """Whoever drops what first, and without a finalizer of Python's, which loses interrupts."""
    gone, offsets = [], np.zeros(1)
    watched = weakref.ref(offsets, lambda dead: gone.append("offsets"))
    table = indexed_table(files)._replace(files=[offsets])
    batches = FetchedBatches(tfw.Parser(SPEC), table, 10, 2)
    threads = batches._pipeline._native  # as whoever cancels them has it
    batches._pipeline._native = ffi.gc(threads, lambda native: gone.append("handle"))
    batches.me = batches if in_cycle else None
    del offsets, table, batches
    gc.collect()
    assert ["handle"] == gone
    del threads
    assert (["handle", "offsets"], None) == (gone, watched())
