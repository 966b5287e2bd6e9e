"""Finding the offsets of a file's records by its headers, or by reading it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tfwire._base.aliases import Array, Compression
from tfwire._base.native import DAMAGE_REASONS, check, ffi, lib, new_error
from tfwire._base.parallel_map import Check, never_stopped
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.formats import ends_of_file
from tfwire._records.files.paths import Path
from tfwire._records.frames import FRAME
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import Reading
from tfwire._records.reading.native_batches import span_table
from tfwire._records.reading.options import make_options

_WALK_BYTES = 1 << 18
WALK_RECORDS = 1 << 16  # records per call into C; an interrupt is handled between calls
_FIRST_WALK_RECORDS = 1 << 13  # the same for the first call, which shows how many there may be


class Walk:
    """A walk over the headers of a plain file.

    Args:
        fd, path: The file.
        size: Its size in bytes.

    Attributes:
        offset: Where the walk goes on.
        error: The details after a status that is damage.
    """

    def __init__(self, fd: int, path: Path | None, size: int) -> None:
        self._fd, self._path, self._size = fd, path, size
        self._buffer = np.empty(_WALK_BYTES, np.uint8)
        self._at, self._found = ffi.new("uint64_t *"), ffi.new("size_t *")
        self.error = new_error()

    @property
    def offset(self) -> int:
        return int(self._at[0])

    def start(self, offset: int) -> None:
        """Sets where the walk goes on."""
        self._at[0] = offset

    def step(self, out: Array, first: int) -> tuple[int, int]:
        """Writes where the next records begin.

        Args:
            out: int64 of rank 1, filled from index ``first`` on, at most to its end.
            first: Where in ``out`` to begin.

        Returns:
            How many records were found, and TFW_OK, TFW_END, or the damage of the record at
            ``offset``.

        Raises:
            OSError: The file cannot be read.
        """
        status = lib.tfw_walk(
            self._fd,
            self._size,
            self._at,
            ffi.from_buffer("uint8_t[]", self._buffer),
            len(self._buffer),
            ffi.from_buffer("int64_t[]", out) + first,
            min(len(out) - first, WALK_RECORDS),
            self._found,
            self.error,
        )
        if status not in DAMAGE_REASONS:
            check(status, self.error, self._path)
        return self._found[0], status


def offsets_in_file(
    source: FileSource, size: int, reading: Reading, checked: Check = never_stopped
) -> Array:
    """The offsets of a file's records and its end; ``checked`` is called again and again."""
    walk, offsets = Walk(source.fd, source.path, size), np.empty(_FIRST_WALK_RECORDS + 1, np.int64)
    count, status = 0, lib.TFW_OK
    while status == lib.TFW_OK:
        checked()
        if count + 1 >= len(offsets):
            offsets = with_room(offsets[:count], count, size, walk.offset)
        found, status = walk.step(offsets[:-1], count)
        if status in DAMAGE_REASONS:
            walk.error.record += count
            raise reading.record_error(status, walk.error, ends_of_file(source.fd))
        count += found
    offsets[count] = size
    offsets.resize(count + 1, refcheck=False)
    return offsets


def with_room(known: Array, count: int, size: int, done: int) -> Array:
    """A copy of the known offsets of a file, with room for those of ``count`` records, which take
    ``done`` bytes of it, and of the rest if its records are as long. But not much more than 64
    times as much: memory grows with the records found, not with the file's size. Fresh pages cost
    much: none is cleared, and few are copied."""
    expected = count * size // max(done, 1) * 65 // 64
    grown = np.empty(min(expected, 64 * count) + _FIRST_WALK_RECORDS, np.int64)
    grown[: len(known)] = known
    return grown


def offsets_in_stream(
    path: Any,
    compression: Compression | Literal["auto"],
    checked: Check = never_stopped,
    column: Any = None,
) -> Array:
    """The offsets of a file's records and their end, in its decompressed content; also of an input
    that has no descriptor.

    Args:
        path, compression: The file.
        checked: Called again and again.
        column: A KeyColumn, which takes all records, verified.
    """
    chunks: list[Array] = []
    end = 0
    options = make_options(compression, verify=column is not None, max_record_size=None)
    with BatchReader([path], options) as reader:
        while (batch := reader.next()) is not None:
            checked()
            table = span_table(batch)
            if column is not None:
                column.add(batch, reader.path)
            chunks.append(table[:, 0] + (batch.offset - lib.TFW_HEADER_SIZE))
            end = int(chunks[-1][-1] + table[-1, 1] + FRAME)
    return np.concatenate([*chunks, np.array([end], np.int64)])
