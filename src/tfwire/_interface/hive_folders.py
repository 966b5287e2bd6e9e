"""Folders of partitioned tables, as Hive, Spark and others lay them out: label=0/part-0.tfrecord.

The names of folders hold the values of columns, which the files leave out. ``folder_name`` makes
such a name; ``find_partitioned`` gives the files of a folder with the values in their paths;
``files_of_table`` are all of a table, partitioned or not, and ``is_empty`` says that it has none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from tfwire._base.text import quoted, show_path
from tfwire._records.files.find_files import is_beside
from tfwire._records.files.paths import is_path

_NULL = "__HIVE_DEFAULT_PARTITION__"
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\"#%'*/:=?\\{\[\]^]")
_INTEGER = re.compile(r"-?[0-9]{1,18}")

Values = dict[str, str | None]


def folder_name(values: Mapping[str, str | None]) -> str:
    """The folder of rows with these values in text; None is null. Like Hive's, an empty string is
    null, too."""
    named = {name: _NULL if value in (None, "") else str(value) for name, value in values.items()}
    return "/".join(f"{_escaped(name)}={_escaped(value)}" for name, value in named.items())


def _escaped(text: str) -> str:
    return _NOT_IN_NAMES.sub(lambda match: f"%{ord(match[0]):02X}", text)


def files_of_table(folder: str) -> list[str]:
    """The files of a table, partitioned or not, and what lies beside them and is not hidden."""
    return [path for path, _ in _walk(folder, {})]


def find_partitioned(folder: str) -> dict[str, Values]:
    """The files in the folders of a partitioned table, with the values in their paths; none if the
    folder is no such table. Files in other folders beside them would be of no partition.

    Raises:
        ValueError: Folders are of different columns, or there are files beside them.
    """
    walked = _walk(folder, {}, True)
    found = {path: values for path, values in walked if not is_beside(os.path.basename(path), "*")}
    first: list[str] = list(next(iter(found.values()), ()))
    for path, values in found.items():
        if list(values) != first:
            columns = ", ".join(map(quoted, values)) or "no columns"
            raise ValueError(
                f"{show_path(path)}: its folders are of {columns}, those of other files of "
                f"{', '.join(map(quoted, first)) or 'no columns'}; load one kind"
            )
    return found if first else {}


def _walk(folder: str, values: Values, every: bool = False) -> Iterator[tuple[str, Values]]:
    """Files with their values. Folders that are not named like "label=0" hold none of the table;
    with ``every``, their files come without values."""
    for entry in _visible(folder):
        name, equal, value = entry.name.partition("=")
        if entry.is_file():
            yield entry.path, values
        elif equal and name:
            text = None if value == _NULL else unquote(value)
            yield from _walk(entry.path, {**values, unquote(name): text}, every)
        elif every and not entry.is_symlink():
            yield from ((path, {}) for path, _ in _walk(entry.path, {}, every))


def is_empty(path: Any) -> bool:
    """Whether a path is a folder of nothing but what is hidden: a table without rows."""
    return is_path(path) and os.path.isdir(path) and not _visible(os.fsdecode(path))


def _visible(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        found = [entry for entry in entries if not entry.name.startswith((".", "_"))]
    return sorted(found, key=lambda entry: entry.name)


def are_integers(values: list[str | None]) -> bool:
    """Whether the values of a column are integers, or null."""
    return all(value is None or _INTEGER.fullmatch(value) for value in values)
