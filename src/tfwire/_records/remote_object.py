"""An object of a filesystem of fsspec: its size and version, and ranges of its bytes."""

from __future__ import annotations

import asyncio
import copy
import errno
import itertools
import os
import random
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from tfwire._base import system
from tfwire._records.remote_errors import is_retryable, raise_naming
from tfwire._records.urls import ObjectPath, below_caches, import_fsspec

__all__ = ["RangesIgnoredError", "RemoteObject"]

# Of one request, and the first pause between them, which doubles: six seconds in all.
_TRIES = 6
_FIRST_PAUSE = 0.2

Result = TypeVar("Result")


class RangesIgnoredError(Exception):
    """The server answers with more than the range that it was asked for."""


class RemoteObject:
    """An object of a filesystem; it holds no reference to its source.

    Attributes:
        url: The object.
        size: Its bytes; None: it is best read from its beginning.
        num_bytes: Its bytes, also then; None: unknown.
        version: Its size and version, as the filesystem tells it.
        has_version: Whether the version says more than the size.
        stopped: Set while its threads are to end.
    """

    def __init__(self, url: ObjectPath, again: bool = False) -> None:
        self._begin(url, again)
        self._http = "HTTPFileSystem" in _kinds(self._fs)
        self._async = bool(type(self._fs).async_impl)
        info = self._try("it cannot be found", self._look)
        if info.get("type") == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(url))
        self.version = _version(info)
        self._etag = info.get("ETag")
        base = import_fsspec(url).AbstractFileSystem
        own = "cat_file" in vars(type(self._fs)) or type(self._fs).cat_file is not base.cat_file
        ranges = (self._async or own) and not self._is_cache
        ranges = (ranges or self._in_blocks) and info.get("partial") is not False
        self.num_bytes: int | None = info.get("size")
        self.size = self.num_bytes if ranges else None
        self.has_version = self.version != _version({"size": info.get("size")})

    def _begin(self, url: ObjectPath, again: bool = False) -> None:
        self.url = url
        self._fs, self._path = url.locate(again)
        self._is_cache = below_caches(self._fs) is not self._fs
        self._in_blocks = self._is_cache and "WholeFileCacheFileSystem" not in _kinds(self._fs)
        self._pid = os.getpid()
        self.stopped = threading.Event()
        self._futures: set[Future[Any]] = set()

    @classmethod
    def read_small(cls, url: ObjectPath, begin: int, end: int) -> bytes:
        """Bytes of an object, perhaps fewer, by one request: nothing is known of it."""
        found = cls.__new__(cls)
        found._begin(url)
        fetch = found._cat_block_cache if found._in_blocks else found._cat
        return found._try("it cannot be read", lambda: fetch(begin, end))

    @property
    def forked(self) -> bool:
        """Whether it was opened by the parent process, whose connections it uses."""
        return os.getpid() != self._pid

    @property
    def answers_tell_version(self) -> bool:
        """Whether every answer is compared with the known version."""
        return self._http and bool(self._etag)

    def renewed(self) -> RemoteObject:
        """The same object, not stopped."""
        twin = copy.copy(self)
        twin.stopped, twin._futures = threading.Event(), set()
        return twin

    def reopened(self) -> RemoteObject:
        """The same object, by connections of a forked process.

        Raises:
            OSError: It has changed, or it is gone.
        """
        found = RemoteObject(self.url, again=True)
        self.compare(found.version)
        return found

    def stop(self) -> None:
        """Makes the requests in flight, and all later ones, fail."""
        if self.forked:  # the requests are the parent's, and their locks may be held
            return
        self.stopped.set()
        for future in list(self._futures):
            future.cancel()

    @property
    def can_read_into(self) -> bool:
        """Whether ``read_into`` uses the memory that it is given."""
        return self._http

    def read(self, begin: int, end: int) -> bytes:
        """The bytes of a range."""
        return bytes(self._read(begin, end, None))

    def read_into(self, begin: int, end: int, room: memoryview) -> bytes | memoryview:
        """The bytes of a range, in memory with room for them or, rarely, elsewhere. After an error
        a request may still write to the memory."""
        return self._read(begin, end, room)

    def _read(self, begin: int, end: int, room: memoryview | None) -> bytes | memoryview:
        body = _Body(begin, end)

        def fetch_rest() -> bytes | memoryview:
            if body.at < end:
                rest = None if room is None else room[body.at - begin :]
                body.add(self._request(body.at, end, rest))
            return body.joined()

        return self._try(f"bytes {begin} to {end} cannot be read", fetch_rest)

    # ---- In the event loop of an asynchronous filesystem ----------------------------------------

    @property
    def has_loop(self) -> bool:
        """Whether ``fetch`` may be used."""
        return self._async

    async def fetch(self, begin: int, end: int) -> bytes:
        """As ``read``, in the event loop."""
        body, what = _Body(begin, end), f"bytes {begin} to {end} cannot be read"
        for tries in itertools.count(1):
            try:
                if body.at < end:
                    body.add(await self._request_in_loop(body.at, end, None))
                break
            except Exception as error:
                pause = self._pause_after(error, tries, what)
            await asyncio.sleep(pause)
        return bytes(body.joined())

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Starts a coroutine in the event loop; ``stop`` cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._fs.loop)
        self._futures.add(future)
        if self.stopped.is_set():  # before this future was seen
            future.cancel()
        return future

    def call(self, function: Callable[[], None]) -> None:
        """Calls a function in the event loop."""
        self._fs.loop.call_soon_threadsafe(function)

    def open(self) -> Any:
        """A file object, at the beginning of the object."""
        options = {"block_size": 0} if self._http else {}
        return self._try("it cannot be opened", lambda: self._fs.open(self._path, "rb", **options))

    def check(self) -> None:
        """As ``RemoteSource.check_unchanged``."""
        self.compare(_version(self._try("it cannot be found again", self._look)))

    def compare(self, version: str) -> None:
        """Raises an OSError if the object has another version by now."""
        if version != self.version:
            self._raise_changed(self.version, version)

    def _raise_changed(self, before: Any, after: Any) -> None:
        raise OSError(
            errno.ESTALE,
            f"the object changed while it was read: it was {before}, and is {after}",
            str(self.url),
        )

    # ---- Requests -----------------------------------------------------------------------------

    def _try(self, what: str, attempt: Callable[[], Result]) -> Result:
        """Makes a request again after a pause while that may help."""
        for tries in itertools.count(1):
            if self.stopped.is_set():
                break
            try:
                return attempt()
            except Exception as error:
                if self.stopped.is_set():
                    break
                pause = self._pause_after(error, tries, what)
            self.stopped.wait(pause)
        raise RuntimeError("the source was closed")

    def _pause_after(self, error: Exception, tries: int, what: str) -> float:
        """Seconds to wait before the next try; raises an error that another try cannot help."""
        if isinstance(error, RangesIgnoredError):
            raise error
        if isinstance(error, OSError) and error.errno in (errno.ESTALE, errno.ENOTSUP):
            raise error
        if tries == _TRIES or not is_retryable(error):
            count = "1 try" if tries == 1 else f"{tries} tries"
            raise_naming(self.url, f"{what} ({count})", error)
        return _FIRST_PAUSE * 2.0 ** (tries - 1) * random.uniform(0.5, 1)

    def _look(self) -> Mapping[str, Any]:
        """What the filesystem knows of the object now. A cache would list the folder for it."""
        fs = below_caches(self._fs)
        fs.invalidate_cache(self._path)
        info: Mapping[str, Any] = fs.info(self._path)
        return info

    def _request(self, begin: int, end: int, room: memoryview | None) -> bytes | memoryview:
        """Bytes of a range, perhaps fewer."""
        if self._async:
            return self._run(self._request_in_loop(begin, end, room))
        return self._cat_block_cache(begin, end) if self._in_blocks else self._cat(begin, end)

    async def _request_in_loop(
        self, begin: int, end: int, room: memoryview | None
    ) -> bytes | memoryview:
        if self._http:
            return await self._get(begin, end, room)
        data: bytes = await self._fs._cat_file(self._path, start=begin, end=end)
        return data

    def _cat(self, begin: int, end: int) -> bytes:
        data: bytes = self._fs.cat_file(self._path, start=begin, end=end)
        return data

    def _cat_block_cache(self, begin: int, end: int) -> bytes:
        """Bytes of a range by a cache of blocks. It maps a file that it may create and truncate:
        threads take turns."""
        with _block_caches.lock:
            try:
                return self._cat(begin, end)
            except AttributeError as error:
                if error.name != "blocksize":
                    raise
                text = (
                    "fsspec's cache of blocks cannot hold this object, which is not read in "
                    "blocks: use simplecache:: or filecache:: instead"
                )
                raise OSError(errno.ENOTSUP, text, str(self.url)) from error

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        future = self.start(coroutine)
        try:
            result: Result = future.result()
            return result
        except BaseException:
            future.cancel()
            raise
        finally:
            self._futures.discard(future)

    async def _get(self, begin: int, end: int, room: memoryview | None) -> bytes | memoryview:
        """As HTTPFileSystem._cat_file, but looks at the answer before it reads its body: a server
        that ignores ranges sends the whole object."""
        fs = self._fs
        session = await fs.set_session()
        headers = {**fs.kwargs.get("headers", {}), "Accept-Encoding": "identity"}
        headers["Range"] = f"bytes={begin}-{end - 1}"
        options = {**fs.kwargs, "headers": headers}
        # aiohttp stops to read the socket whenever twice its read buffer waits, by default 128 KiB.
        options["read_bufsize"] = end - begin
        async with session.get(fs.encode_url(self._path), **options) as answer:
            if answer.status == 416:
                self._raise_changed(self.version, "shorter")
            answer.raise_for_status()
            etag = answer.headers.get("ETag")
            if self._etag and etag and etag != self._etag:
                self._raise_changed(self._etag, etag)
            if answer.status == 200 and answer.headers.get("Content-Length") != str(end - begin):
                raise RangesIgnoredError
            if room is None:
                data: bytes = await answer.read()
                return data
            return await _read_into(answer.content, room)


