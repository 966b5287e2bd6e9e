"""Plain files whose first length looks like gzip or zlib, and is damaged; and damaged streams."""

from __future__ import annotations

import gzip
import io
import os
import random
import threading
import zlib

import pytest

import tfwire as tfw
from helpers.reading import Bytes, read_outcome
from helpers.reference import file_of, flip, frame
from tfwire._records.reading import record_file

# A length of 4,194,304 and of 17 MB that look like gzip, too, are not tried: nothing is different.
LENGTHS = [376, 24184, 40056, 55928, 559903]
SECOND = [b"second", b"third" * 100]
PAYLOADS = {
    "zeros": bytes,
    "random": lambda length: random.Random(length).randbytes(length),
    "text": lambda length: (b"To be, or not to be. " * (length // 21 + 1))[:length],
    "gzip": lambda length: (gzip.compress(b"inner" * 99, mtime=0) * length)[:length],
}


def damaged(length, payload="zeros", bit=8 * 9):
    return flip(file_of([PAYLOADS[payload](length), *SECOND]), bit)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_skipping_leaves_out_the_damaged_record_alone(outcome_of, length, payload):
    for bit in (8 * 8, 8 * 9 + 3, 8 * 11 + 7, 8 * 7 + 1):
        outcome = outcome_of(damaged(length, payload, bit), on_corrupt="skip")
        assert SECOND == outcome.records
        assert ["length crc"] == [region.reason for region in outcome.skipped]
        assert (0, length + 16) == outcome.skipped[0][:2]


@pytest.mark.parametrize("policy", ["raise", "tail", "stop"])
@pytest.mark.parametrize("length", LENGTHS)
def test_other_policies_end_there_and_name_every_reading(outcome_of, length, policy):
    outcome = outcome_of(damaged(length), on_corrupt=policy)
    assert [] == outcome.records
    if policy == "stop":
        assert 1 == len(outcome.skipped)
        return
    with pytest.raises(tfw.DataLossError, match=r"tried plain records.*GZIP.*nothing fits"):
        list(tfw.read_records(Bytes(damaged(length)), on_corrupt=policy))


def test_bytes_that_look_like_gzip_in_place_of_the_header(outcome_of):
    """The length is lost as well: nothing says where the next record is."""
    data = b"\x1f\x8b\x08\x00" + bytes(range(100, 108)) + file_of([b"first", *SECOND])[12:]
    assert SECOND == outcome_of(data, on_corrupt="skip").records
    for size in (12, 20, len(frame(b"first"))):  # as short as that, too
        assert [] == outcome_of(data[:size], on_corrupt="skip").records


def pipe_of(data):
    readable, writable = os.pipe()
    thread = threading.Thread(target=lambda: (os.write(writable, data), os.close(writable)))
    thread.start()
    return os.fdopen(readable, "rb"), thread


PARSER = tfw.Parser({"x": tfw.FixedLenFeature([], tfw.string)})
ROWS = [tfw.encode_example({"x": value}) for value in (b"x" * 40_033, b"second")]
assert 40_056 == len(ROWS[0])  # one of LENGTHS


def parsed(path, **options):
    for batch in PARSER.parse_file(path, 1, on_corrupt="skip", **options):
        yield from tfw.encode_columns(batch)


@pytest.mark.parametrize(
    "read",
    [
        parsed,
        lambda path: parsed(path, num_threads=2),
        lambda path: tfw.TFRecordDataset([str(path)], "auto", on_corrupt="skip"),
        lambda path: tfw.read_records([path, os.devnull], on_corrupt="skip", num_threads=2),
        lambda path: [tfw.verify_file(path).first],
        lambda path: tfw.read_records(path, on_corrupt="skip", verify=False),
    ],
    ids=["parse", "threads", "dataset", "list", "verify", "headers"],
)
@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_every_reader_skips_it(path, read):
    path.write_bytes(flip(file_of(ROWS), 8 * 9))
    assert ROWS[1:] == list(read(path))


def test_a_pipe_is_kept_while_it_is_looked_through(monkeypatch):
    for length in LENGTHS:
        file, thread = pipe_of(damaged(length))
        with file:
            assert SECOND == read_outcome(file, on_corrupt="skip").records
        thread.join()
    monkeypatch.setattr(record_file, "_LOOKED_THROUGH", 1000)  # no record is in so much
    outcome = read_outcome(Bytes(damaged(559903)), on_corrupt="skip")
    assert ([], "compressed stream") == (outcome.records, outcome.skipped[0].reason)


@pytest.mark.parametrize("length", LENGTHS)
def test_verify_and_repair(tmp_path, length):
    path, out = tmp_path / "data", tmp_path / "out"
    path.write_bytes(damaged(length))
    report = tfw.verify_file(path, file_crc32c=True)
    assert ("", len(SECOND), b"second") == (report.compression, report.num_records, report.first)
    assert len(SECOND) == tfw.repair_file(path, out).num_records
    assert SECOND == list(tfw.read_records(out))
    report = tfw.repair_file(path, out, correct=True, overwrite=True)
    assert [(9, 0)] == [(bit.offset, bit.bit) for bit in report.flipped_bits]
    assert [bytes(length), *SECOND] == list(tfw.read_records(out))
    path.write_bytes(flip(frame(bytes(length)), 8 * 9))  # no other record
    tfw.repair_file(path, out, correct=True, overwrite=True)
    assert [bytes(length)] == list(tfw.read_records(out))


def test_an_index_of_text_tells_that_the_file_is_plain(tmp_path):
    (tmp_path / "data").write_bytes(file_of([bytes(559903), *SECOND]))
    tfw.RecordIndex.build(tmp_path / "data").write_text(tmp_path / "text")
    (tmp_path / "data").write_bytes(damaged(559903))
    for make in (tfw.RecordIndex.build, tfw.TFRecordFile):
        with pytest.raises(tfw.DataLossError, match="tried plain records and GZIP"):
            make(tmp_path / "data")
    index = tfw.RecordIndex.read_text(tmp_path / "data", tmp_path / "text")
    assert SECOND == tfw.TFRecordFile(tmp_path / "data", index)[1:]


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
def test_reading_goes_on_at_a_position(tmp_path):
    (tmp_path / "data").write_bytes(damaged(559903))
    for source in (lambda: tmp_path / "data", lambda: Bytes(damaged(559903))):
        records = tfw.read_records(source(), on_corrupt="skip")
        assert b"second" == next(records)
        again = tfw.read_records(source(), on_corrupt="skip", start=records.position)
        assert SECOND[1:] == list(again)
        records.close()


@pytest.mark.filterwarnings("ignore::tfwire.TfwireWarning")
@pytest.mark.parametrize("ignores_ranges", [False, True])
def test_an_object(server, ignores_ranges):
    server.add("/damaged", damaged(559903))
    server.ignores_ranges = ignores_ranges
    url = server.url("/damaged")
    assert SECOND == list(tfw.read_records(url, on_corrupt="skip"))
    assert len(SECOND) == tfw.verify_file(url).num_records
    with pytest.raises(tfw.DataLossError, match="tried plain records and GZIP"):
        list(tfw.read_records(url))


# ---- Streams that are damaged --------------------------------------------------------------------


@pytest.mark.parametrize("level", [1, 9])  # at level 0 the records themselves are in the file
def test_a_stream_that_is_damaged_at_its_start_stays_a_stream(outcome_of, level):
    """The members after it are found, as ever."""
    records = [b"first" * 100, b"x" * 1000]
    second = gzip.compress(file_of(SECOND), mtime=0)
    first = gzip.compress(file_of(records), level, mtime=0)
    for place in (10, 11, 12, 15, 20):
        data = first[:place] + b"\xff\xff\xff" + first[place + 3 :] + second
        assert SECOND == outcome_of(data, on_corrupt="skip").records[-len(SECOND) :]
        expected = read_outcome(io.BytesIO(data), "GZIP", on_corrupt="skip")
        assert expected.records == outcome_of(data, on_corrupt="skip").records


@pytest.mark.parametrize("seed", range(30))
def test_what_begins_like_a_stream_is_whatever_holds_records(outcome_of, seed):
    rng = random.Random(seed)
    magic = rng.choice(
        [b"\x1f\x8b\x08", b"\x1f\x8b\x08\x00", b"\x78\x9c", b"\x78\x01", b"\x08\x1d"]
    )
    rubbish = magic + rng.randbytes(rng.choice([9, 30, 600, 5000]))
    make = rng.choice([bytes, lambda data: gzip.compress(data, mtime=0)])
    outcome = outcome_of(rubbish + make(file_of(SECOND)), on_corrupt="skip")
    if make is bytes or magic[:2] == b"\x1f\x8b":
        assert SECOND == outcome.records


def test_empty_and_foreign_streams_are_streams(outcome_of):
    for content in (b"", b"x", bytes(5000), b"text" * 5000):
        found = outcome_of(gzip.compress(content), on_corrupt="skip")
        assert found == outcome_of(gzip.compress(content), "GZIP", on_corrupt="skip")
    for content in (b"", b"x"):  # a magic number of two bytes says less
        found = outcome_of(zlib.compress(content), on_corrupt="skip")
        assert found == outcome_of(zlib.compress(content), "ZLIB", on_corrupt="skip")
