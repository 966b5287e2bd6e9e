"""The files that hold an index: docs/index-format.md describes them."""

from __future__ import annotations

import os
import struct
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import ffi, lib
from tfwire._records.file_sinks import write_file
from tfwire._records.layout import identity_saved
from tfwire._records.packing import FRAME
from tfwire._records.sources import Path, open_regular
from tfwire.errors import DataLossError

__all__ = [
    "Contents",
    "offsets_of_lengths",
    "read_index",
    "read_text",
    "stale",
    "write_index",
    "write_text",
]

Array = np.ndarray[Any, Any]

_MAGIC = b"TFWINDEX"
_VERSION = 1
_COMPRESSIONS = ["", "ZLIB", "GZIP"]  # TensorFlow's numbers
# Magic, version, compression, file size, mtime in ns, fingerprint, bytes per length, records.
_HEADER = struct.Struct("<8sIIQqIIQ")
_CHECKSUM = struct.Struct("<I")

# What is larger is read only if the record file can have so many records. Deflate makes at most
# 1032 bytes of one, and a line of text has two numbers of at most 19 digits.
_SURELY_READ = 1 << 20
_MOST_INFLATED = 1032
_LONGEST_LINE = 42
_TEXT_AT_ONCE = 1 << 20


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


def write_index(path: Path, contents: Contents, like: Path | None = None) -> None:
    """Writes an index, or nothing: it takes its name when it is complete.

    Args:
        path: The index.
        contents: What it says.
        like: A file whose permissions a new index must not exceed.
    """
    compression, size, mtime_ns, fingerprint, lengths = contents
    width = 8 if len(lengths) and int(lengths.max()) >= 1 << 32 else 4
    number = _COMPRESSIONS.index(compression)
    header = _HEADER.pack(
        _MAGIC, _VERSION, number, size, mtime_ns, fingerprint, width, len(lengths)
    )
    body = lengths.astype(f"<u{width}").tobytes()
    checksum = lib.tfw_crc32c_mask(_crc(body, _crc(header)))
    write_file(path, [header, body, _CHECKSUM.pack(checksum)], like)


def read_index(path: Path, record_path: Path, size: int) -> tuple[Contents, str | None]:
    """Reads an index. No more of it is read than an index of the record file can hold.

    Args:
        path: The index.
        record_path, size: The record file and its bytes.

    Returns:
        What the index says, and which file it was saved for where that is known.

    Raises:
        DataLossError: It is damaged, no index of a version known here, or of a file of another
            size.
        OSError: It cannot be read.
    """
    with _opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        header = file.read(_HEADER.size)
        compression, width, count = _checked_header(path, header, length)
        fields = _HEADER.unpack(header)
        if length <= _SURELY_READ or _fits(compression, count, size):
            data = header + file.read(length - len(header))
        else:
            raise stale(record_path, path, f"{count} records", f"{size} bytes")
        identity = identity_saved(file.fileno())
    _check_sum(path, data)
    lengths = np.frombuffer(data, f"<u{width}", count, _HEADER.size)
    if count and int(lengths.max()) > (1 << 62) // count:  # so that no sum overflows
        raise _damaged(path, "it tells of more bytes than any file has")
    contents = Contents(compression, fields[3], fields[4], fields[5], lengths.astype(np.int64))
    return contents, identity


def _opened(path: Path) -> Any:
    """An index that is open for reading: a regular file, as a pipe may never end."""
    source = open_regular(path)
    if source is None:
        raise _damaged(path, "it is not a regular file")
    fd = source.detach()
    return os.fdopen(fd, "rb")


