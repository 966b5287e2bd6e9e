"""New files, which get their names when all of them are complete.

* ``replace_file`` writes one.
* A ``FileSet`` is of any format, in shards, by a ``FileWriter`` of each; ``some_names_of_shards``
  says whether a pattern names shards.
* ``split_name`` takes the compression off the name of a file.
* ``StagedFiles`` are records that the tasks of an engine write.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, Protocol

from tfwire._base.aliases import AnyPath, CompressionType, TableFeatures
from tfwire._base.text import show_path
from tfwire._records.files.byte_sinks import replace_file as replace_file
from tfwire._records.files.compression import compression_name, split_name as split_name
from tfwire._records.files.paths import absolute, local_path
from tfwire._records.files.temporary_files import errors_naming
from tfwire._records.files.urls import is_object_path, is_url
from tfwire._records.shards.shard_files import (
    LocalShards,
    in_turn,
    names_of_shards,
    some_names_of_shards as some_names_of_shards,
)
from tfwire._records.writing.writer import TFRecordWriter

_NAME_ENDINGS = {"": ".tfrecord", "GZIP": ".tfrecord.gz", "ZLIB": ".tfrecord.zlib"}
_MOST_OPEN = 100  # files of a task at a time


class StagedFiles:
    """Record files that are written in a hidden folder within the one where they will be. It
    pickles: driver and workers share the folder.

    Args:
        path: A folder that driver and workers see.
        compression_type: None or "", "GZIP" or "ZLIB".
        features: How lists in lists are written, as for ``encode_columns``.

    Attributes:
        folder: Its absolute path.
        staging: The hidden folder.
        ending: How the names of the files end.

    Raises:
        ValueError, TypeError: An argument is not valid.
    """

    def __init__(
        self,
        path: AnyPath,
        compression_type: CompressionType = None,
        features: TableFeatures | None = None,
    ) -> None:
        if is_url(path) or is_object_path(path):
            raise ValueError(f"path must be a folder, found the URL {show_path(path)}")
        self._compression = compression_name(compression_type)
        self._features = features
        self.ending = _NAME_ENDINGS[self._compression]
        self.folder = absolute(local_path("path", path))
        self.staging = os.path.join(self.folder, f".tfwire-{uuid.uuid4().hex}")

    def make(self) -> None:
        """Makes the folders, where they are missing."""
        os.makedirs(self.staging, exist_ok=True)

    def write(self, tables: Iterable[Any]) -> str | None:
        """Writes the rows of tables to a new file. A task that is tried again writes another one.

        Returns:
            Its temporary path; None: there are no rows.
        """
        written = self.write_apart(("", table) for table in tables)
        return written[0][0] if written else None

    def write_apart(self, tables: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
        """Writes the rows of tables to a new file for each folder that comes with them, or to more
        where there are many.

        Returns:
            The temporary path and the folder of each file.
        """
        written: list[tuple[str, str]] = []
        writers: dict[str, TFRecordWriter] = {}  # that used longest ago first
        try:
            for folder, table in tables:
                if not table.num_rows:
                    continue
                writer = writers.pop(folder, None)
                if writer is None:
                    if len(writers) == _MOST_OPEN:
                        writers.pop(next(iter(writers))).close()
                    attempt = os.path.join(self.staging, uuid.uuid4().hex)
                    written.append((attempt, folder))
                    writer = TFRecordWriter(attempt, self._compression)
                writers[folder] = writer
                writer.write_columns(table, features=self._features)
            for writer in writers.values():
                writer.close()
        except BaseException:
            for writer in writers.values():
                with contextlib.suppress(Exception):
                    writer.close()
            for attempt, _ in written:
                _remove(attempt)
            raise
        return written

    def publish(self, files: Iterable[tuple[str, str]]) -> None:
        """Gives files their names, and removes the rest.

        Args:
            files: The temporary path and the name of each.

        Raises:
            OSError: A file cannot be renamed. Those that were are removed.
        """
        named: list[str] = []
        try:
            for attempt, name in files:
                final = os.path.join(self.folder, name)
                if os.path.dirname(name):
                    os.makedirs(os.path.dirname(final), exist_ok=True)
                os.rename(attempt, final)
                named.append(final)
        except BaseException:
            for final in named:
                _remove(final)
            raise
        self.remove()

    def remove(self) -> None:
        """Removes what was written and has no name, as far as that is possible."""
        with contextlib.suppress(OSError):  # rmtree raises some all the same
            shutil.rmtree(self.staging, ignore_errors=True)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


class FileWriter(Protocol):
    """Writes one file."""

    def write(self, items: Any) -> None:
        """Writes rows in the form of the file's format."""

    def close(self) -> None:
        """Completes the file, whose file object stays open."""


