"""Files that are still being written: every look is a correct prefix, and the next goes on."""

import gzip
import io
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import zlib
from types import SimpleNamespace

import pytest

import tfwire as tfw
from helpers.command import ENVIRONMENT, tfwire_command
from helpers.data.iterators_with_threads import within_limit
from helpers.reading import open_files, write_anew
from helpers.reference import file_of, flip, frame
from helpers.threads import Consumer, quick_switches, wait_for
from tfwire import RecordPosition, TornTail
from tfwire._records.reading import follow_records

RECORDS = [b"", b"one", b"x" * 40, bytes(range(60)), b"", b"last"]
DATA = file_of(RECORDS)
ENDS = list(itertools.accumulate(len(record) + 16 for record in RECORDS))


def look(path, start=None, **options):
    """What a look at a growing file gives: records, where they end, what lies after."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        records = tfw.read_records(path, on_corrupt="tail", start=start, **options)
        return list(records), records.position, records.tail


def expected_look(size, first=0):
    """The same, from the layout of the file."""
    count = sum(end <= size for end in ENDS)
    begin = ENDS[count - 1] if count else 0
    left = size - begin
    tail = TornTail(left, 12 if left < 12 else ENDS[count] - begin) if left else None
    return RECORDS[first:count], RecordPosition(count, begin), tail


# ---- Looks ------------------------------------------------------------------------------------


def test_every_look_is_a_correct_prefix_and_the_next_goes_on(path):
    """At every byte; then from there at every later one."""
    for size in range(len(DATA) + 1):
        write_anew(path, DATA[:size])
        found = look(path)
        assert expected_look(size) == found
        for later in {min(size + more, len(DATA)) for more in (size % 2, 17)}:
            write_anew(path, DATA[:later])
            position = found[1]
            assert expected_look(later, position.record_index) == look(path, position)


@pytest.mark.parametrize("wrap", [lambda path: path, lambda path: io.BytesIO(path.read_bytes())])
@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_a_compressed_file_shows_what_was_flushed(path, kind, wrap):
    position = None
    with tfw.TFRecordWriter(path, kind) as writer:
        for number, record in enumerate(RECORDS):
            writer.write(record)
            writer.flush()
            records, position, tail = look(wrap(path), position)
            assert [record] == records
            assert RecordPosition(number + 1, ENDS[number]) == position
            assert TornTail(0, 12) == tail  # the stream goes on, or was cut
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # it was flushed and not closed, which is no news
                found = tfw.read_records(wrap(path), on_corrupt="tail")
                assert RECORDS[: number + 1] == list(found)
            assert 0 == found.skipped.num_regions
    assert ([], position, None) == look(wrap(path), position)


def test_a_cut_record_in_a_cut_stream_is_told_by_its_bytes(path):
    stream = zlib.compressobj(wbits=31)
    path.write_bytes(stream.compress(DATA[:-1]) + stream.flush(zlib.Z_SYNC_FLUSH))
    assert (RECORDS[:-1], RecordPosition(5, ENDS[4]), TornTail(19, 20)) == look(path)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_only_a_record_at_the_end_is_the_tail(path, compress):
    """Also where damage comes right before it, and is left out; and not one that another writer
    went on after."""
    bad, cut = flip(frame(b"bad"), 8 * 12), frame(b"a longer one")[:20]
    for content, tail in [
        (DATA + bad + cut, TornTail(20, 28)),
        (DATA + cut + DATA, None),
        (DATA + cut + DATA + bad, None),
        (DATA + cut + DATA + cut, TornTail(20, 28)),
    ]:
        path.write_bytes(compress(content))
        records = tfw.read_records(path, on_corrupt="skip")
        with pytest.warns(UserWarning, match="left out"):
            found = list(records)
        assert content.count(DATA) * RECORDS == found
        assert tail == records.tail


def test_positions_are_exact_between_the_records_of_a_batch(path):
    """Also with positions, among long records, and after close."""
    records = [*RECORDS, b"l" * 80_000, b"m" * 70_000, b"n" * 90_000, b"short"]
    path.write_bytes(file_of(records))
    ends = [0, *itertools.accumulate(len(record) + 16 for record in records)]
    for count in range(len(records) + 1):
        with tfw.read_records(path) as reader:
            iterator = reader.with_positions() if count % 2 else reader
            for _ in range(count):
                next(iterator)
            assert RecordPosition(count, ends[count]) == reader.position
        assert RecordPosition(count, ends[count]) == reader.position
        assert records[count:] == list(tfw.read_records(path, start=reader.position))


def test_numbers_and_offsets_after_a_start_are_those_of_the_file(path):
    path.write_bytes(DATA)
    expected = list(tfw.read_records(path).with_positions())[2:]
    start = RecordPosition(2, ENDS[1])
    assert expected == list(tfw.read_records(path, start=start).with_positions())
    with path.open("rb") as file:
        found = list(tfw.read_records(file, start=start).with_positions())
    assert [place[1:] for place in expected] == [place[1:] for place in found]


def test_a_start_is_for_the_first_of_several_files(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_bytes(DATA)
    records = tfw.read_records(paths, start=RecordPosition(4, ENDS[3]), receipt=True)
    assert RECORDS[4:] + RECORDS == list(records)
    assert RecordPosition(6, len(DATA)) == records.position
    assert tfw.Receipt.of(RECORDS[4:] + RECORDS) == records.receipt
    assert tfw.crc32c(DATA) == records.file_crc32c


def test_part_of_a_file_has_a_receipt_and_no_checksum(path):
    path.write_bytes(DATA)
    records = tfw.read_records(path, start=RecordPosition(4, ENDS[3]), receipt=True)
    assert tfw.Receipt.of(RECORDS[4:]) == tfw.Receipt.of(records) == records.receipt
    assert records.file_crc32c is None


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_a_file_that_became_shorter_is_told(path, kind):
    tfw.write_records(path, RECORDS, kind)
    position = look(path)[1]
    tfw.write_records(path, RECORDS[:3], kind)
    with pytest.raises(tfw.DataLossError, match="cut or replaced") as caught:
        look(path, position)
    assert (path, 6, ENDS[-1], "truncated") == (
        caught.value.path,
        caught.value.record_index,
        caught.value.offset,
        caught.value.reason,
    )


def test_a_start_within_a_record_is_damage(path):
    path.write_bytes(DATA)
    with pytest.raises(tfw.DataLossError, match="record 2 at byte 40"):
        list(tfw.read_records(path, start=RecordPosition(2, 40)))
    with pytest.raises(tfw.DataLossError, match="does not begin at byte 40"):
        list(tfw.read_records(io.BytesIO(DATA), start=RecordPosition(2, 40)))


@pytest.mark.parametrize("policy", ["skip", "tail"])
@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_reading_goes_on_after_records_that_were_left_out(path, compression, policy):
    """Damaged records have numbers, too; of compressed files, all up to the place is read."""
    records = [b"%d" % i * 9 for i in range(12)]
    ends = [len(file_of(records[: i + 1])) for i in range(12)]
    data = file_of(records)
    for offset in (ends[2] + 14, ends[3] + 2, ends[6] + 2) if policy == "skip" else ():
        data = flip(data, 8 * offset)
    compress = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[compression]
    path.write_bytes(compress(data))

    def read(start=None):
        return tfw.read_records(path, compression, on_corrupt=policy, start=start, receipt=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = list(read())
        for count in range(len(expected) + 1):
            first = read()
            found = list(itertools.islice(first, count))
            second = read(first.position)
            assert expected == found + list(second), count
            assert tfw.Receipt.of(expected) == first.receipt + second.receipt


def check_every_place(path, sizes):
    """Reading goes on after every record of a damaged file, whatever is read at a time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        expected = list(tfw.read_records(path, on_corrupt="skip"))
        for count, size in itertools.product(range(len(expected) + 1), sizes):
            records = tfw.read_records(path, on_corrupt="skip", buffer_size=size)
            head = list(itertools.islice(records, count))
            rest = tfw.read_records(path, on_corrupt="skip", start=records.position)
            assert expected == head + list(rest), (count, size)


