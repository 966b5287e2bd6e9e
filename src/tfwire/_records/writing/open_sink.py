"""Opens what a TFRecordWriter writes to: a file, a URL or a file object, compressed or not."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfwire._base import system
from tfwire._base.arguments import boolean, refuse_null, wrong_type
from tfwire._base.errors import DataLossError, record_error
from tfwire._base.native import DAMAGE_REASONS, ffi, lib, new_struct
from tfwire._base.text import show_path
from tfwire._records.files.byte_sinks import (
    DeflatedSink,
    Descriptors,
    DraftSink,
    FileSink,
    ObjectSink,
    Sink,
    close_descriptor,
    lock_file,
)
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.compression import (
    DETECT_SIZE,
    compression_name,
    compressor,
    detect_compression,
    warn_of_name,
)
from tfwire._records.files.formats import ends_of_file
from tfwire._records.files.paths import Path
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.index.find_offsets import WALK_RECORDS, Walk
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import Reading, RecordPosition
from tfwire._records.reading.options import make_options
from tfwire._records.reading.record_file import RecordFile
from tfwire._records.remote.upload import RemoteSink

_BLOCK_BYTES = 1 << 18  # bytes read at a time


def append_position(path: Path, fd: int, compression: str, repair_tail: bool) -> tuple[int, int]:
    """Checks that a file ends with a whole record.

    Every header is checked and the payload of the last record; in a GZIP file everything.

    Args:
        path: The file.
        fd: The same file, open for reading.
        compression: "", "GZIP" or "ZLIB": that of the new records.
        repair_tail: Leave out a torn last record: one that is truncated, one with a wrong checksum
            (its data were not written), and a tail of zeros, as a system crash may leave it. It is
            still an error if records that verify follow: they would be lost.

    Returns:
        The offset after the last whole record, and the CRC-32C of the file up to there.

    Raises:
        DataLossError: The file is damaged, or its tail is torn and repair_tail is False.
        ValueError: The file has another compression, or one that cannot be continued.
        OSError: It cannot be read, or was replaced during the check.
    """
    size = os.fstat(fd).st_size
    if size == 0:
        return 0, 0
    if compression == "ZLIB":
        raise ValueError(
            f"{show_path(path)}: a ZLIB file cannot be continued, because TensorFlow reads its "
            "first stream only; use GZIP"
        )
    found = detect_compression(system.pread(fd, DETECT_SIZE, 0)).compression
    if found != compression:
        raise ValueError(
            f"{show_path(path)}: the file is {found or 'not compressed'}, options say "
            f"{compression or 'not compressed'}"
        )
    if compression == "GZIP":
        _read_through(path)
        end, crc32c = size, _crc32c(fd, 0, size)
    else:
        end, crc32c = _end_of_records(path, fd, size, repair_tail)
    if not os.path.samestat(os.fstat(fd), os.stat(path)):
        raise OSError(f"{show_path(path)}: the file was replaced while it was being checked")
    return end, crc32c


def _read_through(path: Path) -> None:
    """Verifies all of a GZIP file. A torn tail is an error: the stream has no checksum then."""
    try:
        with BatchReader([path], make_options("GZIP", max_record_size=None)) as reader:
            while reader.next() is not None:
                pass
    except DataLossError as error:
        error.args = (
            f"{error}; what was compressed cannot be cut off: continue the file that 'tfwire "
            "repair' writes of the records that verify",
        )
        raise


def _end_of_records(path: Path, fd: int, size: int, repair_tail: bool) -> tuple[int, int]:
    """Where the last whole record ends, at the end of the file or before a torn tail, and the
    CRC-32C of the file up to there."""
    end, count, crc32c = size, 0, 0
    begins: list[int] = []  # offsets of the last records before the end, if known
    while end:
        try:
            if not begins:
                count, begins, crc32c = _walk(path, fd, end)
                walked = end
            _check_record(path, fd, count - 1, begins[-1], end)
            return end, crc32c if end == walked else _crc32c(fd, 0, end)
        except DataLossError as error:
            end = _end_before(error, path, fd, end, repair_tail)
            count, begins = count - 1, begins[:-1]
    return 0, 0


def _end_before(error: DataLossError, path: Path, fd: int, end: int, repair_tail: bool) -> int:
    """Where a torn tail begins; raises the error if it is not a tail that may be cut off."""
    begin = error.offset or 0
    torn = error.reason in ("truncated", "data crc") or _is_zero(fd, begin, end)
    if not torn:
        raise error
    if not repair_tail:
        error.args = (f"{error}; repair_tail=True would cut the file there",)
        raise error
    if _holds_records(path, RecordPosition(error.record_index or 0, begin)):
        error.args = (f"{error}; records that verify follow it: 'tfwire repair' keeps them",)
        raise error
    return begin


def _walk(path: Path, fd: int, size: int) -> tuple[int, list[int], int]:
    """Walks over the headers in the first ``size`` bytes of a file.

    Returns:
        The number of records, the offsets of the last ones, and the CRC-32C of all.
    """
    walk, offsets = Walk(fd, path, size), np.empty(WALK_RECORDS, np.int64)
    count, last, crc32c, status = 0, 0, 0, lib.TFW_OK
    while status == lib.TFW_OK:
        before = walk.offset
        found, status = walk.step(offsets, 0)
        if status in DAMAGE_REASONS:
            walk.error.record += count
            reading = Reading(path, "", False)
            raise reading.record_error(status, walk.error, ends_of_file(fd))
        count, last = count + found, found or last
        crc32c = _crc32c(fd, before, walk.offset, crc32c)  # now, while it is in the page cache
    return count, offsets[:last].tolist(), crc32c


def _check_record(path: Path, fd: int, number: int, begin: int, end: int) -> None:
    """Verifies the payload of a record."""
    stored = system.pread(fd, lib.TFW_FOOTER_SIZE, end - lib.TFW_FOOTER_SIZE)
    crc = _crc32c(fd, begin + lib.TFW_HEADER_SIZE, end - lib.TFW_FOOTER_SIZE)
    if lib.tfw_crc32c_mask(crc) != int.from_bytes(stored, "little"):
        text = "its payload does not agree with its checksum"
        raise record_error(path, number, begin, text, "data crc")


def _crc32c(fd: int, begin: int, end: int, crc: int = 0) -> int:
    """The CRC-32C of a part of a file, continued from ``crc``. One read returns 2 GiB at most, and
    may return less."""
    block = bytearray(_BLOCK_BYTES)
    view, data = memoryview(block), ffi.from_buffer("uint8_t[]", block)
    while begin < end:
        got = system.pread_into(fd, view[: end - begin], begin)
        if not got:
            raise OSError("the file became shorter while it was being checked")
        crc = lib.tfw_crc32c(crc, data, got)
        begin += got
    return crc


def _holds_records(path: Path, start: RecordPosition) -> bool:
    """True if any record at or after a position verifies."""
    options = make_options("", True, "skip", None, None)
    with contextlib.closing(RecordFile(FileSource(path), options, start)) as file:
        return file.next(1, new_struct("tfw_batch"))


def _is_zero(fd: int, begin: int, end: int) -> bool:
    """True if a part of a file holds nothing but zeros."""
    while begin < end:
        data = system.pread(fd, min(_BLOCK_BYTES, end - begin), begin)
        if not data or data.count(0) < len(data):
            return False
        begin += len(data)
    return True


def open_sink(
    path: Any, options: Any, level: int | None, append: bool, repair_tail: bool, atomic: bool
) -> tuple[Sink, int]:
    """Opens the output of a TFRecordWriter, whose arguments these are. All are checked before
    anything is opened; ``path`` may also be a Sink.

    Returns:
        The sink, and the CRC-32C of what its file already holds.
    """
    path = with_storage_options(path)
    append = boolean("append", append)
    repair_tail = boolean("repair_tail", repair_tail)
    atomic = boolean("atomic", atomic)
    _check_arguments(path, append, repair_tail, atomic)
    compressed = compressor(options, level)
    warn_of_name(path, options)
    crc32c = 0
    sink: Sink
    if append:
        sink, crc32c = _open_to_append(path, compression_name(options), repair_tail)
    else:
        sink = _open(path, atomic)
    if compressed is not None:
        sink = DeflatedSink(sink, compressed, crc32c)
    return sink, crc32c


def _check_arguments(path: Any, append: bool, repair_tail: bool, atomic: bool) -> None:
    is_path = isinstance(path, (str, os.PathLike))
    if append and atomic:
        raise ValueError("append and atomic exclude each other: a file is continued in place")
    if repair_tail and not append:
        raise ValueError("repair_tail is for append=True")
    if not is_path and not isinstance(path, Sink) and not hasattr(path, "write"):
        raise wrong_type("path", path, "a str, an os.PathLike or a file object with write")
    if is_path:
        refuse_null("path", path)
    if (append or atomic) and (not is_path or isinstance(path, ObjectPath)):
        raise ValueError("append and atomic need the path of a file")


def _open(path: Any, atomic: bool) -> Sink:
    if isinstance(path, Sink):
        return path
    if not isinstance(path, (str, os.PathLike)):
        return ObjectSink(path)
    if isinstance(path, ObjectPath):
        return RemoteSink(path)
    return DraftSink(path) if atomic else _open_to_write(path)


def _open_to_write(path: Path) -> FileSink:
    """Creates or empties a file.

    Raises:
        OSError: It cannot be opened, or a writer is appending to it.
    """
    with _opened(path, _access(path) | os.O_CREAT) as (sink, fd):
        if stat.S_ISREG(os.fstat(fd).st_mode):
            lock_file(fd, os.fspath(path), shared=True)
            if os.fstat(fd).st_size:
                os.ftruncate(fd, 0)
        return sink


def _access(path: Path) -> int:
    """How to open a file: also for reading, if that is allowed and it is not a pipe or device."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return os.O_RDWR
    return os.O_RDWR if regular and os.access(path, os.R_OK) else os.O_WRONLY


