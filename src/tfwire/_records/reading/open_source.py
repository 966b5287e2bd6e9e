"""Opens what readers read: files, pipes, file objects, URLs and paths of fsspec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfwire._records.files.byte_sources import FileSource, ObjectSource, Source
from tfwire._records.files.paths import check_input, is_file_object, split_paths
from tfwire._records.files.urls import ObjectPath, expand, linked, with_storage_options


def open_source(path: Any) -> Source:
    """Opens a path, a URL or a file object; a source is returned as it is.

    Raises:
        OSError: The file is missing, a directory, or not readable; with its name.
        ImportError: A URL, and fsspec or the library of its protocol is not installed.
        TypeError: None of these.
    """
    if isinstance(path, Source):
        return path
    if is_file_object(path):
        return ObjectSource(path)
    path = with_storage_options(path)
    if isinstance(path, ObjectPath):
        # not imported above: reading local files starts without it
        from tfwire._records.remote.read_ahead import RemoteSource

        prepared, path.prepared = path.prepared, None
        return RemoteSource(path) if prepared is None else prepared
    check_input("path", path)
    return FileSource(path)


def input_paths(
    paths: Any, storage_options: Mapping[str, Any] | None, name: str = "paths"
) -> Iterator[Any]:
    """The inputs in an argument, as ``split_paths``. Those in URLs have their storage_options, and
    the patterns in them are expanded when they are reached.

    Raises:
        TypeError: Not such an argument.
        FileNotFoundError: While iterating: no object matches a pattern.
    """
    with_storage_options("", storage_options)  # checked now
    items: Iterable[Any]
    items = (with_storage_options(path, storage_options) for path in split_paths(paths, name))
    if isinstance(paths, (list, tuple)):  # a generator may wait until the file before was read
        items = linked(items)
    return (found for item in items for found in expand(item))


def one_input(path: Any, storage_options: Mapping[str, Any] | None, name: str = "path") -> Any:
    """An argument that is one input, with its storage_options.

    Raises:
        TypeError: Not an input.
    """
    check_input(name, path)
    return with_storage_options(path, storage_options)
