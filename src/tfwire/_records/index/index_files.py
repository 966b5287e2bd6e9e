"""Index files: where they lie, their binary form, and the text of tfrecord2idx."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import struct
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array, Compression, StorageOptions
from tfwire._base.arrays import to_splits
from tfwire._base.errors import DataLossError
from tfwire._base.native import ffi, lib
from tfwire._base.text import show_path
from tfwire._records.files.byte_sinks import replace_file
from tfwire._records.files.byte_sources import FileSource, open_regular
from tfwire._records.files.find_files import input_paths, one_input
from tfwire._records.files.paths import Path, index_beside, local_path
from tfwire._records.files.seek_points import MOST_BYTES, SeekPoints
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.frames import FRAME
from tfwire._records.index.offset_checks import identity_saved, stale
from tfwire._records.index.record_keys import RecordKeys, most_key_bytes
from tfwire._records.remote.objects import RemoteObject
from tfwire._records.remote.random_ranges import RemoteFile
from tfwire._records.remote.upload import RemoteSink


def indexed_path(name: str, path: Any, storage_options: StorageOptions = None) -> Path:
    """An argument that is a record file of which there is an index: a local file, or an object.

    Raises:
        TypeError: Not a path, or storage_options are not a mapping.
    """
    path = with_storage_options(path, storage_options)
    return path.alone() if isinstance(path, ObjectPath) else local_path(name, path)


def one_indexed_path(path: Any, storage_options: StorageOptions, instead: str) -> Path:
    """As indexed_path, for the argument ``path``, which may be a pattern of one file.

    Raises:
        ValueError, OSError: As ``one_input``.
    """
    if not isinstance(path := with_storage_options(path, storage_options), ObjectPath):
        local_path("path", path)  # checks it
    return indexed_path("path", one_input(path, None, instead))


def indexed_paths(paths: Any, storage_options: StorageOptions = None) -> list[Path]:
    """As indexed_path, for the argument ``paths``, which may be many.

    Raises:
        FileNotFoundError: As ``input_paths``.
    """
    return [indexed_path("paths", path) for path in input_paths(paths, storage_options)]


def index_path_of(path: Path, index_path: Any, storage_options: StorageOptions = None) -> Path:
    """The path of an index: the given one, or the default one beside the file."""
    if index_path is None:
        return index_beside(path)
    return indexed_path("index_path", index_path, storage_options)


def open_indexed(path: Any, location: str | None = None) -> FileSource | RemoteFile:
    """Opens a file or an object for random access; the arguments are those of ``open_regular``."""
    path = indexed_path("path", path)
    return RemoteFile(path) if isinstance(path, ObjectPath) else open_regular_file(path, location)


def open_regular_file(path: Path, location: str | None = None) -> FileSource:
    """As ``open_regular``.

    Raises:
        ValueError: Not a regular file.
    """
    source = open_regular(path, location)
    if source is None:
        raise ValueError(f"{show_path(path)}: random access needs a regular file")
    return source


_INDEX_MAGIC = b"TFWINDEX"
# Of a file; of an object, with the text of its version after the lengths; with seek points, after
# such a text, which may be empty; and with keys, after points, which there may be none of.
_INDEX_VERSION, _OBJECT_INDEX_VERSION, _POINTS_INDEX_VERSION, _KEYS_INDEX_VERSION = 1, 2, 3, 4
_COMPRESSIONS_BY_NUMBER: list[Compression] = ["", "ZLIB", "GZIP"]  # TensorFlow's numbers
# Magic, version, compression, file size, mtime in ns, fingerprint, bytes per length, records.
_HEADER = struct.Struct("<8sIIQqIIQ")
_CHECKSUM = _TEXT_LENGTH = _POINTS_LENGTH = struct.Struct("<I")
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
        points: The seek points of a compressed file; None: there are none.
        keys: Of the records; None: there are none.
    """

    compression: Compression
    size: int
    mtime_ns: int
    fingerprint: int
    lengths: Array
    version: str | None = None
    points: SeekPoints | None = None
    keys: RecordKeys | None = None


