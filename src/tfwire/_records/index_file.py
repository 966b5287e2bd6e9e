"""Index files; finding offsets by headers, and comparing a file with the offsets of an index."""

from __future__ import annotations

import os
import struct
import time
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tfwire._base import system
from tfwire._base.errors import DataLossError
from tfwire._base.native import DAMAGE_REASONS, check, ffi, lib, new_error
from tfwire._base.parallel_map import Check, never_stopped
from tfwire._records.batch_reader import BatchReader
from tfwire._records.damage import Reading
from tfwire._records.frames import FRAME
from tfwire._records.native_batches import span_table
from tfwire._records.paths import Path
from tfwire._records.remote_object import RemoteObject
from tfwire._records.remote_sink import RemoteSink
from tfwire._records.sinks import replace_file
from tfwire._records.sources import FileSource, open_regular
from tfwire._records.urls import ObjectPath

if TYPE_CHECKING:
    from tfwire._base.aliases import Compression

__all__ = [
    "Contents",
    "Layout",
    "Walk",
    "file_identity",
    "offsets_in_file",
    "offsets_in_stream",
    "offsets_of_lengths",
    "read_contents",
    "read_index",
    "read_text",
    "save_identity",
    "stale",
    "write_index",
    "write_text",
]

Array = np.ndarray[Any, Any]
_INDEX_MAGIC = b"TFWINDEX"
# Of a file, and of an object: with the text of its version after the lengths.
_INDEX_VERSION, _OBJECT_INDEX_VERSION = 1, 2
_COMPRESSIONS_BY_NUMBER: list[Compression] = ["", "ZLIB", "GZIP"]  # TensorFlow's numbers
# Magic, version, compression, file size, mtime in ns, fingerprint, bytes per length, records.
_HEADER = struct.Struct("<8sIIQqIIQ")
_CHECKSUM = _TEXT_LENGTH = struct.Struct("<I")
_MOST_TEXT = 1 << 16  # bytes of an object's version
_FETCHED = 1 << 23  # of an index that is an object, by the first request
# A larger index is read only if the record file can hold that many records. Deflate expands a byte
# to at most 1032, and a line of text has two numbers of at most 19 digits.
_SURELY_READ = 1 << 20
_MOST_INFLATED = 1032
_LINE_BYTES = 42
_TEXT_AT_ONCE = 1 << 20


class Contents(NamedTuple):
    """The contents of a saved index.

    Attributes:
        compression: "", "ZLIB" or "GZIP".
        size, mtime_ns, fingerprint: As of RecordIndex.
        lengths: Bytes of each payload; int64.
        version: As of RecordIndex.
    """

    compression: Compression
    size: int
    mtime_ns: int
    fingerprint: int
    lengths: Array
    version: str | None = None


def write_index(path: Path, contents: Contents, like: Path | None = None) -> None:
    """Writes an index, atomically: it appears when it is complete.

    Args:
        path: The index.
        contents: Its contents.
        like: A file whose permissions a new index must not exceed.
    """
    compression, size, mtime_ns, fingerprint, lengths, version = contents
    width = 8 if len(lengths) and int(lengths.max()) >= 1 << 32 else 4
    number = _COMPRESSIONS_BY_NUMBER.index(compression)
    kind = _INDEX_VERSION if version is None else _OBJECT_INDEX_VERSION
    header = _HEADER.pack(
        _INDEX_MAGIC, kind, number, size, mtime_ns, fingerprint, width, len(lengths)
    )
    body = lengths.astype(f"<u{width}").tobytes()
    if version is not None:
        text = version.encode()[:_MOST_TEXT]
        body += _TEXT_LENGTH.pack(len(text)) + text
    checksum = lib.tfw_crc32c_mask(_crc(body, _crc(header)))
    _replace(path, [header, body, _CHECKSUM.pack(checksum)], like)


def _replace(path: Path, pieces: list[bytes], like: Path | None) -> None:
    """As ``replace_file``, also for an object."""
    if not isinstance(path, ObjectPath):
        replace_file(path, pieces, None if isinstance(like, ObjectPath) else like)
        return
    sink = RemoteSink(path)
    try:
        sink.write(pieces)
    except BaseException:
        sink.discard()
        raise
    sink.close()


def read_index(path: Path, record_path: Path, size: int) -> tuple[Contents, str | None]:
    """Reads an index, and no more bytes than an index of the record file can have.

    Args:
        path: The index.
        record_path, size: The record file and its bytes.

    Returns:
        The contents, and the identity of the file that it was saved for, or None.

    Raises:
        DataLossError: It is damaged, of an unknown version, or has more records than fit into the
            file.
        OSError: It cannot be read.
    """
    if isinstance(path, ObjectPath):
        return _contents(path, _fetched_index(path, record_path, size)), None
    with _opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        return read_contents(file, length, path, record_path, size), identity_saved(file.fileno())


