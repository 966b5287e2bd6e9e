"""Objects of fsspec's filesystems as input: ranges of 8 MiB, several in flight, read ahead."""

from __future__ import annotations

import asyncio
import copy
import errno
import os
import random
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from tfwire._base.workers import Workers
from tfwire._records.sources import Source
from tfwire._records.urls import ObjectPath, import_fsspec, is_retryable, raise_naming

__all__ = ["RemoteSource"]

# Memory of one object: the ranges in flight or waiting for the reader.
_RANGE_BYTES = 8 << 20
_IN_FLIGHT = 8
_WAITING_RANGES = 2
# Of one request, and the first pause between them, which doubles: six seconds in all.
_TRIES = 6
_FIRST_PAUSE = 0.2
_CLOSED_WAITING = "the reader was closed while it waited for input"

Result = TypeVar("Result")


class RemoteSource(Source):
    """The bytes of an object. Threads of this source fetch its ranges; they end when it is closed
    or dropped. After a fork, parent and child may both go on reading.

    When all ranges of the object have been asked for, those of the object that follows it are.

    Where a filesystem has no cheap ranges (caches, archives, servers that ignore them), one thread
    reads the object from its beginning to its end.

    Args:
        path: The object.

    Raises:
        OSError: It is missing, or cannot be read; with the URL.
        ImportError, ValueError: As ``ObjectPath.locate``.
    """

    def __init__(self, path: ObjectPath) -> None:
        super().__init__()
        self.path = str(path)
        self.rewindable = True
        self._location = path
        self._object = _RemoteObject(path)
        self._offset = 0  # of the next byte
        self._piece = memoryview(b"")
        self._at_end = False
        self._interrupted = False
        self._following = path.following  # until it is prepared
        self._workers: Workers | None = None
        self._ranges: _Ranges | None = None  # of the threads
        self._dropped = weakref.finalize(self, self._object.stop)
        self._dropped.atexit = False

    def size(self) -> int | None:
        return self._object.size

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
            self._renew(_RemoteObject(self._location, again=True))
        elif self._object.stopped.is_set() and not self._interrupted:
            self._renew(self._object.renewed())
        if self._asked_for_all:
            self._prepare_following()
        try:
            piece = self._next()
        except _RangesIgnoredError:
            self._stop()
            self._renew(self._object.renewed())
            self._object.size = None
            piece = self._next()
        except BaseException as error:
            self._stop()
            if self._interrupted and isinstance(error, Exception):
                raise ValueError(_CLOSED_WAITING) from None
            raise
        self._piece, self._at_end = memoryview(piece.data), piece.last

    def _next(self) -> _Fetched:
        found, begin = self._object, self._offset
        if self._workers is None:
            if found.size is not None and found.size - begin <= _RANGE_BYTES:
                return _Fetched(found.read(begin, max(begin, found.size)), True)
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
        if following is None or following.is_pattern:
            return
        _reading.discard(self)  # what is left of this one is in flight
        with suppress(Exception):  # whoever opens it gets the error
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
        self._ranges = ranges = _Ranges(begin, found.size)
        share = max(1, _IN_FLIGHT // (1 + len(_reading)))
        threads = min(share, ranges.count)
        most = threads + _WAITING_RANGES
        self._workers = Workers(ranges.next, found.fetch, threads, most, owner=self)
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

    def _renew(self, found: _RemoteObject) -> None:
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

    def interrupt(self) -> None:
        self._interrupted = True
        workers = self._workers
        if workers is not None:
            workers.stop()
        self._object.stop()

    def close(self) -> None:
        self._dropped.detach()
        self._at_end, self._piece = True, memoryview(b"")
        self._stop()


# Sources with threads, which share the number of ranges in flight.
_reading: weakref.WeakSet[RemoteSource] = weakref.WeakSet()


class _Fetched(NamedTuple):
    """Some bytes, and whether they are the last ones."""

    data: bytes
    last: bool


class _Range(NamedTuple):
    """A range to fetch. The last one is empty."""

    begin: int
    end: int
    last: bool


class _Ranges:
    """The ranges of an object from an offset on, and an empty one after them."""

    def __init__(self, begin: int, size: int) -> None:
        self._begin, self._size = begin, size
        self.count = -(-(size - begin) // _RANGE_BYTES)

    @property
    def all_given(self) -> bool:
        return self._begin == self._size

    def next(self) -> _Range:
        begin = self._begin
        self._begin = end = min(begin + _RANGE_BYTES, self._size)
        return _Range(begin, end, begin == end)


class _RangesIgnoredError(Exception):
    """The server answers with more than the range that it was asked for."""


class _RemoteObject:
    """An object of a filesystem; it holds no reference to its source.

    Attributes:
        size: Its bytes; None: it can only be read from its beginning.
        stopped: Set while its threads are to end.
    """

    def __init__(self, url: ObjectPath, again: bool = False) -> None:
        self._url = url
        self._fs, self._path = url.locate(again)
        self._pid = os.getpid()
        self.stopped = threading.Event()
        self._futures: set[Future[Any]] = set()
        kinds = [kind.__name__ for kind in type(self._fs).__mro__]
        self._http = "HTTPFileSystem" in kinds
        self._async = bool(type(self._fs).async_impl)
        info = self._try("it cannot be found", self._look)
        if info.get("type") == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(url))
        self._version = _version(info)
        self._etag = info.get("ETag")
        base = import_fsspec(url).AbstractFileSystem
        own = "cat_file" in vars(type(self._fs)) or type(self._fs).cat_file is not base.cat_file
        ranges = (self._async or own) and "CachingFileSystem" not in kinds
        ranges = ranges and info.get("partial") is not False
        self.size: int | None = info.get("size") if ranges else None

    @property
    def forked(self) -> bool:
        """Whether it was opened by the parent process, whose connections it uses."""
        return os.getpid() != self._pid

    def renewed(self) -> _RemoteObject:
        """The same object, not stopped."""
        twin = copy.copy(self)
        twin.stopped, twin._futures = threading.Event(), set()
        return twin

    def stop(self) -> None:
        """Makes the requests in flight, and all later ones, fail."""
        if self.forked:  # the requests are the parent's, and their locks may be held
            return
        self.stopped.set()
        for future in list(self._futures):
            future.cancel()

    def read(self, begin: int, end: int) -> bytes:
        """The bytes of a range."""
        parts: list[bytes] = []

        def fetch_rest() -> bytes:
            at = begin + sum(map(len, parts))
            part = self._request(at, end) if at < end else b""
            if len(part) > end - at:
                raise _RangesIgnoredError
            parts.append(part)
            if len(part) < end - at:
                raise EOFError(f"expected {end - at} bytes at {at}, found {len(part)}")
            return b"".join(parts) if len(parts) > 1 else part

        return self._try(f"bytes {begin} to {end} cannot be read", fetch_rest)

    def fetch(self, part: _Range) -> _Fetched:
        """The bytes of a range. After the last one: looks whether the object is the same."""
        if not part.last:
            return _Fetched(self.read(part.begin, part.end), False)
        if not (self._http and self._etag):  # every answer has it
            self.check()
        return _Fetched(b"", True)

    def open(self) -> Any:
        """A file object, at the beginning of the object."""
        options = {"block_size": 0} if self._http else {}
        return self._try("it cannot be opened", lambda: self._fs.open(self._path, "rb", **options))

    def check(self) -> None:
        """As ``RemoteSource.check_unchanged``."""
        found = _version(self._try("it cannot be found again", self._look))
        if found != self._version:
            self._raise_changed(self._version, found)

    def _raise_changed(self, before: Any, after: Any) -> None:
        raise OSError(
            errno.ESTALE,
            f"the object changed while it was read: it was {before}, and is {after}",
            str(self._url),
        )

    # ---- Requests -----------------------------------------------------------------------------

    def _try(self, what: str, attempt: Callable[[], Result]) -> Result:
        """Makes a request again after a pause while that may help."""
        for tries in range(1, _TRIES + 1):
            if self.stopped.is_set():
                break
            try:
                return attempt()
            except _RangesIgnoredError:
                raise
            except Exception as error:
                if self.stopped.is_set():
                    break
                if isinstance(error, OSError) and error.errno == errno.ESTALE:
                    raise
                if tries == _TRIES or not is_retryable(error):
                    count = "1 try" if tries == 1 else f"{tries} tries"
                    raise_naming(self._url, f"{what} ({count})", error)
            self.stopped.wait(_FIRST_PAUSE * 2 ** (tries - 1) * random.uniform(0.5, 1))
        raise RuntimeError("the source was closed")

    def _look(self) -> Mapping[str, Any]:
        """What the filesystem knows of the object now."""
        self._fs.invalidate_cache(self._path)
        info: Mapping[str, Any] = self._fs.info(self._path)
        return info

    def _request(self, begin: int, end: int) -> bytes:
        """Bytes of a range, perhaps fewer."""
        data: bytes
        if self._http:
            data = self._run(self._get(begin, end))
        elif self._async:
            data = self._run(self._fs._cat_file(self._path, start=begin, end=end))
        else:
            data = self._fs.cat_file(self._path, start=begin, end=end)
        return data

    def _run(self, coroutine: Coroutine[Any, Any, bytes]) -> bytes:
        """Runs a coroutine in the filesystem's loop; ``stop`` cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._fs.loop)
        self._futures.add(future)
        try:
            if self.stopped.is_set():  # before this future was seen
                future.cancel()
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._futures.discard(future)

    async def _get(self, begin: int, end: int) -> bytes:
        """As HTTPFileSystem._cat_file, but looks at the answer before it reads its body: a server
        that ignores ranges sends the whole object."""
        fs = self._fs
        session = await fs.set_session()
        headers = {**fs.kwargs.get("headers", {}), "Accept-Encoding": "identity"}
        headers["Range"] = f"bytes={begin}-{end - 1}"
        options = {**fs.kwargs, "headers": headers}
        async with session.get(fs.encode_url(self._path), **options) as answer:
            if answer.status == 416:
                self._raise_changed(self._version, "shorter")
            answer.raise_for_status()
            etag = answer.headers.get("ETag")
            if self._etag and etag and etag != self._etag:
                self._raise_changed(self._etag, etag)
            if answer.status == 200 and answer.headers.get("Content-Length") != str(end - begin):
                raise _RangesIgnoredError
            data: bytes = await answer.read()
            return data


class _Stream:
    """An object that is read from its beginning to its end.

    Args:
        found: The object.
        offset: Where to begin; what is before it is read too, if the file cannot seek.
    """

    def __init__(self, found: _RemoteObject, offset: int) -> None:
        self._object = found
        self._file = found.open()
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
        return _Fetched(data, not data)

    def _read(self, size: int) -> bytes:
        try:
            data = bytes(self._file.read(size))
        except Exception as error:
            what = f"what begins at byte {self._offset} cannot be read (1 try)"
            raise_naming(self._object._url, what, error)
        self._offset += len(data)
        return data


def _can_seek(file: Any) -> bool:
    try:
        return bool(file.seekable())
    except AttributeError:
        return False


# What filesystems tell of an object's version. The time of creation only where that is all.
_VERSION_KEYS = ("ETag", "etag", "e_tag", "version_id", "VersionId", "generation", "md5Hash")
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified")


def _version(info: Mapping[str, Any]) -> str:
    """The size and the version of an object, as text to compare and to show."""
    for keys in (_VERSION_KEYS, _TIME_KEYS, ("created",)):
        found = [f"{key} {info[key]}" for key in keys if info.get(key) is not None]
        if found:
            break
    return ", ".join([f"{info.get('size')} bytes", *found])
