"""Several compressed files that are read at a time: nothing but the speed depends on it."""

from __future__ import annotations

import contextlib
import gc
import gzip
import os
import random
import signal
import threading
import time
import zlib

import pytest

import tfwire as tfw
from helpers.marks import FORKS_BESIDE_THREADS
from helpers.processes.forks import forked
from helpers.reference import file_of
from helpers.threads import nothing_left, threads_of_tfwire, wait_for
from tfwire._base import system
from tfwire._records.files import inflate, undamaged
from tfwire._records.reading import files_ahead, record_file

THREADS = [2, 3, 8]
CHANCE = random.Random(5)
PARTS = [
    [tfw.encode_example({"n": part * 1000 + i, "x": CHANCE.randbytes(50)}) for i in range(100)]
    for part in range(6)
]
RECORDS = [record for part in PARTS for record in part]
PARSER = tfw.Parser({"n": tfw.FixedLenFeature([], tfw.int64)})


@pytest.fixture(autouse=True)
def small_units(monkeypatch):
    """Short files are read by threads, two parcels of a kilobyte ahead; none is left at the end,
    and no file is open."""
    monkeypatch.setattr(files_ahead, "_PARCEL_BYTES", 1000)
    monkeypatch.setattr(files_ahead, "_LONGEST", 20_000)
    monkeypatch.setattr(system, "num_cpus", lambda: 2)
    monkeypatch.setattr(files_ahead, "_WAITING", 2)
    monkeypatch.setattr(files_ahead, "_AHEAD_BYTES", 1)
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


def members(part, size=7):
    """Each with a few records; one ends within a record."""
    data = file_of(part)
    return [gzip.compress(data[i : i + size * 80]) for i in range(0, len(data), size * 80)]


def with_flags(member, bits):
    return member[:3] + bytes([member[3] | bits]) + member[4:]


def odd_contents():
    """What is seldom in compressed files; each twice among intact ones."""
    first, third, *others = (gzip.compress(file_of(part)) for part in PARTS[:4])
    many, data = members(PARTS[4]), file_of(PARTS[4])
    long = random.Random(1).randbytes(15_000)
    flipped = bytearray(data)
    flipped[5000] ^= 1
    stored = file_of([*PARTS[4][:30], b"\x1f\x8b\x08\xe0" * 2000, *PARTS[4][30:]])
    few = file_of([*PARTS[4][:30], b"\xff" * 4 + b"\x1f\x8b\x08\xe0" * 4, *PARTS[4][30:]])
    odd = {
        "members": b"".join(many),
        "padding": (b"\0" * 5000).join(many) + b"\0" * 3,
        "padding first": b"\0" + many[0],
        "empty members": b"".join(gzip.compress(b"") + each for each in many),
        "one empty member": gzip.compress(b""),
        "garbage": b"".join(many) + b"garbage",
        "long garbage": b"".join(many) + b"garbage" * 9,
        "zeros": bytes(500),
        "checksum": many[0] + many[1][:-8] + b"abcd" + many[1][-4:] + many[2],
        "size": many[0] + many[1][:-1] + b"\1" + many[2],
        "cut trailer": b"".join(many)[:-3],
        "cut header": b"".join(many) + many[0][:7],
        "cut record": gzip.compress(data[:-20]),
        "damaged record": gzip.compress(bytes(flipped), 0),
        "damaged record in members": b"".join(map(gzip.compress, (data[:4000], flipped[4000:]))),
        "long": gzip.compress(file_of([*PARTS[4][:50], long, *PARTS[4][50:]])),
        "too long": gzip.compress(file_of([*PARTS[4][:50], long * 3, *PARTS[4][50:]])),
        "too long for the reader": gzip.compress(file_of([PARTS[4][0], bytes(2_000_000)])),
        "what looks like headers": gzip.compress(stored, 0),
        "what looks like a few headers": gzip.compress(few, 0),
        "zlib and gzip": zlib.compress(data) + many[0],
    }
    for bits in (0x20, 0x80):
        odd[f"flags {bits} first"] = with_flags(many[0], bits) + many[1]
        odd[f"flags {bits} third"] = b"".join(many[:2]) + with_flags(many[2], bits) + many[3]
        odd[f"flags {bits} padded"] = many[0] + bytes(700) + with_flags(many[2], bits)
        odd[f"flags {bits} after nothing"] = gzip.compress(b"") + with_flags(many[2], bits)
    for name, found in odd.items():
        yield name, [first, found, third, found, *others]


CONTENTS = dict(contents())
ODD = dict(odd_contents())


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


