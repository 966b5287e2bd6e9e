"""The files of a ShardedWriter: in a folder of this machine, and as objects of a store."""

from __future__ import annotations

import contextlib
import json
import os
import posixpath

from tfwire._base.arguments import file_path
from tfwire._base.text import show_path
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
