"""Opens what a TFRecordWriter writes to: a file, a URL or a file object, compressed or not."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from typing import Any

from tfwire._base import system
from tfwire._base.arguments import boolean, refuse_null
from tfwire._base.text import show_path
from tfwire._records.files.byte_sinks import (
    DeflatedSink,
    Descriptors,
    DraftSink,
    FileSink,
    ObjectSink,
    Sink,
    close_descriptor,
)
from tfwire._records.files.compression import compression_name, compressor
from tfwire._records.files.locks import lock_to_append, lock_to_write
from tfwire._records.files.paths import Path
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.remote.upload import RemoteSink
from tfwire._records.writing.append import append_position


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
        raise TypeError(
            "path must be a str, an os.PathLike or a file object with write, found "
            f"{type(path).__name__}"
        )
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
            lock_to_write(fd, os.fspath(path))
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
        lock_to_append(fd, os.fspath(path))
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
        if isinstance(error, OSError):
            error.filename = os.fspath(path)
        raise