def write_index(path: Path, contents: Contents, like: Path | None = None) -> int:
    """Writes an index, atomically: it appears when it is complete. Returns its checksum.

    Args:
        path: The index.
        contents: Its contents.
        like: A file whose permissions a new index must not exceed.
    """
    compression, size, mtime_ns, fingerprint, lengths, version, points, keys = contents
    width = 8 if len(lengths) and int(lengths.max()) >= 1 << 32 else 4
    number = _COMPRESSIONS_BY_NUMBER.index(compression)
    kind = _INDEX_VERSION if version is None else _OBJECT_INDEX_VERSION
    kind = kind if points is None else _POINTS_INDEX_VERSION
    kind = kind if keys is None else _KEYS_INDEX_VERSION
    header = _HEADER.pack(
        _INDEX_MAGIC, kind, number, size, mtime_ns, fingerprint, width, len(lengths)
    )
    body = lengths.astype(f"<u{width}").tobytes()
    if kind != _INDEX_VERSION:
        text = (version or "").encode()[:_MOST_TEXT]
        body += _TEXT_LENGTH.pack(len(text)) + text
    section = b"" if points is None else points.section
    body += section if keys is None else _POINTS_LENGTH.pack(len(section)) + section + keys.section
    checksum = int(lib.tfw_crc32c_mask(_crc(body, _crc(header))))
    _replace(path, [header, body, _CHECKSUM.pack(checksum)], like)
    return checksum


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


def refuse_itself(index_path: Path, location: Path) -> None:
    """Refuses to overwrite a record file with its index.

    Raises:
        shutil.SameFileError: They are one file.
    """
    if str(index_path) == str(location):
        raise shutil.SameFileError(f"{show_path(index_path)}: is the record file itself")
    with contextlib.suppress(FileNotFoundError):
        if os.path.samefile(index_path, location):
            raise shutil.SameFileError(f"{show_path(index_path)}: is the record file itself")


def saved_index(index_path: Path, path: Path, size: int) -> tuple[Contents, str | None]:
    """As read_index. If there is no index, the error says how to make one."""
    try:
        return read_index(index_path, path, size)
    except FileNotFoundError:
        text = "no such index; RecordIndex.build(path).save() or 'tfwire index FILE' makes one"
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(index_path)) from None


def read_index(path: Path, record_path: Path, size: int) -> tuple[Contents, str | None]:
    """Reads an index, and no more bytes than an index of the record file can have.

    Args:
        path: The index.
        record_path, size: The record file and its bytes.

    Returns:
        The contents; and the identity of the file, or the version of the object, in which these
        lengths were found, or None.

    Raises:
        DataLossError: It is damaged, of an unknown version, or has more records than fit into the
            file.
        OSError: It cannot be read.
    """
    if isinstance(path, ObjectPath):
        contents = read_contents(_fetched_index(path, record_path, size), path, record_path, size)
        return contents, contents.version
    with _opened(path) as file:
        length = os.fstat(file.fileno()).st_size
        header = file.read(_HEADER.size)
        _check_fits(path, header, length, record_path, size)
        contents, checksum = _contents(path, header + file.read(length - len(header)))
        return contents, contents.version or identity_saved(file.fileno(), checksum)


def read_contents(data: bytes, path: Path, record_path: Path, size: int) -> Contents:
    """As read_index, of the bytes of an index."""
    _check_fits(path, data[: _HEADER.size], len(data), record_path, size)
    return _contents(path, data)[0]


def _fetched_index(path: ObjectPath, record_path: Path, size: int) -> bytes:
    """The bytes of an index that is an object, by one request unless it is long."""
    data = RemoteObject.read_small(path, 0, _FETCHED)
    if len(data) == _FETCHED:
        length, most = _least_and_most(data[: _HEADER.size], size)
        if most > _FETCHED:
            _check_fits(path, data[: _HEADER.size], length, record_path, size)
            # One byte again: the index may end here, and a range without bytes fails.
            data += RemoteObject.read_small(path, _FETCHED - 1, most)[1:]
    return data


def _check_fits(path: Path, header: bytes, length: int, record_path: Path, size: int) -> None:
    """Refuses an index that is malformed, or has more records than fit into the file."""
    compression, count = _checked_header(path, header, length)
    fits = _fits(compression, count, size) and length <= _least_and_most(header, size)[1]
    if length > _SURELY_READ and not fits:
        raise stale(record_path, path, f"{count} records", f"{size} bytes")


