"""Writers that fail, and what files of a ShardedWriter hold."""

from __future__ import annotations

import gc

# Long ones, which are gathered, between short ones, which are packed.
MIXED = [b"", b"short", bytes(20_000), b"x" * 300_000, b"", bytes(range(256)) * 70, b"end"]


def write_and_fail(writer, records):
    with writer:
        writer.write_many(records)
        raise KeyError


def drop(writers):
    writers.clear()
    gc.collect()


def filled_in_turn(records, size):
    """What files of a size should hold."""
    files, filled = [[]], 0
    for record in records:
        if filled and filled + len(record) + 16 > size:
            files.append([])
            filled = 0
        files[-1].append(record)
        filled += len(record) + 16
    return files
