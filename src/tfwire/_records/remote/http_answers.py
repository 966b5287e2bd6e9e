"""Answers over HTTP: what they must say, what they tell of an object, how much of them is read.

A server may ignore ranges, encode or cut what it sends, contradict itself, never end, or come so
slowly that nobody would wait. Every answer is looked at before its body is read, and the body is
read up to the range that was asked for and no further.
"""

from __future__ import annotations

import errno
import os
import re
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import Any, TypeVar

from tfwire._base.text import printable
from tfwire._records.files.urls import AnswerError, RangesIgnoredError

# Seconds until an answer begins, with its redirects; and without any byte.
ANSWER_SECONDS = 60.0
# Less than these bytes in these seconds of waiting are too few.
_WINDOW_SECONDS, _WINDOW_BYTES = 30.0, 1 << 15

_CONTENT_RANGE = re.compile(r"bytes +(\d{1,19})-(\d{1,19})/(\d{1,19}|\*)", re.ASCII | re.IGNORECASE)
_NO_RANGE = re.compile(r"bytes +\*/(\d{1,19})", re.ASCII | re.IGNORECASE)
_SHOWN = 80  # characters of a header in a message
Result = TypeVar("Result")


class UnsuitableError(Exception):
    """An answer that aiohttp should receive, and all others of this object: it is a redirect, comes
    in chunks, or is malformed."""


class Body:
    """The bytes of a range, which may come in pieces, by several requests.

    Args:
        begin, end: The range.
        room: Memory for them; None: new memory.

    Attributes:
        at: Where the next byte belongs.
        end: Where the range ends; the object may end before.
    """

    def __init__(self, begin: int, end: int, room: memoryview | None = None) -> None:
        self.at, self.end = begin, end
        self._begin, self._room = begin, room
        self._parts: list[bytes] = []

    @property
    def left(self) -> int:
        return self.end - self.at

    def add(self, part: bytes) -> None:
        """Adds the next bytes."""
        if self._room is None:
            self._parts.append(part)
        else:
            at = self.at - self._begin
            self._room[at : at + len(part)] = part
        self.at += len(part)

    @property
    def has_room(self) -> bool:
        return self._room is not None

    def room_until(self, stop: int) -> memoryview:
        """The memory for the next bytes, up to an offset. REQUIRES: there is room."""
        assert self._room is not None
        return self._room[self.at - self._begin : stop - self._begin]

    def end_at(self, size: int) -> None:
        """The object has this many bytes."""
        self.end = max(self.at, min(self.end, size))

    def joined(self) -> bytes | memoryview:
        if self._room is not None:
            return self._room[: self.at - self._begin]
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class Facts:
    """What is known of an object, for all who read it. Over HTTP the answers know better than what
    ``HEAD`` said: the size is that of the first answer that tells one.

    Args:
        url: The object.
        info: What the filesystem says of it.

    Attributes:
        size: Its bytes; None: unknown.
        confirmed: Whether an answer told the size.
        tells_version: Whether every answer told the version.
    """

    def __init__(self, url: str, info: Mapping[str, Any]) -> None:
        self.size: int | None = info.get("size")
        self.confirmed = False
        self._url = url
        self._known = {key: info.get(key) for key in ("ETag", "Last-Modified")}
        self.tells_version = any(self._known.values())

    def tell_size(self, size: int) -> None:
        """Takes the size that an answer told."""
        if self.confirmed and size != self.size:
            self.raise_changed(f"{self.size} bytes", f"{size} bytes")
        self.size, self.confirmed = size, True

    def compare(self, headers: Mapping[str, str]) -> None:
        """Compares the version that an answer tells with the known one."""
        for key, before in self._known.items():
            found = headers.get(key)
            if found and before and found != before:
                self.raise_changed(before, found)
            if found and not before:
                self._known[key] = found
            if found and before:
                return
        self.tells_version = False

    def raise_changed(self, before: Any, after: Any) -> None:
        raise OSError(
            errno.ESTALE,
            f"the object changed while it was read: it was {before}, and is {after}",
            self._url,
        )


