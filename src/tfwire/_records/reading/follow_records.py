"""follow_records: the records of a file that is still being written, as they come."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from tfwire._base.aliases import DetectedCompressionType, RemotePath, StorageOptions
from tfwire._base.arguments import seconds
from tfwire._base.errors import DataLossError, record_error
from tfwire._base.shared_iterator import SharedIterator
from tfwire._records.files.byte_sources import FileSource, Source, open_regular, read_at
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import one_input
from tfwire._records.files.paths import absolute, is_path
from tfwire._records.files.urls import is_object_path
from tfwire._records.reading.batch_reader import BatchReader, RecordBatches
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.options import ReadOptions, as_position, make_options, open_source
from tfwire._records.reading.read_records import ChainedRecords

_BEGIN = 4096  # bytes at the beginning of a followed file that are compared
_LONGEST_WAIT = 1e6  # seconds; Python refuses to wait much longer


def follow_records(
    path: RemotePath,
    compression_type: DetectedCompressionType = "auto",
    *,
    start: RecordPosition | None = None,
    interval: float = 1.0,
    timeout: float | None = None,
    verify: bool = True,
    max_record_size: int | None = 2**30,
    buffer_size: int | None = None,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> FollowedRecords:
    """Reads the records of a file that is still being written, as they come.

    An incomplete record at the end is waited for; other damage is an error. To track progress, call
    ``read_records(path, on_corrupt="tail", start=position)`` repeatedly, as this function does.

    Args:
        path: A path, a URL or a path of universal_pathlib. A compressed file is read from its
            beginning each time, up to what its writer has flushed. A pipe is read once, to its end.
        compression_type, options, verify, max_record_size, buffer_size, storage_options: As for
            ``read_records``.
        start: Where to begin: an iterator's ``position``.
        interval: Seconds to wait before looking again at a file that has nothing new.
        timeout: End after this many seconds without a new record; None: never.

    Returns:
        An iterator of bytes, which threads may share; also a context manager. Its ``close()`` ends
        the iteration at once, whichever thread calls it and whatever another one waits for.

    Raises:
        ValueError, TypeError: An argument that is not valid.
        DataLossError: While iterating: damage other than an incomplete last record; the file became
            shorter, was replaced by another one, or was rewritten.
        OSError: While iterating: the file cannot be opened or read.

    Example:
        >>> for record in follow_records("a.tfrecord", timeout=0.01):  # seconds without a record
        ...     print(len(record))
        3
        3
    """
    compression_type = either_word(compression_type, options, "auto")
    if not is_path(path) and not is_object_path(path):
        raise TypeError(f"path must be a path or a URL, found {type(path).__name__}")
    path = one_input(path, storage_options, "read_records(paths)")
    looks = _Looks(
        FollowedFile(path),
        make_options(compression_type, verify, "tail", max_record_size, buffer_size),
        as_position("start", start),
        seconds("interval", interval),
        math.inf if timeout is None else seconds("timeout", timeout),
    )
    return FollowedRecords(looks)


class FollowedRecords(ChainedRecords):
    """Iterates over the records of a file as they come; made by ``follow_records``."""

    def __init__(self, looks: _Looks) -> None:
        super().__init__(looks)
        self._looks = looks

    def close(self) -> None:
        """Ends the iteration and closes the file. Any thread may call it, at any time."""
        self._looks.close()


class _Looks(SharedIterator[Iterator[bytes]]):
    """Looks at the file again and again; the records of each look as iterators, one per batch.

    Args:
        file: The file.
        options: Of its BatchReaders.
        position: Where the first look begins.
        interval: Seconds between two looks.
        timeout: Seconds without a new record after which it ends.
    """

    def __init__(
        self,
        file: FollowedFile,
        options: ReadOptions,
        position: RecordPosition,
        interval: float,
        timeout: float,
    ) -> None:
        super().__init__()
        self._file, self._options, self._position = file, options, position
        self._interval, self._timeout = interval, timeout
        self._deadline: float | None = None  # None: it has not begun
        self._look: RecordBatches | None = None
        self._final = False
        self._stopped: SimpleQueue[None] = SimpleQueue()  # an event that signal handlers may set

    def step(self) -> Iterator[bytes]:
        """The next batch of this look, or of the first one that finds something."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self._timeout
        while not self._closed:
            look = self._look = self._look or self._open()
            try:
                return next(look)
            except StopIteration:
                self._deadline = self._finish(look, self._deadline)
        raise StopIteration

    def _open(self) -> RecordBatches:
        source = self._file.open(self._position)
        # A pipe or a device cannot be opened again at a position: its end is final.
        self._final = isinstance(source, FileSource) and not source.regular
        options = self._options._replace(on_corrupt="raise") if self._final else self._options
        reader = BatchReader([source], options, start=self._position)
        reader.warn = lambda message: None  # an incomplete record is to be expected
        return RecordBatches(reader)

    def _finish(self, look: RecordBatches, deadline: float) -> float:
        """After the end of a look, waits until it is time for the next one.

        Returns:
            The new deadline.

        Raises:
            StopIteration: There is no next look.
        """
        before, self._position = self._position, look.exclusively(look.position)
        self._look = None
        look.close()
        if self._final:
            raise StopIteration
        self._file.reach(self._position)
        now = time.monotonic()
        if self._position != before:
            deadline = now + self._timeout
        if now >= deadline:
            raise StopIteration
        with suppress(Empty):
            self._stopped.get(timeout=min(self._interval, deadline - now, _LONGEST_WAIT))
        return deadline

    def stop(self) -> None:
        self._stopped.put(None)
        if (look := self._look) is not None:
            look.stop()  # a wait for a pipe

    def release(self) -> None:
        if self._look is not None:
            self._look.close()
        self._file.close()

    def over_now(self) -> None:
        self._release_once()


class FollowedFile:
    """A path or URL that is opened again and again, and must stay the same file.

    Args:
        path: The path or URL.
    """

    def __init__(self, path: Any) -> None:
        self._path = path
        # Stays open, so that its inode is not used again.
        self._first: FileSource | None = None
        self._location = ""  # where it is, also after a chdir
        self._begin = b""  # its first bytes, up to a position that was reached

    def open(self, position: RecordPosition) -> Source:
        """Opens the file to go on at a position.

        Raises:
            DataLossError: The path names another file now, or the file was rewritten.
            OSError: The file cannot be opened.
        """
        if self._first is None:
            source = open_source(self._path)
            if isinstance(source, FileSource) and source.regular:
                assert source.path is not None
                self._first, self._location = source.duplicate(), absolute(source.path)
            return source
        assert self._first.path is not None
        again = open_regular(self._first.path, self._location)
        if again is None or not os.path.sameopenfile(again.fd, self._first.fd):
            if again is not None:
                again.close()
            raise self._other_file(
                position, "another file has taken the place of the one that was followed"
            )
        if not self._begin.startswith(read_at(again.fd, len(self._begin), 0)):
            again.close()
            raise self._other_file(position, "the file was rewritten")
        return again

    def reach(self, position: RecordPosition) -> None:
        """Notes that whole records were read up to a position: that part must not change."""
        size = min(position.offset, _BEGIN)
        if self._first is not None and len(self._begin) < size:
            self._begin = read_at(self._first.fd, size, 0)

    def close(self) -> None:
        """Gives the file up. Closing again is allowed."""
        if self._first is not None:
            self._first.close()

    def _other_file(self, position: RecordPosition, text: str) -> DataLossError:
        assert self._first is not None
        return record_error(self._first.path, *position, text, "truncated")