def outcome_of(paths, policy, threads, **options):
    """All that can be known of reading some files: values, errors, warnings, receipts, places."""
    records = tfw.read_records(
        paths,
        on_corrupt=policy,
        buffer_size=500,
        receipt=True,
        max_record_size=1_000_000,
        num_threads=threads,
        **options,
    )
    found, error = [], None
    try:
        for record in records:
            found.append(record)
    except tfw.DataLossError as raised:
        error = str(raised), raised.reason, raised.offset, raised.record_index
    regions = list(records.skipped)
    if policy == "stop":  # the region ends with what had been inflated
        regions = [region._replace(end=0) for region in regions]
    return (
        found,
        error,
        regions,
        records.receipt,
        records.position,
        records.file_crc32c,
        records.tail,
    )


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
def test_nothing_but_the_speed_depends_on_the_number_of_threads(paths, policy):
    expected = outcome_of(paths, policy, 1)
    for threads in THREADS:
        assert expected == outcome_of(paths, policy, threads)


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("policy", ["raise", "skip", "tail", "stop"])
@pytest.mark.parametrize("name", ODD)
def test_odd_files_are_read_as_by_one_thread(tmp_path, name, policy):
    paths = write(tmp_path, ODD[name])
    expected = outcome_of(paths, policy, 1)
    for options in ({}, {"compression_type": "GZIP"}, {"verify": False}):
        expected = outcome_of(paths, policy, 1, **options)
        for threads in THREADS:
            assert expected == outcome_of(paths, policy, threads, **options)


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("name", ODD)
def test_odd_files_without_a_wheel_of_isal(tmp_path, monkeypatch, name):
    monkeypatch.setattr(undamaged, "_igzip", None)
    monkeypatch.setattr(inflate, "_fast", zlib)
    paths = write(tmp_path, ODD[name])
    assert outcome_of(paths, "skip", 1) == outcome_of(paths, "skip", 3)


WHOLE = ["members", "padding", "empty members", "long", "what looks like a few headers"]


@pytest.mark.parametrize("name", ["intact", "zlib", "mixed", *WHOLE])
def test_files_that_are_whole_are_read_once(tmp_path, monkeypatch, name):
    files = {**CONTENTS, **ODD}[name]
    paths = write(tmp_path, files)
    monkeypatch.setattr(record_file.RecordFile, "_read_again", pytest.fail)
    expected = list(tfw.read_records(paths))
    assert expected == list(tfw.read_records(paths, num_threads=3))


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits_are_met_as_by_one_thread(tmp_path, seed):
    chance = random.Random(seed)
    files = [bytearray(b"".join(members(part))) for part in PARTS]
    for data in files[:: chance.randrange(1, 4)]:
        for _ in range(chance.choice([1, 1, 3])):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    paths = write(tmp_path, files)
    policy = chance.choice(["raise", "skip", "skip", "tail", "stop"])
    assert outcome_of(paths, policy, 1) == outcome_of(paths, policy, chance.choice(THREADS))


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("policy", ["raise", "skip", "tail"])
def test_batches_do_not_depend_on_the_number_of_threads(paths, policy):
    def outcome(threads):
        found, error = [], None
        batches = PARSER.parse_file(paths, 7, on_corrupt=policy, num_threads=threads, receipt=True)
        try:
            for batch in batches:
                found += batch["n"].tolist()
        except tfw.DataLossError as raised:
            error = str(raised)
        receipt = batches.receipt if error is None else None
        return found, error, list(batches.skipped), receipt

    expected = outcome(1)
    for threads in THREADS:
        assert expected == outcome(threads)


@pytest.mark.parametrize("threads", THREADS)
def test_so_many_files_are_read_at_a_time_and_each_only_so_far(intact, threads, monkeypatch):
    parcels = {}
    gather = files_ahead._Gatherer.next

    def counting(self):
        parcels[self] = parcels.get(self, 0) + 1
        return gather(self)

    monkeypatch.setattr(files_ahead._Gatherer, "next", counting)
    records = tfw.read_records(intact, buffer_size=500, num_threads=threads)
    assert PARTS[0][0] == next(records)
    files = min(threads, len(intact))
    assert files == len(threads_of_tfwire())
    assert wait_for(lambda: (len(parcels), min(parcels.values())) == (files, 2))
    assert sum(count > 2 for count in parcels.values()) <= 1  # the one that is read
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


@FORKS_BESIDE_THREADS
@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_forked_side_meets_the_damage(tmp_path, policy):
    paths = write(tmp_path, CONTENTS["damaged 1"])
    expected = outcome_of(paths, policy, 1)[0]
    records = tfw.read_records(paths, on_corrupt=policy, num_threads=3)
    head = [next(records) for _ in range(min(60, len(expected)))]

    def rest():
        found = list(head)
        with contextlib.suppress(tfw.DataLossError):
            found.extend(records)
        return expected == found

    ended = forked(rest)
    assert rest()
    assert ended()


