"""Integrity that adds up: receipts of records, checksums of whole files."""

import io
import json
import random
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tfwire as tfw
from helpers.command import tfwire_command
from helpers.reading import damage
from helpers.threads import Consumer, quick_switches
from tfwire import Receipt

PAYLOADS = st.lists(st.binary(max_size=40), max_size=20)
RECORDS = [bytes([i % 251]) * (i * 37 % 700) for i in range(3000)]
RECORDS[1500:1500] = [b"long" * 25_000, b"", b"longer" * 30_000, b"x" * 5000]
KINDS = ["", "GZIP", "ZLIB"]


def mixed(crc, length):
    """The documented hash of a record, by the book: SplitMix64 of the length and the CRC."""
    x = ((length << 32 | length >> 32) ^ crc) + 0x9E3779B97F4A7C15 & 2**64 - 1
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & 2**64 - 1
    x = (x ^ x >> 27) * 0x94D049BB133111EB & 2**64 - 1
    return x ^ x >> 31


def receipt_by_the_book(records):
    hashes = [mixed(tfw.crc32c(record), len(record)) for record in records]
    return Receipt(len(records), sum(map(len, records)), sum(hashes) % 2**64)


# ---- Receipts as values -----------------------------------------------------------------------


@given(PAYLOADS)
def test_a_receipt_is_what_the_documentation_says(records):
    assert receipt_by_the_book(records) == Receipt.of(records)


@given(PAYLOADS, st.integers(0, 20), st.randoms())
def test_receipts_add_in_any_order_and_any_split(records, cut, shuffler):
    whole = Receipt.of(records)
    shuffler.shuffle(records)
    parts = [Receipt.of(records[:cut]), Receipt.of(records[cut:])]
    assert whole == sum(parts) == parts[0] + parts[1]
    assert parts[1] == whole - parts[0]
    assert hash(whole) == hash(sum(parts))


@pytest.mark.parametrize(
    "change",
    [
        lambda records: records.pop(),
        lambda records: records.append(records[0]),
        lambda records: records.__setitem__(0, records[1]),  # one lost, another doubled
        lambda records: records.__setitem__(0, bytes(len(records[0]))),
        lambda records: records.append(b""),
    ],
)
def test_what_is_lost_doubled_or_changed_shows(change):
    records = [b"one", b"two", b"three"]
    before = Receipt.of(records)
    change(records)
    assert before != Receipt.of(records)


def test_records_that_sum_to_the_same_bytes_are_told_apart():
    assert Receipt.of([b"ab", b"c"]) != Receipt.of([b"a", b"bc"])
    assert Receipt.of([b"ab"]) != Receipt.of([b"ba"])


def test_receipts_are_immutable_and_go_through_json():
    receipt = Receipt.of(RECORDS)
    with pytest.raises(AttributeError):
        receipt.num_records = 0
    assert receipt == Receipt.from_dict(json.loads(json.dumps(receipt.to_dict())))
    assert Receipt() == Receipt.of([])
    assert "3004 records" in str(receipt)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"records": 1, "payload_bytes": 1, "hash": 7},
        {"records": 1, "payload_bytes": 1, "hash": "x"},
        {"records": "1", "payload_bytes": 1, "hash": "0"},
    ],
)
def test_other_dicts_are_no_receipts(fields):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Receipt.from_dict(fields)


def test_receipts_add_only_to_receipts():
    for other in (1, None, "0"):
        with pytest.raises(TypeError):
            Receipt() + other
        with pytest.raises(TypeError):
            other + Receipt()
        with pytest.raises(TypeError):
            Receipt() - other


def test_receipts_of_whatever_a_writer_takes(tmp_path):
    rows = [{"x": [i], "name": str(i)} for i in range(100)]
    with tfw.TFRecordWriter(tmp_path / "a") as writer:
        writer.write_many(rows)
    assert writer.receipt == Receipt.of(rows)


# ---- Writing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_knows_receipt_and_checksum(path, kind):
    columns = {"x": np.arange(5000), "name": [str(i) for i in range(5000)]}
    with tfw.TFRecordWriter(path, kind) as writer:
        writer.write(RECORDS[0])
        writer.write_many(RECORDS[1:])
        writer.flush()
        assert receipt_by_the_book(RECORDS) == writer.receipt
        assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c
        writer.write_columns(columns)
        writer.write_many([{"x": [1]}] * 200)
    assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c
    assert Receipt.of(tfw.read_records(path)) == writer.receipt


@pytest.mark.parametrize("kind", ["", "GZIP"])
def test_appending_continues_the_checksum_and_begins_a_receipt(path, kind):
    tfw.write_records(path, RECORDS, kind)
    with tfw.TFRecordWriter(path, kind, append=True) as writer:
        assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c
        writer.write_many([b"more", b"and more"])
    assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c
    assert Receipt.of([b"more", b"and more"]) == writer.receipt