def _checked_header(path: Path, header: bytes, length: int) -> tuple[str, int, int]:
    """Compression, bytes per length and number of records that the header of an index tells."""
    if header[: len(_MAGIC)] != _MAGIC:
        raise _damaged(path, f"it does not begin with {_MAGIC.decode()}")
    if length < _HEADER.size + _CHECKSUM.size:
        raise _damaged(path, f"its {length} bytes are less than an empty index takes")
    _, version, number, _, _, _, width, count = _HEADER.unpack(header)
    if version != _VERSION:
        raise _damaged(path, f"it has version {version}, this is version {_VERSION}")
    expected = _HEADER.size + count * width + _CHECKSUM.size
    if number >= len(_COMPRESSIONS) or width not in (4, 8) or expected != length:
        raise _damaged(path, f"{count} lengths of {width} bytes do not fit its {length} bytes")
    return _COMPRESSIONS[number], width, count


def _check_sum(path: Path, data: bytes) -> None:
    (stored,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
    computed = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, len(data) - _CHECKSUM.size))
    if stored != computed:
        raise _damaged(path, f"its checksum is 0x{computed:08x}, but it says 0x{stored:08x}")


def _fits(compression: str, count: int, size: int) -> bool:
    """Whether a file of that size can hold so many records."""
    return count * int(FRAME) <= size * (_MOST_INFLATED if compression else 1)


def offsets_of_lengths(lengths: Array) -> Array:
    """Where records of these lengths begin when they lie without gaps, and where the last ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    offsets[1:] += FRAME * np.arange(1, len(offsets))
    return offsets


# ---- The text of tfrecord2idx ------------------------------------------------------------------


def write_text(path: Path, offsets: Array, like: Path | None = None) -> None:
    """Writes a line "offset size" per record; sizes are with the frame. Else as ``write_index``."""
    lines = zip(offsets[:-1].tolist(), np.diff(offsets).tolist(), strict=True)
    write_file(path, ["".join(map("%d %d\n".__mod__, lines)).encode()], like)


def read_text(path: Path, record_path: Path, size: int, compression: str) -> Array:
    """The offsets that a text index tells, and the end of the last record.

    Args:
        path: The text.
        record_path, size, compression: The record file.

    Raises:
        DataLossError: The lines are no pairs of numbers, leave gaps, or are more than the file
            can have records.
        OSError: It cannot be read.
    """
    ends = [np.zeros(1, np.int64)]
    with _opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        if length > _SURELY_READ and not _fits(compression, length // _LONGEST_LINE, size):
            raise stale(record_path, path, f"{length} bytes of text", f"{size} bytes")
        number = 0
        while lines := file.readlines(_TEXT_AT_ONCE):
            table = _table_of(path, b"".join(lines).split())
            ends.append(_ends_of(path, table, int(ends[-1][-1]), number))
            number += len(table)
    return np.concatenate(ends)


def _table_of(path: Path, words: list[bytes]) -> Array:
    """The numbers of some lines, in pairs."""
    try:
        return np.fromiter(map(int, words), np.int64, len(words)).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise _damaged(path, "it is not made of lines 'offset size'") from None


def _ends_of(path: Path, table: Array, begin: int, number: int) -> Array:
    """Where the records of some lines end; the first must begin there."""
    begins, sizes = table[:, 0], table[:, 1]
    ends = begins + sizes
    before = np.append(begin, ends)[: len(ends)]
    wrong = np.flatnonzero((begins != before) | (sizes < FRAME) | (ends < begins))
    if len(wrong):
        line = number + wrong[0] + 1
        raise _damaged(path, f"line {line} does not go on where the one before it ends")
    return ends


def _crc(data: bytes, value: int = 0) -> int:
    return int(lib.tfw_crc32c(value, ffi.from_buffer(data), len(data)))


def stale(path: Any, index_path: Any, expected: str, found: str) -> DataLossError:
    """What is said of an index that does not belong to its file."""
    return DataLossError(
        f"{os.fspath(path)}: {os.fspath(index_path)} is stale: it is for {expected}, the file has "
        f"{found}",
        path=path,
        reason="index",
    )


def _damaged(path: Path, text: str) -> DataLossError:
    message = f"{os.fspath(path)}: not a usable index: {text}"
    return DataLossError(message, path=path, reason="index")
