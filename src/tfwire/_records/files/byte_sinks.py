"""Where the bytes of record files go: files, file objects, replaced files, compressors."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import zlib
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, BinaryIO

from tfwire._base import system
from tfwire._base.native import lib
from tfwire._records.files.compression import Compressor
from tfwire._records.files.paths import Path
from tfwire._records.files.temporary_files import (
    Draft,
    check_replaceable,
    errors_naming,
    open_draft,
)

_PIECE = 1 << 24  # bytes given to a file object at once
_COMPARED = 64  # the last bytes of a file, which tell of another writer
# Limits of writev on Linux and macOS. macOS refuses 2 GiB, where its write is merely short.
_IOV_MAX = 1024
_LARGEST_WRITEV = 2**31 - 1


class Sink:
    """Takes bytes in order. A sink whose ``write`` failed can only be closed or discarded.

    Attributes:
        crc32c: CRC-32C of the file so far; None where it is the one of the bytes that were written
            to the sink.
    """

    crc32c: int | None = None

    @abstractmethod
    def write(self, buffers: Sequence[Any]) -> None:
        """Writes all buffers.

        Raises:
            OSError: With the file's name.
        """

    def salvage(self, ends: Sequence[int]) -> int:
        """After a write that failed: cuts off what it wrote after the last whole record.

        Args:
            ends: Ascending numbers of bytes, from 0: where the records of that write end.

        Returns:
            How many bytes of that write are kept; 0 if the sink does not know.
        """
        return 0

    def flush(self) -> None:
        """Makes what was written visible to readers of the file."""

    def close(self) -> None:
        """Completes the output and closes what was opened."""

    def discard(self) -> None:
        """Closes what was opened, without completing the output: an atomic file is removed, a
        compressed stream stays truncated."""

    def abandon(self) -> None:
        """In a forked process: closes what was opened, without a trace in the parent's output."""


