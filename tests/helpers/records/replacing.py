"""What replaces files: everything that is written whole or not at all."""

from __future__ import annotations

import os

import tfwire as tfw
from helpers.processes import faults
from helpers.reference import read
from tfwire._records.reading.publishing_markers import MARKER

OLD, NEW = [b"old"] * 3, [b"new"] * 5
LEFTOVER = ".tfwire-"  # how names begin that a killed process may leave


def hidden(folder):
    return [name for name in os.listdir(folder) if name.startswith(LEFTOVER)]


def write_atomically(folder):
    with tfw.TFRecordWriter(folder / "data", atomic=True) as writer:
        writer.write_many(NEW)


def write_gzip_atomically(folder):
    with tfw.TFRecordWriter(folder / "data", "GZIP", atomic=True) as writer:
        writer.write_many(NEW)


def save_index(folder):
    tfw.RecordIndex.build(folder / "records").save(folder / "data")


def save_text_index(folder):
    tfw.RecordIndex.build(folder / "records").write_text(folder / "data")


def repair(folder):
    tfw.repair_file(folder / "records", folder / "data", overwrite=True)


def write_schema(folder):
    tfw.write_schema({"a": tfw.FixedLenFeature([], tfw.int64)}, folder / "data")


SINGLE = [
    write_atomically,
    write_gzip_atomically,
    save_index,
    save_text_index,
    repair,
    write_schema,
]


PATTERN = "p-{shard}-of-{shards}"


def write_set(folder, records, num_shards=3):
    with tfw.ShardedWriter(folder / PATTERN, num_shards=num_shards, index=True) as writer:
        writer.write_many(records)


def kills(folder, stride, action=faults.kill, records=NEW):
    """Kills a process that publishes records, at calls from soon before it renames files on."""
    return faults.every(lambda: write_set(folder, records), action, stride=stride, first=150)


def files_in(folder):
    return {
        name: (folder / name).read_bytes()
        for name in os.listdir(folder)
        if not name.startswith(LEFTOVER) and name != MARKER
    }


def records_in(files):
    """The records of all shards, without the indexes, which hold times."""
    return {name: read(data).records for name, data in files.items() if "tfwindex" not in name}
