"""Where records go: files, file objects and URLs, compressed or not."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
import zlib
from collections.abc import Sequence
from typing import Any

from tfwire._core import lib
from tfwire._records.append import append_position
from tfwire._records.compression import compression_name, deflater
from tfwire._records.sources import Path, is_url, open_url

__all__ = [
    "DeflatedSink",
    "FileSink",
    "ObjectSink",
    "Sink",
    "check_replaceable",
    "open_sink",
    "remove",
    "sync_file",
    "sync_folder",
]

# What Linux and macOS take at once; macOS refuses writev of 2 GiB, where write is merely short.
_IOV_MAX = 1024
_LARGEST_WRITEV = 2**31 - 1


class Sink:
    """Takes bytes in order. A sink whose ``write`` failed can only be closed or discarded.

    Attributes:
        crc32c: CRC-32C of the file so far where that is not the one of the bytes taken, else None.
    """

    crc32c: int | None = None

    def write(self, buffers: Sequence[Any]) -> None:
        """Writes all bytes of all buffers.

        Raises:
            OSError: With the file's name. A regular file is cut back to its last whole write.
        """
        raise NotImplementedError

    def flush(self) -> None:
        """Makes what was written visible to readers."""

    def close(self) -> None:
        """Completes the output and releases what was opened."""

    def discard(self) -> None:
        """Releases what was opened. Unlike ``close`` it does not complete the output: an atomic
        file leaves no trace, a compressed stream stays cut."""

    def abandon(self) -> None:
        """Lets go of the output in a forked process: the other one goes on writing."""


class FileSink(Sink):
    """A file that was opened here.

    Args:
        path: The file; it is made, or emptied.
        end: Append behind this many bytes of the file, and drop the rest of it.
        atomic: Write to a temporary file beside it, which takes its place when all is on disk.
    """

    def __init__(self, path: Path, end: int | None = None, atomic: bool = False) -> None:
        self.path = os.fspath(path)
        self._fd = -1
        self._target = os.path.realpath(self.path) if atomic else None
        self._opened = self._temporary_name() if atomic else self.path
        if self._target is not None:
            check_replaceable(self._target)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        flags |= os.O_EXCL if atomic else os.O_TRUNC if end is None else 0
        try:
            self._fd = os.open(self._opened, flags, 0o666)
            if end is not None:
                os.ftruncate(self._fd, end)
                os.lseek(self._fd, end, os.SEEK_SET)
        except OSError as error:
            if self._fd >= 0:
                self.abandon()
            self._name(error)
            raise
        self._position = end or 0

    def _temporary_name(self) -> str:
        folder, name = os.path.split(str(self._target))
        return os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")

    def write(self, buffers: Sequence[Any]) -> None:
        try:
            self._position += _write_all(self._fd, buffers)
        except BaseException as error:
            with contextlib.suppress(OSError):  # a pipe keeps what it was given
                os.ftruncate(self._fd, self._position)
            self._name(error)
            raise

    def close(self) -> None:
        try:
            if self._target is not None:
                os.fsync(self._fd)
            self.abandon()
            if self._target is not None:
                os.replace(self._opened, self._target)
                sync_folder(os.path.dirname(self._target))
        except BaseException as error:
            self.discard()
            self._name(error)
            raise

    def discard(self) -> None:
        if self._fd >= 0:
            with contextlib.suppress(OSError):
                self.abandon()
        if self._target is not None:
            remove(self._opened)

    def abandon(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _name(self, error: BaseException) -> None:
        if isinstance(error, OSError):
            error.filename = self.path


def _write_all(fd: int, buffers: Sequence[Any]) -> int:
    """Writes all bytes, however many calls that takes; their number."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    total = sum(map(len, views))
    at_once = _IOV_MAX if total <= _LARGEST_WRITEV else 1
    first = 0
    while first < len(views):
        if at_once == 1:
            written = os.write(fd, views[first])
        else:
            written = os.writev(fd, views[first : first + at_once])
        while first < len(views) and written >= len(views[first]):
            written -= len(views[first])
            first += 1
        if written:
            views[first] = views[first][written:]
    return total


