"""Which files an argument names: paths, URLs, patterns, folders, sets of shards, lists of these.

Everything that reads files finds them here, once, before the first is opened:

* a name that exists is that file, whatever characters are in it;
* a folder is the files in it, as Spark, Ray and others write them;
* a pattern is what matches it, and ``name@64`` the files ``name-00000-of-00064`` and so on: all;
* in these, folders that exist before the rest are themselves, and so is the name of a set;
* of folders and patterns, what lies beside records is left out, see ``is_beside``, and so are
  FIFOs, sockets and devices.

Names are sorted. A folder or pattern without files is an error.
"""

from __future__ import annotations

import errno
import glob
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tfwire._base.errors import warn
from tfwire._base.text import plural, quoted, show_path
from tfwire._records.files.paths import check_input, is_path, split_paths
from tfwire._records.files.urls import (
    INDEX_SUFFIX,
    ObjectPath,
    is_url,
    raise_naming,
    with_storage_options,
)

_SHARDS = re.compile(r"(.*[^/\\])@([1-9]\d{0,4})", re.DOTALL)
_OF_SHARDS = re.compile(r"-\?{5}-of-\d{5}\Z")
_ESCAPED_LETTER = re.compile(r"\[[*?[]\]")  # by glob.escape
_SEPARATORS = re.escape(os.sep + (os.altsep or ""))
_DEEP = re.compile(rf"(?:\A|(?<=[{_SEPARATORS}]))\*\*(?:[{_SEPARATORS}]+|\Z)")
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
    found, kinds = pattern, dict[str, bool]()
    for found in meanings(pattern, num_shards):
        if kinds := _kinds(_matches(found)):
            break
    return files_that_match(name, found, num_shards, kinds)


def matching_names(patterns: Iterable[Any]) -> list[str]:
    """What matches patterns of ``Dataset.list_files``, sorted: as in TensorFlow, all that is
    local, but for indexes; of a set, its shards."""
    names: set[str] = set()
    for pattern in patterns:
        with suppress(FileNotFoundError):
            is_object = isinstance(pattern, ObjectPath)
            found = [] if is_object else glob.glob(os.fsdecode(pattern))
            if is_object or as_pattern(os.fsdecode(pattern))[1]:
                found = found or find_files(pattern)
            names.update(map(str, found))
    return sorted(without_indexes(list(names)))


def _find_in_folder(folder: str) -> list[Any]:
    return _files_of(folder, _kinds(os.path.join(folder, name) for name in os.listdir(folder)))


def _kinds(names: Iterable[str]) -> dict[str, bool]:
    """Whether each is a folder, of what is one, a file or a link to nothing."""
    kinds = {}
    for name in names:
        try:
            mode = os.stat(name).st_mode
        except OSError:
            mode = stat.S_IFREG  # opening it says what is wrong
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            kinds[name] = stat.S_ISDIR(mode)
    return kinds


def _files_of(folder: str, kinds: Mapping[str, bool]) -> list[str]:
    """The files of a folder, sorted. A table that Spark has partitioned has folders alone.

    Args:
        folder: Its name for the error.
        kinds: Whether what is in it is a folder, by the names.
    """
    seen = [
        name for name in kinds if not is_beside(os.path.basename(name.rstrip("/" + os.sep)), "*")
    ]
    files = sorted(name for name in seen if not kinds[name])
    if not files:
        text = "no file of records is in the folder"
        text += _but(seen, kinds, f"{folder.rstrip('/')}/**")
        raise FileNotFoundError(errno.ENOENT, text, folder)
    return files


def is_beside(name: str, pattern: str) -> bool:
    """Whether a file that matches a pattern lies beside records: it, or a folder that the pattern
    does not name, is hidden or a marker of an engine, ``_SUCCESS`` and such; or it ends like a
    checksum, an index or a description. What the pattern asks for does not.
    """
    name, pattern = name.replace(os.sep, "/"), pattern.replace(os.sep, "/")
    parts = pattern.split("/")
    magic = (i for i, part in enumerate(parts) if glob.has_magic(_ESCAPED_LETTER.sub("", part)))
    named = next(magic, len(parts) - 1)
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