def test_reading_goes_on_among_damaged_members(tmp_path):
    """A torn member that runs on into others, and damaged records in these."""
    contents = [file_of([b"%d: %d" % (k, i) for i in range(9)]) for k in range(3)]
    contents[1] = flip(flip(contents[1], 8 * 33), 8 * 120)
    first, second, third = (gzip.compress(content, 0, mtime=0) for content in contents)
    for cut in (5, 60, len(second) + 60):
        write_anew(tmp_path / "data", first[: len(first) - cut] + second + third)
        check_every_place(tmp_path / "data", [1, 100, None])


@pytest.mark.parametrize("step", [41, pytest.param(10, marks=pytest.mark.slow)])
def test_reading_goes_on_after_any_flipped_bit_of_a_stream(tmp_path, step):
    """Also where what is inflated differs by a symbol, as with bit 490, read 70 bytes at a time."""
    member = gzip.compress(file_of([b"%d: %s" % (i, b"ab" * i) for i in range(4)]), mtime=0)
    for bit in range(80, 8 * len(member), step):
        write_anew(tmp_path / "data", flip(member, bit) + member)
        check_every_place(tmp_path / "data", [64, 70, None])


# ---- Following --------------------------------------------------------------------------------

# Writes a file in pieces that end one byte before, at and after the ends of headers and records.
_WRITE = """
import os, sys, time
path, cuts = sys.argv[1], [int(word) for word in sys.argv[2:]]
data = sys.stdin.buffer.read()
with open(path, "ab", buffering=0) as file:
    for begin, end in zip([0, *cuts], [*cuts, len(data)]):
        file.write(data[begin:end])
        time.sleep(0.002)
"""


