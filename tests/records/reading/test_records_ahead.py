"""Plain files read ahead by threads of C: nothing but the speed depends on it."""

from __future__ import annotations

import gc
import gzip
import itertools
import os
import random
import warnings
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.reading import open_files
from helpers.reference import file_of, frame
from helpers.threads import nothing_left
from tfwire._records.reading import records_ahead

RANGE = 2000  # bytes of a range here: small files have many


@pytest.fixture(autouse=True, scope="module")
def short_ranges():
    with pytest.MonkeyPatch.context() as patch, nothing_left():
        patch.setattr(records_ahead, "_AT_A_TIME", RANGE)
        yield


def records_of(kind, chance):
    """Those of a file: some ranges of short ones, some that are longer than a range, none ..."""
    if kind == "short":
        return [chance.randbytes(chance.randrange(90)) for _ in range(400)]
    if kind == "long":
        return [chance.randbytes(chance.randrange(9000, 20_000)) for _ in range(30)]
    if kind == "mixed":
        sizes = [0, 1, 100, RANGE - 16, RANGE - 15, RANGE, 3 * RANGE]
        return [chance.randbytes(chance.choice(sizes)) for _ in range(60)]
    if kind == "nested":  # payloads hold records, where a guess may begin
        return [file_of([b"inner"] * chance.randrange(300)) for _ in range(10)]
    return [chance.randbytes(50)] * {"few": 3, "none": 0}[kind]


KINDS = ["short", "long", "mixed", "nested", "few", "none"]
HARMS = ["", "", "flip", "cut", "insert", "gzip", "appended"]


def content_of(kind, harm, seed):
    chance = random.Random(f"{kind} {harm} {seed}")
    data = bytearray(file_of(records_of(kind, chance)))
    at = chance.randrange(len(data) + 1)
    if harm == "flip" and at < len(data):
        data[at] ^= 1 << chance.randrange(8)
    elif harm == "cut":
        del data[at:]
    elif harm == "insert":
        data[at:at] = chance.choice([b"\0", bytes(3000), frame(b"forged")[:13]])
    elif harm == "gzip":
        data = bytearray(gzip.compress(data))
    elif harm == "appended":
        data += frame(b"more" * 1000) + b"torn"
    return bytes(data)


def observed(paths, steps, **options):
    """All that can be seen: of every few records, and at the end. Whether the position is before or
    after damage that is left out depends on whether that was met already."""
    seen = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = tfw.read_records(paths, **options)
        try:
            for step in itertools.cycle(steps):
                some = list(itertools.islice(records, step))
                seen.append((some, options["on_corrupt"] == "skip" or records.position))
                if options["receipt"]:
                    seen.append(records.receipt)
                if not some:
                    break
        except (tfw.DataLossError, OSError) as error:
            seen.append((type(error), str(error)))
    seen += [
        records.position,
        list(records.skipped),
        records.tail,
        [str(w.message) for w in caught],
    ]
    if options["receipt"]:
        seen += [records.receipt, records.file_crc32c]
    records.close()
    return [*seen, records.position]


@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.sampled_from(HARMS), st.integers(0, 9)), max_size=4
    ),
    st.lists(st.integers(1, 900), min_size=1, max_size=3),
    st.fixed_dictionaries(
        {
            "on_corrupt": st.sampled_from(["raise", "skip", "tail", "stop"]),
            "verify": st.booleans(),
            "receipt": st.booleans(),
            "max_record_size": st.sampled_from([None, 12_000]),
        }
    ),
)
@settings(max_examples=30)
def test_nothing_depends_on_the_number_of_threads(tmp_path_factory, files, steps, options):
    folder = tmp_path_factory.mktemp("files")
    for number, file in enumerate(files):
        (folder / str(number)).write_bytes(content_of(*file))
    paths = [str(folder / str(number)) for number in range(len(files))]
    expected = observed(paths, steps, **options)
    for num_threads in (2, 3, 8):
        assert expected == observed(paths, steps, num_threads=num_threads, **options)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content_of("short", "", 1))
    return str(path)


def test_positions_are_those_of_one_thread(path, tmp_path):
    other = tmp_path / "b.tfrecord"
    other.write_bytes(content_of("mixed", "flip", 3))
    paths = [path, str(other), path]
    with pytest.warns(tfw.TfwireWarning, match="left out"):
        expected = list(tfw.read_records(paths, on_corrupt="skip").with_positions())
    records = tfw.read_records(paths, on_corrupt="skip", num_threads=3)
    with pytest.warns(tfw.TfwireWarning, match="left out"):
        assert expected == list(records.with_positions())
    _, index, offset, record = expected[200]
    start = tfw.RecordPosition(index, offset)
    assert record == next(tfw.read_records(path, start=start, num_threads=2))


def test_what_is_appended_while_a_file_is_read_is_read(path):
    for num_threads in (1, 2):
        expected = list(tfw.read_records(path))
        records = tfw.read_records(path, num_threads=num_threads)
        found = [next(records)]
        with open(path, "ab") as file:
            file.write(frame(b"late"))
        assert [*expected, b"late"] == found + list(records)


def test_a_file_that_becomes_shorter_while_it_is_read_gives_no_other_records(path):
    expected = list(tfw.read_records(path))
    records = tfw.read_records(path, num_threads=2)
    found = [next(records)]
    os.truncate(path, os.path.getsize(path) // 2)
    with suppress(tfw.DataLossError):
        found += records
    assert expected[: len(found)] == found


@pytest.mark.parametrize("at", [0, 1, 399])
def test_closing_ends_the_threads_and_drops_what_was_read_ahead(path, at):
    before = open_files()
    records = tfw.read_records([path] * 3, receipt=True, num_threads=4)
    found = list(itertools.islice(records, at))
    position, receipt = records.position, records.receipt
    records.close()
    assert (position, receipt) == (records.position, records.receipt)
    assert tfw.Receipt.of(found) == receipt
    with pytest.raises(ValueError, match="closed"):
        next(records)
    assert not open_files() - before


def test_dropping_ends_the_threads(path):
    before = open_files()
    gc.disable()
    try:
        records = tfw.read_records([path] * 3, num_threads=4)
        iterator = iter(records)
        next(iterator)
        del records
        assert next(iterator) is not None
        del iterator
        assert not open_files() - before
    finally:
        gc.enable()


@FORKS_BESIDE_THREADS
@pytest.mark.parametrize("at", [0, 1, 100, 700])
def test_parent_and_child_both_go_on_after_a_fork(path, at):
    expected = list(tfw.read_records([path] * 3))
    records = tfw.read_records([path] * 3, num_threads=3)
    first = list(itertools.islice(records, at))

    ended = forked(lambda: expected == first + list(records))
    assert expected == first + list(records)
    assert ended()
