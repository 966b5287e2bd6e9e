"""The files and objects of which there are indexes, and where these are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tfwire._base.text import show_path
from tfwire._records.files.byte_sources import FileSource, open_regular
from tfwire._records.files.paths import Path, local_path
from tfwire._records.files.urls import INDEX_SUFFIX, ObjectPath, with_storage_options
from tfwire._records.reading.open_source import input_paths
from tfwire._records.remote.random_ranges import RemoteFile

if TYPE_CHECKING:
    from tfwire._base.aliases import StorageOptions


def index_beside(path: Any) -> str:
    """The path where the index of a file is saved."""
    return (
        path.beside(INDEX_SUFFIX)
        if isinstance(path, ObjectPath)
        else os.fsdecode(path) + INDEX_SUFFIX
    )


def indexed_path(name: str, path: Any, storage_options: StorageOptions = None) -> Path:
    """An argument that is a record file of which there is an index: a local file, or an object.

    Raises:
        TypeError: Not a path, or storage_options are not a mapping.
    """
    path = with_storage_options(path, storage_options)
    return path.alone() if isinstance(path, ObjectPath) else local_path(name, path)


def indexed_paths(paths: Any, storage_options: StorageOptions = None) -> list[Path]:
    """As indexed_path, for the argument ``paths``, which may be many.

    Raises:
        FileNotFoundError: No object matches a pattern.
    """
    return [indexed_path("paths", path) for path in input_paths(paths, storage_options)]


def index_path_of(path: Path, index_path: Any, storage_options: StorageOptions = None) -> Path:
    """The path of an index: the given one, or the default one beside the file."""
    if index_path is None:
        return index_beside(path)
    return indexed_path("index_path", index_path, storage_options)


def open_indexed(path: Any, location: str | None = None) -> FileSource | RemoteFile:
    """Opens a file or an object for random access; the arguments are those of ``open_regular``."""
    path = indexed_path("path", path)
    return RemoteFile(path) if isinstance(path, ObjectPath) else open_regular_file(path, location)


def open_regular_file(path: Path, location: str | None = None) -> FileSource:
    """As ``open_regular``.

    Raises:
        ValueError: Not a regular file.
    """
    source = open_regular(path, location)
    if source is None:
        raise ValueError(f"{show_path(path)}: random access needs a regular file")
    return source