def read_contents(file: Any, length: int, path: Path, record_path: Path, size: int) -> Contents:
    """As read_index, from a file object of ``length`` bytes."""
    header = file.read(_HEADER.size)
    _check_fits(path, header, length, record_path, size)
    return _contents(path, header + file.read(length - len(header)))


def _fetched_index(path: ObjectPath, record_path: Path, size: int) -> bytes:
    """The bytes of an index that is an object, by one request unless it is long."""
    data = RemoteObject.read_small(path, 0, _FETCHED)
    if len(data) == _FETCHED:
        _, kind, _, _, _, _, width, count = _HEADER.unpack_from(data)
        length, most = _HEADER.size + count * width + _CHECKSUM.size, 0
        if kind == _OBJECT_INDEX_VERSION:
            length, most = length + _TEXT_LENGTH.size, _MOST_TEXT
        if length + most > _FETCHED:
            _check_fits(path, data[: _HEADER.size], length, record_path, size)
            # One byte again: the index may end here, and a range without bytes fails.
            data += RemoteObject.read_small(path, _FETCHED - 1, length + most)[1:]
    _check_fits(path, data[: _HEADER.size], len(data), record_path, size)
    return data


def _check_fits(path: Path, header: bytes, length: int, record_path: Path, size: int) -> None:
    """Refuses an index that is malformed, or has more records than fit into the file."""
    compression, count = _checked_header(path, header, length)
    if length > _SURELY_READ and not _fits(compression, count, size):
        raise stale(record_path, path, f"{count} records", f"{size} bytes")


def _contents(path: Path, data: bytes) -> Contents:
    """What the bytes of an index say, unless they are damaged."""
    _check_crc(path, data)
    _, kind, number, size, mtime_ns, fingerprint, width, count = _HEADER.unpack_from(data)
    lengths = np.frombuffer(data, f"<u{width}", count, _HEADER.size)
    if count and int(lengths.max()) > (1 << 62) // count:  # so that no sum overflows
        raise _damaged(path, "its lengths add up to more bytes than any file has")
    version = None
    if kind == _OBJECT_INDEX_VERSION:
        at = _HEADER.size + count * width
        text = data[at + _TEXT_LENGTH.size : -_CHECKSUM.size]
        if _TEXT_LENGTH.unpack_from(data, at)[0] != len(text):
            raise _damaged(path, f"its version does not fit its {len(data)} bytes")
        version = text.decode(errors="replace")
    compression = _COMPRESSIONS_BY_NUMBER[number]
    return Contents(compression, size, mtime_ns, fingerprint, lengths.astype(np.int64), version)


def _opened(path: Path) -> Any:
    """Opens an index. It must be a regular file: a pipe may never end."""
    source = open_regular(path)
    if source is None:
        raise _damaged(path, "it is not a regular file")
    fd = source.detach()
    return os.fdopen(fd, "rb")


def _checked_header(path: Path, header: bytes, length: int) -> tuple[Compression, int]:
    """Compression and number of records, from the header of an index."""
    if header[: len(_INDEX_MAGIC)] != _INDEX_MAGIC:
        raise _damaged(path, f"it does not begin with {_INDEX_MAGIC.decode()}")
    if length < _HEADER.size + _CHECKSUM.size:
        raise _damaged(path, f"its {length} bytes are less than an empty index takes")
    _, kind, number, _, _, _, width, count = _HEADER.unpack(header)
    if kind not in (_INDEX_VERSION, _OBJECT_INDEX_VERSION):
        raise _damaged(path, f"it has version {kind}, this is version {_INDEX_VERSION}")
    expected = _HEADER.size + count * width + _CHECKSUM.size
    fits = expected == length
    if kind == _OBJECT_INDEX_VERSION:
        fits = 0 <= length - expected - _TEXT_LENGTH.size <= _MOST_TEXT
    if number >= len(_COMPRESSIONS_BY_NUMBER) or width not in (4, 8) or not fits:
        raise _damaged(path, f"{count} lengths of {width} bytes do not fit its {length} bytes")
    return _COMPRESSIONS_BY_NUMBER[number], count


def _check_crc(path: Path, data: bytes) -> None:
    (stored,) = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)
    computed = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, len(data) - _CHECKSUM.size))
    if stored != computed:
        raise _damaged(path, f"its checksum is 0x{computed:08x}, but it says 0x{stored:08x}")


def _fits(compression: Compression, count: int, size: int) -> bool:
    """Whether a file of this size can hold ``count`` records."""
    return count * int(FRAME) <= size * (_MOST_INFLATED if compression else 1)


