"""An object of a filesystem of fsspec: its size and version, and ranges of its bytes."""

from __future__ import annotations

import copy
import errno
import itertools
import os
import random
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from tfwire._base import system
from tfwire._records.files.urls import (
    ObjectPath,
    RangesIgnoredError,
    below_caches,
    import_fsspec,
    is_retryable,
    raise_naming,
)
from tfwire._records.remote.http_answers import (
    AnswerStream,
    Body,
    Facts,
    UnsuitableError,
    info_of,
    read_range,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

# Of one request, and the first pause between them, which doubles: six seconds in all.
_TRIES = 6
# A server may give less of a range than was asked for. If it gives as much as this, asking for the
# rest is no further try.
_LEAST_PART = 1 << 16
_FIRST_PAUSE = 0.2

Result = TypeVar("Result")


class RemoteObject:
    """An object of a filesystem; it holds no reference to its source.

    Attributes:
        url: The object.
        has_version: Whether the version says more than the size.
        stopped: Set while its threads are to end.
    """

    def __init__(self, url: ObjectPath, again: bool = False) -> None:
        self._begin(url, again)
        info = self._try("it cannot be found", self._look)
        if info.get("type") == "directory":
            text = "a folder; end it with / to name its files"
            raise IsADirectoryError(errno.EISDIR, text, str(url))
        self._info = info
        self._facts = Facts(str(url), info)
        base = import_fsspec(url).AbstractFileSystem
        own = "cat_file" in vars(type(self._fs)) or type(self._fs).cat_file is not base.cat_file
        ranges = (self._async or own) and not self._is_cache
        ranges = (ranges or self._in_blocks) and info.get("partial") is not False
        self._has_ranges = ranges
        self.has_version = _version(info) != _version({"size": info.get("size")})
        if self.num_bytes == 0:
            self.confirm_size()

    def _begin(self, url: ObjectPath, again: bool = False, fresh: bool = False) -> None:
        self.url = url
        self._fs, self._path = url.locate(again)
        self._fs = below_caches(self._fs) if fresh else self._fs
        self._http = "HTTPFileSystem" in _kinds(self._fs)
        self._async = bool(type(self._fs).async_impl)
        self._is_cache = below_caches(self._fs) is not self._fs
        self._in_blocks = self._is_cache and "WholeFileCacheFileSystem" not in _kinds(self._fs)
        self._connections = None
        if self._http:
            # Not above: reading local files starts without sockets.
            from tfwire._records.remote.http_connections import connections_of

            self._connections = connections_of(self._fs, self._path)
        self._pid = os.getpid()
        self.stopped = threading.Event()
        self._futures: set[Future[Any]] = set()
        self._streams: weakref.WeakSet[AnswerStream] = weakref.WeakSet()

    @classmethod
    def read_small(cls, url: ObjectPath, begin: int, end: int, fresh: bool = False) -> bytes:
        """Bytes of an object, perhaps fewer, by one request: nothing is known of it.

        Args:
            url: The object.
            begin, end: The range.
            fresh: Ask once, and no cache.
        """
        found = cls.__new__(cls)
        found._begin(url, fresh=fresh)
        found._facts = Facts(str(url), {})

        def fetch() -> bytes:
            if not found._http:
                cat = found._cat_block_cache if found._in_blocks else found._cat
                return cat(begin, end)
            body = Body(begin, end)
            found._run(read_range(found._fs, found._path, body, found._facts, prefix=True))
            return bytes(body.joined())

        return found._try("it cannot be read", fetch, 1 if fresh else None)

    @property
    def version(self) -> str:
        """Its size and version, as the filesystem and the answers tell them."""
        return _version({**self._info, "size": self._facts.size})

    @property
    def num_bytes(self) -> int | None:
        """Its bytes, as far as they are known; None: they are not."""
        return self._facts.size

    @property
    def size(self) -> int | None:
        """Its bytes; None: it is best read from its beginning."""
        return self._facts.size if self._has_ranges else None

    def ignore_ranges(self) -> None:
        """Notes that it has to be read from its beginning."""
        self._has_ranges = False

    def confirm_size(self) -> None:
        """Asks for a byte, if no answer has told the size yet: over HTTP it tells it.

        Raises:
            OSError: It cannot be read.
        """
        if not self._facts.confirmed:
            self.goes_on(0)

    def goes_on(self, offset: int) -> bool:
        """Whether there is a byte at an offset that was taken for the end. If no answer has told
        the size, this asks for the byte."""
        size = self.size
        if not self._http or size is None:
            return False
        if not self._facts.confirmed:
            found = True
            with suppress(RangesIgnoredError):
                found = bool(self._read(offset, offset + 1, None))
            if found and offset >= size and not self._facts.confirmed:
                self._facts.size = None  # nobody knows how many there are
                return True
        return offset < (self._facts.size or 0)

    def continues(self, found: RemoteObject) -> RemoteObject:
        """The other object, as what was opened here: it has the same version, and the size that
        the answers told.

        Raises:
            OSError: It has changed.
        """
        self._compare(found._info)
        found._facts = self._facts
        return found

    @property
    def forked(self) -> bool:
        """Whether it was opened by the parent process, whose connections it uses."""
        return os.getpid() != self._pid

    @property
    def answers_tell_version(self) -> bool:
        """Whether every answer is compared with the known version."""
        return self._http and self._facts.tells_version

    def renewed(self) -> RemoteObject:
        """The same object, not stopped."""
        twin = copy.copy(self)
        twin.stopped, twin._futures = threading.Event(), set()
        twin._streams = weakref.WeakSet()
        return twin

    def reopened(self) -> RemoteObject:
        """The same object, by connections of a forked process.

        Raises:
            OSError: It has changed, or it is gone.
        """
        return self.continues(RemoteObject(self.url, again=True))

    def stop(self) -> None:
        """Makes the requests in flight, and all later ones, fail."""
        if self.forked:  # the requests are the parent's, and their locks may be held
            return
        self.stopped.set()
        if self._connections is not None:
            self._connections.stop()
        for future in list(self._futures):
            future.cancel()
        for stream in list(self._streams):  # which frames of an error may keep alive
            stream.close()

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
        body = Body(begin, end, room)

        def fetch_rest() -> bytes | memoryview:
            if body.left:
                self._request(body)
            return body.joined()

        return self._try(f"bytes {begin} to {end} cannot be read", fetch_rest)

    # ---- In the event loop of an asynchronous filesystem ----------------------------------------

    @property
    def has_loop(self) -> bool:
        """Whether ``fetch`` may be used."""
        return self._async

    async def fetch(self, begin: int, end: int) -> bytes:
        """As ``read``, in the event loop."""
        import asyncio  # not above: reading local files starts without it

        body, what = Body(begin, end), f"bytes {begin} to {end} cannot be read"
        for tries in itertools.count(1):
            try:
                if body.left:
                    await self._request_in_loop(body)
                break
            except Exception as error:
                pause = self._pause_after(error, tries, what)
                if pause is None:
                    raise
            await asyncio.sleep(pause)
        return bytes(body.joined())

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        """Starts a coroutine in the event loop; ``stop`` cancels it."""
        import asyncio

        future = asyncio.run_coroutine_threadsafe(self._wanted(coroutine), self._fs.loop)
        self._futures.add(future)
        if self.stopped.is_set():  # before this future was seen
            future.cancel()
        return future

    async def _wanted(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """A coroutine; after ``stop`` nobody is told of its error."""
        from asyncio import CancelledError

        try:
            return await coroutine
        except Exception:
            if self.stopped.is_set():
                raise CancelledError from None
            raise

    def call(self, function: Callable[[], None]) -> None:
        """Calls a function in the event loop."""
        self._fs.loop.call_soon_threadsafe(function)

    def open(self, bufsize: int) -> Any:
        """A file object, at the beginning of the object, which reads so many bytes at a time."""

        def attempt() -> Any:
            if not self._http:
                return self._fs.open(self._path, "rb")
            stream = AnswerStream(self._run, self._fs, self._path, self._facts, bufsize)
            self._streams.add(stream)
            if self.stopped.is_set():  # before this stream was seen
                stream.close()
            return stream

        return self._try("it cannot be opened", attempt)

    def check(self) -> None:
        """As ``RemoteSource.check_unchanged``."""
        self._compare(self._try("it cannot be found again", self._look))

    def _compare(self, info: Mapping[str, Any]) -> None:
        """Raises an OSError if the object has another version by now."""
        before, after = _version(self._info), _version(info)
        if before != after:
            self._facts.raise_changed(before, after)

    def check_size(self, size: int) -> None:
        """Raises an OSError if the answers tell another size than this."""
        if self._facts.size != size:
            self._facts.raise_changed(f"{size} bytes", f"{self._facts.size} bytes")

    # ---- Requests -----------------------------------------------------------------------------

    def _try(self, what: str, attempt: Callable[[], Result], most: int | None = None) -> Result:
        """Makes a request again after a pause while that may help."""
        for tries in itertools.count(1):
            if self.stopped.is_set():
                break
            try:
                return attempt()
            except Exception as error:
                if self.stopped.is_set():
                    break
                pause = self._pause_after(error, tries, what, most)
                if pause is None:
                    raise
            self.stopped.wait(pause)
        raise RuntimeError("the source was closed")

    def _pause_after(
        self, error: Exception, tries: int, what: str, most: int | None = None
    ) -> float | None:
        """Seconds to wait before the next try; None if the error says all. Raises an OSError that
        names the object if another try cannot help."""
        if isinstance(error, RangesIgnoredError):
            return None
        if isinstance(error, OSError) and error.errno in (errno.ESTALE, errno.ENOTSUP):
            return None
        if tries == (most or _TRIES) or not is_retryable(error):
            count = "1 try" if tries == 1 else f"{tries} tries"
            raise_naming(self.url, f"{what} ({count})", error)
        return _FIRST_PAUSE * 2.0 ** (tries - 1) * random.uniform(0.5, 1)

    def _look(self) -> Mapping[str, Any]:
        """What the filesystem knows of the object now. A cache would list the folder for it."""
        fs = below_caches(self._fs)
        fs.invalidate_cache(self._path)
        info: Mapping[str, Any]
        info = self._run(info_of(fs, self._path)) if self._http else fs.info(self._path)
        return info

    def _request(self, body: Body) -> None:
        """Asks for what is left of a range; raises EOFError if that was not all."""
        connections = self._connections
        if connections is not None and connections.suitable and body.has_room:
            try:
                while body.left:
                    missing, at = body.left, body.at
                    connections.read_range(body, self._facts, self.stopped)
                    _check_part(body, missing, at)
                return
            except UnsuitableError:
                connections.suitable = False
        if self._async:
            self._run(self._request_in_loop(body))
        else:
            cat = self._cat_block_cache if self._in_blocks else self._cat
            _add(body, cat(body.at, body.end))

    async def _request_in_loop(self, body: Body) -> None:
        if not self._http:
            _add(body, await self._fs._cat_file(self._path, start=body.at, end=body.end))
            return
        while body.left:
            missing, at = body.left, body.at
            await read_range(self._fs, self._path, body, self._facts)
            _check_part(body, missing, at)

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
            del future  # whose error's traceback has this frame: no collection is waited for


def _add(body: Body, part: bytes) -> None:
    """Adds what a request gave; raises EOFError if that was not all."""
    missing, at = body.left, body.at
    if len(part) > missing:
        raise RangesIgnoredError
    body.add(part)
    if body.left:
        raise EOFError(f"expected {missing} bytes at {at}, found {len(part)}")


def _check_part(body: Body, missing: int, at: int) -> None:
    """Raises EOFError if an answer gave too little to ask for the rest at once."""
    if body.left and body.at - at < _LEAST_PART:
        raise EOFError(f"expected {missing} bytes at {at}, found {body.at - at}")


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


# The keys under which filesystems tell an object's version. The time of creation counts only if the
# filesystem tells no other.
_VERSION_KEYS = ("ETag", "etag", "e_tag", "version_id", "VersionId", "generation", "md5Hash")
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "modified")


def _version(info: Mapping[str, Any]) -> str:
    """The size and the version of an object, as text to compare and to show."""
    for keys in (_VERSION_KEYS, _TIME_KEYS, ("created",)):
        found = [f"{key} {info[key]}" for key in keys if info.get(key) is not None]
        if found:
            break
    return ", ".join([f"{info.get('size')} bytes", *found])


def rename_object(fs: Any, old: str, new: str) -> None:
    """Gives an object another name. fsspec's own ``mv`` takes names for patterns."""
    if type(fs).mv is not import_fsspec(new).AbstractFileSystem.mv:
        fs.mv(old, new)
    else:
        fs.cp_file(old, new)
        fs.rm_file(old)
