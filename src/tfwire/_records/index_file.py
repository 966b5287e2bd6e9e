"""The files that hold an index: docs/index-format.md describes them."""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import ffi, lib
from tfwire._records.packing import FRAME
from tfwire._records.sinks import FileSink
from tfwire._records.sources import Path
from tfwire.errors import DataLossError

__all__ = ["Contents", "offsets_of_lengths", "read_index", "read_text", "write_index", "write_text"]

Array = np.ndarray[Any, Any]

_MAGIC = b"TFWINDEX"
_VERSION = 1
_COMPRESSIONS = ["", "ZLIB", "GZIP"]  # TensorFlow's numbers
# Magic, version, compression, file size, mtime in ns, fingerprint, bytes per length, records.
_HEADER = struct.Struct("<8sIIQqIIQ")
_CHECKSUM = struct.Struct("<I")


class Contents(NamedTuple):
    """What a saved index says.

    Attributes:
        compression: "", "ZLIB" or "GZIP".
        size, mtime_ns, fingerprint: Of the record file.
        lengths: Of the payloads in bytes; int64.
    """

    compression: str
    size: int
    mtime_ns: int
    fingerprint: int
    lengths: Array


def write_index(path: Path, contents: Contents) -> None:
    """Writes an index, or nothing: it takes its name when it is complete."""
    compression, size, mtime_ns, fingerprint, lengths = contents
    width = 8 if len(lengths) and int(lengths.max()) >= 1 << 32 else 4
    number = _COMPRESSIONS.index(compression)
    header = _HEADER.pack(
        _MAGIC, _VERSION, number, size, mtime_ns, fingerprint, width, len(lengths)
    )
    body = lengths.astype(f"<u{width}").tobytes()
    checksum = lib.tfw_crc32c_mask(_crc(body, _crc(header)))
    _write(path, [header, body, _CHECKSUM.pack(checksum)])


def read_index(path: Path) -> Contents:
    """Reads an index.

    Raises:
        DataLossError: It is damaged, or no index of a version known here.
        OSError: It cannot be read.
    """
    with open(os.fspath(path), "rb") as file:  # no number, which would be an open file's
        data = file.read()
    if data[: len(_MAGIC)] != _MAGIC:
        raise _damaged(path, f"it does not begin with {_MAGIC.decode()}")
    if len(data) < _HEADER.size + _CHECKSUM.size:
        raise _damaged(path, f"its {len(data)} bytes are less than an empty index takes")
    (stored,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
    computed = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, len(data) - _CHECKSUM.size))
    if stored != computed:
        raise _damaged(path, f"its checksum is 0x{computed:08x}, but it says 0x{stored:08x}")
    _, version, number, size, mtime_ns, fingerprint, width, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise _damaged(path, f"it has version {version}, this is version {_VERSION}")
    expected = _HEADER.size + count * width + _CHECKSUM.size
    if number >= len(_COMPRESSIONS) or width not in (4, 8) or expected != len(data):
        raise _damaged(path, f"{count} lengths of {width} bytes do not fit its {len(data)} bytes")
    lengths = np.frombuffer(data, f"<u{width}", count, _HEADER.size)
    if count and int(lengths.max()) > (1 << 62) // count:  # so that no sum overflows
        raise _damaged(path, "it tells of more bytes than any file has")
    lengths = lengths.astype(np.int64)
    return Contents(_COMPRESSIONS[number], size, mtime_ns, fingerprint, lengths)


def offsets_of_lengths(lengths: Array) -> Array:
    """Where records of these lengths begin when they lie without gaps, and where the last ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    offsets[1:] += FRAME * np.arange(1, len(offsets))
    return offsets


# ---- The text of tfrecord2idx ------------------------------------------------------------------


def write_text(path: Path, offsets: Array) -> None:
    """Writes a line "offset size" per record; sizes are with the frame."""
    lines = zip(offsets[:-1].tolist(), np.diff(offsets).tolist(), strict=True)
    _write(path, ["".join(map("%d %d\n".__mod__, lines)).encode()])


def read_text(path: Path) -> Array:
    """The offsets that a text index tells, and the end of the last record.

    Raises:
        DataLossError: The lines are no pairs of numbers, or leave gaps.
        OSError: It cannot be read.
    """
    with open(os.fspath(path), "rb") as file:
        words = file.read().split()
    try:
        table = np.fromiter(map(int, words), np.int64, len(words)).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise _damaged(path, "it is not made of lines 'offset size'") from None
    ends = table[:, 0] + table[:, 1]
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    wrong = np.flatnonzero((table[:, 0] != offsets[:-1]) | (table[:, 1] < FRAME))
    if len(wrong):
        raise _damaged(path, f"line {wrong[0] + 1} does not go on where the one before it ends")
    return offsets


def _write(path: Path, pieces: list[bytes]) -> None:
    sink = FileSink(path, atomic=True)
    try:
        sink.write(pieces)
    except BaseException:
        sink.discard()
        raise
    sink.close()


def _crc(data: bytes, value: int = 0) -> int:
    return int(lib.tfw_crc32c(value, ffi.from_buffer(data), len(data)))


def _damaged(path: Path, text: str) -> DataLossError:
    message = f"{os.fspath(path)}: not a usable index: {text}"
    return DataLossError(message, path=path, reason="index")