class Pace:
    """Notices an answer that brings hardly any bytes. Only the time of waiting for it counts."""

    def __init__(self) -> None:
        self._waited, self._num_bytes = 0.0, 0

    def add(self, waited: float, num_bytes: int) -> None:
        """Counts what came after some seconds.

        Raises:
            TimeoutError: It was too little.
        """
        self._waited += waited
        self._num_bytes += num_bytes
        if self._waited >= _WINDOW_SECONDS:
            if self._num_bytes < _WINDOW_BYTES:
                text = f"only {self._num_bytes} bytes came in {self._waited:.1f} seconds"
                raise TimeoutError(text)
            self._waited, self._num_bytes = 0.0, 0


async def info_of(fs: Any, path: str) -> Mapping[str, Any]:
    """What an HTTPFileSystem says of an object."""
    info: Mapping[str, Any] = await _in_time(fs._info(path))
    return info


async def read_range(fs: Any, path: str, body: Body, facts: Facts, prefix: bool = False) -> None:
    """Reads what is left of a range, perhaps less; as HTTPFileSystem._cat_file.

    Args:
        fs, path: The HTTPFileSystem and the path in it.
        body: The range.
        facts: What is known of the object; the answer is compared, and tells more.
        prefix: The range begins the object: take it also of an answer with the whole object.

    Raises:
        RangesIgnoredError: The server answers with more than the range.
        AnswerError: The answer contradicts the request, or itself.
        OSError: The object has changed.
    """
    headers = {"Range": f"bytes={body.at}-{body.end - 1}"}
    async with await _get(fs, path, headers, body.left) as answer:
        size = size_of_answer(answer, body, facts, prefix)
        pace, stop = Pace(), body.at + size
        while body.at < stop:
            began = time.monotonic()
            part, more = await answer.content.readchunk()
            if not part and not more:
                break
            body.add(part[: stop - body.at])
            pace.add(time.monotonic() - began, len(part))
        if prefix and answer.status == 200:
            body.end_at(body.at)


def size_of_answer(answer: Any, body: Body, facts: Facts, prefix: bool = False) -> int:
    """How many bytes of an answer belong to the range, by its status and headers; errors as of
    ``read_range``."""
    if answer.status == 416:
        _end_before(answer, body, facts)
        return 0
    _check(answer, facts)
    if answer.status == 206:
        return _size_in_range(answer, body, facts)
    if answer.status == 200:
        return _size_of_whole(answer, body, facts, prefix)
    raise AnswerError(f"the answer has the status {answer.status}; 206 was expected")


async def _get(fs: Any, path: str, headers: dict[str, str], bufsize: int) -> Any:
    """The answer to a GET, once it has begun."""
    session = await fs.set_session()
    headers = {**fs.kwargs.get("headers", {}), "Accept-Encoding": "identity", **headers}
    options = {**fs.kwargs, "headers": headers}
    # aiohttp stops to read the socket whenever twice its read buffer waits, by default 128 KiB.
    options["read_bufsize"] = bufsize
    if "timeout" not in options and "timeout" not in fs.client_kwargs:
        silent = {"sock_connect": ANSWER_SECONDS, "sock_read": ANSWER_SECONDS}
        options["timeout"] = import_module("aiohttp").ClientTimeout(total=None, **silent)
    return await _in_time(session.get(fs.encode_url(path), **options))


async def _in_time(answer: Coroutine[Any, Any, Result]) -> Result:
    import asyncio  # not above: reading local files starts without it

    try:
        return await asyncio.wait_for(answer, ANSWER_SECONDS)
    except asyncio.TimeoutError as error:
        text = str(error) or f"no answer came in {ANSWER_SECONDS:g} seconds"
        raise TimeoutError(text) from error


def _check(answer: Any, facts: Facts) -> None:
    """Refuses an answer that is no object, is encoded, or is of another version."""
    answer.raise_for_status()
    encoding = answer.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        text = f"the answer has the Content-Encoding {_shown(encoding)}, which was not asked for"
        raise AnswerError(text)
    facts.compare(answer.headers)


