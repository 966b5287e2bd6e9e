"""Objects of fsspec's filesystems as output: nothing is visible under their name before close."""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tfwire._records.sinks import Sink
from tfwire._records.urls import ObjectPath, import_fsspec, raise_naming

__all__ = ["RemoteSink"]

_PART_BYTES = 1 << 23  # given to a filesystem at once


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

    def __init__(self, path: ObjectPath) -> None:
        self._url = path
        self._fs, self._path = path.locate()
        self._written = 0
        kinds = [kind.__name__ for kind in type(self._fs).__mro__]
        # Of these, close() gives the object its name: from a local copy, or within the archive.
        at_close = {"CachingFileSystem", "AbstractArchiveFileSystem"} & set(kinds)
        self._uploads = bool(type(self._fs).async_impl) and not at_close
        self._draft = self._path
        if not self._uploads and not at_close:
            folder = posixpath.dirname(self._path)
            self._draft = posixpath.join(folder, f".tfwire-{os.urandom(8).hex()}.tmp")
        self._file: Any = self._named("it cannot be opened for writing", self._open)

    def _open(self) -> Any:
        if not self._uploads:
            if self._fs.isdir(self._path):
                raise IsADirectoryError(self._path)
            return self._fs.open(self._draft, "wb")
        file = self._fs.open(self._draft, "wb", autocommit=False)
        with contextlib.suppress(ValueError):  # it is no part of a transaction of the filesystem
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
            self._rename()

    def _rename(self) -> None:
        """Gives the temporary file its name. fsspec's own ``mv`` takes names for patterns."""
        if type(self._fs).mv is not import_fsspec(self._url).AbstractFileSystem.mv:
            self._fs.mv(self._draft, self._path)
        else:
            self._fs.cp_file(self._draft, self._path)
            self._fs.rm_file(self._draft)

    def discard(self) -> None:
        with contextlib.suppress(Exception):
            if self._draft != self._path:
                self._file.close()
                self._fs.rm_file(self._draft)
            else:
                self._file.discard()
        self.abandon()

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