class _Body:
    """The bytes of a range, of which a request may give only the first."""

    def __init__(self, begin: int, end: int) -> None:
        self.at = begin
        self._end = end
        self._parts: list[bytes | memoryview] = []

    def add(self, part: bytes | memoryview) -> None:
        """Adds what a request gave; raises EOFError if that was not all."""
        missing = self._end - self.at
        if len(part) > missing:
            raise RangesIgnoredError
        self._parts.append(part)
        self.at += len(part)
        if len(part) < missing:
            raise EOFError(f"expected {missing} bytes at {self._end - missing}, found {len(part)}")

    def joined(self) -> bytes | memoryview:
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


async def _read_into(body: Any, room: memoryview) -> memoryview:
    """Reads the body of an answer into the given memory: new memory, whose pages the system must
    clear, would take a third of the time."""
    size = 0
    async for chunk, _ in body.iter_chunks():
        if len(chunk) > len(room) - size:
            raise RangesIgnoredError
        room[size : size + len(chunk)] = chunk
        size += len(chunk)
    return room[:size]


class _BlockCaches:
    """The lock of all caches of blocks. A forked process has a new one."""

    def __init__(self) -> None:
        self.renew()
        system.after_fork(self.renew)

    def renew(self) -> None:
        self.lock = threading.Lock()


_block_caches = _BlockCaches()


def _kinds(fs: Any) -> list[str]:
    return [kind.__name__ for kind in type(fs).__mro__]


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