class ObjectSink(Sink):
    """Writes to a file object in binary mode.

    Args:
        file: The object.
        owned: Close it at the end.

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
            view = memoryview(buffer)
            while len(view):
                view = view[self._write(bytes(view[:_PIECE])) :]  # the object may keep the bytes

    def _write(self, data: bytes) -> int:
        """Writes some of the bytes; returns how many."""
        written = self._file.write(data)
        if written is None:
            if isinstance(self._file, io.RawIOBase):
                raise BlockingIOError(errno.EAGAIN, "the file object takes no data yet")
            return len(data)
        if not 0 < written <= len(data):
            raise OSError(f"the file object took {written} of {len(data)} bytes")
        return int(written)

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


class FileSink(Sink):
    """Writes to the end of an open file.

    Its size and its last bytes are compared before each write and at the end, so that of two
    writers one fails instead of overwriting the other's records, where locks do not prevent it.

    Args:
        path: Its name for messages.
        fds: A list of one file descriptor, open for writing. Closing the sink empties the list.
        readable: Whether it is also open for reading, so that the last bytes can be compared.

    Attributes:
        position: Where the next write begins: the end of the file, in bytes.
    """

    def __init__(self, path: Path, fds: list[int], readable: bool) -> None:
        self._path = os.fspath(path)
        self.position = 0
        self._fds = fds
        self._regular = stat.S_ISREG(os.fstat(fds[0]).st_mode)
        self._torn = False  # a write has begun and failed
        self._readable = readable
        self._last = b""  # the last bytes that were written

    def write(self, buffers: Sequence[Any]) -> None:
        try:
            self._check_unchanged()
            self._torn = True
            self.position += write_all(self._fds[0], buffers)
            self._torn = False
            self._last = _last_bytes(self._last, buffers)
        except OSError as error:
            error.filename = self._path
            raise

    def _check_unchanged(self) -> None:
        if not self._regular:
            return
        fd, found = self._fds[0], ""
        size = os.fstat(fd).st_size
        if size != self.position:
            found = f"expected {self.position} bytes, found {size}"
        elif self._readable and self._last:
            before = size - len(self._last)
            if system.pread(fd, len(self._last), before) != self._last:
                found = f"expected what was written before byte {size}, found other bytes"
        if found:
            raise OSError(errno.ESTALE, f"the file was changed by another writer: {found}")

    def salvage(self, ends: Sequence[int]) -> int:
        if not self._torn or not self._regular:
            return 0
        taken = os.fstat(self._fds[0]).st_size - self.position
        kept = ends[bisect_right(ends, taken) - 1] if taken > 0 else 0
        os.ftruncate(self._fds[0], self.position + kept)
        self.position += kept
        return kept

    def close(self) -> None:
        try:
            self._check_unchanged()
        except OSError as error:
            error.filename = self._path
            raise
        finally:
            self._release()

    def _release(self) -> None:
        try:
            if self._fds:
                system.unlock(self._fds[0])
            self.abandon()
        except OSError as error:
            error.filename = self._path
            raise

    def discard(self) -> None:
        with contextlib.suppress(OSError):
            self._release()

    def abandon(self) -> None:
        close_descriptor(self._fds)


class DraftSink(FileSink):
    """Writes a temporary file, which replaces another when it is complete and on disk.

    Args:
        path: The file to replace, which may be missing. Symbolic links are followed.
        like: A file whose permissions a new file must not exceed.

    Raises:
        OSError: The file cannot be created or replaced.
    """

    def __init__(self, path: Path, like: Path | None = None) -> None:
        self._target = os.path.realpath(path)
        self._like = like
        check_replaceable(self._target)
        with errors_naming(os.fspath(path)):
            self._draft = Draft(os.path.dirname(self._target))
        try:
            super().__init__(path, [self._draft.fd], readable=True)
        except BaseException:
            self._draft.discard()
            raise

    def close(self) -> None:
        try:
            with errors_naming(self._path):
                self._draft.publish(self._target, self._like)
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        self._draft.discard()

    def abandon(self) -> None:
        self._draft.release()


class ShardSink(Sink):
    """Writes a temporary file that ShardedWriter publishes together with the other shards. It is
    open only during a write, so that a set may have more files than a process may open.

    Args:
        folder: Where the file is created.
        name: Its name for messages.

    Attributes:
        draft: The file.
    """

    def __init__(self, folder: str, name: str) -> None:
        self._name = name
        with errors_naming(name):
            self.draft = Draft(folder)
        try:
            self.draft.release()
        except BaseException:
            self.draft.discard()
            raise

    def write(self, buffers: Sequence[Any]) -> None:
        with errors_naming(self._name), self.draft.opened() as fd:
            write_all(fd, buffers)

    def opened(self) -> BinaryIO:
        """A file object at the beginning of the file, for the caller to close."""
        return os.fdopen(open_draft(self.draft.path, os.O_WRONLY), "wb")

    def close(self) -> None:
        with errors_naming(self._name), self.draft.opened() as fd:
            os.fsync(fd)

    def discard(self) -> None:
        self.draft.discard()


def _last_bytes(before: bytes, buffers: Sequence[Any]) -> bytes:
    """The last bytes of a file to which buffers were written."""
    found = b""
    for buffer in reversed(buffers):
        if len(found) >= _COMPARED:
            return found
        found = bytes(memoryview(buffer).cast("B")[len(found) - _COMPARED :]) + found
    return (before + found)[-_COMPARED:]


def close_descriptor(fds: list[int]) -> None:
    """Closes the file descriptor in a list, if there is one, and removes it, in one call of C."""
    if fds:
        list(map(os.close, map(list.pop, (fds,))))


class Descriptors(list[int]):
    """A list of one file descriptor, which is closed when the list is dropped."""

    __del__ = close_descriptor


# Errors of file systems without locks. There only the checks of FileSink remain.
_WITHOUT_LOCKS = errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL, errno.EBADF


def lock_file(fd: int, path: str, *, shared: bool = False, wait: bool = False) -> bool:
    """Locks a file against other writers. Locks are advisory: other programs may ignore them.

    Args:
        fd: The file.
        path: Its name for messages.
        shared: A file that is overwritten: the lock is against writers that append.
        wait: Wait for the lock.

    Returns:
        False if the file system has no locks.

    Raises:
        BlockingIOError: Another writer has the file open.
    """
    try:
        if wait:
            system.lock(fd)
        else:
            system.try_lock(fd, shared)
        return True
    except BlockingIOError:
        text = "another writer has the file open"
        raise BlockingIOError(errno.EWOULDBLOCK, text, os.fspath(path)) from None
    except OSError as error:
        if error.errno not in _WITHOUT_LOCKS:
            raise
        return False


def replace_file(path: Path, buffers: Sequence[Any], like: Path | None = None) -> None:
    """Writes a file atomically: readers see the old content or the new, never a part.

    Args:
        path: The file.
        buffers: Its content.
        like: A file whose permissions a new file must not exceed.

    Raises:
        OSError: It cannot be written; the old file is unchanged.
    """
    sink = DraftSink(path, like)
    try:
        sink.write(buffers)
    except BaseException:
        sink.discard()
        raise
    sink.close()


def write_all(fd: int, buffers: Sequence[Any]) -> int:
    """Writes all buffers, in as many calls as it takes; returns their size in bytes."""
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    total = sum(map(len, views))
    at_once = _IOV_MAX if total <= _LARGEST_WRITEV else 1
    first = 0
    while first < len(views):
        if at_once == 1:
            written = os.write(fd, views[first])
        else:
            written = system.writev(fd, views[first : first + at_once])
        while first < len(views) and written >= len(views[first]):
            written -= len(views[first])
            first += 1
        if written:
            views[first] = views[first][written:]
    return total


class DeflatedSink(Sink):
    """Compresses into another sink: what is written, as one stream; members, as such.

    Args:
        sink: Takes the compressed bytes. It is closed with this sink.
        compressor: Compresses what is written.
        crc32c: The CRC-32C of what the sink's file already holds.

    Attributes:
        has_members: Whether bytes can be compressed apart: ``member`` and ``write_member``.
    """

    def __init__(self, sink: Sink, compressor: Compressor, crc32c: int = 0) -> None:
        self.crc32c: int = crc32c
        self._sink = sink
        self._deflater, self._flush_mode, self._new_member = compressor
        self._begun = False  # True: the stream holds bytes
        self._wrote_members = False
        self.has_members = self._new_member is not None

    def write(self, buffers: Sequence[Any]) -> None:
        self._begun = True
        pieces = [self._deflater.compress(buffer) for buffer in buffers]
        if self._flush_mode != zlib.Z_NO_FLUSH:
            pieces.append(self._deflater.flush(self._flush_mode))
        self._write_compressed([piece for piece in pieces if piece])

    def member(self, data: Any) -> bytes:
        """Compresses bytes for ``write_member``, in any thread."""
        assert self._new_member is not None
        deflater = self._new_member()
        return b"".join([deflater.compress(data), deflater.flush()])

    def write_member(self, member: bytes) -> None:
        """Writes what ``member`` returned."""
        assert self._new_member is not None
        pieces = [member]
        if self._begun:
            pieces.insert(0, self._deflater.flush(zlib.Z_FINISH))
            self._deflater, self._begun = self._new_member(), False
        self._wrote_members = True
        self._write_compressed(pieces)

    def _write_compressed(self, pieces: list[bytes]) -> None:
        try:
            self._sink.write(pieces)
        except BaseException:  # whole records may have reached the file
            data = b"".join(pieces)
            self._add(data[: self._sink.salvage(range(len(data) + 1))])
            raise
        for piece in pieces:
            self._add(piece)

    def _add(self, data: bytes) -> None:
        self.crc32c = lib.tfw_crc32c(self.crc32c, data, len(data))

    def flush(self) -> None:
        self._begun = True
        self._write_compressed([self._deflater.flush(zlib.Z_SYNC_FLUSH)])
        self._sink.flush()

    def close(self) -> None:
        try:
            if self._begun or not self._wrote_members:
                self._write_compressed([self._deflater.flush(zlib.Z_FINISH)])
        except BaseException:
            self._sink.discard()
            raise
        self._sink.close()

    def discard(self) -> None:
        self._sink.discard()

    def abandon(self) -> None:
        self._sink.abandon()