class FileSet:
    """Writes rows to files, as ShardedWriter writes records.

    Args:
        pattern: The path of the files, with {shard} and {shards}.
        num_shards: Write row i to file i mod num_shards; None: fill one file after the other.
        shard_size: Bytes of rows that a file is filled with.
        open_writer: Gives the FileWriter of a binary file.
        select: Gives the rows of a slice.
    """

    def __init__(
        self,
        pattern: str,
        num_shards: int | None,
        shard_size: int | None,
        open_writer: Callable[[Any], FileWriter],
        select: Callable[[Any, slice], Any],
    ) -> None:
        with errors_naming(pattern):
            self._files = LocalShards(pattern, index=False)
        self._pattern = pattern
        self._num_shards, self._shard_size = num_shards, shard_size
        self._open_writer, self._select = open_writer, select
        self._open_files: dict[int, tuple[Any, FileWriter]] = {}
        self._filled = 0
        self.num_rows = 0
        self.paths: list[str] = []

    def __enter__(self) -> FileSet:
        self._files.restore(self._files.name)
        try:
            for _ in range(self._num_shards or 1):
                self._open_next()
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            if error is None:
                self._publish()
        finally:
            self._discard()

    def write(self, items: Any, sizes: Sequence[int]) -> None:
        """Writes rows, of which each has about as many bytes as ``sizes`` says."""
        with errors_naming(self._pattern):
            if self._shard_size is None:
                self._write_round_robin(items, len(sizes))
            else:
                self._fill_in_turn(items, sizes, self._shard_size)
        self.num_rows += len(sizes)

    def _write_round_robin(self, items: Any, num_items: int) -> None:
        count = len(self._files.sinks)
        if count == 1:
            self._open_files[0][1].write(items)
            return
        for i in range(min(count, num_items)):
            writer = self._open_files[(self.num_rows + i) % count][1]
            writer.write(self._select(items, slice(i, None, count)))

    def _fill_in_turn(self, items: Any, sizes: Sequence[int], shard_size: int) -> None:
        for chosen in in_turn(list(accumulate(sizes)), self._filled, shard_size):
            number = len(self._files.sinks) - 1
            if chosen is None:
                self._close(number)
                self._open_next()
            else:
                self._open_files[number][1].write(self._select(items, chosen))
                self._filled += sum(sizes[chosen])

    def _open_next(self) -> None:
        number, self._filled = len(self._files.sinks), 0
        with errors_naming(self._pattern):
            file = self._files.open(self._files.name, known=False).opened()
        self._open_files[number] = file, self._open_writer(file)  # closed by _close, or by _discard

    def _close(self, number: int) -> None:
        """Completes a file, on disk."""
        file, writer = self._open_files.pop(number)
        writer.close()
        file.close()
        self._files.sinks[number].close()

    def _publish(self) -> None:
        with errors_naming(self._pattern):
            for number in list(self._open_files):
                self._close(number)
        names = names_of_shards(self._files.name, len(self._files.sinks))
        self._files.publish(names)
        self.paths = [self._files.path(name) for name in names]

    def _discard(self) -> None:
        """Removes the files unless they have their names."""
        for file, writer in self._open_files.values():
            with contextlib.suppress(Exception):  # the first error says more
                writer.close()
            with contextlib.suppress(OSError):
                file.close()
        self._open_files = {}
        self._files.discard()
