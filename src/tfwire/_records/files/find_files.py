"""Which files an argument names: paths, URLs, patterns, folders, sets of shards, lists of these.

Everything that reads files finds them here, once, before the first is opened:

* a name that exists is that file, whatever characters are in it;
* a folder is the files in it, as Spark, Ray and others write them;
* a pattern is what matches it, and ``name@64`` the files ``name-00000-of-00064`` and so on: all;
* of folders and patterns, what lies beside records is left out: see ``is_beside``.

Names are sorted. A folder or pattern without files is an error.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tfwire._base.errors import warn
from tfwire._base.text import plural, show_path
from tfwire._records.files.paths import check_input, is_path, split_paths
from tfwire._records.files.urls import (
    INDEX_SUFFIX,
    ObjectPath,
    is_url,
    raise_naming,
    with_storage_options,
)

_SHARDS = re.compile(r"(.*[^/\\])@([1-9]\d{0,4})", re.DOTALL)
# Of files that lie beside records: checksums of Hadoop, indexes, descriptions by TFDS.
_SUFFIXES = (".crc", INDEX_SUFFIX, ".json", ".labels.txt")


def input_paths(
    paths: Any, storage_options: Mapping[str, Any] | None, name: str = "paths"
) -> list[Any] | Iterator[Any]:
    """The inputs in an argument, as ``split_paths``: each file that it names, and file objects.
    Those in URLs have their storage_options.

    Returns:
        A list. Of a generator, which may wait until the file before was read, an iterator, which
        finds the files of an item when it is reached.

    Raises:
        TypeError, ValueError: Not such an argument.
        FileNotFoundError: A folder is empty, nothing matches a pattern, or a shard is missing.

    Warns:
        TfwireWarning: A list is empty.
    """
    with_storage_options("", storage_options)  # checked now
    items = split_paths(paths, name)
    given = (with_storage_options(item, storage_options) for item in items)
    if not isinstance(items, list):
        return (file for item in given for file in find_files(item))
    if not items:
        warn(f"{name} is empty: there are no files to read")
    if len(items) == 1:
        found = find_files(next(given), asks=True)
        return linked(found) if isinstance(paths, (list, tuple)) else found
    return linked(file for item in without_indexes(list(given)) for file in find_files(item))


def one_input(
    path: Any, storage_options: Mapping[str, Any] | None, instead: str, name: str = "path"
) -> Any:
    """An argument that is one input, with its storage_options: a file object, or what names exactly
    one file.

    Args:
        path, storage_options, name: The arguments.
        instead: What takes several.

    Raises:
        TypeError: Not an input.
        FileNotFoundError: Nothing matches a pattern.
        IsADirectoryError: A folder. Of URLs the first request finds it.
        ValueError: Several files.
    """
    check_input(name, path)
    path = with_storage_options(path, storage_options)
    is_folder = is_path(path) and not isinstance(path, ObjectPath) and os.path.isdir(path)
    found = [] if is_folder else find_files(path)
    if len(found) == 1:
        return found[0]
    what = "a folder" if is_folder else f"{show_path(path)}, which names {len(found)}"
    message = f"{name} must be one file, found {what}; use {instead}"
    if is_folder:
        raise IsADirectoryError(errno.EISDIR, message, os.fsdecode(path))
    raise ValueError(message)


def tensorflow_paths(
    paths: Any, storage_options: Mapping[str, Any] | None, name: str = "paths"
) -> list[Any]:
    """The inputs in an argument by TensorFlow's rule: a name is that of a file, also where there is
    a folder or none, which opening refuses. What matches a pattern is found all the same.
    """
    found: list[Any] = []
    for item in split_paths(paths, name):
        path = with_storage_options(item, storage_options)
        is_folder = is_path(path) and not isinstance(path, ObjectPath) and os.path.isdir(path)
        try:
            found += [path] if is_folder else find_files(path)
        except FileNotFoundError:
            found.append(path)
    return linked(found)


def without_indexes(items: list[Any]) -> list[Any]:
    """A list of inputs without the indexes of others in it, as from a shell or ``glob``."""
    names = {os.fsdecode(item) for item in items if is_path(item)}
    beside = {name + INDEX_SUFFIX for name in names}
    return [item for item in items if not is_path(item) or os.fsdecode(item) not in beside]


def find_files(path: Any, asks: bool = False) -> list[Any]:
    """The files that one item of an argument names; a file, or anything else, is itself.

    Args:
        path: The item.
        asks: Whether a URL may be asked if it is a folder, a request that many would not be worth.

    Raises:
        FileNotFoundError: As ``input_paths``.
        OSError: A folder, or the names that match, cannot be listed.
    """
    if isinstance(path, ObjectPath):
        return [path] if path.listed else _find_objects(path, asks)
    if not is_path(path):
        return [path]
    name = os.fsdecode(path)
    if os.path.isdir(name):
        return _find_in_folder(name)
    pattern, num_shards = as_pattern(name)
    if not glob.has_magic(pattern) or os.path.lexists(name):
        return [path]
    kinds = {match: os.path.isdir(match) for match in glob.glob(pattern, recursive=True)}
    return files_that_match(name, pattern, num_shards, kinds)


def matching_names(patterns: Iterable[Any]) -> list[str]:
    """What matches patterns of ``Dataset.list_files``, sorted: as in TensorFlow, all that is
    local, but for indexes."""
    names: set[str] = set()
    for pattern in patterns:
        with suppress(FileNotFoundError):
            is_object = isinstance(pattern, ObjectPath)
            found = find_files(pattern) if is_object else glob.glob(os.fsdecode(pattern))
            names.update(map(str, found))
    return sorted(without_indexes(list(names)))


def _find_in_folder(folder: str) -> list[Any]:
    with os.scandir(folder) as entries:
        kinds = {entry.path: entry.is_dir() for entry in entries if not is_beside(entry.name, "*")}
    return _files_of(folder, kinds)


def _files_of(folder: str, kinds: Mapping[str, bool]) -> list[str]:
    """The files of a folder, sorted. A table that Spark has partitioned has folders alone.

    Args:
        folder: Its name for the error.
        kinds: Whether what is in it is a folder, by the names.
    """
    files = sorted(name for name, is_folder in kinds.items() if not is_folder)
    if not files:
        text = "no file of records is in the folder"
        if kinds:
            text += _but_folders(len(kinds), f"{folder.rstrip('/')}/**")
        raise FileNotFoundError(errno.ENOENT, text, folder)
    return files


def is_beside(name: str, pattern: str) -> bool:
    """Whether a file that matches a pattern lies beside records: it, or a folder that the pattern
    does not name, is hidden or a marker of an engine, ``_SUCCESS`` and such; or it ends like a
    checksum, an index or a description. What the pattern asks for does not.
    """
    name, pattern = name.replace(os.sep, "/"), pattern.replace(os.sep, "/")
    parts = pattern.split("/")
    named = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    for part in name.split("/")[named:]:
        # "_train.tfrecord" is hidden to Spark alone, and nobody would miss its records.
        if part.startswith(".") or (part.startswith("_") and "." not in part):
            return part[0] != parts[-1][:1]
    return name.endswith(_SUFFIXES) and not parts[-1].endswith(_SUFFIXES)


# ---- Patterns and sets of shards -----------------------------------------------------------------


def as_pattern(name: str) -> tuple[str, int]:
    """The pattern of a name, and the number of shards if that is of a set, else 0."""
    shards = _SHARDS.fullmatch(name) if "@" in name else None  # to search a long name takes long
    if shards is None:
        return name, 0
    count = int(shards[2])
    return f"{shards[1]}-?????-of-{count:05}", count


def files_that_match(
    name: str, pattern: str, num_shards: int, kinds: Mapping[str, bool]
) -> list[str]:
    """The files of records among what matches a pattern, sorted; of shards, all.

    Args:
        name: What the caller gave.
        pattern, num_shards: As ``as_pattern`` has them.
        kinds: Whether what matches is a folder, by the names.

    Raises:
        FileNotFoundError: There are none, or a shard is missing.
    """
    seen = {match: kind for match, kind in kinds.items() if not is_beside(match, pattern)}
    found = sorted(match for match, is_folder in seen.items() if not is_folder)
    if num_shards:
        end = f"-of-{num_shards:05}"
        found = [file for file in found if _is_shard(file.removesuffix(end)[-5:], num_shards)]
    if not found:
        kind, which = "object" if is_url(name) else "file", as_pattern(name)[0]
        text = f"no {kind} matches the pattern" + f" {show_path(which)}" * (which != name)
        if seen and "**" not in pattern:
            text += _but_folders(len(seen), f"{which}/**")
        raise FileNotFoundError(errno.ENOENT, text, name)
    if num_shards:
        stems = dict.fromkeys(file[: -len(f"00000{end}")] for file in found)
        wanted = [f"{stem}{i:05}{end}" for stem in stems for i in range(num_shards)]
        if missing := sorted(set(wanted) - set(found)):
            text = f"{len(missing)} of {plural(len(wanted), 'shard')} missing, the first"
            raise FileNotFoundError(errno.ENOENT, f"{text} {show_path(missing[0])}", name)
    return found


def _is_shard(number: str, num_shards: int) -> bool:
    return number.isascii() and number.isdigit() and int(number) < num_shards


def _but_folders(number: int, deeper: str) -> str:
    return f", but {plural(number, 'folder')}: the pattern {show_path(deeper)} takes their files"


# ---- URLs ----------------------------------------------------------------------------------------


def _find_objects(path: ObjectPath, asks: bool) -> list[Any]:
    """As find_files. A URL that ends with a slash is a folder. Others may be where their last name
    has no dot: usual names of files cost no request.
    """
    is_web = path.startswith(("http://", "https://"))
    num_shards = 0 if is_web else as_pattern(path)[1]
    if path.is_pattern or num_shards:
        return _match_objects(path, num_shards)
    last = path.split("::")[0].rpartition("/")[2]
    if is_web or "." in last or (last and not asks):
        return [path]
    fs, folder = path.locate()
    try:
        kinds = _list_objects(fs, folder)
    except Exception:
        return [path]  # opening it says what is wrong
    return [path] if kinds is None else _objects(path, fs, _files_of(path, kinds))


def _match_objects(path: ObjectPath, num_shards: int) -> list[Any]:
    fs, pattern = path.locate()
    try:
        if fs.exists(pattern):
            kinds = _list_objects(fs, pattern)
            return _objects(path, fs, [pattern] if kinds is None else _files_of(path, kinds))
        pattern = as_pattern(pattern)[0] if num_shards else pattern
        entries = fs.glob(pattern, detail=True)
    except Exception as error:
        raise_naming(path, "the pattern could not be expanded", error)
    kinds = {match: entry["type"] == "directory" for match, entry in entries.items()}
    return _objects(path, fs, files_that_match(str(path), pattern, num_shards, kinds))


def _list_objects(fs: Any, folder: str) -> dict[str, bool] | None:
    """What is in a folder: names, and whether each is a folder; None: it is no folder."""
    if not fs.isdir(folder):
        return None
    # Some stores list the folder itself, as an empty object.
    names = {entry["name"]: entry["type"] == "directory" for entry in fs.ls(folder, detail=True)}
    return {
        name: is_folder
        for name, is_folder in names.items()
        if name.strip("/") != folder.strip("/")
        and not is_beside(name.rstrip("/").rpartition("/")[2], "*")
    }


def _objects(path: ObjectPath, fs: Any, names: Iterable[str]) -> list[Any]:
    return linked(ObjectPath(_named(path, fs, name), path.options, fs, name) for name in names)


def linked(paths: Iterable[Any]) -> list[Any]:
    """Copies of paths, in which each object knows the one after it."""
    found: list[Any] = []
    following: Any = None
    for path in reversed(list(paths)):
        if isinstance(path, ObjectPath):
            path = ObjectPath(path, path.options, path.fs, path.path, listed=True)
            path.following = following if isinstance(following, ObjectPath) else None
        following = path
        found.append(path)
    return found[::-1]


def _named(url: str, fs: Any, name: str) -> str:
    """The URL of an object that a pattern has found."""
    links = url.split("::")
    if len(links) == 1:
        return str(fs.unstrip_protocol(name))
    number = next(i for i, link in enumerate(links) if "://" in link)
    if "://" not in name:
        name = f"{links[number].split('://')[0]}://{name}"
    links[number] = name
    return "::".join(links)
