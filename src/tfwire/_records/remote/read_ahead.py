"""Objects of fsspec's filesystems as input: ranges of 8 MiB, several in flight, read ahead."""

from __future__ import annotations

import errno
import weakref
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from tfwire._base.workers import Workers
from tfwire._records.files.byte_sources import Source
from tfwire._records.files.urls import ObjectPath, RangesIgnoredError, raise_naming
from tfwire._records.remote.objects import RemoteObject

# Memory of one object: the ranges in flight or waiting for the reader.
_RANGE_BYTES = 8 << 20
_IN_FLIGHT = 8
_WAITING_RANGES = 2
# Without a record, of an object of which nothing tells where it ends.
_MOST_SEARCHED = 1 << 30
_CLOSED_WAITING = "the reader was closed while it waited for input"


class RemoteSource(Source):
    """The bytes of an object. Threads of this source fetch its ranges; they end when it is closed
    or dropped. After a fork, parent and child may both go on reading.

    When all ranges of the object have been asked for, those of the object that follows it are.

    Where a filesystem has no cheap ranges (caches, archives, servers that ignore them), one thread
    reads the object from its beginning to its end.

    Args:
        path: The object.
        found: The same, if it is open; this source uses it alone.

    Raises:
        OSError: It is missing, or cannot be read; with the URL.
        ImportError, ValueError: As ``ObjectPath.locate``.
    """

    def __init__(self, path: ObjectPath, found: RemoteObject | None = None) -> None:
        super().__init__()
        self.path = str(path)
        self.rewindable = True
        self._location = path
        self._object = found or RemoteObject(path)
        self._offset = 0  # of the next byte
        self._piece = memoryview(b"")
        self._room: bytearray | None = None  # memory of the piece
        self._at_end = False
        self._interrupted = False
        self._following = path.following  # until it is prepared
        self._workers: Workers | None = None
        self._ranges: _Ranges | None = None  # of the threads
        self._spare: list[bytearray] = []  # memory of ranges that were read
        self._dropped = weakref.finalize(self, self._object.stop)
        self._dropped.atexit = False

    def size(self) -> int | None:
        return self._object.size

    @property
    def seekable(self) -> bool:
        return self._object.size is not None

    def sample(self, size: int) -> bytes:
        if self._object.size is not None:
            with suppress(RangesIgnoredError):
                return self._object.read(0, min(size, self._object.size))
            self._object.ignore_ranges()
        return self.peek(size)

    @property
    def version(self) -> str:
        """The size and version of the object, as the filesystem tells them."""
        return self._object.version

    def _readinto(self, buffer: Any) -> int:
        while not self._piece:
            if self._at_end:
                return 0
            self._load()
        size = min(len(buffer), len(self._piece))
        buffer[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        self._offset += size
        return size

    def _load(self) -> None:
        """Gets the next piece of the object."""
        if self._object.forked:
            self._workers = None
            self._renew(self._object.reopened())
        elif self._object.stopped.is_set() and not self._interrupted:
            self._renew(self._object.renewed())
        if self._asked_for_all:
            self._prepare_following()
        try:
            piece = self._next()
            goes_on = piece.last and self._object.goes_on(self._offset + len(piece.data))
        except RangesIgnoredError:
            self._stop()
            self._renew(self._object.renewed())
            self._object.ignore_ranges()
            piece, goes_on = self._next(), False
        except BaseException as error:
            self._stop()
            if self._interrupted and isinstance(error, Exception):
                raise ValueError(_CLOSED_WAITING) from None
            raise
        if self._room is not None:
            self._spare.append(self._room)
        self._piece, self._room = memoryview(piece.data), piece.room
        self._at_end = piece.last and not goes_on
        if goes_on:  # more than was known when the ranges were planned
            self._stop()
            self._renew(self._object.renewed())

    def _next(self) -> _Fetched:
        found, begin = self._object, self._offset
        if self._workers is None:
            if found.size is not None and found.size - begin <= _RANGE_BYTES:
                return _Fetched(found.read(begin, max(begin, found.size)), True, None)
            self._start(begin)
        assert self._workers is not None
        piece: _Fetched = self._workers.next()
        return piece

    @property
    def _asked_for_all(self) -> bool:
        """Whether all that is left is in flight, or one range."""
        if self._workers is not None:
            return self._ranges is not None and self._ranges.all_given
        size = self._object.size
        return size is not None and size - self._offset <= _RANGE_BYTES

    def _prepare_following(self) -> None:
        """Begins to fetch the object after this one."""
        following, self._following = self._following, None
        if following is None:
            return
        _reading.discard(self)  # what is left of this one is in flight
        with suppress(Exception):  # opening it raises the error
            source = RemoteSource(following)
            if source.size():
                source._start(0)
            following.prepared = source

    def _start(self, begin: int) -> None:
        """Starts the threads, which fetch what begins at an offset."""
        found = self._object
        if found.size is None:
            stream = _Stream(found, begin)
            self._workers = Workers(stream.read, None, 1, _WAITING_RANGES, owner=self)
            return
        self._ranges = ranges = _Ranges(begin, found)
        share = max(1, _IN_FLIGHT // (1 + len(_reading)))
        threads = min(share, ranges.count)
        most = threads + _WAITING_RANGES
        fetch = partial(_fetch, found, self._spare)
        self._workers = Workers(ranges.next, fetch, threads, most, owner=self)
        _reading.add(self)

    def _stop(self) -> None:
        """Ends the threads. What they fetched is fetched again if reading goes on."""
        _reading.discard(self)
        workers, self._workers = self._workers, None
        self._ranges = None
        if workers is not None:
            workers.stop()
        self._object.stop()
        if workers is not None:
            workers.close()

    def _renew(self, found: RemoteObject) -> None:
        """Goes on with an object that is not stopped."""
        self._dropped.detach()
        self._object = found
        self._dropped = weakref.finalize(self, found.stop)
        self._dropped.atexit = False

    def rewind(self, offset: int) -> None:
        self._stop()
        self._ahead, self._piece, self._at_end = b"", memoryview(b""), False
        self._offset = offset

    def check_unchanged(self) -> None:
        """Looks at the object again.

        Raises:
            OSError: It is another one than at first, or it is gone.
        """
        if not self._object.forked:
            self._object.check()

    def check_searched(self, num_bytes: int) -> None:
        if num_bytes > _MOST_SEARCHED and self._object.num_bytes is None:
            text = f"no record is in {num_bytes} bytes, and nothing tells where the object ends"
            raise OSError(errno.EFBIG, text, self.path)

    def interrupt(self) -> None:
        self._interrupted = True
        workers = self._workers
        if workers is not None:
            workers.stop()
        self._object.stop()

    def close(self) -> None:
        self._dropped.detach()
        self._at_end, self._piece, self._room = True, memoryview(b""), None
        self._spare.clear()
        self._stop()


# Sources with threads, which share the number of ranges in flight.
_reading: weakref.WeakSet[RemoteSource] = weakref.WeakSet()


class _Fetched(NamedTuple):
    """Some bytes, whether they are the last ones, and memory to be used again after them."""

    data: bytes | memoryview
    last: bool
    room: bytearray | None


class _Range(NamedTuple):
    """A range to fetch. The last one is empty."""

    begin: int
    end: int
    last: bool


class _Ranges:
    """The ranges of an object from an offset on, and an empty one after them. Answers may tell a
    shorter size meanwhile."""

    def __init__(self, begin: int, found: RemoteObject) -> None:
        self._begin, self._object = begin, found
        self.count = -(-((found.size or 0) - begin) // _RANGE_BYTES)

    @property
    def all_given(self) -> bool:
        return self._begin >= (self._object.size or 0)

    def next(self) -> _Range:
        begin, size = self._begin, self._object.size or 0
        self._begin = end = max(begin, min(begin + _RANGE_BYTES, size))
        return _Range(begin, end, begin == end)


def _fetch(found: RemoteObject, spare: list[bytearray], part: _Range) -> _Fetched:
    """The bytes of a range. After the last one: looks whether the object is the same."""
    if not part.last:
        if not found.can_read_into:
            return _Fetched(found.read(part.begin, part.end), False, None)
        try:
            room = spare.pop()
        except IndexError:
            room = bytearray(_RANGE_BYTES)
        return _Fetched(found.read_into(part.begin, part.end, memoryview(room)), False, room)
    if not found.answers_tell_version:
        found.check()
    return _Fetched(b"", True, None)


class _Stream:
    """An object that is read from its beginning to its end.

    Args:
        found: The object.
        offset: Where to begin; what is before it is read too, if the file cannot seek.
    """

    def __init__(self, found: RemoteObject, offset: int) -> None:
        self._object = found
        self._file = found.open(_RANGE_BYTES)
        self._offset = 0
        if offset and _can_seek(self._file):
            self._offset = self._file.seek(offset)
        while self._offset < offset:
            if not self._read(min(_RANGE_BYTES, offset - self._offset)):
                break

    def read(self) -> _Fetched:
        data = self._read(_RANGE_BYTES)
        if not data:
            self._file.close()
        return _Fetched(data, not data, None)

    def _read(self, size: int) -> bytes:
        try:
            data = bytes(self._file.read(size))
        except Exception as error:
            what = f"what begins at byte {self._offset} cannot be read (1 try)"
            raise_naming(self._object.url, what, error)
        self._offset += len(data)
        return data


def _can_seek(file: Any) -> bool:
    try:
        return bool(file.seekable())
    except AttributeError:
        return False