def _end_before(answer: Any, body: Body, facts: Facts) -> None:
    """Takes an answer that says that the object ends before the range."""
    told = _NO_RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    if told is None and (facts.size is None or facts.size > body.at):
        facts.raise_changed(f"{facts.size} bytes", "shorter")
    if told is not None:
        if int(told[1]) > body.at:
            text = f"the answer says that an object of {told[1]} bytes has none at {body.at}"
            raise AnswerError(text)
        facts.tell_size(int(told[1]))
    body.end_at(body.at)


def _size_in_range(answer: Any, body: Body, facts: Facts) -> int:
    """How many bytes of the answer belong to the range."""
    told = set(answer.headers.getall("Content-Range", ()))
    if len(told) != 1:
        raise AnswerError(f"the answer has {len(told)} values of Content-Range; 1 was expected")
    text = told.pop()
    found = _CONTENT_RANGE.fullmatch(text.strip())
    expected = f"bytes {body.at}-{body.end - 1}"
    if found is None or int(found[1]) != body.at or int(found[2]) < body.at:
        raise AnswerError(
            f"the answer has the Content-Range {_shown(text)}, and asked for were {expected}"
        )
    if found[3] != "*":
        if int(found[2]) >= int(found[3]):
            raise AnswerError(f"the answer has the Content-Range {_shown(text)}, past its own end")
        facts.tell_size(int(found[3]))
        body.end_at(int(found[3]))
    return min(int(found[2]) + 1, body.end) - body.at


def _size_of_whole(answer: Any, body: Body, facts: Facts, prefix: bool) -> int:
    """How many bytes of an answer with the whole object belong to the range."""
    length = _length(answer)
    if length is not None:
        facts.tell_size(length)
    if body.at == 0 and length is not None and length <= body.end:
        body.end_at(length)
    elif body.at != 0 or not prefix:
        raise RangesIgnoredError
    return body.left


def _length(answer: Any) -> int | None:
    """The bytes of the body, if the answer says so."""
    text = answer.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _shown(text: str) -> str:
    """The value of a header, for a message."""
    return f'"{printable(text[:_SHOWN])}"'


class AnswerStream:
    """An object that is read from its beginning to its end, by one answer.

    Args:
        run: Runs a coroutine in the event loop of the filesystem, and waits for it.
        fs, path: The HTTPFileSystem and the path in it.
        facts: What is known of the object.
        bufsize: How many bytes may wait.

    Raises:
        AnswerError, OSError: As ``read_range``.
    """

    def __init__(
        self,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
        fs: Any,
        path: str,
        facts: Facts,
        bufsize: int,
    ) -> None:
        self._run, self._fs, self._facts = run, fs, facts
        self._offset = 0
        self._pace = Pace()
        self._answer: Any = run(self._begin(path, bufsize))
        # Also when it is dropped.
        self._dropped = weakref.finalize(self, _end, os.getpid(), fs.loop, self._answer)
        self._dropped.atexit = False

    async def _begin(self, path: str, bufsize: int) -> Any:
        answer = await _get(self._fs, path, {}, bufsize)
        try:
            _check(answer, self._facts)
            if answer.status != 200:
                raise AnswerError(f"the answer has the status {answer.status}; 200 was expected")
            length = _length(answer)
            if length is not None:
                self._facts.tell_size(length)
        except BaseException:
            answer.close()
            raise
        return answer

    def read(self, size: int) -> bytes:
        """The next bytes; b"" at the end."""
        data: bytes = self._run(self._read(size))
        self._offset += len(data)
        told = self._facts.size
        if told is not None and (self._offset > told or (not data and self._offset < told)):
            found = f"more than {told}" if data else f"only {self._offset}"
            raise AnswerError(f"the answer has {found} bytes, and the object {told}")
        return data

    async def _read(self, size: int) -> bytes:
        began = time.monotonic()
        data: bytes = await self._answer.content.read(size)
        if data:
            self._pace.add(time.monotonic() - began, len(data))
        return data

    def close(self) -> None:
        """Ends the answer."""
        self._dropped()


def _end(pid: int, loop: Any, answer: Any) -> None:
    """Ends an answer, unless it is the parent process's."""
    if pid == os.getpid() and loop.is_running():
        loop.call_soon_threadsafe(answer.close)