def _contents(path: Path, data: bytes) -> tuple[Contents, int]:
    """What the bytes of an index say, unless they are damaged, and their checksum."""
    checksum = _checked_crc(path, data)
    _, kind, number, size, mtime_ns, fingerprint, width, count = _HEADER.unpack_from(data)
    lengths = np.frombuffer(data, f"<u{width}", count, _HEADER.size)
    if count and int(lengths.max()) > (1 << 62) // count:  # so that no sum overflows
        raise _damaged(path, "its lengths add up to more bytes than any file has")
    version, rest, keys = None, b"", None
    if kind != _INDEX_VERSION:
        at = _HEADER.size + count * width
        begin = at + _TEXT_LENGTH.size
        end = begin + _TEXT_LENGTH.unpack_from(data, at)[0]
        text, rest = data[begin:end], data[end : -_CHECKSUM.size]
        if end > len(data) - _CHECKSUM.size or (rest and kind == _OBJECT_INDEX_VERSION):
            raise _damaged(path, f"its version does not fit its {len(data)} bytes")
        version = text.decode(errors="replace")
        if kind >= _POINTS_INDEX_VERSION:
            version = version or None
    if kind == _KEYS_INDEX_VERSION:
        rest, keys = _keys(path, rest, lengths)
    compression = _COMPRESSIONS_BY_NUMBER[number]
    facts = compression, size, mtime_ns, fingerprint, lengths.astype(np.int64), version
    has_points = rest or kind == _POINTS_INDEX_VERSION
    points = _points(path, rest, Contents(*facts)) if has_points else None
    return Contents(*facts, points, keys), checksum


def _keys(path: Path, rest: bytes, lengths: Array) -> tuple[bytes, RecordKeys]:
    """The section of the seek points of an index, and its keys, checked."""
    try:
        begin = _POINTS_LENGTH.size
        end = begin + (_POINTS_LENGTH.unpack_from(rest)[0] if len(rest) >= begin else len(rest))
        return rest[begin:end], RecordKeys.of_section(rest[end:], lengths)
    except ValueError as error:
        raise _damaged(path, str(error)) from None


def _points(path: Path, section: bytes, contents: Contents) -> SeekPoints:
    """The seek points of an index, checked."""
    try:
        points = SeekPoints(section)
    except ValueError as error:
        raise _damaged(path, str(error)) from None
    content_size = int(contents.lengths.sum(dtype=np.int64)) + len(contents.lengths) * int(FRAME)
    if not contents.compression or not points.fit(content_size, contents.size):
        raise _damaged(path, "its seek points are not in the file")
    return points


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
    _, kind, number, size, _, _, width, count = _HEADER.unpack(header)
    if not _INDEX_VERSION <= kind <= _KEYS_INDEX_VERSION:
        known = f"versions {_INDEX_VERSION} to {_KEYS_INDEX_VERSION}"
        raise _damaged(path, f"it has version {kind}, this tfwire reads {known}")
    if kind == _POINTS_INDEX_VERSION and not number:
        raise _damaged(path, "its seek points are not in the file, which is not compressed")
    least, most = _least_and_most(header, size)
    fits = least <= length <= most
    if number >= len(_COMPRESSIONS_BY_NUMBER) or width not in (4, 8) or not fits:
        raise _damaged(path, f"{count} lengths of {width} bytes do not fit its {length} bytes")
    return _COMPRESSIONS_BY_NUMBER[number], count


def _least_and_most(header: bytes, size: int) -> tuple[int, int]:
    """The least and the most bytes of an index with this header, of a file of this size."""
    _, kind, number, _, _, _, width, count = _HEADER.unpack(header)
    least = most = _HEADER.size + count * width + _CHECKSUM.size
    if kind >= _OBJECT_INDEX_VERSION:
        least, most = least + _TEXT_LENGTH.size, most + _TEXT_LENGTH.size + _MOST_TEXT
    if kind >= _POINTS_INDEX_VERSION:
        most += min(MOST_BYTES, size)  # points take less than their file
    if kind == _KEYS_INDEX_VERSION:
        content_size = size * (_MOST_INFLATED if number else 1)
        most += _POINTS_LENGTH.size + most_key_bytes(count, content_size)
    return least, most


def _checked_crc(path: Path, data: bytes) -> int:
    stored: int = _CHECKSUM.unpack_from(data, len(data) - _CHECKSUM.size)[0]
    computed = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, data, len(data) - _CHECKSUM.size))
    if stored != computed:
        raise _damaged(path, f"its checksum is 0x{computed:08x}, but it says 0x{stored:08x}")
    return stored


def _fits(compression: Compression, count: int, size: int) -> bool:
    """Whether a file of this size can hold ``count`` records."""
    return count * int(FRAME) <= size * (_MOST_INFLATED if compression else 1)


def offsets_of_lengths(lengths: Array) -> Array:
    """Where records of these lengths begin if there are no gaps, and where the last ends."""
    return to_splits(lengths + FRAME)


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


def _damaged(path: Path, text: str) -> DataLossError:
    message = f"{os.fspath(path)}: not a usable index: {text}"
    return DataLossError(message, path=path, reason="index")
