"""Errors of remote filesystems: which ones to retry, and messages that name the URL."""

from __future__ import annotations

import errno
import os
from typing import NoReturn

from tfwire._base.errors import Error
from tfwire._base.text import printable

_RETRYABLE_STATUS = {408, 425, 429, 500, 502, 503, 504}
_RETRYABLE_ERRNO = {
    *(errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.EAGAIN),
    *(errno.EBUSY, errno.EINTR, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETRESET),
}
# Of what is not imported here: aiohttp, asyncio, botocore, fsspec, http.client, requests.
_RETRYABLE_CLASSES = {
    *("ClientConnectionError", "ClientPayloadError", "HTTPClientError", "RequestException"),
    *("IncompleteReadError", "ResponseStreamingError", "HTTPException", "FSTimeoutError"),
    *("ConnectionError", "TimeoutError"),  # asyncio of Python 3.10 has its own
}


class RangesIgnoredError(Exception):
    """The server answers with more than the range that it was asked for."""


class AnswerError(Exception):
    """An answer of a server contradicts the request, or itself. No other try makes it better."""


def status_of(error: BaseException) -> int:
    """The status of HTTP in an error of a library; 0: it has none."""
    response = getattr(error, "response", None)
    metadata = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}
    found = metadata.get("HTTPStatusCode")
    if found is None:
        found = getattr(error, "status", None)
    if found is None:
        found = getattr(error, "code", None)
    if isinstance(found, int):
        return found
    if isinstance(found, str) and found.isdigit():
        return int(found)
    cause = error.__cause__
    if cause is not None and isinstance(error, (FileNotFoundError, PermissionError)):
        return status_of(cause)
    return 0


def is_retryable(error: BaseException) -> bool:
    """Whether the same request may succeed a little later."""
    status = status_of(error)
    if status:
        return status in _RETRYABLE_STATUS
    if isinstance(error, FileNotFoundError) and error.__cause__ is not None:  # fsspec's HTTP
        return is_retryable(error.__cause__)
    if isinstance(error, (ConnectionError, TimeoutError, EOFError)):
        return True
    if isinstance(error, OSError) and error.errno in _RETRYABLE_ERRNO:
        return True
    return any(_is_kind(error, name) for name in _RETRYABLE_CLASSES)


def _described(error: Exception) -> str:
    """An error for a message."""
    if isinstance(error, AnswerError):
        return str(error)
    if _is_kind(error, "TooManyRedirects"):
        return "its redirects do not end"
    cause = error.__cause__
    if cause is not None and _is_kind(cause, "HttpProcessingError"):
        # aiohttp's message shows the bytes that are no HTTP.
        text = str(getattr(error, "message", "") or getattr(cause, "message", ""))
        text = text.split("\n")[0].partition(": b'")[0].rstrip(":. ")
        return f"the answer is malformed: {printable(text)}"
    name, text = type(error).__name__, str(error)
    return f"{name}: {printable(text)}" if text else name


def _is_kind(error: BaseException, name: str) -> bool:
    return any(kind.__name__ == name for kind in type(error).__mro__)


def raise_naming(url: str, what: str, error: Exception) -> NoReturn:
    """Raises an error of a filesystem as an OSError that names the URL.

    Args:
        url: The URL.
        what: What failed.
        error: The error; its cause.
    """
    url = str(url)
    if isinstance(error, (ImportError, Error)):
        raise error
    status = status_of(error)
    if isinstance(error, FileNotFoundError) and isinstance(cause := error.__cause__, Exception):
        hidden = status not in (0, 404, 410) or is_retryable(cause)  # by fsspec's HTTP
        hidden |= isinstance(cause, ValueError) or _is_kind(cause, "ClientError")
        error = cause if hidden and status not in (404, 410) else error
    if isinstance(error, FileNotFoundError) or status in (404, 410):
        what = f"{what}: there is no such object"
        raise FileNotFoundError(errno.ENOENT, what, url) from error
    if isinstance(error, IsADirectoryError):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), url) from error
    found = _described(error)
    if isinstance(error, PermissionError) or status in (401, 403):
        raise PermissionError(errno.EACCES, f"{what}: {found}", url) from error
    number = error.errno if isinstance(error, OSError) and error.errno else errno.EIO
    raise OSError(number, f"{what}: {found}", url) from error