def test_a_file_is_followed_while_a_process_writes_it(path):
    path.touch()
    begins = [0, *ENDS[:-1]]
    places = {at + d for begin in begins for at in (begin, begin + 12) for d in (-1, 0, 1)}
    cuts = sorted(place for place in places if 0 < place < len(DATA))
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITE, str(path), *map(str, cuts)], stdin=subprocess.PIPE
    )
    writer.stdin.write(DATA)
    writer.stdin.close()
    followed = tfw.follow_records(path, interval=0.001, timeout=30)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    assert 0 == writer.wait()


def test_following_ends_some_time_after_the_last_record(path):
    path.write_bytes(DATA[:-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an incomplete record is no news
        found = list(tfw.follow_records(path, interval=0.001, timeout=0.01))
    assert RECORDS[:-1] == found
    start = RecordPosition(3, ENDS[2])
    assert RECORDS[3:-1] == list(tfw.follow_records(path, start=start, timeout=0))


def test_following_meets_damage_as_an_error(path):
    path.write_bytes(DATA + bytes(12))
    followed = tfw.follow_records(path, timeout=10)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    with pytest.raises(tfw.DataLossError, match="length checksum"):
        next(followed)


@pytest.mark.parametrize("kind", ["", "GZIP"])
@pytest.mark.parametrize("how", ["renamed", "removed"])
def test_following_ends_when_another_file_takes_the_place(tmp_path, kind, how):
    """Of the same layout, so that nothing else would tell; also where it could get the inode."""
    path, other = tmp_path / "a", tmp_path / "b"
    tfw.write_records(path, RECORDS, kind)
    followed = tfw.follow_records(path, interval=0.001, timeout=30)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    if how == "removed":
        path.unlink()
        tfw.write_records(path, [*RECORDS, b"of another file"], kind)
    else:
        tfw.write_records(other, [*RECORDS, b"of another file"], kind)
        other.rename(path)
    with pytest.raises(tfw.DataLossError, match="another file has taken the place") as caught:
        next(followed)
    assert (path, len(RECORDS)) == (caught.value.path, caught.value.record_index)


def test_following_holds_no_file_when_it_has_ended(path):
    before = open_files()
    path.write_bytes(DATA)
    assert RECORDS == list(tfw.follow_records(path, timeout=0))
    followed = tfw.follow_records(path)
    next(followed)
    del followed
    assert set() == open_files() - before


def test_any_thread_ends_the_following(path):
    """Also of one that waits for an hour."""
    path.write_bytes(DATA)
    before = open_files()
    followed = tfw.follow_records(path, interval=3600)
    consumer = Consumer(followed)
    assert wait_for(lambda: len(RECORDS) == len(consumer.found))
    within_limit(followed.close)
    consumer.join()
    assert (RECORDS, None) == (consumer.found, consumer.error)
    assert None is next(followed, None)
    assert set() == open_files() - before


def test_any_thread_ends_the_following_of_a_pipe(path):
    os.mkfifo(path)
    end = os.open(path, os.O_RDWR)
    os.write(end, DATA)
    before = open_files()
    followed = tfw.follow_records(path)
    consumer = Consumer(followed)
    assert wait_for(lambda: open_files() - before)
    within_limit(followed.close)
    consumer.join()
    os.close(end)
    assert consumer.error is None
    assert RECORDS[: len(consumer.found)] == consumer.found
    assert set() == open_files() - before


def test_threads_share_what_is_followed(path):
    written = [b"%d" % i for i in range(20_000)]
    tfw.write_records(path, written)
    with quick_switches():
        followed = tfw.follow_records(path, timeout=0.01)
        consumers = [Consumer(followed) for _ in range(3)]
        for consumer in consumers:
            consumer.join()
    assert [None] * 3 == [consumer.error for consumer in consumers]
    assert sorted(written) == sorted(record for each in consumers for record in each.found)


def test_a_signal_handler_ends_the_following(path):
    path.write_bytes(DATA)
    followed = tfw.follow_records(path, interval=3600)
    before = signal.signal(signal.SIGALRM, lambda *_: followed.close())
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert RECORDS == list(followed)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_cat_follows_a_file(path):
    path.write_bytes(DATA[: ENDS[2] + 5])
    command = [sys.executable, "-m", "tfwire", "cat", "--follow", "--format", "raw", str(path)]
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
        first = b"".join(RECORDS[:3])
        assert first == reader.stdout.read(len(first))
        time.sleep(0.01)
        with path.open("ab") as file:
            file.write(DATA[ENDS[2] + 5 :])
        rest = b"".join(RECORDS[3:])
        assert rest == reader.stdout.read(len(rest))
    finally:
        reader.terminate()
        reader.communicate()


def test_cat_follows_one_file(tmp_path):
    for files in (["a", "b"], ["-"]):
        assert 2 == tfwire_command("cat", "--follow", *files, cwd=tmp_path).returncode
    assert 1 == tfwire_command("cat", "--follow", "missing", cwd=tmp_path).returncode
    assert os.listdir(tmp_path) == []


def while_it_waits(followed, change):
    """Lets a function run when the file has nothing new, in place of the wait."""
    followed._looks._stopped = SimpleNamespace(put=print, get=lambda timeout: change())


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_following_ends_when_the_file_is_rewritten(path, kind):
    """With records of the same lengths, so that reading could go on in the middle."""
    tfw.write_records(path, RECORDS, kind)
    followed = tfw.follow_records(path)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    others = [b"\1" * len(record) for record in RECORDS]
    while_it_waits(followed, lambda: tfw.write_records(path, [*others, b"more"], kind))
    with pytest.raises(tfw.DataLossError, match="rewritten"):
        next(followed)


def test_following_goes_on_when_a_torn_tail_was_cut_off(path):
    path.write_bytes(DATA + frame(b"torn")[:-1])
    followed = tfw.follow_records(path)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    while_it_waits(followed, lambda: path.write_bytes(DATA + frame(b"more")))
    assert b"more" == next(followed)


def test_following_does_not_go_on_in_a_pipe(path):
    """Nor wait for its writer."""
    path.write_bytes(DATA)
    followed = tfw.follow_records(path, interval=0.001, timeout=30)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(tfw.DataLossError, match="another file has taken the place"):
        within_limit(next, followed)


@pytest.mark.parametrize("torn", [False, True])
def test_a_pipe_is_followed_to_its_end(path, torn):
    """It was opened again, and as many records of the next writer were left out."""
    os.mkfifo(path)
    data = DATA[:-1] if torn else DATA
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    followed = tfw.follow_records(path, interval=0.001)
    assert RECORDS[:-1] == list(itertools.islice(followed, len(RECORDS) - 1))
    if torn:
        with pytest.raises(tfw.DataLossError, match="only 19 are left"):
            within_limit(next, followed)
    else:
        assert RECORDS[-1:] == within_limit(list, followed)
    writer.join()


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_following_survives_a_chdir(tmp_path, monkeypatch, kind):
    (tmp_path / "elsewhere").mkdir()
    tfw.write_records(tmp_path / "elsewhere" / "a", RECORDS[::-1], kind)
    monkeypatch.chdir(tmp_path)
    tfw.write_records("a", RECORDS, kind)
    followed = tfw.follow_records("a", interval=0.001, timeout=30)
    assert RECORDS == list(itertools.islice(followed, len(RECORDS)))
    monkeypatch.chdir("elsewhere")
    with tfw.TFRecordWriter(tmp_path / "a", kind, append=True) as writer:
        writer.write(b"more")
    assert b"more" == next(followed)
    (tmp_path / "a").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        next(followed)
    assert "a" == caught.value.filename


def test_a_new_record_begins_the_wait_anew(path, monkeypatch):
    clock = [0]
    monkeypatch.setattr(follow_records, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    tfw.write_records(path, RECORDS)
    followed = tfw.follow_records(path, timeout=10)

    def wait():
        clock[0] += 8
        if clock[0] <= 24:
            with tfw.TFRecordWriter(path, append=True) as writer:
                writer.write(b"new")

    while_it_waits(followed, wait)
    assert [*RECORDS, b"new", b"new", b"new"] == list(followed)
    assert 40 == clock[0]
