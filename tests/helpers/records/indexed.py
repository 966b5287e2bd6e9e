"""Record files for the tests of indexes."""

from __future__ import annotations

import gzip
import os
import zlib

import numpy as np

import tfwire as tfw
from helpers import reference
from tfwire._records.index.offset_checks import fingerprint_of_file

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


def touch(path, status):
    """Gives a file the time that it had."""
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def with_fingerprint(index):
    """The index, as if its file had been indexed so."""
    with open(index.path, "rb") as file:
        index.fingerprint = fingerprint_of_file(
            file.fileno(), index.offsets, index.compression, index.size
        )
    return index


def outcome(file, key):
    """What a file gives for a key, or reason and number of an error."""
    try:
        return file[key]
    except tfw.DataLossError as error:
        return error.reason, error.record_index
