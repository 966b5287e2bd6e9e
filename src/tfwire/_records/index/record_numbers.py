"""Records of files by their numbers, as C reads them."""

from __future__ import annotations

from typing import Any, NamedTuple

from tfwire._base.errors import DataLossError
from tfwire._base.native import ffi
from tfwire._records.files.urls import ObjectPath
from tfwire._records.index.local_records import FileAccess
from tfwire._records.index.random_access import TFRecordFiles


class IndexedTable(NamedTuple):
    """Files as C reads their records by number.

    Attributes:
        native: ``tfw_indexed_file[]``.
        files: The files, which stay open as long as this is held, whoever closes them.
        mean: The mean size of a record in bytes, with its frame.
    """

    native: Any
    files: list[FileAccess]
    mean: int


def indexed_table(files: TFRecordFiles) -> IndexedTable | None:
    """The files for C; None if it cannot read them: one is compressed, an object, not there, not
    as its index says, or they are more than may be open. Whoever reads them then says what is
    wrong."""
    is_remote = any(isinstance(path, ObjectPath) for path in files.paths)
    if is_remote or len(files.paths) > files._max_open_files:
        return None
    try:
        opened = [files._file(number) for number in range(len(files.paths))]
        accesses: list[FileAccess] = []
        native = ffi.new("tfw_indexed_file[]", len(opened))
        for number, file in enumerate(opened):
            access = file._access()
            if not isinstance(access, FileAccess) or not access.is_as_indexed():
                return None
            native[number] = access.native
            accesses.append(access)
    except (DataLossError, OSError, ValueError):
        return None
    size = sum(int(file.index.offsets[-1]) for file in opened)
    return IndexedTable(native, accesses, size // max(1, len(files)) + 1)