def _open_to_append(path: Path, compression: str, repair_tail: bool) -> tuple[FileSink, int]:
    """Opens a file to continue it, or creates it.

    Returns:
        The sink, and the CRC-32C of what the file already holds.

    Raises:
        OSError: It cannot be opened, or another writer has it open.
        DataLossError, ValueError: As ``append_position``.
    """
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise ValueError(f"{show_path(path)}: append needs a regular file")
    with _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND) as (sink, fd):
        lock_file(fd, os.fspath(path))
        sink.position, crc32c = append_position(path, fd, compression, repair_tail)
        if os.fstat(fd).st_size != sink.position:
            os.ftruncate(fd, sink.position)
        return sink, crc32c


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[tuple[FileSink, int]]:
    """A sink and its file descriptor, which is closed if the body raises, or the sink is dropped.

    A signal handler may raise between any two calls, and a file that stayed open would keep its
    lock. So one call of C opens the file and stores its descriptor.
    """
    fds = Descriptors()
    try:
        fds.extend(map(os.open, (path,), (flags | system.BINARY,), (0o666,)))
        yield FileSink(path, fds, readable=bool(flags & os.O_RDWR)), fds[0]
    except BaseException as error:
        with contextlib.suppress(OSError):
            close_descriptor(fds)
        if isinstance(error, PermissionError) and os.path.isdir(path):  # Windows
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path) from None
        if isinstance(error, OSError):
            error.filename = os.fspath(path)
        raise
