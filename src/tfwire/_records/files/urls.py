"""URLs and paths of fsspec: filesystems, and errors that name the URL."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any, NoReturn

from tfwire._base.arguments import wrong_type
from tfwire._base.errors import Error
from tfwire._base.text import printable, show_path

INDEX_SUFFIX = ".tfwindex"  # of the index that is saved beside a record file

# What to install for a protocol. fsspec names the others.
_PACKAGE_OF = {
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
    "gcs": "gcsfs",
    "gs": "gcsfs",
    "hf": "huggingface_hub",
    "http": "aiohttp",
    "https": "aiohttp",
    "s3": "s3fs",
    "s3a": "s3fs",
}


class ObjectPath(str):
    """A URL, and how to open it.

    Args:
        url: The URL, or its name for messages.
        options: fsspec's options of its filesystem.
        fs: Its filesystem; None: fsspec chooses it.
        path: Its path in ``fs``.
        listed: Whether it came in a list or by a pattern: it may belong to a set of shards.

    Attributes:
        following: The object that is read after this one, where that is known.
        prepared: A source that reads this object already, for whoever opens it next; or None.
    """

    options: dict[str, Any]
    fs: Any
    path: str | None
    listed: bool
    following: ObjectPath | None
    prepared: Any

    def __new__(
        cls,
        url: str,
        options: Mapping[str, Any] | None = None,
        fs: Any = None,
        path: str | None = None,
        listed: bool = False,
    ) -> ObjectPath:
        made = super().__new__(cls, url)
        made.options, made.fs, made.path = dict(options or {}), fs, path
        made.listed = listed
        made.following = made.prepared = None
        return made

    def alone(self) -> ObjectPath:
        """A copy that knows no other object: no object after it is fetched ahead."""
        return ObjectPath(self, self.options, self.fs, self.path, self.listed)

    def forget_following(self) -> None:
        """Closes what reads the following object already: nobody will open it."""
        if self.following is not None:
            prepared, self.following.prepared = self.following.prepared, None
            if prepared is not None:
                prepared.close()

    def __reduce__(self) -> Any:
        return ObjectPath, (str(self), self.options, self.fs, self.path, self.listed)

    @property
    def is_pattern(self) -> bool:
        """Whether it is a pattern. The question mark before the query of a web page makes none."""
        first = next(link for link in self.split("::") if "://" in link)
        if first.startswith(("http://", "https://")):
            return "*" in first.split("?")[0]
        return any(letter in first for letter in "*?[")

    def beside(self, suffix: str) -> ObjectPath:
        """The object whose name has a suffix, in the same filesystem."""
        links = self.split("::")
        number = next(i for i, link in enumerate(links) if "://" in link or len(links) == 1)
        links[number] += suffix
        path = None if self.path is None else self.path + suffix
        return ObjectPath("::".join(links), self.options, self.fs, path)

    def locate(self, again: bool = False) -> tuple[Any, str]:
        """The filesystem, and the path in it.

        Args:
            again: The process has forked: make a new filesystem.

        Raises:
            ImportError: fsspec, or the library of the protocol, is not installed.
            ValueError: fsspec does not know the protocol, or not these options.
        """
        if self.fs is None:
            return _locate(str(self), self.options)
        fs = type(self.fs)(*self.fs.storage_args, **self.fs.storage_options) if again else self.fs
        return fs, self.path or ""


def below_caches(fs: Any) -> Any:
    """The filesystem that a local cache of fsspec is a cache of; any other is itself."""
    while any(kind.__name__ == "CachingFileSystem" for kind in type(fs).__mro__):
        fs = fs.fs
    return fs


def is_url(path: Any) -> bool:
    """Whether a path is a URL, for fsspec."""
    return isinstance(path, str) and "://" in path


def is_object_path(value: Any) -> bool:
    """Whether a value is a path of universal_pathlib, or of another library with ``fs`` and
    ``path``, that is not a path of the system."""
    if isinstance(value, (str, bytes, os.PathLike)) or hasattr(value, "read"):
        return False
    fs = getattr(value, "fs", None)
    return isinstance(getattr(value, "path", None), str) and hasattr(fs, "cat_file")


def with_storage_options(path: Any, storage_options: Mapping[str, Any] | None = None) -> Any:
    """An input or output with its storage_options: a URL or an object path as ObjectPath, anything
    else as it is.

    Raises:
        TypeError: ``storage_options`` is not a mapping with str keys.
        ValueError: The path has a filesystem of its own.
    """
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise wrong_type("storage_options", storage_options, "a mapping")
    for key in storage_options or ():
        if not isinstance(key, str):
            raise wrong_type("every key of storage_options", key, "a str")
    if is_object_path(path):
        if storage_options:
            raise ValueError(
                "storage_options are for URLs: a path of universal_pathlib has a filesystem"
            )
        return ObjectPath(path.fs.unstrip_protocol(path.path), None, path.fs, path.path)
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    if is_url(path) and not isinstance(path, ObjectPath):
        return ObjectPath(path, storage_options)
    return path


def import_fsspec(url: str) -> Any:
    """The module.

    Raises:
        ImportError: It is not installed.
    """
    try:
        return import_module("fsspec")
    except ImportError:
        raise ImportError(
            f"{show_path(url)}: URLs need fsspec; pip install 'tfwire[remote]'"
        ) from None


def _locate(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    fsspec = import_fsspec(url)
    try:
        fs, path = fsspec.core.url_to_fs(url, **options)
    except ImportError as error:
        protocols = [link.split("://")[0] for link in url.split("::")]
        packages = [_PACKAGE_OF[name] for name in protocols if name in _PACKAGE_OF]
        hint = f"pip install {' '.join(packages)}" if packages else str(error)
        name = packages[0] if packages else "a library"
        raise ImportError(f"{show_path(url)}: needs {name}; {hint}") from error
    except (TypeError, ValueError, AttributeError, LookupError) as error:  # of its constructor
        hint = " with these storage_options" if options else ""
        raise ValueError(
            f"{show_path(url)}: cannot be opened{hint}: {printable(str(error))}"
        ) from error
    except Exception as error:
        raise_naming(url, "the filesystem could not be made", error)
    return fs, str(path)


# ---- Errors of filesystems: which to retry, and messages that name the URL ---------------------

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
