"""A file that is opened again and again, to see what was added."""

from __future__ import annotations

import os
from typing import Any

from tfwire._records.damage import display_name
from tfwire._records.regions import RecordPosition
from tfwire._records.sources import FileSource, Source, open_source
from tfwire.errors import DataLossError

__all__ = ["FollowedFile"]


class FollowedFile:
    """A path or URL that must name the same file whenever it is opened.

    Args:
        path: The path or URL.
    """

    def __init__(self, path: Any) -> None:
        self._path = path
        # Stays open, so that no other file gets its inode.
        self._first: FileSource | None = None

    def open(self, position: RecordPosition) -> Source:
        """Opens the file to go on at a position.

        Raises:
            DataLossError: It is another file than at first.
            OSError: It cannot be opened.
        """
        source = open_source(self._path)
        if not isinstance(source, FileSource) or not source.regular:
            return source
        if self._first is None:
            self._first = source.duplicate()
        elif not os.path.sameopenfile(source.fd, self._first.fd):
            source.close()
            raise DataLossError(
                f"{display_name(source.path)}: record {position.record_index} at byte "
                f"{position.offset}: another file has taken the place of the one that was followed",
                path=source.path,
                offset=position.offset,
                record_index=position.record_index,
                reason="truncated",
            )
        return source