def test_appending_after_a_torn_tail_and_damaged_payloads_has_the_bytes_checksum(path):
    """Only headers are checked then, so the footers do not tell the CRC of long payloads."""
    tfw.write_records(path, RECORDS)
    data = bytearray(path.read_bytes())
    data[data.index(b"longlong") + 7] ^= 1
    path.write_bytes(data + b"torn")
    with tfw.TFRecordWriter(path, append=True, repair_tail=True) as writer:
        writer.write(b"more")
    assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c


def test_a_file_object_gets_the_checksum_of_what_was_written():
    file = io.BytesIO()
    with tfw.TFRecordWriter(file) as writer:
        writer.write_many(RECORDS)
    assert tfw.crc32c(file.getvalue()) == writer.file_crc32c


def test_after_a_failure_the_receipt_is_that_of_the_file(path, monkeypatch):
    writer = tfw.TFRecordWriter(path)
    writer.write_many(RECORDS[:100])
    writer.flush()
    monkeypatch.setattr(
        "tfwire._base.system.writev", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    writer.write_many(RECORDS[100:200])
    with pytest.raises(OSError, match="full"):
        writer.close()
    assert Receipt.of(tfw.read_records(path)) == writer.receipt
    assert tfw.crc32c(path.read_bytes()) == writer.file_crc32c


@pytest.mark.parametrize("how", [{"num_shards": 3}, {"shard_size": "100kB"}])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_shards_add_up(tmp_path, how, num_threads):
    pattern = tmp_path / "a-{shard}-of-{shards}"
    with tfw.ShardedWriter(pattern, num_threads=num_threads, **how) as writer:
        writer.write_many(RECORDS)
    assert Receipt.of(RECORDS) == writer.receipt
    assert writer.receipt == sum(Receipt.of(tfw.read_records(path)) for path in writer.paths)
    found = [tfw.verify_file(path, file_crc32c=True).file_crc32c for path in writer.paths]
    assert found == writer.file_crc32cs


# ---- Reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_reader_knows_receipt_and_checksum(path, kind, verify):
    tfw.write_records(path, RECORDS, kind)
    records = tfw.read_records(path, receipt=True, verify=verify)
    assert records.file_crc32c is None
    assert RECORDS == list(records)
    assert Receipt.of(RECORDS) == records.receipt
    assert tfw.crc32c(path.read_bytes()) == records.file_crc32c


def test_a_receipt_is_of_the_records_handed_out(path):
    """Not of those that wait in the same batch, short and long ones; also after close."""
    tfw.write_records(path, RECORDS)
    with tfw.read_records(path, receipt=True) as records:
        for count in range(1, len(RECORDS) - 100):
            assert RECORDS[count - 1] == next(records)
            if count % 97 == 0 or count in (1, 1501, 1503):
                assert Receipt.of(RECORDS[:count]) == records.receipt
        for _ in range(50):
            next(records)
    assert Receipt.of(RECORDS[: count + 50]) == records.receipt


def test_a_receipt_counts_records_with_positions_one_by_one(path):
    tfw.write_records(path, RECORDS)
    records = tfw.read_records(path, receipt=True)
    positions = records.with_positions()
    for count in (1, 2, 3):
        next(positions)
        assert Receipt.of(RECORDS[:count]) == records.receipt
    assert len(RECORDS) - 3 == sum(1 for _ in positions)
    assert Receipt.of(RECORDS) == records.receipt


def test_long_records_are_counted_as_they_are_handed_out(path):
    longs = [bytes([i]) * (70_000 + i) for i in range(12)]
    tfw.write_records(path, longs)
    records = tfw.read_records(path, receipt=True)
    for count, expected in enumerate(longs, 1):
        assert expected == next(records)
        assert Receipt.of(longs[:count]) == records.receipt


def test_receipts_sum_over_files_and_the_checksum_is_that_of_the_last(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    for number, path in enumerate(paths):
        tfw.write_records(path, RECORDS[number::3], KINDS[number])
    records = tfw.read_records(paths, receipt=True)
    assert len(RECORDS) == sum(1 for _ in records)
    assert Receipt.of(RECORDS) == records.receipt
    assert tfw.crc32c(paths[-1].read_bytes()) == records.file_crc32c


def test_damage_leaves_a_receipt_and_no_checksum(path):
    tfw.write_records(path, [b"one", b"two", b"three"])
    damage(path, 19 + 12)
    records = tfw.read_records(path, receipt=True, on_corrupt="skip")
    with pytest.warns(UserWarning, match="left out 1"):
        assert [b"one", b"three"] == list(records)
    assert Receipt.of([b"one", b"three"]) == records.receipt
    assert records.file_crc32c is None
    assert tfw.crc32c(path.read_bytes()) == tfw.verify_file(path, file_crc32c=True).file_crc32c


def test_what_was_not_asked_for_is_refused(path):
    tfw.write_records(path, [b"one"])
    records = tfw.read_records(path)
    for name in ("receipt", "file_crc32c"):
        with pytest.raises(ValueError, match="receipt=True"):
            getattr(records, name)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_parsing_files_leaves_a_receipt(path, num_threads):
    with tfw.TFRecordWriter(path) as writer:
        writer.write_columns({"x": np.arange(10_000)})
    parser = tfw.Parser({"x": tfw.FixedLenFeature([], tfw.int64)})
    batches = parser.parse_file(path, 300, num_threads=num_threads, receipt=True)
    assert 10_000 == sum(len(batch["x"]) for batch in batches)
    assert writer.receipt == batches.receipt


def test_a_dataset_that_is_shuffled_repeated_and_batched_adds_up(path):
    """The recipe of docs/integrity.md."""
    tfw.write_records(path, RECORDS)
    epoch = Receipt()
    for batch in tfw.TFRecordDataset(path).shuffle(1000, seed=1).repeat(2).batch(100):
        epoch += Receipt.of(batch)
    assert Receipt.of(RECORDS) + Receipt.of(RECORDS) == epoch


# ---- The command line -------------------------------------------------------------------------


@pytest.fixture
def two_orders(tmp_path):
    """The same records, in one file and in three that are compressed and in another order."""
    tfw.write_records(tmp_path / "whole", RECORDS)
    shuffled = random.Random(1).sample(RECORDS, len(RECORDS))
    for i in range(3):
        tfw.write_records(tmp_path / f"part{i}", shuffled[i::3], "GZIP")
    return tmp_path


def test_verify_prints_receipts_and_their_sum(two_orders):
    result = tfwire_command("verify", "--receipt", "part0", "part1", "part2", cwd=two_orders)
    assert 0 == result.returncode
    lines = result.stdout.splitlines()
    assert f"receipt {Receipt.of(RECORDS).hash:016x}" in lines[3]
    assert lines[0].count("receipt ") == 1
    result = tfwire_command("verify", "--receipt", "--json", "whole", cwd=two_orders)
    assert Receipt.of(RECORDS) == Receipt.from_dict(json.loads(result.stdout)["receipt"])


def test_verify_compares_sets_of_files(two_orders):
    parts = ["part0", "part1", "part2"]
    result = tfwire_command("verify", "whole", "--same-as", *parts, cwd=two_orders)
    assert 0 == result.returncode
    assert "the same records: 3004 records" in result.stdout
    result = tfwire_command("verify", "whole", "--same-as", *parts[:2], cwd=two_orders)
    assert 1 == result.returncode
    assert "NOT the same records: 1,001 missing, of 3,004 and 2,003 records" in result.stdout
    result = tfwire_command("verify", "part0", "--same-as", "part1", cwd=two_orders)
    assert result.stdout.endswith("\nnext: tfwire diff part0 part1\n")
    result = tfwire_command(
        "verify", "--json", "whole", "--same-as", "part0", "missing", cwd=two_orders
    )
    assert 1 == result.returncode
    result = tfwire_command("verify", "--json", "whole", "--same-as", *parts, cwd=two_orders)
    assert json.loads(result.stdout.splitlines()[-1])["same_records"] is True


def test_checksums_of_compressed_files_come_out_of_the_same_pass(path, monkeypatch):
    path.write_bytes(zlib.compress(b"".join(frames(RECORDS))))
    monkeypatch.setattr("tfwire._records.reading.verify_files.crc32c_of_file", None)
    assert tfw.crc32c(path.read_bytes()) == tfw.verify_file(path, file_crc32c=True).file_crc32c


def frames(records):
    file = io.BytesIO()
    tfw.write_records(file, records)
    yield file.getvalue()


def test_a_thread_that_closes_takes_back_only_what_was_not_handed_out(path):
    records = [b"%d" % i for i in range(5000)]
    tfw.write_records(path, records)
    with quick_switches():
        for delay in range(200):
            reader = tfw.read_records(path, receipt=True)
            consumer = Consumer(record for record in reader)  # which threads may interrupt
            time.sleep(delay * 2e-5)
            reader.close()
            consumer.join()
            count = len(consumer.found)
            assert records[:count] == consumer.found
            assert Receipt.of(consumer.found) == reader.receipt
            assert count == reader.position.record_index


def test_threads_may_ask_for_the_receipt_while_another_parses(path):
    tfw.write_records(path, tfw.encode_columns({"x": range(200_000)}))
    parser = tfw.Parser({"x": tfw.FixedLenFeature([], tfw.int64)})
    for num_threads in (1, 2):
        batches = parser.parse_file(path, 1000, receipt=True, num_threads=num_threads)
        with quick_switches():
            consumer = Consumer(batches)
            counts = []
            while len(consumer.found) < 200 and consumer.error is None:
                counts.append(batches.receipt.num_records)
            consumer.join()
        assert (200, None) == (len(consumer.found), consumer.error)
        assert sorted(counts) == counts
        assert Receipt.of(tfw.read_records(path)) == batches.receipt
