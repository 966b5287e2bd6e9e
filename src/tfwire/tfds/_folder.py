"""A folder that TFDS prepared: which one it is, what it says of itself, and its files."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfwire import RecordIndex, TFRecordFile
from tfwire._interface.files import is_url, raise_naming
from tfwire._interface.messages import as_index, plural, quoted, show_path
from tfwire.typing import Value

INFO, FEATURES = "dataset_info.json", "features.json"
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
_MOST_BYTES = 1 << 26  # of a description
_MOST_SHARDS = 1_000_000
_SHARD_FILE = re.compile(
    r"(?P<name>\w+)-(?P<split>[\w-]+)\.tfrecord-(?P<shard>\d{5,})-of-(?P<of>\d{5,})"
)
# What fsspec or the filesystem raises where there is nothing.
_NOT_THERE = FileNotFoundError, NotADirectoryError


class ClassLabel(NamedTuple):
    """The classes of a label, or of the pixels of a LabeledImage.

    Attributes:
        num_classes: How many there are; 0: unknown.
        names: Their names, by number; None: not known.
    """

    num_classes: int
    names: tuple[str, ...] | None

    def int2str(self, values: int | npt.ArrayLike) -> Value:
        """The name of a class, or a list of names.

        Args:
            values: The number of a class, or an array of numbers.

        Raises:
            ValueError: There is no such class; without names it is the number as text.
        """
        if np.ndim(values):
            return [self.int2str(value) for value in np.asarray(values, object)]
        number = as_index(values)
        count = self.num_classes or (number + 1 if self.names is None else len(self.names))
        if not 0 <= number < count:
            raise ValueError(f"expected a class from 0 to {count - 1}, found {number}")
        if self.names is not None and number >= len(self.names):
            raise ValueError(f"class {number} has no name: {len(self.names)} of {count} have one")
        return str(number) if self.names is None else self.names[number]

    def str2int(self, values: str | Sequence[str]) -> Value:
        """The number of a class, or a list of numbers.

        Args:
            values: The name of a class, or several.

        Raises:
            ValueError: No class has this name.
        """
        if not isinstance(values, str):
            return [self.str2int(value) for value in values]
        if self.names is not None and values in self.names:
            return self.names.index(values)
        if values.isdecimal() and (self.num_classes == 0 or int(values) < self.num_classes):
            return int(values)
        raise ValueError(f"no class has the name {quoted(values)}")


class PreparedFolder:
    """The folder, local or at a URL."""

    def __init__(self, folder: Any, storage_options: Mapping[str, Any] | None) -> None:
        given = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
        if not isinstance(given, str):
            raise TypeError(f"folder must be a path or URL, found {type(folder).__name__}")
        if not given:
            raise ValueError("folder must be a path or URL, found an empty string")
        self.folder: str = os.path.expanduser(given).rstrip("/") or "/"
        self.storage_options: dict[str, Any] = dict(storage_options or {})
        self.is_remote: bool = is_url(self.folder)
        if not self.is_remote:
            self.folder = os.path.abspath(self.folder)

    def __str__(self) -> str:
        return show_path(self.folder)

    def join(self, *names: str) -> str:
        return (
            "/".join([self.folder, *names]) if self.is_remote else os.path.join(self.folder, *names)
        )

    def within(self, name: str) -> PreparedFolder:
        return PreparedFolder(self.join(name), self.storage_options)

    def _fs(self) -> Any:
        try:
            import fsspec
        except ImportError as error:
            raise ImportError("URLs need fsspec; pip install 'tfwire[remote]'") from error
        return fsspec.core.url_to_fs(self.folder, **self.storage_options)

    def _ask(self, name: str, ask: Callable[[Any, str], Any]) -> Any:
        """What a store says of a file in it, or of the folder, by its path. Errors name the URL."""
        fs, path = self._fs()
        try:
            return ask(fs, f"{path}/{name}" if name else path)
        except NotImplementedError as error:  # a store that lists nothing
            raise FileNotFoundError(errno.ENOENT, "cannot be listed", self.folder) from error
        except Exception as error:
            raise_naming(self.join(name) if name else self.folder, "it could not be read", error)

    def names(self) -> list[str]:
        """The names in it, sorted; empty if there is no such folder, or no way to list it."""
        try:
            if not self.is_remote:
                return sorted(os.listdir(self.folder))
            found = self._ask("", lambda fs, path: fs.ls(path, detail=False))
            return sorted(name.rstrip("/").split("/")[-1] for name in found)
        except _NOT_THERE:
            return []

    def read(self, name: str) -> str | None:
        """The text of a file in it; None if there is no such file."""
        try:
            if self.is_remote:
                data = self._ask(name, lambda fs, path: fs.cat_file(path, end=_MOST_BYTES + 1))
            else:
                with open(self.join(name), "rb") as file:
                    data = file.read(_MOST_BYTES + 1)
        except _NOT_THERE:
            return None
        if len(data) > _MOST_BYTES:
            raise ValueError(f"{show_path(self.join(name))}: expected at most {_MOST_BYTES} bytes")
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError:
            raise ValueError(f"{show_path(self.join(name))}: expected UTF-8 text") from None

    def read_json(self, name: str) -> Any:
        """A dict in a file; None if there is no such file."""
        text = self.read(name)
        if text is None:
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{show_path(self.join(name))}: {error}") from None
        if not isinstance(found, dict):
            raise ValueError(f"{show_path(self.join(name))}: expected a JSON object")
        return found


def prepared(place: PreparedFolder) -> PreparedFolder:
    """The folder of a version: this one, or the only one in it.

    Raises:
        ValueError: There are several.
        FileNotFoundError: There is none.
    """
    names = place.names()
    if {INFO, FEATURES} & set(names) or any(map(_SHARD_FILE.fullmatch, names)):
        return place
    if not names and place.is_remote and place.read(INFO) is not None:  # of a plain web server
        return place
    found = []
    for inner in map(place.within, names):  # of versions, or of configurations with versions
        files = inner.names()
        below = [inner] if {INFO, FEATURES} & set(files) else map(inner.within, files)
        found += [each for each in below if each is inner or {INFO, FEATURES} & set(each.names())]
    if len(found) == 1:
        return found[0]
    if not found:
        raise FileNotFoundError(
            f"{place}: no dataset of TFDS; expected a folder with {INFO} and {FEATURES}, which "
            "TFDS writes into a folder for each version, such as 'mnist/3.0.1'"
        )
    shown = ", ".join(quoted(each.folder[len(place.folder) + 1 :]) for each in found)
    raise ValueError(f"{place}: expected one version, found {shown}; open one of these folders")


class SplitInfo:
    """A split of a prepared dataset.

    Attributes:
        name: Its name, such as "train".
        num_bytes: The bytes of its examples as TFDS counted them; 0: not known.
        paths: Its files.
    """

    def __init__(
        self,
        paths: list[str],
        name: str,
        lengths: Sequence[int] | None,
        num_bytes: int,
        place: PreparedFolder,
    ) -> None:
        self.name = name
        self.num_bytes = num_bytes
        self.paths = paths
        self._lengths: tuple[int, ...] | None = None if lengths is None else tuple(lengths)
        self._place = place
        self._indexes: dict[int, RecordIndex] = {}

    @property
    def shard_lengths(self) -> Sequence[int]:
        """How many examples each file has; counted in the files if the description lacks it."""
        if self._lengths is None:
            self._lengths = tuple(len(self.open(shard, None)) for shard in range(len(self.paths)))
        return self._lengths

    @property
    def num_examples(self) -> int:
        """How many examples it has."""
        return sum(self.shard_lengths)

    def open(self, shard: int, length: int | None) -> TFRecordFile:
        """A file, of as many examples as its description says.

        Raises:
            ValueError: It has more or fewer.
        """
        path = self.paths[shard]
        options = self._place.storage_options or None if self._place.is_remote else None
        file = TFRecordFile(path, self._indexes.get(shard), storage_options=options)
        self._indexes[shard] = file.index
        if length is not None and len(file) != length:
            file.close()
            raise ValueError(
                f"{show_path(path)}: {INFO} says {plural(length, 'example')} of split "
                f"{quoted(self.name)}, found {plural(len(file), 'record')}; copy or prepare the "
                "dataset again"
            )
        return file

    def __repr__(self) -> str:
        shards = plural(len(self.paths), "shard")
        return f"<SplitInfo {self.name!r}: {plural(self.num_examples, 'example')} in {shards}>"


def described_splits(place: PreparedFolder, info: Mapping[str, Any]) -> dict[str, SplitInfo]:
    """The splits that a dataset_info.json names; without one, those that names of files show."""
    if "splits" not in info:
        return _listed(place)
    try:
        return _described(place, info)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = error if type(error) is ValueError else repr(error)
        raise ValueError(
            f"{show_path(place.join(INFO))}: its splits are not those of TFDS: {reason}"
        ) from None


def _described(place: PreparedFolder, info: Mapping[str, Any]) -> dict[str, SplitInfo]:
    found = {}
    for split in info["splits"]:
        name = split["name"]
        lengths = [_count(length) for length in split.get("shardLengths", [])]
        count = len(lengths) or _count(split.get("numShards", 0))
        template = str(split.get("filepathTemplate") or _TEMPLATE).partition("%")[0]
        if name in found:
            raise ValueError(f"split {quoted(name)} is there twice")
        if count > _MOST_SHARDS:
            raise ValueError(f"split {quoted(name)} has {count} files, more than {_MOST_SHARDS}")
        if ":" in template:  # of a format, which may be of any width
            raise _wrong_template(name, template)
        digits = max(5, len(str(count)))
        paths = []
        for shard in range(count):
            words = {
                "DATASET": info.get("name", ""),
                "SPLIT": name,
                "FILEFORMAT": "tfrecord",
                "SHARD_INDEX": f"{shard:0{digits}}",
                "NUM_SHARDS": f"{count:0{digits}}",
                "SHARD_X_OF_Y": f"{shard:0{digits}}-of-{count:0{digits}}",
            }
            try:
                paths.append(place.join(template.format(**words)))
            except (AttributeError, KeyError, ValueError, IndexError):
                raise _wrong_template(name, template) from None
        num_bytes = _count(split.get("numBytes", 0))
        found[name] = SplitInfo(paths, name, lengths or (None if count else []), num_bytes, place)
    return found


def _count(value: Any) -> int:
    """A number in a description, which JSON's int64 has as text."""
    if isinstance(value, (int, str)) and not isinstance(value, bool) and int(value) >= 0:
        return int(value)
    raise ValueError(f"expected a count, found {value!r}")


def _wrong_template(split: str, template: str) -> ValueError:
    return ValueError(
        f"split {quoted(split)} has the filepathTemplate {quoted(template)}, expected names such "
        "as {SPLIT} and {SHARD_X_OF_Y}"
    )


def _listed(place: PreparedFolder) -> dict[str, SplitInfo]:
    matches = [match for name in place.names() if (match := _SHARD_FILE.fullmatch(name))]
    names = sorted({match["split"] for match in matches})
    found = {}
    for name in names:
        mine = [match for match in matches if match["split"] == name]
        sets = {match["of"] for match in mine}
        if len(sets) > 1 or len(mine) != int(mine[0]["of"]):
            raise ValueError(
                f"{place}: split {quoted(name)} has {plural(len(mine), 'file')}, expected "
                f"{int(mine[0]['of'])}, as their names say"
            )
        paths = [place.join(match.string) for match in mine]
        found[name] = SplitInfo(paths, name, None, 0, place)
    return found
