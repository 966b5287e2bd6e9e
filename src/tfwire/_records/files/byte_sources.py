"""Input: the bytes of files, pipes, file objects and URLs, and waiting for them."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from tfwire._base import system
from tfwire._base.arguments import as_index
from tfwire._base.native import ffi, lib
from tfwire._base.text import show_path
from tfwire._records.files.compression import DETECT_SIZE, Detected, detect_compression
from tfwire._records.files.paths import Path

# Bytes to ask a file object for: few enough to stay in the cache until they are copied.
_LENT = 1 << 18


class Source:
    """The bytes of one input, in order.

    Attributes:
        path: Its name for messages, or None.
        rewindable: True if ``rewind`` works.
    """

    path: Path | None = None
    rewindable = False

    def __init__(self) -> None:
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        """The first bytes, without consuming them; fewer only if there are fewer."""
        buffer = bytearray(size)
        while len(self._ahead) < size and (got := self._readinto(buffer)):
            self._ahead += buffer[:got]
        return self._ahead[:size]

    def sample(self, size: int) -> bytes:
        """As ``peek``, for a caller who may go on elsewhere, by ``rewind``."""
        return self.peek(size)

    def readinto(self, buffer: Any) -> int:
        """Fills some of a buffer; 0 at the end. The buffer supports slices and len()."""
        if not self._ahead:
            return self._readinto(buffer)
        piece = self._ahead[: len(buffer)]
        self._ahead = self._ahead[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def rewind(self, offset: int) -> None:
        """Goes back to an offset, counted from the beginning of the source."""
        raise io.UnsupportedOperation("rewind")

    @property
    def seekable(self) -> bool:
        """Whether ``rewind`` also goes forward, without reading what lies between."""
        return False

    def size(self) -> int | None:
        """Bytes of the whole source, or None if unknown."""
        return None

    def interrupt(self) -> None:
        """Wakes a thread that waits for input. Close the source after this."""

    def check_ends(self) -> None:
        """As the function ``check_ends``."""

    def check_unchanged(self) -> None:
        """Looks whether a remote object is still the one that was opened.

        Raises:
            OSError: It is not.
        """

    def check_searched(self, num_bytes: int) -> None:
        """Called with the number of bytes in which no record was found so far.

        Raises:
            OSError: They are too many of a remote object that may never end.
        """

    def close(self) -> None:
        """Closes what this object has opened. Closing again does nothing."""

    @abstractmethod
    def _readinto(self, buffer: Any) -> int: ...


class FileSource(Source):
    """A file opened here. Regular files are read by pread at this object's own offset, so a forked
    child shares no position with its parent. Pipes and devices are read as they come.

    Args:
        path: The file.
        flags: Further flags for ``os.open``.
        location: Where it is, if the current directory may have changed; None: ``path``.
        same_as: A descriptor of the file, to be duplicated instead of opening it; -1: none.

    Attributes:
        fd: The file descriptor.
        regular: Whether it is a regular file.
    """

    fd: int = -1  # until the file is open

    def __init__(
        self, path: Path, flags: int = 0, location: str | None = None, same_as: int = -1
    ) -> None:
        super().__init__()
        self.path: Path = path
        self._offset = 0
        self._waiting: Waiting | None = None
        name, flags = location or path, os.O_RDONLY | system.BINARY | flags
        opened = map(os.dup, (same_as,)) if same_as >= 0 else map(os.open, (name,), (flags,))
        self._file = _closed_by_c(opened)
        self.fd = self._file[0]
        try:
            mode = os.fstat(self.fd).st_mode
        except OSError:
            self.close()
            raise
        if stat.S_ISDIR(mode):
            self.close()
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        self.regular: bool = stat.S_ISREG(mode)
        self.rewindable: bool = self.regular
        if not self.regular:
            self._waiting = Waiting()

    def interrupt(self) -> None:
        if self._waiting is not None:
            self._waiting.end()

    def _readinto(self, buffer: Any) -> int:
        try:
            return self._read(buffer)
        except OSError as error:
            if error.errno is not None and self.path is not None:
                error.filename = os.fspath(self.path)
            raise

    def _read(self, buffer: Any) -> int:
        if self._waiting is not None:
            self._waiting.wait(self.fd)
            return system.readv(self.fd, [buffer])
        piece = system.pread(self.fd, len(buffer), self._offset)
        self._offset += len(piece)
        buffer[: len(piece)] = piece
        return len(piece)

    def duplicate(self) -> FileSource:
        """The same file with a descriptor of its own."""
        assert self.path is not None
        return FileSource(self.path, same_as=self.fd)

    def detach(self) -> int:
        """Gives the file descriptor to the caller, and closes this object."""
        self._file[0] = -1
        fd, self.fd = self.fd, -1
        return fd

    def rewind(self, offset: int) -> None:
        self._ahead = b""
        self._offset = offset

    def size(self) -> int | None:
        return os.fstat(self.fd).st_size if self.regular else None

    def check_ends(self) -> None:
        check_ends(self.fd, self.path)

    def close(self) -> None:
        self.fd = -1
        ffi.release(self._file)
        if self._waiting is not None:
            self._waiting.close()


def _closed_by_c(opened: Iterable[int]) -> Any:
    """A file descriptor in memory of C, which closes it with that memory, or by ``ffi.release``.
    Python loses an interrupt that arrives in a finalizer of its own.

    Args:
        opened: Opens the file when it is iterated over: no interrupt comes before it is stored.
    """
    memory = ffi.gc(ffi.new("int32_t *", -1), lib.tfw_close_file)
    list(map(memory.__setitem__, (0,), opened))
    return memory


class ObjectSource(Source):
    """A file object, read from its current position: anything with ``readinto`` or ``read``.

    The object may keep the view that it was asked to fill, and use it after the reader's memory has
    moved or was freed. So it fills a bytearray, which is copied. Only objects that are known to
    keep no view fill the reader's memory.

    Args:
        file: The object.
        path: Its name for messages; None: ``file.name``.
        owned: Whether ``close`` closes it.

    Raises:
        TypeError: The file was opened in text mode.
    """

    def __init__(self, file: Any, path: Path | None = None, owned: bool = False) -> None:
        super().__init__()
        if isinstance(file, io.TextIOBase):
            raise TypeError("the file object is in text mode; open it in binary mode")
        name = getattr(file, "name", None)
        self.path = path if path is not None else name if isinstance(name, str) else None
        self._file = file
        self._owned = owned
        self._lent: bytearray | None = None if _keeps_nothing(file) else bytearray()
        self._start = _position(file)
        self.rewindable = self._start is not None

    def _readinto(self, buffer: Any) -> int:
        try:
            return self._fill(buffer) if hasattr(self._file, "readinto") else self._read(buffer)
        except StopIteration as error:  # iterators over records would end silently
            raise RuntimeError("the file object raised StopIteration") from error

    def _fill(self, buffer: Any) -> int:
        if self._lent is None:
            return self._checked(type(self._file).readinto(self._file, buffer), len(buffer))
        size = min(len(buffer), _LENT)
        if len(self._lent) < size:
            self._lent = bytearray(size)
        lent = memoryview(self._lent)[:size]
        got = self._checked(self._file.readinto(lent), size)
        buffer[:got] = lent[:got]
        return got

    def _checked(self, got: Any, size: int) -> int:
        """The number of bytes that a file object says it read of ``size``, checked."""
        if got is None:
            raise BlockingIOError(errno.EAGAIN, "the file object has no data yet", self.path)
        got = as_index(got)
        if not 0 <= got <= size:
            raise OSError(f"the file object was asked for {size} bytes and claims to give {got}")
        return int(got)

    def _read(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        if isinstance(piece, str):
            raise TypeError("the file object is in text mode; open it in binary mode")
        data = None if piece is None else memoryview(piece).cast("B")
        got = self._checked(None if data is None else len(data), len(buffer))
        buffer[:got] = data
        return got

    def rewind(self, offset: int) -> None:
        self._ahead = b""
        self._file.seek((self._start or 0) + offset)

    def check_ends(self) -> None:
        if self._lent is None:  # Python's own object: no foreign code runs
            check_ends(self._file, self.path)

    def close(self) -> None:
        if self._owned:
            self._file.close()


class SectionSource(ObjectSource):
    """A file object up to an offset: what follows is not read. Read it from a record on by the
    ``start`` of a reader, whose errors then name the place in the file.

    Args:
        file: An object that can seek, at its beginning.
        path: Its name for messages.
        stop: Where the section ends; None: where the file does.
    """

    def __init__(self, file: Any, path: Path, stop: int | None = None) -> None:
        super().__init__(file, path)
        self._offset, self._stop = 0, stop

    @property
    def seekable(self) -> bool:
        return True

    def _readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        if self._stop is not None:
            view = view[: max(0, self._stop - self._offset)]
        got = super()._readinto(view) if len(view) else 0
        self._offset += got
        return got

    def rewind(self, offset: int) -> None:
        self._ahead = b""
        self._file.seek(offset)
        self._offset = offset


def _keeps_nothing(file: Any) -> bool:
    """Whether a file object is one of Python's own, whose ``readinto`` runs no foreign code."""
    raw = file.raw if type(file) is io.BufferedReader else file
    own = type(raw) in (io.BytesIO, io.FileIO)
    return own and not any("readinto" in vars(each) for each in (file, raw))