def offsets_of_lengths(lengths: Array) -> Array:
    """Where records of these lengths begin if there are no gaps, and where the last ends."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    offsets[1:] += FRAME * np.arange(1, len(offsets))
    return offsets


# ---- The text form of tfrecord2idx -------------------------------------------------------------


def write_text(path: Path, offsets: Array, like: Path | None = None) -> None:
    """As ``write_index``, but one line "offset size" per record; sizes include the frame."""
    lines = zip(offsets[:-1].tolist(), np.diff(offsets).tolist(), strict=True)
    _replace(path, ["".join(map("%d %d\n".__mod__, lines)).encode()], like)


def read_text(path: Path, record_path: Path, size: int, compression: Compression) -> Array:
    """The offsets in a text index, and the end of the last record.

    Args:
        path: The text.
        record_path, size, compression: The record file.

    Raises:
        DataLossError: The lines are not pairs of numbers, leave gaps, or are more than fit into the
            file.
        OSError: It cannot be read.
    """
    ends = [np.zeros(1, np.int64)]
    with _opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        if length > _SURELY_READ and not _fits(compression, length // _LINE_BYTES, size):
            raise stale(record_path, path, f"{length} bytes of text", f"{size} bytes")
        number = 0
        while lines := file.readlines(_TEXT_AT_ONCE):
            table = _pairs(path, b"".join(lines).split())
            ends.append(_record_ends(path, table, int(ends[-1][-1]), number))
            number += len(table)
    return np.concatenate(ends)


def _pairs(path: Path, words: list[bytes]) -> Array:
    """The numbers of some lines, as rows of two."""
    try:
        return np.fromiter(map(int, words), np.int64, len(words)).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise _damaged(path, "it is not made of lines 'offset size'") from None


def _record_ends(path: Path, table: Array, begin: int, number: int) -> Array:
    """Where the records of some lines end; the first must begin at ``begin``."""
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
    """The error for an index that does not fit its file."""
    return DataLossError(
        f"{os.fspath(path)}: {os.fspath(index_path)} is stale: it is for {expected}, the file has "
        f"{found}",
        path=path,
        reason="index",
    )


def _damaged(path: Path, text: str) -> DataLossError:
    message = f"{os.fspath(path)}: not a usable index: {text}"
    return DataLossError(message, path=path, reason="index")


# ---- Do records have the offsets, and so the numbers, that an index says? ----
#
# A record at an offset of the index may verify and still have another number, if the file was
# replaced by one of the same size, in which one earlier record is longer and another one shorter.
# So the headers before a record are compared with the index, once, unless the file is certainly the
# one that was indexed.

# Two changes within this many nanoseconds may leave the same time: the clock of files ticks every
# 1 to 10 ms.
_TICK = 50_000_000
# The extended attribute of an index that names the file it was saved for.
_ATTRIBUTE = "user.tfwire.indexed"


class Layout:
    """Compares the headers of a plain file with the offsets of an index, as far as needed.

    Args:
        source: The file.
        offsets: Of all records, and the end of the last.
        known: True if the offsets were found in this very file: nothing needs to be compared.

    Attributes:
        checked: How many records are known to lie where the index says.
    """

    def __init__(self, source: FileSource, offsets: Array, known: bool) -> None:
        self._source = source
        self._offsets = offsets
        self.checked = len(offsets) - 1 if known else 0
        self._wrong: int | None = None  # the first record of another length

    def first_wrong(self, number: int) -> int | None:
        """The first record, up to ``number``, that is not where the index says; None: all are."""
        if self._wrong is None and self.checked <= number:
            walk = Walk(self._source, int(self._offsets[-1]))
            begins = np.empty(_WALK_RECORDS, np.int64)
            while self._wrong is None and self.checked <= number:
                self._step(walk, begins, self.checked)
        wrong = self._wrong
        return wrong if wrong is not None and wrong <= number else None

    def _step(self, walk: Walk, begins: Array, first: int) -> None:
        """Compares some records with the index. If a header is damaged, the index is trusted for
        the end of its record: nothing else says where that is."""
        walk.start(int(self._offsets[first]))
        count, status = walk.step(begins, 0)
        found = np.append(begins[:count], walk.offset)
        expected = self._offsets[first : first + len(found)]
        other = np.flatnonzero(found[: len(expected)] != expected)
        if len(other):
            self._wrong = first + int(other[0]) - 1
        elif len(found) > len(expected) or status in (lib.TFW_E_TRUNCATED, lib.TFW_E_TOO_LARGE):
            self._wrong = first + len(expected) - 1
        else:
            self.checked = first + count + (status == lib.TFW_E_LENGTH_CRC)


def file_identity(status: os.stat_result) -> str | None:
    """Identifies a file in its present state, by a time that nobody can set. None: it was changed
    so recently that another change might not show."""
    if time.time_ns() - status.st_ctime_ns < _TICK:
        return None
    return f"{status.st_dev}:{status.st_ino}:{status.st_ctime_ns}"


def save_identity(index_path: Path, identity: str | None) -> None:
    """Notes at a saved index which file it is for, if the file system allows it."""
    if identity is not None:
        system.set_attribute(index_path, _ATTRIBUTE, identity.encode())


def identity_saved(fd: int) -> str | None:
    """What ``save_identity`` noted at an open index, or None."""
    noted = system.get_attribute(fd, _ATTRIBUTE)
    return None if noted is None else noted.decode("ascii", "replace")


# ---- Finding the offsets of a file's records by its headers ----

_WALK_BYTES = 1 << 18
_WALK_RECORDS = 1 << 16  # records per call into C; an interrupt is handled between calls
_FIRST_WALK_RECORDS = 1 << 13  # the same for the first call, which shows how many there may be


class Walk:
    """A walk over the headers of a plain file.

    Args:
        source: The file.
        size: Its size in bytes.

    Attributes:
        offset: Where the walk goes on.
        error: The details after a status that is damage.
    """

    def __init__(self, source: FileSource, size: int) -> None:
        self._source = source
        self._size = size
        self._buffer = np.empty(_WALK_BYTES, np.uint8)
        self._at, self._found = ffi.new("uint64_t *"), ffi.new("size_t *")
        self.error = new_error()

    @property
    def offset(self) -> int:
        return int(self._at[0])

    def start(self, offset: int) -> None:
        """Sets where the walk goes on."""
        self._at[0] = offset

    def step(self, out: Array, first: int) -> tuple[int, int]:
        """Writes where the next records begin.

        Args:
            out: int64 of rank 1, filled from index ``first`` on, at most to its end.
            first: Where in ``out`` to begin.

        Returns:
            How many records were found, and TFW_OK, TFW_END, or the damage of the record at
            ``offset``.

        Raises:
            OSError: The file cannot be read.
        """
        status = lib.tfw_walk(
            self._source.fd,
            self._size,
            self._at,
            ffi.from_buffer("uint8_t[]", self._buffer),
            len(self._buffer),
            ffi.from_buffer("int64_t[]", out) + first,
            min(len(out) - first, _WALK_RECORDS),
            self._found,
            self.error,
        )
        if status not in DAMAGE_REASONS:
            check(status, self.error, self._source.path)
        return self._found[0], status


def offsets_in_file(
    source: FileSource, size: int, reading: Reading, checked: Check = never_stopped
) -> Array:
    """The offsets of a file's records and its end; ``checked`` is called again and again."""
    walk, offsets = Walk(source, size), np.empty(_FIRST_WALK_RECORDS + 1, np.int64)
    count, status = 0, lib.TFW_OK
    while status == lib.TFW_OK:
        checked()
        if count + 1 >= len(offsets):
            offsets = _with_room(offsets, count, size, walk.offset)
        found, status = walk.step(offsets[:-1], count)
        if status in DAMAGE_REASONS:
            walk.error.record += count
            raise reading.record_error(status, walk.error)
        count += found
    offsets[count] = size
    offsets.resize(count + 1, refcheck=False)
    return offsets


def _with_room(offsets: Array, count: int, size: int, done: int) -> Array:
    """A copy of ``count`` offsets of a file, of which ``done`` bytes are known, with room for those
    of the rest if its records are as long; but not much more than 64 times as much: memory grows
    with the records found, not with the file's size. Fresh pages cost much: none is cleared, and
    few are copied."""
    expected = count * size // max(done, 1) * 65 // 64
    grown = np.empty(min(expected, 64 * count) + _FIRST_WALK_RECORDS, np.int64)
    grown[:count] = offsets[:count]
    return grown


def offsets_in_stream(
    path: Any, compression: Compression | Literal["auto"], checked: Check = never_stopped
) -> Array:
    """The offsets of a compressed file's records and their end, in its decompressed content, or of
    an input that has no descriptor; ``checked`` is called again and again."""
    chunks: list[Array] = []
    end = 0
    with BatchReader(path, compression, verify=False, max_record_size=None) as reader:
        while (batch := reader.next()) is not None:
            checked()
            table = span_table(batch)
            chunks.append(table[:, 0] + (batch.offset - lib.TFW_HEADER_SIZE))
            end = int(chunks[-1][-1] + table[-1, 1] + FRAME)
    return np.concatenate([*chunks, np.array([end])])
