"""Record files for the tests of indexes."""

from __future__ import annotations

import gzip
import zlib

import numpy as np

from helpers import reference

RECORDS = [bytes([i]) * (i * i % 97) for i in range(40)]


def write(path, records, compression=""):
    data = b"".join(map(reference.frame, records))
    if compression == "GZIP":
        data = gzip.compress(data)
    elif compression == "ZLIB":
        data = zlib.compress(data)
    path.write_bytes(data)
    return path


def begins(records):
    return np.cumsum([0] + [len(record) + 16 for record in records]).tolist()


def other_records(records: list[bytes], first: int, last: int) -> list[bytes]:
    """As many records of as many bytes: two are one and, further on, one is two, so that those
    between have another number."""
    joined = b"j" * (len(records[first]) + len(records[first + 1]) + 16)
    pair = [b"", b"k" * (len(records[last]) - 16)]
    between = records[first + 2 : last]
    return [*records[:first], joined, *between, *pair, *records[last + 1 :]]