def _position(file: Any) -> int | None:
    """The current position of a file object, or None if it cannot seek."""
    try:
        return int(file.tell()) if file.seekable() else None
    except (AttributeError, OSError, ValueError):
        return None
    except TypeError:  # Beam's compressed files have an attribute of that name, not a method
        return None


def check_ends(file: Any, path: Any) -> None:
    """Refuses a device that may return bytes forever, like /dev/zero. Terminals and the null device
    end.

    Args:
        file: A file descriptor or a file object. One without a descriptor is not checked.
        path: Its name for messages, or None.

    Raises:
        ValueError: It is such a device.
    """
    try:
        fd = file if isinstance(file, int) else file.fileno()
        status = os.fstat(fd)
    except (AttributeError, OSError, ValueError):
        return
    if not stat.S_ISCHR(status.st_mode) or os.isatty(fd):
        return
    if not system.is_null_device(status):
        name = "input" if path is None else show_path(path)
        raise ValueError(f"{name}: expected an input that ends, found a character device")


def check_rereadable(path: Path) -> os.stat_result:
    """The status of a file that is read more than once, which pipes and devices are not.

    Raises:
        OSError: It is one of them, or there is no such file. A folder's is raised when it is read.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file, which can be read more than once", path)
    return status


def open_regular(path: Path, location: str | None = None) -> FileSource | None:
    """Opens a regular file; None: it is something else. Never waits for a pipe.

    Args:
        path: Its name for messages.
        location: Where it is, if the current directory may have changed; None: ``path``.
    """
    try:
        # Not opened at all: the writer of a pipe would take this for its reader.
        mode = os.stat(location or path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a directory is an error
            return None
        source = FileSource(path, system.NON_BLOCKING, location)
    except OSError as error:
        error.filename = os.fspath(path)
        raise
    if source.regular:
        return source
    source.close()
    return None


def detected_in_file(path: Path) -> Detected | None:
    """The compression of a regular file, as its first bytes say; None: it is something else."""
    source = open_regular(path)
    if source is None:
        return None
    try:
        return detect_compression(source.peek(DETECT_SIZE))
    finally:
        source.close()


# ---- Any number of bytes of a regular file, at an offset ----

# Linux reads at most 2 GiB less a page per call, macOS refuses more than 2 GiB.
_BYTES_PER_CALL = 1 << 30


def read_at(fd: int, size: int, offset: int) -> bytes:
    """Bytes of a file; fewer only if the file ends.

    Args:
        fd: A regular file.
        size: How many.
        offset: Where they begin.

    Raises:
        OSError: The file cannot be read.
    """
    if size <= _BYTES_PER_CALL:
        data = system.pread(fd, size, offset)
        if len(data) == size or not data:
            return data
    return _read_patiently(fd, size, offset)


def _read_patiently(fd: int, size: int, offset: int) -> bytes:
    """As read_at, in pieces. They are read into one BytesIO, whose memory becomes the result;
    joining pieces would take twice the memory."""
    room = io.BytesIO()
    room.seek(size - 1)
    room.write(b"\0")
    done = 0
    with room.getbuffer() as view:
        while got := system.pread_into(fd, view[done : done + _BYTES_PER_CALL], offset + done):
            done += got
            if done == size:
                break
    room.truncate(done)
    return room.getvalue()


class Waiting:
    """Waits for the input of a pipe, a socket or a device."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a signal handler may call end() during wait()
        self._ended = False
        self._pipe: tuple[Any, Any] | None = None  # a byte written to it ends a wait

    def wait(self, fd: int) -> None:
        """Waits until a file has input or has ended.

        Raises:
            ValueError: ``end`` was called.
        """
        with self._lock:
            if not self._ended and self._pipe is None:
                readable, writable = os.pipe()
                self._pipe = _closed_by_c([readable]), _closed_by_c([writable])
            pipe = self._pipe
        if pipe is not None and not self._ended:
            system.wait_for_input(fd, pipe[0][0])
        if self._ended:
            raise ValueError("the reader was closed while it waited for input")

    def end(self) -> None:
        """Ends the current wait and all later ones. Any thread may call it."""
        with self._lock:
            self._ended = True
            if self._pipe is not None:
                os.write(self._pipe[1][0], b"\0")

    def close(self) -> None:
        """Closes what ``wait`` has opened. No thread may be waiting."""
        with self._lock:
            pipe, self._pipe, self._ended = self._pipe, None, True
        if pipe is not None:
            ffi.release(pipe[0])
            ffi.release(pipe[1])
