"""Writers that fail, limits of files, and what files of a ShardedWriter hold."""

from __future__ import annotations

import contextlib
import gc

import pytest

# Long ones, which are gathered, between short ones, which are packed.
MIXED = [b"", b"short", bytes(20_000), b"x" * 300_000, b"", bytes(range(256)) * 70, b"end"]


def write_and_fail(writer, records):
    with writer:
        writer.write_many(records)
        raise KeyError


def drop(writers):
    writers.clear()
    gc.collect()


@contextlib.contextmanager
def files_of_at_most(size):
    """Stands in for a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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
