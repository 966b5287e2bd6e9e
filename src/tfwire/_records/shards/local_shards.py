"""The files of a ShardedWriter in a folder of this machine."""

from __future__ import annotations

import contextlib
import os

from tfwire._base.arguments import file_path
from tfwire._records.files.byte_sinks import ShardSink
from tfwire._records.files.paths import absolute
from tfwire._records.files.temporary_files import NO_DESCRIPTORS, errors_naming, try_remove
from tfwire._records.index.index_paths import index_beside
from tfwire._records.index.written_offsets import Indexing
from tfwire._records.shards.publishing import Renaming, publish_set, restore_set


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
