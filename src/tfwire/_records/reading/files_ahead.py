"""Compressed files that are read ahead, several at a time, each by a thread of its own.

The thread inflates its file into parcels of two mebibytes, in which C finds and verifies the
records; both release the GIL. A pipeline parses them where they are, and their memory serves the
next ones. The thread goes as far as the file is undamaged. Where it ends, and in a forked child,
the reader reads the file by itself, from the beginning.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from tfwire._base import system
from tfwire._base.aliases import Compression
from tfwire._base.native import check, create, ffi, lib, new_error, new_struct
from tfwire._base.workers import Workers
from tfwire._records.files.byte_sources import FileSource, open_regular
from tfwire._records.files.compression import DETECT_SIZE, Detected, detect_compression
from tfwire._records.files.paths import is_path
from tfwire._records.files.undamaged import UndamagedFile
from tfwire._records.files.urls import is_url
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import split
from tfwire._records.reading.options import ReadOptions

# Bytes to inflate at a time, for a parcel, and parcels of each file that wait for the reader.
_PARCEL_BYTES = 1 << 21
_WAITING = 8
# Bytes of a record that is so long that the reader reads the file: sixteen files with longer ones
# would take too much memory.
_LONGEST = 1 << 24
# A smaller file is read by the reader: that costs less than a thread.
_AHEAD_BYTES = 1 << 16
_KEPT = 32  # parcels, for the next files

Parcels = deque[Any]  # of ``tfw_parcel *``


class _Gathered(NamedTuple):
    """Some records.

    Attributes:
        parcel, batch: The ``tfw_parcel *`` and the ``tfw_batch *`` of all its records; None: there
            are none, as the parcel before was so large.
        last: Whether there are no more.
        whole: Whether the file has ended after them, undamaged.
    """

    parcel: Any = None
    batch: Any = None
    last: bool = False
    whole: bool = False


class _Gatherer:
    """Inflates a file and gathers its records, in the thread that calls ``next``."""

    def __init__(self, file: UndamagedFile, options: ReadOptions, spare: Parcels) -> None:
        self._file = file
        self._limits = options.max_record_size, options.flags & lib.TFW_NO_DATA_CRC
        self._spare = spare
        self._parcel: Any = None  # that comes next
        self._owed = 0  # parcels that those before would have filled
        self._error = new_error()

    def next(self) -> _Gathered:
        if self._owed:
            self._owed -= 1
            return _Gathered()
        try:
            return self._gather(self._parcel or self._begin(None))
        except Exception:  # the reader finds it, too, and reports it by its policy
            return _Gathered(last=True)

    def _gather(self, parcel: Any) -> _Gathered:
        """The records of so many bytes; of as many as the first record takes, if it is longer."""
        batch, error, size = new_struct("tfw_batch"), self._error, 0
        while size < _PARCEL_BYTES or (not batch.count and size < _LONGEST):
            piece = self._file.read(_PARCEL_BYTES)
            status = lib.tfw_parcel_add(parcel, ffi.from_buffer(piece), len(piece), batch, error)
            if not piece or status < 0:
                return _Gathered(parcel, batch, True, not piece and status == lib.TFW_OK)
            size += len(piece)
        self._parcel = self._begin(parcel)
        self._owed = max(0, size - 1) // _PARCEL_BYTES
        return _Gathered(parcel, batch, last=not batch.count)

    def _begin(self, before: Any) -> Any:
        """A parcel that goes on after another one."""
        try:
            parcel = self._spare.pop()
        except IndexError:
            native = create(lib.tfw_parcel_create, "tfw_parcel", *self._limits)
            parcel = ffi.gc(native, lib.tfw_parcel_free)
        check(lib.tfw_parcel_begin(parcel, before or ffi.NULL, self._error), self._error)
        return parcel


class FileAhead:
    """The records of a compressed file that a thread reads ahead, as far as it is undamaged.

    Args:
        source: The compressed bytes, for the reader; this object closes it, too.
        compression: "GZIP" or "ZLIB".
        options: How to read it.
        spare: Parcels to use again.

    Attributes:
        source, compression: The arguments.
        parcel: The ``tfw_parcel *`` that has the last batch, and no more; None: there is none.
        is_whole: Whether the file has ended, undamaged, after the last batch.

    Raises:
        RuntimeError: No thread can start: at exit, or at a limit.
    """

    def __init__(
        self,
        source: FileSource,
        compression: Compression,
        options: ReadOptions,
        spare: Parcels,
    ) -> None:
        self.source, self.compression = source, compression
        self.parcel: Any = None
        self.is_whole = False
        self._held: Any = None  # the parcel with the last batch, and with what is left
        self._left: Any = None  # a ``tfw_batch *`` of it
        self._has_ended = False
        self._spare = spare
        self._file = UndamagedFile(source.duplicate(), compression, options.receipt)
        try:
            gatherer = _Gatherer(self._file, options, spare)
            self._workers = Workers(gatherer.next, None, 1, _WAITING, owner=self)
        except BaseException:
            self._file.close()
            raise

    @property
    def is_ready(self) -> bool:
        """Whether the next records were read already."""
        return bool(self._left) or self._workers.ready

    @property
    def crc32c(self) -> int | None:
        """At the end: the CRC-32C of the file."""
        return self._file.crc32c

    def next(self, max_records: int, batch: Any) -> bool:
        """As of RecordsAhead."""
        if self._left is None and not self._draw():
            return False
        left = self._left
        if 0 < max_records < left.count:
            batch[0], self.parcel = split(left, max_records)[0], None
        else:
            batch[0], self._left = left[0], None
        return True

    def _draw(self) -> bool:
        """Takes the next parcel with records; False: there is none."""
        while True:
            # Taken first: an interrupt may lose a parcel, but never give it to two threads.
            done, self._held, self.parcel = self._held, None, None
            if done is not None and len(self._spare) < _KEPT:
                self._spare.append(done)
            if self._has_ended or self._workers.forked:
                return False
            self._held, batch, self._has_ended, self.is_whole = self._workers.next()
            if batch and batch.count:
                self.parcel, self._left = self._held, batch
                return True

    def close(self) -> None:
        self.source.close()
        self._workers.close(self._file.close)


class FilesAhead(Iterator[Any]):
    """The paths of a list; some of the next files are being read.

    A file that is not a compressed regular file, or that cannot be opened, is left to the reader,
    which opens it when it is its turn.

    Args:
        paths: Paths, URLs and file objects.
        options: How to read them.
        num_files: How many files are read at a time, with the one that the reader is at.
        start: Where the reader begins in the first one: by itself, if that is in the middle.

    Attributes:
        current: The file of the last path returned, if it is read ahead. It is closed when the next
            one is asked for.
    """

    def __init__(
        self, paths: list[Any], options: ReadOptions, num_files: int, start: RecordPosition
    ) -> None:
        self.current: FileAhead | None = None
        self._left = deque(paths)
        self._options = options
        self._num_files = num_files
        self._ahead: deque[FileAhead | None] = deque()  # of the first paths left
        if paths and start != RecordPosition():
            self._ahead.append(None)
        self._spare: Parcels = deque()

    def __next__(self) -> Any:
        self._close_current()
        if not self._left:
            raise StopIteration
        while len(self._ahead) < min(self._num_files, len(self._left)):
            self._ahead.append(self._begin(self._left[len(self._ahead)]))
        self.current = self._ahead.popleft()
        return self._left.popleft()

    def close(self) -> None:
        """Ends the threads and closes the files."""
        self._left.clear()
        self._close_current()
        while self._ahead:
            self.current = self._ahead.popleft()
            self._close_current()

    def _close_current(self) -> None:
        file, self.current = self.current, None
        if file is not None:
            file.close()

    def _begin(self, path: Any) -> FileAhead | None:
        """Begins to read a file, if that can be done without waiting for anything."""
        if not is_path(path) or is_url(path) or system.num_cpus() == 1:
            return None
        path = os.fsdecode(path) if isinstance(path, bytes) else path
        with contextlib.suppress(OSError, ValueError):  # the reader reports it in its place
            source = open_regular(path)
            if source is None:
                return None
            with contextlib.suppress(RuntimeError):
                if (source.size() or 0) >= _AHEAD_BYTES:
                    return self._read_ahead(source)
            source.close()
        return None

    def _read_ahead(self, source: FileSource) -> FileAhead | None:
        """None: it is not compressed, or that is not sure."""
        options, name = self._options, self._options.compression
        found = detect_compression(source.peek(DETECT_SIZE)) if name == "auto" else Detected(name)
        if not found.compression or not found.sure:
            source.close()
            return None
        return FileAhead(source, found.compression, options, self._spare)
