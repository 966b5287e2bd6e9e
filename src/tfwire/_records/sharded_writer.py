"""The writer of a dataset that is several files."""

from __future__ import annotations

import contextlib
import itertools
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tfwire._arguments import boolean, file_path, integer
from tfwire._public import public
from tfwire._records.drafts import named, remove, spared
from tfwire._records.file_sinks import ShardSink
from tfwire._records.guarded import Guarded
from tfwire._records.lanes import Lanes
from tfwire._records.packing import FRAME
from tfwire._records.payloads import as_record, as_records, chunks
from tfwire._records.record_index import RecordIndex, index_path_of
from tfwire._records.shard_arguments import bytes_of_size, names_of_shards, some_names_of_shards
from tfwire._records.shard_set import Renaming, publish_set, restore_set
from tfwire._records.sources import is_url
from tfwire._records.writer import TFRecordWriter
from tfwire._text import show_path
from tfwire.receipts import Receipt

__all__ = ["ShardedWriter"]


@public
class ShardedWriter(Guarded):
    """Writes records to several files, which all appear when all are complete.

    Until ``close`` the files have temporary names in the same folder, and only their owner may read
    them. An exception within ``with``, or a failure in ``close``, removes them and leaves the files
    of before as they were. A killed process leaves hidden files (``.tfwire-*.tmp``), which can be
    removed. Threads may share a writer: every record is written once and whole.

    A file system renames one file at a time. While the files get their names, in ``close``, the
    folder holds a file ``.tfwire-publishing``; whoever does not see it sees the old set or the new
    one, whole. If the process is killed in that time, the marker stays: readers warn of it, and the
    next ShardedWriter in the folder, or ``tfwire.sharding.recover_shards``, restores the old files.
    Files that are not in
    the new set are left alone; with {shards} in the pattern, sets of different sizes are apart.

    Args:
        pattern: The path of the files, not a URL, with fields {shard} and {shards} in the file's
            name, formatted as integers: {shard:05d}. It may be relative to the current directory,
            even if that changes.
        shard_size: Fill the files in turn, each with so many bytes of records (before
            compression) at most, save that it holds at least one record: a number, or a string
            like "150MB" or "128MiB".
        num_shards: Write record i to file i mod num_shards. Either this or ``shard_size``.
        options: As for TFRecordWriter.
        compression_level: As for TFRecordWriter.
        index: Save a RecordIndex beside every file.
        num_threads: Compress, write and index so many files side by side; what the files hold does
            not depend on it. Filled in turn, a file is completed while the next one is filled.

    A set may have more files than a process may open: a file is open only while it is written to.

    Attributes:
        paths: The files, once the writer is closed, relative if the pattern is; None before.
        num_records: How many records were written.

    Raises:
        OSError: A file cannot be opened, or its name is too long.
        ValueError, TypeError: Arguments that are not valid; nothing was opened.

    Example:
        >>> pattern = "train-{shard:05d}-of-{shards:05d}.tfrecord"
        >>> with ShardedWriter(pattern, shard_size="64kB") as writer:
        ...     writer.write_many([bytes(1000)] * 100)
        100
        >>> writer.paths
        ['train-00000-of-00002.tfrecord', 'train-00001-of-00002.tfrecord']
    """

    def __init__(
        self,
        pattern: Any,
        *,
        shard_size: int | str | None = None,
        num_shards: int | None = None,
        options: Any = None,
        compression_level: int | None = None,
        index: bool = False,
        num_threads: int = 1,
    ) -> None:
        super().__init__()
        if (shard_size is None) == (num_shards is None):
            raise ValueError("give either shard_size or num_shards")
        if is_url(pattern):
            raise ValueError(
                f"{show_path(pattern)}: the files get their names by renaming, URLs cannot"
            )
        self._given_folder, self._name = os.path.split(file_path("pattern", pattern))
        self._folder = os.path.abspath(self._given_folder)  # also after the process went elsewhere
        self._shard_size = None if shard_size is None else bytes_of_size(shard_size)
        count = None if num_shards is None else integer("num_shards", num_shards, 1)
        threads = integer("num_threads", num_threads, 1)
        os.stat(self._given_folder or os.curdir)  # an error names it, and no temporary file in it
        self._index = boolean("index", index)
        self._check_names(some_names_of_shards(self._name, count))
        self._num_shards = count
        with spared(self._shown(0)):
            restore_set(self._folder)
        self.paths: list[str] | None = None
        self.num_records = 0
        self._options = options
        self._level = compression_level
        self._sinks: list[ShardSink] = []
        self._writers: list[TFRecordWriter] = []
        self._filled = 0  # bytes in the last file, when they are filled in turn
        self._lanes = Lanes(threads if count is None else min(threads, count))
        try:
            for _ in range(count or 1):
                self._open_next()
        except BaseException:
            self._drop()
            raise
        self._open()

    def _check_names(self, names: list[str]) -> None:
        """Names that the file system refuses are an error now, and not after all the work."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                os.stat(os.path.join(self._folder, index_path_of(name) if self._index else name))

    # ---- Taking records -----------------------------------------------------------------------

    def write(self, record: Any) -> None:
        """Writes one record.

        Args:
            record: Whatever TFRecordWriter.write takes.

        Raises:
            TypeError, ValueError, OSError: As TFRecordWriter.write; ValueError also when the writer
                is closed.
            RuntimeError: The process was forked since the writer was made, or the caller is a
                signal handler that interrupted the writer.

        Example:
            >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
            ...     writer.write(b"cat")
            >>> writer.num_records
            1
        """
        self._add([as_record(record)])

    def write_many(self, records: Iterable[Any]) -> int:
        """Writes records in bulk.

        Args:
            records: As for TFRecordWriter.write_many.

        Returns:
            The number of records.

        Raises:
            TypeError, ValueError, OSError, RuntimeError: As ``write``; the records before the one
                at fault are written.

        Example:
            >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
            ...     writer.write_many([b"cat", b"dog", b"goat"])
            3
            >>> [len(list(tfw.read_records(path))) for path in writer.paths]
            [2, 1]
        """
        count = 0
        for chunk in chunks(records):
            count += len(chunk)
            try:
                payloads = as_records(chunk)
            except (TypeError, ValueError):
                for record in chunk:
                    self.write(record)
            else:
                self._add(payloads)
        return count

    def write_columns(self, columns: Mapping[str, Any]) -> None:
        """Writes columns as ``tf.train.Example`` records.

        Args:
            columns: As for ``encode_columns``.

        Raises:
            TypeError, ValueError, OSError, RuntimeError: As ``encode_columns`` and ``write``.

        Example:
            >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
            ...     writer.write_columns({"id": [1, 2, 3], "name": ["cat", "dog", "goat"]})
            >>> writer.num_records
            3
        """
        from tfwire.example import encode_columns

        self.write_many(encode_columns(columns))

    def _add(self, payloads: Sequence[bytes]) -> None:
        self._run(self._distribute, payloads)

    def _distribute(self, payloads: Sequence[bytes]) -> None:
        self._check()
        if self._shard_size is None:
            self._deal(payloads)
        else:
            self._fill(payloads, self._shard_size)
        self.num_records += len(payloads)

    def _fail(self, failure: Exception) -> None:
        super()._fail(failure)
        self._lanes.fail(failure)

    def _deal(self, payloads: Sequence[bytes]) -> None:
        """Writes one record to every file, and so on."""
        count = len(self._writers)
        for i in range(min(count, len(payloads))):
            number = (self.num_records + i) % count
            self._lanes.submit(number, self._writers[number].write_many, payloads[i::count])

    def _fill(self, payloads: Sequence[bytes], shard_size: int) -> None:
        """Writes records to the last file, and where it is full to the next."""
        ends = list(itertools.accumulate(len(payload) + FRAME for payload in payloads))
        first, begin = 0, 0
        while first < len(payloads):
            last = bisect_right(ends, begin + shard_size - self._filled, first)
            if last == first and self._filled:
                self._lanes.submit(len(self._writers) - 1, self._complete, len(self._writers) - 1)
                self._open_next()
                continue
            last = max(last, first + 1)  # a record of its own may be larger than a file
            write = self._writers[-1].write_many
            self._lanes.submit(len(self._writers) - 1, write, payloads[first:last])
            self._filled += ends[last - 1] - begin
            first, begin = last, ends[last - 1]

    def _open_next(self) -> None:
        sink = ShardSink(self._folder, self._shown(len(self._sinks)))
        self._sinks.append(sink)
        self._writers.append(TFRecordWriter(sink, self._options, compression_level=self._level))
        self._filled = 0

    def _shown(self, number: int) -> str:
        """What errors call a file: its path, or the pattern while the number of files is open."""
        name = self._name
        if self._num_shards is not None:
            name = name.format(shard=number, shards=self._num_shards)
        return os.path.join(self._given_folder, name)

    def _index_draft(self, number: int) -> str:
        """The temporary name of a file's index."""
        return self._sinks[number].draft.path.removesuffix(".tmp") + ".index.tmp"

    # ---- What was written ---------------------------------------------------------------------

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records written to all files; complete once the writer is closed.

        >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
        ...     _ = writer.write_many([b"cat", b"dog", b"goat"])
        >>> writer.receipt == tfw.Receipt.of([b"goat", b"dog", b"cat"])
        True
        """
        return sum((writer.receipt for writer in self._writers), Receipt())

    @property
    def file_crc32cs(self) -> list[int]:
        """The CRC-32C of every file, in the order of ``paths``; complete once the writer is
        closed.

        >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
        ...     _ = writer.write_many([b"cat", b"dog", b"goat"])
        >>> [tfwire.checksum.base64_crc32c(crc) for crc in writer.file_crc32cs]
        ['jxTp0Q==', 'm7ZmkQ==']
        """
        return [writer.file_crc32c for writer in self._writers]

    # ---- Closing ------------------------------------------------------------------------------

    def close(self) -> None:
        """Completes the files and gives them their names; closing again does nothing, nor does it
        in a forked process.

        Raises:
            OSError: Writing failed, now or before. None of the files is left then, and those of
                before are as they were.
            RuntimeError: Called by a signal handler that interrupted the writer; it stays open.

        Example:
            >>> writer = ShardedWriter("part-{shard}-of-{shards}", num_shards=2)
            >>> writer.close()
            >>> writer.paths
            ['part-0-of-2', 'part-1-of-2']
        """
        if not self._closed:
            self._run(self._complete_all)

    def _complete_all(self) -> None:
        if self._closed:  # by another thread
            return
        self._closed = True
        try:
            self._check()
            done = 0 if self._shard_size is None else len(self._writers) - 1
            for number in range(done, len(self._writers)):
                self._lanes.submit(number, self._complete, number)
            self._lanes.wait()
            self.paths = self._publish()
        except BaseException:
            self._drop()
            raise
        self._lanes.close()
        self._fail(ValueError("Writer is closed."))

    def _complete(self, number: int) -> None:
        """Has a file on disk, with its index."""
        self._writers[number].close()
        if self._index:
            with named(index_path_of(self._shown(number))):
                index = RecordIndex.build(self._sinks[number].draft.path)
                index.save(self._index_draft(number))

    def _publish(self) -> list[str]:
        """Gives the files, which are complete, their names; the paths."""
        names = names_of_shards(self._name, len(self._writers))
        renamings = []
        for number, (name, sink) in enumerate(zip(names, self._sinks, strict=True)):
            draft = os.path.basename(sink.draft.path)
            renamings.append(Renaming(draft, name, sink.draft.mode))
            if self._index:
                draft = os.path.basename(self._index_draft(number))
                renamings.append(Renaming(draft, index_path_of(name), sink.draft.mode))
        with spared(os.path.join(self._given_folder, names[0])):
            publish_set(self._folder, renamings)
        return [os.path.join(self._given_folder, name) for name in names]

    def _discard(self) -> None:
        self._run(self._drop)

    def _drop(self) -> None:
        """Removes the files."""
        self._closed = True
        self._fail(ValueError("Writer is closed."))
        self._lanes.close()
        for number, sink in enumerate(self._sinks):
            if number < len(self._writers):
                self._writers[number]._discard()
            sink.discard()
            if self._index:
                remove(self._index_draft(number))

    def _let_go(self) -> None:
        self._discard()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif not self._closed:
            self._discard()

    def __repr__(self) -> str:
        path = os.path.join(self._given_folder, self._name)
        return f"<ShardedWriter {path!r}{' closed' if self._closed else ''}>"
