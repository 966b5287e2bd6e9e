"""Record files for the tests of indexes."""

from __future__ import annotations

import gzip
import zlib

import numpy as np

import reference

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
