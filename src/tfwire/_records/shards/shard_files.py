"""Sets of files, in a folder or as objects of a store: their names, and what goes to which file."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from string import Formatter

from tfwire._base.arguments import file_path
from tfwire._base.text import printable, show_path
from tfwire._records.files.byte_sinks import ShardSink
from tfwire._records.files.paths import absolute, index_beside
from tfwire._records.files.temporary_files import NO_DESCRIPTORS, errors_naming, try_remove
from tfwire._records.files.urls import INDEX_SUFFIX, ObjectPath, raise_naming
from tfwire._records.index.written_offsets import Indexing
from tfwire._records.reading.publishing_markers import MARKER, Step
from tfwire._records.remote.upload import RemoteShardSink, hidden_beside, names_at_close
from tfwire._records.shards.publishing import (
    Renaming,
    each_at_once,
    publish_set,
    put_marker,
    refuse_set,
    remove_backups,
    restore_set,
    undo_objects,
)


class LocalShards:
    """Files with temporary names, which are renamed together.

    Args:
        pattern: The path of the files.
        index: Whether there is an index beside every file.

    Attributes:
        name: The pattern without its folder.
        sinks: The files, in order.

    Raises:
        OSError: There is no such folder.
    """

    def __init__(self, pattern: object, index: bool) -> None:
        self._given_folder, self.name = os.path.split(file_path("pattern", pattern))
        self._folder = absolute(self._given_folder)  # valid also after a chdir
        self._index = index
        self.sinks: list[ShardSink] = []
        os.stat(self._given_folder or os.curdir)  # an error names the folder, not a temporary file

    def check_names(self, names: list[str]) -> None:
        """Raises now, not in ``publish``, if the file system refuses the names."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.stat(os.path.join(self._folder, index_beside(name) if self._index else name))

    def restore(self, name: str) -> None:
        """Restores the files of a killed process, if it was publishing a set here; ``name`` is for
        messages."""
        with errors_naming(self.path(name), *NO_DESCRIPTORS):
            restore_set(self._folder)

    def path(self, name: str) -> str:
        """The path of a file, as the pattern was given."""
        return os.path.join(self._given_folder, name)

    def open(self, name: str, known: bool) -> ShardSink:
        """Creates the next file; ``name`` is for messages."""
        sink = ShardSink(self._folder, self.path(name))
        self.sinks.append(sink)
        return sink

    def complete(self, number: int, name: str, indexing: Indexing | None) -> None:
        """Saves the index of a file that is on disk, under a temporary name."""
        if indexing is not None:
            with errors_naming(index_beside(self.path(name))):
                index = indexing.index(self.sinks[number].draft.path)
                index.save(self._index_draft(number))

    def publish(self, names: list[str]) -> None:
        """Renames the complete files."""
        renamings = []
        for number, (name, sink) in enumerate(zip(names, self.sinks, strict=True)):
            draft = os.path.basename(sink.draft.path)
            renamings.append(Renaming(draft, name, sink.draft.mode))
            if self._index:
                draft = os.path.basename(self._index_draft(number))
                renamings.append(Renaming(draft, index_beside(name), sink.draft.mode))
        with errors_naming(self.path(names[0]), *NO_DESCRIPTORS):
            publish_set(self._folder, renamings)

    def discard(self) -> None:
        """Removes the files."""
        for number, sink in enumerate(self.sinks):
            sink.discard()
            if self._index:
                try_remove(self._index_draft(number))

    def _index_draft(self, number: int) -> str:
        """The temporary name of a file's index."""
        return self.sinks[number].draft.path.removesuffix(".tmp") + ".index.tmp"


