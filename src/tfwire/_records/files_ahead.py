"""Compressed files that are inflated before the reader reaches them, several at a time."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from tfwire._records.compression import DETECT_SIZE, detect_compression
from tfwire._records.inflate_thread import ThreadedInflater
from tfwire._records.sources import is_path, is_url, open_regular

if TYPE_CHECKING:
    from tfwire._base.aliases import Compression

__all__ = ["FilesAhead"]

# Inflated units of each file that wait for the reader. Many keep all threads at work, but they are
# fresh memory, out of the cache: W1 takes a quarter more CPU time. Two threads and the reader keep
# two cores busy in any case; then two units hide the beginning of a file.
_UNITS_PER_FILE = 16
_UNITS_OF_TWO = 2
# A smaller file is inflated by the reader: that costs less than a thread.
_AHEAD_BYTES = 1 << 16


class FilesAhead(Iterator[Any]):
    """The paths of a list; some of the next files are being inflated.

    A file that is not a compressed regular file, or that cannot be opened, is left to the reader,
    which opens it when it is its turn.

    Args:
        paths: Paths, URLs and file objects.
        compression: "GZIP", "ZLIB", "" or "auto".
        num_files: How many files are inflated at a time, with the one that the reader is at.
    """

    def __init__(
        self, paths: list[Any], compression: Compression | Literal["auto"], num_files: int
    ) -> None:
        self._left = deque(paths)
        self._compression = compression
        self._num_files = num_files
        self._units = _UNITS_OF_TWO if num_files == 2 else _UNITS_PER_FILE
        self._inflating: deque[ThreadedInflater | None] = deque()  # of the first paths left
        self._current: ThreadedInflater | None = None

    def __next__(self) -> Any:
        """The next path. What was not taken of the one before is closed."""
        self._close_current()
        if not self._left:
            raise StopIteration
        while len(self._inflating) < min(self._num_files, len(self._left)):
            self._inflating.append(self._begin(self._left[len(self._inflating)]))
        self._current = self._inflating.popleft()
        return self._left.popleft()

    def take(self) -> ThreadedInflater | None:
        """The inflater of the last path returned, for the caller to close, if there is one."""
        inflater, self._current = self._current, None
        return inflater

    def close(self) -> None:
        """Ends the threads and closes the files."""
        self._left.clear()
        self._close_current()
        while self._inflating:
            self._current = self._inflating.popleft()
            self._close_current()

    def _close_current(self) -> None:
        inflater = self.take()
        if inflater is not None:
            inflater.close()

    def _begin(self, path: Any) -> ThreadedInflater | None:
        """Begins to inflate a file, if that can be done without waiting for anything."""
        if not is_path(path) or is_url(path):
            return None
        path = os.fsdecode(path) if isinstance(path, bytes) else path
        with contextlib.suppress(OSError, ValueError):  # the reader reports it in its place
            source = open_regular(path)
            if source is None or (source.size() or 0) < _AHEAD_BYTES:
                return None
            name = self._compression
            compression = detect_compression(source.peek(DETECT_SIZE)) if name == "auto" else name
            if compression:
                inflater = ThreadedInflater(source, compression)
                inflater.start(self._units)
                return inflater
            source.close()
        return None