def meanings(
    pattern: str, num_shards: int, is_folder: Callable[[str], bool] = os.path.isdir
) -> Iterator[str]:
    """What a pattern may mean, of which the first counts that matches anything: the name of a set
    is itself, as are folders that exist, whatever characters are in them.

    Args:
        pattern, num_shards: As ``as_pattern`` has them.
        is_folder: Whether there is a folder of this name.
    """
    stem = _OF_SHARDS.sub("", pattern) if num_shards else ""
    if glob.has_magic(stem):
        yield glob.escape(stem) + pattern[len(stem) :]
    folder = os.path.dirname(pattern)
    while glob.has_magic(folder) and not is_folder(folder):
        folder = os.path.dirname(folder)
    yield glob.escape(folder) + pattern[len(folder) :]


def _matches(pattern: str) -> Iterator[str]:
    """What matches, as by ``glob``; but ``**`` follows no symbolic links to folders, which may go
    in circles.
    """
    deep = _DEEP.search(pattern)
    if deep is None:
        yield from glob.iglob(pattern)
        return
    root, rest = pattern[: deep.start()], pattern[deep.end() :] or "*"
    for top in glob.iglob(root) if root else [""]:
        for folder, folders, _ in os.walk(top or os.curdir):
            folders[:] = [name for name in folders if not name.startswith(".")]
            place = os.path.join(folder, "")[0 if top else len(os.path.join(os.curdir, "")) :]
            yield from _matches(glob.escape(place) + rest)


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
        text += _but([] if "**" in pattern else seen, kinds, f"{which}/**")
        raise FileNotFoundError(errno.ENOENT, text, name)
    if num_shards:
        stems = dict.fromkeys(file[: -len(f"00000{end}")] for file in found)
        wanted = [f"{stem}{i:05}{end}" for stem in stems for i in range(num_shards)]
        if missing := sorted(set(wanted) - set(found)):
            lost = "missing" if not any(map(os.path.lexists, missing)) else "missing or no files"
            text = f"{len(missing)} of {plural(len(wanted), 'shard')} {lost}, the first"
            raise FileNotFoundError(errno.ENOENT, f"{text} {show_path(missing[0])}", name)
    return found


def _is_shard(number: str, num_shards: int) -> bool:
    return number.isascii() and number.isdigit() and int(number) < num_shards


def _but(folders: Collection[str], kinds: Mapping[str, bool], deeper: str) -> str:
    """What there is, where no file is found: folders, or what is left out."""
    if folders:
        taken = f"the pattern {show_path(deeper)} takes their files"
        return f", but {plural(len(folders), 'folder')}: {taken}"
    beside = sorted(os.path.basename(name) for name, is_folder in kinds.items() if not is_folder)
    if not beside:
        return ""
    lie = "lies" if len(beside) == 1 else "lie"
    return f", but {plural(len(beside), 'file')} that {lie} beside records, as {quoted(beside[0])}"


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
        asked = as_pattern(pattern)[0] if num_shards else pattern
        entries: dict[str, Any] = {}
        # A bracket in the name of a folder is worth a request.
        for pattern in meanings(asked, num_shards, lambda name: "[" in name and fs.isdir(name)):
            if entries := fs.glob(pattern, detail=True):
                break
    except Exception as error:
        raise_naming(path, "the pattern could not be expanded", error)
    kinds = {name: _is_folder(fs, entry) for name, entry in entries.items() if _is_usual(entry)}
    return _objects(path, fs, files_that_match(str(path), pattern, num_shards, kinds))


def _list_objects(fs: Any, folder: str) -> dict[str, bool] | None:
    """What is in a folder: names, and whether each is a folder; None: it is no folder."""
    if not fs.isdir(folder):
        return None
    # Some stores list the folder itself, as an empty object.
    return {
        entry["name"]: _is_folder(fs, entry)
        for entry in fs.ls(folder, detail=True)
        if _is_usual(entry) and entry["name"].strip("/") != folder.strip("/")
    }


def _is_usual(entry: Mapping[str, Any]) -> bool:
    """Whether it is no FIFO, socket or device, as of local files."""
    return bool(entry["type"] != "other" or entry.get("islink"))


def _is_folder(fs: Any, entry: Mapping[str, Any]) -> bool:
    is_link = bool(entry.get("islink"))  # of a local file
    return bool(entry["type"] == "directory" or (is_link and fs.isdir(entry["name"])))


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