class RemoteShards:
    """Objects that get their names together.

    Args:
        pattern: The URL of the objects.
        index: Whether there is an index beside every object.

    Attributes:
        name: The pattern without its folder.
        sinks: The objects, in order.

    Raises:
        ValueError: A cache or an archive, which names objects one by one as they are closed.
        ImportError, OSError: As ``ObjectPath.locate``.
    """

    def __init__(self, pattern: ObjectPath, index: bool) -> None:
        self._fs, path = pattern.locate()
        self._pattern, self._index = pattern, index
        self._folder, self.name = posixpath.split(path)
        if names_at_close(self._fs) or not pattern.endswith(self.name) or not self.name:
            raise ValueError(
                f"{show_path(pattern)}: a set of files is written to a store itself, not through a "
                "cache or into an archive, and the URL ends with their name"
            )
        self.sinks: list[RemoteShardSink] = []
        self._indexings: dict[int, Indexing] = {}

    def check_names(self, names: list[str]) -> None:
        """Does nothing: the store refuses a name when an object is opened."""

    def restore(self, name: str) -> None:
        """Refuses a folder where a set is being published, or was left half published.

        Raises:
            FileExistsError: There is a marker.
        """
        url = self.path(MARKER)
        try:
            found = self._fs.exists(posixpath.join(self._folder, MARKER))
        except Exception as error:
            raise_naming(url, "the marker cannot be looked for", error)
        if found:
            refuse_set(url)

    def path(self, name: str) -> str:
        """The URL of an object."""
        return str(self._pattern).removesuffix(self.name) + name

    def open(self, name: str, known: bool) -> RemoteShardSink:
        """Begins the next object; ``known`` says whether this is its name."""
        path = posixpath.join(self._folder, name)
        url = ObjectPath(self.path(name), self._pattern.options, self._fs, path)
        sink = RemoteShardSink(url, known)
        self.sinks.append(sink)
        return sink

    def complete(self, number: int, name: str, indexing: Indexing | None) -> None:
        """Keeps the index of an object until that has its version."""
        if indexing is not None:
            self._indexings[number] = indexing

    def publish(self, names: list[str]) -> None:
        """Gives the objects their names, and saves their indexes.

        Raises:
            OSError: The old objects are restored. If that fails, the marker stays.
        """
        marker = posixpath.join(self._folder, MARKER)
        try:
            put_marker(self._fs, marker)
        except FileExistsError:
            refuse_set(self.path(MARKER))
        except Exception as error:
            raise_naming(self.path(MARKER), "the marker cannot be written", error)
        steps: list[Step] = []
        try:
            steps = self._keep_old_objects(names)
            self._fs.pipe_file(marker, json.dumps(steps).encode())
            self._give_names(names)
            self._fs.rm_file(marker)
        except BaseException as error:
            with contextlib.suppress(Exception):  # the first failure says more; the marker stays
                undo_objects(self._fs, self._folder, steps)
            if isinstance(error, Exception):
                raise_naming(self.path(names[0]), "the set cannot be published", error)
            raise
        remove_backups(self._fs, self._folder, steps)

    def _keep_old_objects(self, names: list[str]) -> list[Step]:
        """Copies the objects that will be replaced."""
        new: list[tuple[str, int, str]] = []
        for name, sink in zip(names, self.sinks, strict=True):
            draft = posixpath.basename(sink.draft) if sink.draft else name
            new.append((name, sink.size, draft))
            if self._index:
                new.append((name + INDEX_SUFFIX, -1, name + INDEX_SUFFIX))

        def keep(entry: tuple[str, int, str]) -> Step:
            name, size, draft = entry
            path = posixpath.join(self._folder, name)
            if not self._fs.exists(path):
                return Step(draft, name, [size], None)
            backup = hidden_beside(path)
            self._fs.cp_file(path, backup)
            return Step(draft, name, [size], posixpath.basename(backup))

        return each_at_once(keep, new)

    def _give_names(self, names: list[str]) -> None:
        def name_one(number: int) -> None:
            path = posixpath.join(self._folder, names[number])
            self.sinks[number].publish(path)
            if number in self._indexings:
                url = ObjectPath(self.path(names[number]), self._pattern.options, self._fs, path)
                self._indexings[number].index(url).save()

        each_at_once(name_one, range(len(names)))

    def discard(self) -> None:
        """Aborts the uploads and removes the temporary objects."""
        each_at_once(RemoteShardSink.discard, self.sinks)


