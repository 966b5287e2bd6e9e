"""Objects of fsspec's filesystems as output: nothing is visible under their name before close."""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tfwire._records.files.byte_sinks import Sink
from tfwire._records.files.urls import ObjectPath, import_fsspec, raise_naming
from tfwire._records.remote.objects import rename_object

_PART_BYTES = 1 << 23  # given to a filesystem at once


def names_at_close(fs: Any) -> bool:
    """Whether closing a file gives it its name: from a local copy, or within the archive."""
    kinds = {kind.__name__ for kind in type(fs).__mro__}
    return bool({"CachingFileSystem", "AbstractArchiveFileSystem"} & kinds)


def hidden_beside(path: str) -> str:
    """A new temporary path in the folder of another one."""
    return posixpath.join(posixpath.dirname(path), f".tfwire-{os.urandom(8).hex()}.tmp")


class RemoteSink(Sink):
    """Writes an object in parts, which appears when it is complete.

    Object stores complete an upload at the end. Elsewhere a temporary file is renamed. A discarded
    upload is aborted.

    Args:
        path: The object.

    Raises:
        OSError: It cannot be created; with the URL.
        ImportError, ValueError: As ``ObjectPath.locate``.
    """

    _named_first = True  # the name of an upload is known when it begins

    def __init__(self, path: ObjectPath) -> None:
        self._url = path
        self._fs, self._path = path.locate()
        self._written = 0
        at_close = names_at_close(self._fs)
        self._uploads = bool(type(self._fs).async_impl) and not at_close
        hidden = not self._uploads or not self._named_first
        self._draft = hidden_beside(self._path) if hidden and not at_close else self._path
        self._file: Any = self._named("it cannot be opened for writing", self._open)

    def _open(self) -> Any:
        if not self._uploads:
            if self._fs.isdir(self._path):
                raise IsADirectoryError(self._path)
            return self._fs.open(self._draft, "wb")
        file = self._fs.open(self._draft, "wb", autocommit=False)
        with contextlib.suppress(ValueError):  # not in a transaction of the filesystem
            self._fs.transaction.files.remove(file)
        return file

    def write(self, buffers: Sequence[Any]) -> None:
        for buffer in buffers:
            view = memoryview(buffer).cast("B")
            for begin in range(0, len(view), _PART_BYTES):
                part = bytes(view[begin : begin + _PART_BYTES])
                what = f"writing failed after {self._written} bytes"
                self._named(what, partial(self._file.write, part))
                self._written += len(part)

    def close(self) -> None:
        try:
            self._named(f"it cannot be completed, {self._written} bytes", self._complete)
        except BaseException:
            self.discard()
            raise

    def _complete(self) -> None:
        self._file.close()
        if self._uploads:
            self._file.commit()
        elif self._draft != self._path:
            rename_object(self._fs, self._draft, self._path)

    def discard(self) -> None:
        with contextlib.suppress(Exception):
            if self._draft != self._path:
                self._discard_draft()
            else:
                self._file.discard()
        self.abandon()

    def _discard_draft(self) -> None:
        if self._uploads and not self._file.closed:
            self._file.discard()
            return
        self._file.close()
        self._fs.rm_file(self._draft)

    def abandon(self) -> None:
        with contextlib.suppress(Exception):  # its finalizer would complete it
            self._file.closed = True

    def _named(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            if isinstance(error, NotImplementedError):  # fsspec's, where a filesystem only reads
                error = OSError("the filesystem cannot be written")
            raise_naming(self._url, what, error)


class RemoteShardSink(RemoteSink):
    """Writes an object that gets its name from ``publish``, together with others.

    Args:
        path: The object, or, while its name is not known, any in its folder.
        known: True if that is its name: an upload to it is completed by ``publish``. Otherwise a
            temporary object is copied.

    Attributes:
        size: Bytes of the object, once it is closed.
        draft: Its temporary path; None: an upload, which has none.
    """

    def __init__(self, path: ObjectPath, known: bool) -> None:
        self._named_first = known
        super().__init__(path)
        self._commits = self._uploads and known
        if self._commits and not _waits_for_commit(self._file, path):
            self._commits = False
            self.discard()
            self._draft = hidden_beside(self._path)
            self._file = self._named("it cannot be opened for writing", self._open)

    @property
    def size(self) -> int:
        return self._written

    @property
    def draft(self) -> str | None:
        return None if self._commits else self._draft

    def _complete(self) -> None:
        self._file.close()
        if self._uploads and not self._commits:
            self._file.commit()

    def publish(self, path: str) -> None:
        """Gives the object its name.

        Raises:
            Exception: Of the filesystem.
        """
        if self._commits:
            self._file.commit()
        else:
            rename_object(self._fs, self._draft, path)


def _waits_for_commit(file: Any, url: str) -> bool:
    """Whether a file that was opened with autocommit=False has no name before ``commit``. Some
    filesystems do not know that argument: there, ``close`` completes the object."""
    base = import_fsspec(url).spec.AbstractBufferedFile
    return getattr(type(file), "commit", base.commit) is not base.commit
