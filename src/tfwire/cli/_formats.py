"""The formats of tfwire convert: their names, the names of their files, their compressions."""

from __future__ import annotations

import os
import re
from typing import NamedTuple


class FileFormat(NamedTuple):
    """A file format.

    Attributes:
        suffixes: Of file names, without the dot.
        compressions: That it can be written with; the first unless another is asked for.
    """

    suffixes: tuple[str, ...]
    compressions: tuple[str, ...]


FORMATS = {
    "tfrecord": FileFormat(
        ("tfrecord", "tfrecords", "tfrec", "tfr", "record"), ("none", "gzip", "zlib")
    ),
    "parquet": FileFormat(("parquet", "pq"), ("snappy", "none", "gzip", "zstd", "lz4")),
    "arrow": FileFormat(("arrow", "feather", "ipc"), ("none", "zstd", "lz4")),
    "jsonl": FileFormat(("jsonl", "ndjson"), ("none", "gzip")),
    "csv": FileFormat(("csv",), ("none", "gzip")),
    "tar": FileFormat(("tar", "tgz"), ("none", "gzip")),
}
ARROW_FORMATS = ("parquet", "arrow")

_SHARD = re.compile(r"-(\d+|\{[^{}]*\})-of-(\d+|\{[^{}]*\})")
_COMPRESSED = re.compile(r"\.(gz|gzip|zlib)$")


def format_of(path: str) -> str | None:
    """The format that a file's name says: train.tfrecord, train.tfrecord-00000-of-00010,
    train.csv.gz; None if it says none."""
    name = _SHARD.sub("", os.path.basename(path).lower())
    suffix = _COMPRESSED.sub("", name).rpartition(".")[2]
    for format_name, known in FORMATS.items():
        if suffix in known.suffixes and "." in name:
            return format_name
    return None


def is_gzip_name(path: str) -> bool:
    """Whether a file's name says that it is compressed by gzip."""
    return _SHARD.sub("", os.path.basename(path).lower()).endswith((".gz", ".gzip", ".tgz"))
