"""Compressed files that are inflated before the reader reaches them, several at a time."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from tfwire._records.compression import DETECT_SIZE, detect_compression
from tfwire._records.inflate_thread import ThreadedInflater
from tfwire._records.sources import FileSource, is_path, is_url, open_regular

if TYPE_CHECKING:
    from tfwire._base.aliases import Compression

__all__ = ["FilesAhead"]

# Inflated units of each file that wait for the reader.
_WAITING = 16
# Of files that inflate to more than so many times their size. Inflating them is little work, but
# fresh memory, out of the cache: with many units it takes half as long again (W7).
_LARGE_RATIO = 4
_FEW_WAITING = 2
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
                few = _ratio(source, compression) > _LARGE_RATIO
                inflater.start(_FEW_WAITING if few else _WAITING)
                return inflater
            source.close()
        return None


def _ratio(source: FileSource, compression: Compression) -> float:
    """How many times its size a file inflates to, by the end of its last gzip member; 0: unknown.
    A hint: the file may be damaged, or have several members."""
    size = source.size() or 0
    if compression != "GZIP" or size < 4:
        return 0
    try:
        return int.from_bytes(os.pread(source.fd, 4, size - 4), "little") / size
    except OSError:  # the reader will report it
        return 0
