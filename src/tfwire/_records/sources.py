"""Where records come from: files, file objects and URLs as streams of bytes."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

from tfwire._text import show_path

__all__ = [
    "FileSource",
    "ObjectSource",
    "Source",
    "is_file_object",
    "is_url",
    "open_source",
    "open_url",
    "split_paths",
]

Path = str | os.PathLike[str]


class Source:
    """The bytes of one input, in order.

    Attributes:
        path: Its name for messages, or None.
        rewindable: Whether ``rewind`` works.
    """

    path: Path | None = None
    rewindable = False

    def __init__(self) -> None:
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        """The first bytes, without taking them; fewer only when there are fewer."""
        buffer = bytearray(size)
        while len(self._ahead) < size and (got := self._readinto(buffer)):
            self._ahead += buffer[:got]
        return self._ahead[:size]

    def readinto(self, buffer: Any) -> int:
        """Fills some of a buffer; 0 at the end. The buffer supports slices and len()."""
        if not self._ahead:
            return self._readinto(buffer)
        piece = self._ahead[: len(buffer)]
        self._ahead = self._ahead[len(piece) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def rewind(self, offset: int) -> None:
        """Goes back to an offset, counted from where the source began."""
        raise io.UnsupportedOperation("rewind")

    def size(self) -> int | None:
        """The bytes of the whole source, where that is known."""
        return None

    def close(self) -> None:
        """Releases what was opened here; closing again does nothing."""

    def _readinto(self, buffer: Any) -> int:
        raise NotImplementedError


class FileSource(Source):
    """A file that was opened here. Regular files are read by pread at an offset of our own, so a
    process that forks shares no position with its child; pipes and devices as they come.

    Attributes:
        fd: The file descriptor.
        regular: Whether it is a regular file.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._offset = 0
        mode = os.fstat(self.fd).st_mode
        if stat.S_ISDIR(mode):
            self.close()
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        self.regular = self.rewindable = stat.S_ISREG(mode)

    def _readinto(self, buffer: Any) -> int:
        if not self.regular:
            return os.readv(self.fd, [buffer])
        piece = os.pread(self.fd, len(buffer), self._offset)
        self._offset += len(piece)
        buffer[: len(piece)] = piece
        return len(piece)

    def rewind(self, offset: int) -> None:
        self._ahead = b""
        self._offset = offset

    def size(self) -> int | None:
        return os.fstat(self.fd).st_size if self.regular else None

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if getattr(self, "fd", -1) >= 0:
            with contextlib.suppress(OSError):
                self.close()


class ObjectSource(Source):
    """A file object, read from where it stands: anything with ``readinto`` or ``read``.

    Args:
        file: The object.
        path: Its name, where the caller knows better than ``file.name``.
        owned: Whether to close it at the end.

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
        self._start = _position(file)
        self.rewindable = self._start is not None

    def _readinto(self, buffer: Any) -> int:
        if hasattr(self._file, "readinto"):
            got = self._file.readinto(buffer)
            if got is None:
                raise BlockingIOError(errno.EAGAIN, "the file object has no data yet", self.path)
            return self._checked(got, len(buffer))
        piece = self._file.read(len(buffer))
        if isinstance(piece, str):
            raise TypeError("the file object is in text mode; open it in binary mode")
        buffer[: self._checked(len(piece), len(buffer))] = piece
        return len(piece)

    def _checked(self, got: int, size: int) -> int:
        if not 0 <= got <= size:
            raise OSError(f"the file object was asked for {size} bytes and claims to give {got}")
        return got

    def rewind(self, offset: int) -> None:
        self._ahead = b""
        self._file.seek((self._start or 0) + offset)

    def close(self) -> None:
        if self._owned:
            self._file.close()


def _position(file: Any) -> int | None:
    """Where a file object stands, or None when it cannot go back there."""
    try:
        return int(file.tell()) if file.seekable() else None
    except (AttributeError, OSError, ValueError):
        return None


def is_file_object(value: Any) -> bool:
    """Whether bytes can be read from a value by itself."""
    return hasattr(value, "read") or hasattr(value, "readinto")


def open_source(path: Any) -> Source:
    """Opens a path, a URL or a file object.

    Raises:
        OSError: With the file's name: missing, a directory, no permission.
        ImportError: A URL, and fsspec is not installed.
        TypeError: Something else.
    """
    if is_file_object(path):
        return ObjectSource(path)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if is_url(path):
        return ObjectSource(open_url(path, "rb"), path, owned=True)
    if isinstance(path, (str, os.PathLike)):
        return FileSource(path)
    raise TypeError(f"expected a path, a URL or a file object, found {type(path).__name__}")


def is_url(path: Any) -> bool:
    """Whether a path is one for fsspec."""
    return isinstance(path, str) and "://" in path


def open_url(url: str, mode: str) -> Any:
    """Opens a URL through fsspec."""
    try:
        fsspec: Any = import_module("fsspec")
    except ImportError:
        raise ImportError(
            f"{show_path(url)}: URLs need fsspec; pip install 'tfwire[remote]'"
        ) from None
    return fsspec.open(url, mode).open()


def split_paths(paths: Any) -> Iterator[Any]:
    """The inputs that a ``paths`` argument names: one, or an iterable of them.

    Raises:
        TypeError: Neither.
    """
    if hasattr(paths, "numpy"):
        paths = paths.numpy()
    if isinstance(paths, np.ndarray):
        paths = paths.tolist()
    if isinstance(paths, (str, bytes, os.PathLike)) or is_file_object(paths):
        return iter((paths,))
    try:
        return iter(paths)
    except TypeError:
        raise TypeError(
            f"expected a path, a file object or an iterable of them, found {type(paths).__name__}"
        ) from None
