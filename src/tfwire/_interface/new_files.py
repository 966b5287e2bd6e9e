"""Files that the tasks of an engine write, and that get their names when all have ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tfwire._base.text import show_path
from tfwire._records.files.compression import compression_name
from tfwire._records.files.paths import absolute, local_path
from tfwire._records.files.urls import is_object_path, is_url
from tfwire._records.writing.writer import TFRecordWriter

if TYPE_CHECKING:
    from tfwire._base.aliases import AnyPath, CompressionType

_NAME_ENDINGS = {"": ".tfrecord", "GZIP": ".tfrecord.gz", "ZLIB": ".tfrecord.zlib"}


class StagedFiles:
    """Record files that are written in a hidden folder within the one where they will be. It
    pickles: driver and workers share the folder.

    Args:
        path: A folder that driver and workers see.
        compression_type: None or "", "GZIP" or "ZLIB".

    Attributes:
        folder: Its absolute path.
        staging: The hidden folder.
        ending: How the names of the files end.

    Raises:
        ValueError, TypeError: An argument is not valid.
    """

    def __init__(self, path: AnyPath, compression_type: CompressionType = None) -> None:
        if is_url(path) or is_object_path(path):
            raise ValueError(f"path must be a folder, found the URL {show_path(path)}")
        self._compression = compression_name(compression_type)
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
        attempt = os.path.join(self.staging, uuid.uuid4().hex)
        num_rows = 0
        try:
            with TFRecordWriter(attempt, self._compression) as writer:
                for table in tables:
                    num_rows += table.num_rows
                    if table.num_rows:
                        writer.write_columns(table)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(attempt)
            raise
        return attempt if num_rows else None

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
                os.rename(attempt, final)
                named.append(final)
        except BaseException:
            for final in named:
                with contextlib.suppress(OSError):
                    os.unlink(final)
            raise
        self.remove()

    def remove(self) -> None:
        """Removes what was written and has no name, as far as that is possible."""
        with contextlib.suppress(OSError):  # rmtree raises some all the same
            shutil.rmtree(self.staging, ignore_errors=True)
