"""Writers that fail."""

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