def check_replaceable(path: str) -> None:
    """Refuses to put a file in the place of a device, a pipe or a socket: a name like /dev/null
    would be one's file from then on, where one may write there.

    Raises:
        FileExistsError: There is one.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(
            mode
        ):  # a folder is refused by its own error
            raise FileExistsError(errno.EEXIST, "a device or pipe cannot be replaced", path)


def remove(path: str) -> None:
    """Removes a file, if it is there and can be removed."""
    with contextlib.suppress(OSError):
        os.unlink(path)


def sync_file(path: str) -> None:
    """Waits until a file is on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: str) -> None:
    """Makes a new name in a folder durable, where the file system knows of such a thing."""
    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


class ObjectSink(Sink):
    """A file object that was opened for writing bytes.

    Args:
        file: The object.
        owned: Whether to close it at the end.

    Raises:
        TypeError: The file was opened in text mode.
    """

    def __init__(self, file: Any, owned: bool = False) -> None:
        if isinstance(file, io.TextIOBase):
            raise TypeError("the file object is in text mode; open it in binary mode")
        self._file = file
        self._owned = owned

    def write(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            data = bytes(buffer)  # the object may keep it
            while data:
                written = self._file.write(data)
                if written is None and isinstance(self._file, io.RawIOBase):
                    raise BlockingIOError(errno.EAGAIN, "the file object takes no data yet")
                if written is not None and written <= 0:
                    raise OSError(f"the file object took {written} of {len(data)} bytes")
                data = data[written:] if written is not None else b""

    def flush(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()

    def close(self) -> None:
        if self._owned:
            self._file.close()
        else:
            self.flush()

    def discard(self) -> None:
        if self._owned:
            self._file.close()


class DeflatedSink(Sink):
    """Compresses into another sink.

    Args:
        sink: Takes the compressed bytes; this object takes it over.
        options, level: As for ``deflater``.
        crc32c: The CRC-32C of what the sink's file holds already.
    """

    def __init__(self, sink: Sink, options: Any, level: int | None, crc32c: int = 0) -> None:
        self.crc32c: int = crc32c
        self._sink = sink
        self._flush_mode = getattr(options, "flush_mode", None) or zlib.Z_NO_FLUSH
        self._deflater = deflater(options, level)

    def write(self, buffers: Sequence[Any]) -> None:
        pieces = [self._deflater.compress(buffer) for buffer in buffers]
        if self._flush_mode != zlib.Z_NO_FLUSH:
            pieces.append(self._deflater.flush(self._flush_mode))
        self._pass_on([piece for piece in pieces if piece])

    def _pass_on(self, pieces: list[bytes]) -> None:
        self._sink.write(pieces)
        for piece in pieces:
            self.crc32c = lib.tfw_crc32c(self.crc32c, piece, len(piece))

    def flush(self) -> None:
        self._pass_on([self._deflater.flush(zlib.Z_SYNC_FLUSH)])
        self._sink.flush()

    def close(self) -> None:
        try:
            self._pass_on([self._deflater.flush(zlib.Z_FINISH)])
        except BaseException:
            self._sink.discard()
            raise
        self._sink.close()

    def discard(self) -> None:
        self._sink.discard()

    def abandon(self) -> None:
        self._sink.abandon()


def open_sink(
    path: Any, options: Any, level: int | None, append: bool, repair_tail: bool, atomic: bool
) -> tuple[Sink, int]:
    """Opens what the arguments of a TFRecordWriter say.

    Returns:
        The sink, and the CRC-32C of what the file holds already.
    """
    compression = compression_name(options)
    if append and atomic:
        raise ValueError("append and atomic exclude each other: a file is continued in place")
    if repair_tail and not append:
        raise ValueError("repair_tail is for append=True")
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if (append or atomic) and (is_url(path) or not isinstance(path, (str, os.PathLike))):
        raise ValueError("append and atomic need the path of a file")
    sink: Sink
    crc32c = 0
    if is_url(path):
        sink = ObjectSink(open_url(path, "wb"), owned=True)
    elif isinstance(path, (str, os.PathLike)):
        end = None
        if append:
            end, crc32c = append_position(path, compression, repair_tail)
        sink = FileSink(path, end, atomic)
    elif hasattr(path, "write"):
        sink = ObjectSink(path)
    else:
        raise TypeError(f"expected a path, a URL or a file object, found {type(path).__name__}")
    if not compression:
        return sink, crc32c
    try:
        return DeflatedSink(sink, options, level, crc32c), crc32c
    except BaseException:
        sink.discard()
        raise