@FORKS_BESIDE_THREADS
def test_a_file_that_became_shorter_before_a_forked_side_reads_on_is_damaged(intact):
    records = tfw.read_records(intact, num_threads=3)
    assert PARTS[0][:60] == [next(records) for _ in range(60)]

    def read_on():
        os.truncate(intact[0], 0)
        with pytest.raises(tfw.DataLossError):
            list(records)
        return True

    assert forked(read_on)()
    records.close()


@FORKS_BESIDE_THREADS
@pytest.mark.parametrize("how", ["drop", "close", "read on", "exit"])
def test_a_forked_side_leaves_alone_what_the_threads_were_using(tmp_path, how):
    """Memory that a thread was about to move is not freed once more."""
    much = gzip.compress(file_of(PARTS[0]) * 30, 1)
    paths = write(tmp_path, [much] * 6)
    for i in range(15):
        batches = PARSER.parse_file(paths, 100, num_threads=4)
        records = tfw.read_records(paths, num_threads=4)
        assert (PARTS[0][0], 0) == (next(records), next(batches)["n"][0])
        time.sleep(i / 5000)

        def use(batches=batches, records=records):
            if how == "close":
                records.close()
                batches.close()
            elif how == "read on":
                assert PARTS[0][1] == next(records)
            del batches, records
            gc.collect()
            if how == "exit":
                os._exit(0)
            return True

        ended = forked(use)
        records.close()
        batches.close()
        assert ended()


# Python loses an interrupt that arrives in a finalizer, and says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_moment_ends_the_reading_and_its_threads(tmp_path):
    much = gzip.compress(file_of(PARTS[0]) * 10, 1)
    paths = write(tmp_path, [much] * 6)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    try:
        for number in range(12):
            records = tfw.read_records(paths, buffer_size=500, num_threads=3)
            found = [next(records)]
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0004 * (number + 1))
                for record in records:
                    found.append(record)
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert (PARTS[0] * 60)[: len(found)] == found
            records.close()
            assert wait_for(lambda: not threads_of_tfwire())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert interrupted


def test_what_is_said_of_a_reading_is_true_at_every_record(intact):
    alone = tfw.read_records(intact, receipt=True)
    ahead = tfw.read_records(intact, receipt=True, num_threads=4)
    for expected, found in zip(alone, ahead, strict=True):
        assert expected == found
        assert alone.position == ahead.position
        assert alone.receipt == ahead.receipt
    assert alone.file_crc32c == ahead.file_crc32c
    assert alone.tail is ahead.tail is None


@pytest.mark.parametrize("taken", [0, 1, 40, 99])
def test_of_the_first_file_the_reader_finds_where_it_begins(intact, taken):
    records = tfw.read_records(intact)
    for _ in range(taken):
        next(records)
    rest = tfw.read_records(intact, start=records.position, num_threads=3)
    assert RECORDS[taken:] == list(rest)


def test_memory_of_parcels_serves_the_next_ones(intact, monkeypatch):
    made = []
    make = files_ahead.create
    monkeypatch.setattr(files_ahead, "create", lambda *args: made.append(1) or make(*args))
    for batch in PARSER.parse_file(intact * 20, 50, num_threads=2):
        del batch
    assert len(made) <= 2 * (2 + 3)


@pytest.mark.posix("os.pread is pread_into there, which it counts")
def test_what_looks_like_headers_costs_no_more_than_other_bytes(tmp_path, monkeypatch):
    """A file of nothing else is left to the reader soon."""
    calls = []
    read = system.pread_into
    monkeypatch.setattr(system, "pread_into", lambda *args: calls.append(1) or read(*args))
    content = file_of([b"\x1f\x8b\x08\xe0" * 100_000])
    paths = write(tmp_path, [gzip.compress(content, 0)] * 2)
    assert 2 == len(list(tfw.read_records(paths, num_threads=2)))
    assert len(calls) <= 2 * (16 + 3)


def test_a_long_record_takes_the_place_of_several_parcels(tmp_path, monkeypatch):
    monkeypatch.setattr(files_ahead, "_WAITING", 8)
    gathered = []
    gather = files_ahead._Gatherer.next
    monkeypatch.setattr(
        files_ahead._Gatherer,
        "next",
        lambda self: gathered.append(gather(self)) or gathered[-1],
    )
    paths = write(tmp_path, [gzip.compress(file_of([random.Random(1).randbytes(5500)] * 9), 0)])
    records = tfw.read_records([*paths, *paths], num_threads=2)
    next(records)
    assert wait_for(lambda: len(gathered) == 9 + 8)
    assert 2 + 2 == sum(each.batch is not None for each in gathered)
    assert 18 == 1 + len(list(records))
