"""New files of any format, in shards, which appear together when all are complete."""

from __future__ import annotations

import contextlib
import gzip
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol

from tfwire._records.files.paths import absolute
from tfwire._records.files.temporary_files import NO_DESCRIPTORS, Draft, errors_naming
from tfwire._records.shards.publishing import Renaming, publish_set, restore_set
from tfwire._records.shards.shard_names import names_of_shards


class FileWriter(Protocol):
    """Writes one file."""

    def write(self, items: Any) -> None:
        """Writes rows in the form of the file's format."""

    def close(self) -> None:
        """Completes the file, whose file object stays open."""


class TextWriter:
    """Writes rows that are encoded, between a header and a footer.

    Args:
        file: A binary file.
        compressed: By gzip; the same content gives the same bytes.
    """

    def __init__(self, file: Any, compressed: bool, header: bytes, footer: bytes) -> None:
        self._gzip = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else None
        self._file = self._gzip or file
        self._footer = footer
        self._file.write(header)

    def write(self, items: Sequence[bytes]) -> None:
        self._file.writelines(items)

    def close(self) -> None:
        self._file.write(self._footer)
        if self._gzip is not None:
            self._gzip.close()


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
        self._given_folder, self._name = os.path.split(pattern)
        self._folder = absolute(self._given_folder)
        self._pattern = pattern
        self._num_shards, self._shard_size = num_shards, shard_size
        self._open_writer, self._select = open_writer, select
        self._drafts: list[Draft] = []
        self._open_files: dict[int, tuple[Any, FileWriter]] = {}
        self._filled = 0
        self.num_rows = 0
        self.paths: list[str] = []

    def __enter__(self) -> FileSet:
        with errors_naming(self._pattern, *NO_DESCRIPTORS):
            restore_set(self._folder)
        try:
            for _ in range(self._num_shards or 1):
                self._open_next()
        except BaseException:
            self._discard()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
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
        count = len(self._drafts)
        if count == 1:
            self._open_files[0][1].write(items)
            return
        for i in range(min(count, num_items)):
            writer = self._open_files[(self.num_rows + i) % count][1]
            writer.write(self._select(items, slice(i, None, count)))

    def _fill_in_turn(self, items: Any, sizes: Sequence[int], shard_size: int) -> None:
        first = 0
        for i, size in enumerate(sizes):
            if self._filled and self._filled + size > shard_size:
                self._write_last(items, slice(first, i))
                self._close(len(self._drafts) - 1)
                self._open_next()
                first = i
            self._filled += size
        self._write_last(items, slice(first, len(sizes)))

    def _write_last(self, items: Any, chosen: slice) -> None:
        if chosen.stop > chosen.start:
            self._open_files[len(self._drafts) - 1][1].write(self._select(items, chosen))

    def _open_next(self) -> None:
        with errors_naming(self._pattern):
            draft = Draft(self._folder)
        self._drafts.append(draft)
        self._filled = 0
        # Closed by _close, or by _discard.
        file = open(draft.fd, "wb", closefd=False)  # noqa: SIM115
        self._open_files[len(self._drafts) - 1] = file, self._open_writer(file)

    def _close(self, number: int) -> None:
        """Completes a file, on disk."""
        file, writer = self._open_files.pop(number)
        writer.close()
        file.close()
        os.fsync(self._drafts[number].fd)
        self._drafts[number].release()

    def _publish(self) -> None:
        with errors_naming(self._pattern):
            for number in list(self._open_files):
                self._close(number)
        names = names_of_shards(self._name, len(self._drafts))
        drafts = zip(names, self._drafts, strict=True)
        renamings = [Renaming(os.path.basename(d.path), name, d.mode) for name, d in drafts]
        publish_set(self._folder, renamings)
        self.paths = [os.path.join(self._given_folder, name) for name in names]

    def _discard(self) -> None:
        """Removes the files unless they have their names."""
        for file, writer in self._open_files.values():
            with contextlib.suppress(Exception):  # the first error says more
                writer.close()
            with contextlib.suppress(OSError):
                file.close()
        self._open_files = {}
        for draft in self._drafts:
            draft.discard()
