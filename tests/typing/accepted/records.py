"""Records: reading, writing, indexes, verifying and repairing."""

import io
import json
import os
from pathlib import Path

import numpy as np
from typing_extensions import assert_type

import tfwire as tfw
from tfwire.typing import RecordsByKey

# ---- Reading ----

for record in tfw.read_records("a.tfrecord"):
    assert_type(record, bytes)
for record in tfw.read_records(["a.tfrecord", Path("b.tfrecord"), b"c.tfrecord"], "GZIP"):
    assert_type(record, bytes)

with tfw.read_records(io.BytesIO(), compression_type=None, on_corrupt="skip") as records:
    assert_type(records, tfw.RecordIterator)
    assert_type(next(records), bytes)
    assert_type(records.skipped, tfw.SkippedRegions)
    assert_type(records.skipped[0], tfw.SkippedRegion)
    assert_type(records.skipped[0].begin, int)
    assert_type(records.position, tfw.RecordPosition)
    assert_type(records.tail, tfw.TornTail | None)
    assert_type(records.receipt, tfw.Receipt)
    assert_type(records.file_crc32c, int | None)
    for path, index, offset, payload in records.with_positions():
        assert_type(path, str | os.PathLike[str] | None)
        assert_type((index, offset, payload), tuple[int, int, bytes])

with open("a.tfrecord", "rb") as file:
    total = sum(map(len, tfw.read_records(file, verify=False, max_record_size=None)))
assert_type(total, int)

start = tfw.RecordPosition(3, 60)
for record in tfw.follow_records("a.tfrecord", start=start, interval=0.5, timeout=10):
    assert_type(record, bytes)

url = "s3://bucket/a.tfrecord"
for record in tfw.read_records([url, Path("b")], storage_options={"anon": True}):
    assert_type(record, bytes)

remote = tfw.RecordIndex.build(url, storage_options={"anon": True})
assert_type(remote.version, str | None)
assert_type(tfw.TFRecordFile(url, remote, storage_options={"anon": True})[3], bytes)
assert_type(tfw.TFRecordFiles([url, Path("b")], storage_options=None)[2:], list[bytes])

# ---- Writing ----

with tfw.TFRecordWriter("a.tfrecord", "GZIP", compression_level=6, num_threads=2) as writer:
    assert_type(writer, tfw.TFRecordWriter)
    writer.write(b"bytes")
    writer.write(bytearray(3))
    writer.write(memoryview(b"bytes"))
    writer.write("text")
    writer.write({"label": 1, "name": "cat", "weights": [0.5, 1.5]})
    writer.write(tfw.train.Example())
    writer.write(np.zeros(3, np.uint8))
    assert_type(writer.write_many([b"cat", b"dog"]), int)
    writer.write_many({"label": number} for number in range(3))
    writer.write_columns({"label": np.arange(3), "name": ["cat", "dog", "goat"]})
    writer.flush()

# TensorFlow's words in readers and in writers, in either.
assert_type(tfw.read_records("a.tfrecord", options="GZIP"), tfw.RecordIterator)
assert_type(tfw.TFRecordDataset("a.tfrecord", options="auto"), tfw.TFRecordDataset)
tfw.TFRecordWriter("a.tfrecord", compression_type="ZLIB").close()
tfw.write_records("a.tfrecord", [b"cat"], compression_type=tfw.TFRecordOptions("GZIP"))
options = tfw.TFRecordOptions("ZLIB", compression_level=9)
assert_type(options.compression_level, int | None)
assert_type(tfw.write_records(Path("a.tfrecord"), [b"cat"], options), int)
assert_type(tfw.write_records(io.BytesIO(), ({"x": 1} for _ in range(2))), int)

with tfw.ShardedWriter("a-{shard}-of-{shards}", num_shards=2, options="ZLIB") as sharded:
    assert_type(sharded, tfw.ShardedWriter)
    assert_type(sharded.write_many([b"cat"]), int)
assert_type(sharded.paths, list[str] | None)
assert_type(sharded.num_records, int)

# ---- By number ----

with tfw.TFRecordFile("a.tfrecord", index="a.index") as numbered:
    assert_type(numbered, tfw.TFRecordFile)
    assert_type(len(numbered), int)
    assert_type(numbered[0], bytes)
    assert_type(numbered[1:3], list[bytes])
    assert_type(numbered[[3, 1]], list[bytes])
    assert_type(numbered[np.arange(3)], list[bytes])
with tfw.TFRecordFiles(["a.tfrecord", Path("b.tfrecord")], max_open_files=2) as files:
    assert_type(files, tfw.TFRecordFiles)
    assert_type(list(files), list[bytes])

    by_key = files.by_key
    assert_type(by_key, RecordsByKey)
    assert_type(by_key["id 17"], bytes)
    assert_type(by_key[17], bytes)
    assert_type(by_key[["id 17", b"id 4"]], list[bytes])
    assert_type(by_key[np.arange(3)], list[bytes])
    assert_type(by_key.find("id 17"), int)
    assert_type(by_key.get("id 17"), bytes | None)
    assert_type(files[by_key.find([3, 17])], list[bytes])

found = tfw.RecordIndex.build("a.tfrecord", key="id")
assert_type(found.key, str | None)
found.save()
found.write_text("a.idx")
assert_type(tfw.RecordIndex.load("a.tfrecord", ignore_mtime=True), tfw.RecordIndex)
assert_type(tfw.RecordIndex.read_text("a.tfrecord", "a.idx"), tfw.RecordIndex)
assert_type(int(found.offsets[-1]), int)
# What one says of its compression, others take.
tfw.read_records("a.tfrecord", found.compression)

# ---- Integrity ----

assert_type(tfw.RecordIndex.build_many(["a", Path("b")], num_threads=2), list[tfw.RecordIndex])
assert_type(tfw.read_records(["a", Path("b")], num_threads=2), tfw.RecordIterator)
report = tfw.verify_file("a.tfrecord", file_crc32c=True, receipt=True, progress=print)
with tfw.verify_files(["a.tfrecord", Path("b")], progress=print, num_threads=2) as reports:
    for each in reports:
        assert_type(each, tfw.FileReport)
assert_type(report, tfw.FileReport)
assert_type(report.file_crc32c, int | None)
assert_type(tfw.verify_file("a.tfrecord.gz", "GZIP"), tfw.FileReport)
assert_type(report.intact, bool)
assert_type(report.skipped, tfw.SkippedRegions)
assert_type(report.receipt, tfw.Receipt | None)
tfw.read_records("a.tfrecord", report.compression)

repaired = tfw.repair_file("a.tfrecord", "b.tfrecord", correct=True, overwrite=True)
assert_type(repaired, tfw.RepairReport)
assert_type(repaired.skipped.num_bytes, int)
assert_type(repaired.flipped_bits, tfw.FlippedBits)
assert_type(repaired.flipped_bits[0], tfw.FlippedBit)

receipt = tfw.Receipt.of([b"cat"]) + tfw.Receipt.of([b"dog"]) - tfw.Receipt()
assert_type(receipt, tfw.Receipt)
assert_type(sum([receipt, receipt], tfw.Receipt()), tfw.Receipt)
assert_type(tfw.Receipt.from_dict(receipt.to_dict()), tfw.Receipt)
tfw.Receipt.from_dict(json.loads(json.dumps(receipt.to_dict())))

try:
    tfw.verify_file("a.tfrecord")
except tfw.DataLossError as error:
    assert_type(error.reason, str | None)
    assert_type(error.offset, int | None)
except tfw.ParseError as error:
    assert_type(error.feature, str | None)
except tfw.Error as error:
    assert_type(error.message, str)