# ---- The names of the files, from a pattern ----------------------------------------------------


# The format of an integer, up to 3 digits wide: file names have at most 255 bytes.
_INTEGER_FORMAT = re.compile(r"(.?[<>=^])?[-+ ]?#?0?\d{0,3}[,_]?[bdoxXn]?", re.DOTALL)


def _check_fields(name: str) -> None:
    """Checks that a pattern has no fields but {shard} and {shards}.

    Raises:
        ValueError: It has others.
    """
    try:
        parts = list(Formatter().parse(name))
    except ValueError as error:
        raise ValueError(
            f"{name!r} is not a pattern of {{shard}} and {{shards}}: {error}"
        ) from None
    for _, field, spec, conversion in parts:
        if field is None:
            continue
        if (
            field not in ("shard", "shards")
            or conversion
            or not _INTEGER_FORMAT.fullmatch(spec or "")
        ):
            raise ValueError(
                f"{name!r} is not a pattern: expected fields {{shard}} and {{shards}} with formats "
                f"of integers, such as {{shard:05d}}, found {{{_field(field, spec, conversion)}}}"
            )


def _field(name: str, spec: str | None, conversion: str | None) -> str:
    """A field as the user wrote it."""
    return printable(name + f"!{conversion}" * bool(conversion) + f":{spec}" * bool(spec))


_NAME_CHARACTERS = 4096  # no file system has longer paths
# If the number of files is not known, names are checked as for this many files: those of the first
# files, up to two digits in any base, and the name of the last, which is the longest. A format that
# gives the same name to two longer numbers also does so here: for a number and its first digit,
# padded with that digit.
_ASSUMED_FILES = 1_000_000
_SAMPLE_FILES = 257


def some_names_of_shards(name: str, count: int | None) -> list[str]:
    """The names of some of the files of a pattern. If these are valid and distinct, all are.

    Args:
        name: The pattern.
        count: The number of files; None if not known.

    Raises:
        ValueError, OSError: As ``names_of_shards``.
    """
    count = _ASSUMED_FILES if count is None else count
    return names_of_shards(name, count, [*range(min(count - 1, _SAMPLE_FILES)), count - 1])


def names_of_shards(name: str, count: int, numbers: Iterable[int] | None = None) -> list[str]:
    """The names of the files of a pattern.

    Args:
        name: The pattern.
        count: The number of files.
        numbers: The files to name; None: all.

    Raises:
        ValueError: A name is invalid, or two files have the same.
        OSError: A name is too long.
    """
    _check_fields(name)
    names = []
    for number in range(count) if numbers is None else numbers:
        try:
            names.append(found := name.format(shard=number, shards=count))
        except ValueError as error:
            raise ValueError(
                f"{name!r} is not a pattern of {{shard}} and {{shards}}: {error}"
            ) from None
        if len(found) > _NAME_CHARACTERS:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)
        if found in ("", os.curdir, os.pardir) or os.path.basename(found) != found or "\0" in found:
            raise ValueError(f"{name!r} gives {found!r}, which is not the name of a file")
    if len(set(names)) < len(names):
        raise ValueError(f"{name!r} needs a field {{shard}}, to tell one file from another")
    return names


def in_turn(ends: Sequence[int], filled: int, shard_size: int) -> Iterator[slice | None]:
    """What to write to files that are filled one after the other.

    Args:
        ends: Where each item ends, in bytes from the first.
        filled: Bytes in the current file.
        shard_size: Bytes of a full one. An item may be larger.

    Returns:
        Slices of the items for the current file, and None where the next file begins.
    """
    first, begin = 0, 0
    while first < len(ends):
        last = bisect_right(ends, begin + shard_size - filled, first)
        if last == first and filled:
            filled = 0
            yield None
            continue
        last = max(last, first + 1)
        yield slice(first, last)
        filled += ends[last - 1] - begin
        first, begin = last, ends[last - 1]
