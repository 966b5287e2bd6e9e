"""Arguments that name inputs: paths, URLs, file objects, and lists of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfwire._base.arguments import check_type, refuse_null, refuse_unordered, wrong_type
from tfwire._base.text import show_path
from tfwire._records.files.urls import INDEX_SUFFIX, ObjectPath, is_object_path, is_url

Path = str | os.PathLike[str]


def is_file_object(value: Any) -> bool:
    """Whether a value has ``read`` or ``readinto``."""
    return hasattr(value, "read") or hasattr(value, "readinto")


def local_path(name: str, path: Any) -> Path:
    """An argument that is the path of a local file, as str or os.PathLike.

    Raises:
        TypeError: Not a path.
        ValueError: A URL, or it holds a null character.
    """
    if isinstance(path, bytes):
        path = os.fsdecode(path)
    check_type(name, path, (str, os.PathLike), "a str, bytes or os.PathLike")
    refuse_null(name, path)
    if is_url(path):
        raise ValueError(f"{name} must be a regular file, found the URL {show_path(path)}")
    checked: Path = path
    return checked


def index_beside(path: Any) -> str:
    """The path where the index of a file is saved."""
    return (
        path.beside(INDEX_SUFFIX)
        if isinstance(path, ObjectPath)
        else os.fsdecode(path) + INDEX_SUFFIX
    )


def absolute(path: Path) -> str:
    """A path that stays valid after a chdir. os.path.abspath takes "link/.." for ".", which is
    wrong if the link leads elsewhere.
    """
    if isinstance(path, str) and is_url(path):
        return path
    name = os.fsdecode(path)
    return name if os.path.isabs(name) else os.path.join(os.getcwd(), name)


def split_paths(paths: Any, name: str = "paths") -> list[Any] | Iterator[Any]:
    """The inputs in an argument: one path or file object, or an iterable of them.

    Raises:
        TypeError, ValueError: None of these, or a path with a null character. The items of a list
            or tuple are checked at once, those of other iterables when they are reached.
    """
    if hasattr(paths, "numpy"):
        paths = paths.numpy()
    if isinstance(paths, np.ndarray):
        paths = paths.tolist()
    if is_path(paths) or is_file_object(paths) or is_object_path(paths):
        check_input(name, paths)
        return [paths]
    if isinstance(paths, (list, tuple)):
        return [_checked_item(path, name) for path in paths]
    refuse_unordered(name, paths)
    try:
        items = iter(paths)
    except TypeError:
        raise wrong_type(name, paths, "a path, a file object or an iterable of them") from None
    return (_checked_item(path, name) for path in items)


def is_path(value: Any) -> bool:
    """Whether a value is a path or a URL."""
    return isinstance(value, (str, bytes, os.PathLike))


def check_input(name: str, value: Any) -> None:
    """Checks that an argument is a path, a URL or a file object.

    Raises:
        TypeError: It is not.
        ValueError: It is a path or URL with a null character.
    """
    if is_path(value):
        refuse_null(name, value)
    elif not is_file_object(value) and not is_object_path(value):
        raise wrong_type(name, value, "a path, a URL or a file object")


def _checked_item(path: Any, name: str) -> Any:
    check_input(f"an item of {name}", path)
    return path
