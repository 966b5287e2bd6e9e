"""Several compressed files that are inflated at a time: nothing but the speed depends on it."""

from __future__ import annotations

import gzip
import os
import random
import threading
import zlib

import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.reading import read_outcome
from helpers.reference import file_of
from helpers.threads import nothing_left, threads_of_tfwire, wait_for
from tfwire._base import system
from tfwire._records.files import inflate_ahead

THREADS = [2, 8]
CHANCE = random.Random(5)
PARTS = [
    [tfw.encode_example({"n": part * 1000 + i, "x": CHANCE.randbytes(50)}) for i in range(100)]
    for part in range(6)
]
RECORDS = [record for part in PARTS for record in part]
PARSER = tfw.Parser({"n": tfw.FixedLenFeature([], tfw.int64)})


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    """Short files are inflated by threads, two units of a kilobyte ahead; none is left at the
    end, and no file is open."""
    monkeypatch.setattr(inflate_ahead, "_UNIT", 1000)
    monkeypatch.setattr(system, "num_cpus", lambda: 2)
    monkeypatch.setattr(inflate_ahead, "_WAITING", 2)
    monkeypatch.setattr(inflate_ahead, "_AHEAD_BYTES", 1)
    with nothing_left():
        yield


def contents():
    files = [file_of(part) for part in PARTS]
    yield "intact", [gzip.compress(data) for data in files]
    yield "zlib", [zlib.compress(data) for data in files]
    yield "mixed", [gzip.compress(files[0]), files[1], b"", zlib.compress(files[3]), *files[4:]]
    for seed in range(6):
        chance, damaged = random.Random(seed), [bytearray(gzip.compress(data)) for data in files]
        for data in damaged[:: chance.randrange(1, 4)]:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        for data in damaged[:: chance.randrange(3, 6)]:
            del data[chance.randrange(len(data)) :]
        yield f"damaged {seed}", damaged


CONTENTS = dict(contents())


@pytest.fixture(params=CONTENTS)
def paths(request, tmp_path):
    return write(tmp_path, CONTENTS[request.param])


@pytest.fixture
def intact(tmp_path):
    return write(tmp_path, CONTENTS["intact"])


def write(folder, files):
    for number, data in enumerate(files):
        (folder / str(number)).write_bytes(data)
    return [str(folder / str(number)) for number in range(len(files))]


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
def test_records_and_damage_do_not_depend_on_the_number_of_threads(paths, policy):
    expected = read_outcome(paths, on_corrupt=policy, buffer_size=500)
    for threads in THREADS:
        found = read_outcome(paths, on_corrupt=policy, buffer_size=500, num_threads=threads)
        assert (expected.records, expected.damage) == (found.records, found.damage)
        if policy == "stop":  # the region ends with what had been inflated
            assert [r.begin for r in expected.skipped] == [r.begin for r in found.skipped]
        else:
            assert expected.skipped == found.skipped


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("policy", ["raise", "skip", "tail"])
def test_batches_do_not_depend_on_the_number_of_threads(paths, policy):
    def outcome(threads):
        found, error = [], None
        batches = PARSER.parse_file(paths, 7, on_corrupt=policy, num_threads=threads)
        try:
            for batch in batches:
                found += batch["n"].tolist()
        except tfw.DataLossError as raised:
            error = str(raised)
        return found, error, list(batches.skipped)

    expected = outcome(1)
    for threads in THREADS:
        assert expected == outcome(threads)


@pytest.mark.parametrize("threads", THREADS)
def test_so_many_files_are_inflated_at_a_time_and_each_only_so_far(intact, threads, monkeypatch):
    units = {}
    read = inflate_ahead._read

    def counting(inflated, size):
        units[inflated] = units.get(inflated, 0) + 1
        return read(inflated, size)

    monkeypatch.setattr(inflate_ahead, "_read", counting)
    records = tfw.read_records(intact, buffer_size=500, num_threads=threads)
    assert PARTS[0][0] == next(records)
    files = min(threads, len(intact))
    assert files == len(threads_of_tfwire())
    assert wait_for(lambda: (len(units), min(units.values())) == (files, 2))
    assert sum(count > 2 for count in units.values()) <= 1  # the one that is read
    assert RECORDS == [PARTS[0][0], *records]


@pytest.mark.parametrize("threads", THREADS)
def test_a_file_that_is_missing_is_an_error_in_its_place(intact, threads):
    records = tfw.read_records([*intact[:2], "missing", *intact[2:]], num_threads=threads)
    found = []
    with pytest.raises(FileNotFoundError):
        found.extend(records)
    assert PARTS[0] + PARTS[1] == found


def test_a_generator_of_paths_is_not_asked_ahead(intact):
    """It may wait until a file was read."""
    asked = []
    paths = (asked.append(path) or path for path in intact)
    records = tfw.read_records(paths, num_threads=4)
    assert PARTS[0] == [next(records) for _ in range(100)]
    assert intact[:1] == asked
    records.close()


def test_file_objects_and_pipes_are_left_alone(intact, tmp_path):
    """Nothing of them is read or opened ahead."""
    os.mkfifo(tmp_path / "pipe")
    with open(intact[1], "rb") as file:
        records = tfw.read_records([intact[0], file, tmp_path / "pipe"], num_threads=3)
        assert PARTS[0] == [next(records) for _ in range(100)]
        assert 0 == file.tell()
        assert PARTS[1] == [next(records) for _ in range(100)]
        records.close()


def test_it_goes_on_at_a_position(intact):
    records = tfw.read_records(intact, num_threads=3)
    head = [next(records) for _ in range(30)]
    rest = tfw.read_records(intact, num_threads=3, start=records.position)
    records.close()
    assert RECORDS == head + list(rest)


@pytest.mark.parametrize("taken", [0, 1, 99, 100, 101, 350, 600])
@pytest.mark.parametrize("how", ["close", "drop", "other thread"])
def test_an_iterator_that_is_left_takes_its_threads_and_files_along(intact, taken, how):
    records = tfw.read_records(intact, buffer_size=500, num_threads=4)
    for _ in range(taken):
        next(records)
    if how == "other thread":
        closer = threading.Thread(target=records.close)
        closer.start()
        closer.join(30)
    elif how == "close":
        records.close()
        assert wait_for(lambda: not threads_of_tfwire())


@FORKS_BESIDE_THREADS
@pytest.mark.parametrize("taken", [1, 150])
def test_both_sides_of_a_fork_go_on(intact, taken):
    records = tfw.read_records(intact, buffer_size=500, num_threads=3)
    head = [next(records) for _ in range(taken)]
    ended = forked(lambda: head + list(records) == RECORDS)
    assert RECORDS == head + list(records)
    assert ended()


def test_less_of_a_file_that_inflates_to_much_more_waits_for_the_reader(tmp_path, monkeypatch):
    waiting = []
    start = inflate_ahead.ThreadedInflater.start
    monkeypatch.setattr(
        inflate_ahead.ThreadedInflater,
        "start",
        lambda self, most=None: (waiting.append(most), start(self, most)),
    )
    monkeypatch.setattr(inflate_ahead, "_WAITING", 5)
    content = file_of(PARTS[0])
    much = gzip.compress(content * 100)
    files = [gzip.compress(content, 0), much, b"\x1f\x8b\x08", zlib.compress(content)]
    paths = write(tmp_path, files)
    next(tfw.read_records(paths, num_threads=4))
    assert [5, 2, 5] == waiting  # three bytes may be gzip or not: the reader finds out
    waiting.clear()
    next(tfw.read_records(paths[:3], "GZIP", num_threads=4))
    assert [5, 2, 5] == waiting
