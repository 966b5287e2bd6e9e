"""Objects of fsspec's filesystems for random access: ranges of any places, several in flight."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Sequence
from queue import SimpleQueue

from tfwire._base.parallel_map import Check, ParallelMap
from tfwire._records.files.urls import ObjectPath, RangesIgnoredError
from tfwire._records.remote.objects import RemoteObject
from tfwire._records.remote.read_ahead import RemoteSource

# Ranges that are this short on average spend their time waiting for answers: more are in flight.
_SHORT_RANGE = 1 << 20
_IN_FLIGHT = 8
_SHORT_IN_FLIGHT = 32

_Range = tuple[int, int]

# The reads of several ranges that go on, by their processes; they share what may be in flight.
_reading: set[tuple[int, RemoteObject]] = set()


class RemoteFile:
    """An open object, for any number of threads and forked processes.

    Args:
        url: The object.

    Attributes:
        path: The object.
        size: Its bytes, as far as they are known.
        version: Its size and version, as the filesystem tells it.
        has_version: Whether the version says more than the size.

    Raises:
        OSError: It is missing, cannot be read, or the filesystem does not know its size.
        ImportError, ValueError: As ``ObjectPath.locate``.
    """

    def __init__(self, url: ObjectPath) -> None:
        self.path = url
        self._object = RemoteObject(url)
        self.has_version = self._object.has_version
        if self._object.num_bytes is None:
            raise OSError(errno.ENOTSUP, "random access needs an object of known size", str(url))

    @property
    def version(self) -> str:
        return self._object.version

    @property
    def size(self) -> int:
        return self._object.num_bytes or 0

    def confirm_size(self) -> None:
        """Asks again for the size, where an answer may know better.

        Raises:
            OSError: It cannot be read.
        """
        self._here().confirm_size()

    def check_size(self, size: int) -> None:
        """Raises an OSError if the answers tell another size than this one."""
        self._object.check_size(size)

    def read(self, ranges: Sequence[_Range]) -> Generator[bytes, None, None]:
        """The bytes of some ranges of the object, in their order.

        Raises:
            OSError: They cannot be read, or the object has changed.
        """
        found = self._here().renewed()  # its requests can be stopped apart from those of others
        if len(ranges) == 1:
            yield _read(found, ranges[0])
            return
        num_bytes = sum(end - begin for begin, end in ranges)
        short = num_bytes < _SHORT_RANGE * len(ranges)

        most = _SHORT_IN_FLIGHT if short else _IN_FLIGHT
        others = sum(pid == os.getpid() for pid, _ in list(_reading))
        most = max(2, most // (1 + others))
        token = os.getpid(), found
        _reading.add(token)
        try:
            if short and found.has_loop:
                yield from _read_in_loop(found, ranges, most)
            else:
                yield from _read_in_threads(found, ranges, most)
        finally:
            _reading.discard(token)

    def check_unchanged(self) -> None:
        """Looks at the object again.

        Raises:
            OSError: It is another one than when it was opened, or it is gone.
        """
        self._here().check()

    def check_versions(self) -> None:
        """As check_unchanged, after several ranges, unless every answer told its version."""
        if not self._here().answers_tell_version:
            self.check_unchanged()

    def duplicate(self) -> RemoteSource:
        """The bytes of the object in order.

        Raises:
            OSError: It has changed, or it is gone.
        """
        return RemoteSource(self.path, self._object.continues(RemoteObject(self.path)))

    def close(self) -> None:
        """Does nothing: requests end when they are answered."""

    def _here(self) -> RemoteObject:
        """The object; after a fork, by connections of this process."""
        if self._object.forked:
            self._object = self._object.reopened()
        return self._object


def _read_in_threads(
    found: RemoteObject, ranges: Sequence[_Range], most: int
) -> Generator[bytes, None, None]:
    """Ranges in their order, each by one of some threads."""

    def read(part: _Range, check: Check) -> bytes:
        return _read(found, part)

    parts = ParallelMap(read, ranges, most)
    try:
        yield from parts
    finally:
        found.stop()
        parts.close()


def _read_in_loop(
    found: RemoteObject, ranges: Sequence[_Range], most: int
) -> Generator[bytes, None, None]:
    """Ranges in their order, by tasks of the event loop: waking a thread for each short range takes
    as long as fetching it."""
    import asyncio  # not above: reading local files starts without it

    done: SimpleQueue[tuple[int, bytes | Exception] | None] = SimpleQueue()
    numbers = iter(range(len(ranges)))
    room = asyncio.Semaphore(2 * most)  # in flight, or waiting for their turn

    async def fetch_some() -> None:
        for number in numbers:
            await room.acquire()
            try:
                done.put((number, await found.fetch(*ranges[number])))
            except Exception as error:
                done.put((number, error))
                return

    async def fetch_all() -> None:
        await asyncio.gather(*[fetch_some() for _ in range(most)])

    def make_room() -> None:
        for _ in range(most):
            room.release()

    tasks = found.start(fetch_all())
    tasks.add_done_callback(lambda _: done.put(None))
    waiting: dict[int, bytes | Exception] = {}
    try:
        for number in range(len(ranges)):
            while number not in waiting:
                answer = done.get()
                if answer is None:  # others have cancelled the tasks
                    raise RuntimeError("the event loop of the filesystem ended the requests")
                waiting[answer[0]] = answer[1]
            data = waiting.pop(number)
            if isinstance(data, RangesIgnoredError):
                raise _no_ranges(found)
            if isinstance(data, Exception):
                raise data
            if number % most == most - 1:
                found.call(make_room)
            yield data
    finally:
        found.stop()


def _read(found: RemoteObject, part: _Range) -> bytes:
    try:
        return found.read(*part)
    except RangesIgnoredError:
        raise _no_ranges(found) from None


def _no_ranges(found: RemoteObject) -> OSError:
    text = "random access needs ranges of bytes, which the server ignores"
    return OSError(errno.ENOTSUP, text, str(found.url))
