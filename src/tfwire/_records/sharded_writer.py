"""The writer of a dataset that is several files."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import threading
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tfwire._arguments import integer
from tfwire._records.lanes import Lanes
from tfwire._records.packing import FRAME
from tfwire._records.payloads import as_record, as_records, chunks
from tfwire._records.record_index import RecordIndex, index_path_of
from tfwire._records.shard_arguments import bytes_of_size, check_pattern
from tfwire._records.sinks import check_replaceable, remove, sync_file, sync_folder
from tfwire._records.sources import is_url
from tfwire._records.writer import TFRecordWriter
from tfwire._text import show_path
from tfwire.receipts import Receipt

__all__ = ["ShardedWriter"]


class ShardedWriter:
    """Writes records to several files, which all appear when all are complete.

    Until ``close`` they have temporary names in the same folder, as the names may tell how many
    there are. An exception within ``with``, or a fault in ``close``, removes them; a process that
    is killed leaves them, hidden (``.*.tmp``), and no others. Threads may share a writer: every
    record is written once and whole.

    Args:
        pattern: The path of the files, no URL, with fields {shard} and {shards} in the file's
            name, as str.format knows them.
        shard_size: Fill the files in turn, each with so many bytes of records (before
            compression) at most, save that it holds at least one record: a number, or a string
            like "150MB" or "128MiB".
        num_shards: Write record i to file i mod num_shards. Either this or ``shard_size``.
        options: As for TFRecordWriter.
        compression_level: As for TFRecordWriter.
        index: Save a RecordIndex beside every file.
        num_threads: Compress, write and index so many files side by side; what the files hold does
            not depend on it. Filled in turn, a file is completed while the next one is filled.

    Attributes:
        paths: The files, once the writer is closed; None before.
        num_records: How many records were written.

    Raises:
        OSError: A file cannot be opened.
        ValueError, TypeError: Arguments that are not valid.

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
        self._closed = True  # until all went well
        if (shard_size is None) == (num_shards is None):
            raise ValueError("give either shard_size or num_shards")
        if is_url(pattern):
            raise ValueError(
                f"{show_path(pattern)}: the files get their names by renaming, URLs cannot"
            )
        self._folder, self._name = os.path.split(os.fsdecode(pattern))
        self._shard_size = None if shard_size is None else bytes_of_size(shard_size)
        count = 1 if num_shards is None else integer("num_shards", num_shards, 1)
        threads = integer("num_threads", num_threads, 1)
        if num_shards != 1:
            check_pattern(self._name)
        os.stat(self._folder or os.curdir)  # an error names it, and no temporary file in it
        self.paths: list[str] | None = None
        self.num_records = 0
        self._options = options
        self._level = compression_level
        self._index = index
        self._token = secrets.token_hex(6)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._writers: list[TFRecordWriter] = []
        self._filled = 0  # bytes in the last file, when they are filled in turn
        self._lanes = Lanes(threads if num_shards is None else min(threads, count))
        try:
            for _ in range(count):
                self._open_next()
        except BaseException:
            self._discard()
            raise
        self._closed = False

    # ---- Taking records -----------------------------------------------------------------------

    def write(self, record: Any) -> None:
        """Writes one record.

        Args:
            record: Whatever TFRecordWriter.write takes.

        Raises:
            TypeError, ValueError, OSError: As TFRecordWriter.write; ValueError also when the writer
                is closed.
            RuntimeError: The process was forked behind the writer's back.

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

    def write_examples(self, columns: Mapping[str, Any]) -> None:
        """Writes columns as ``tf.train.Example`` records.

        Args:
            columns: As for ``encode_examples``.

        Raises:
            TypeError, ValueError, OSError, RuntimeError: As ``encode_examples`` and ``write``.

        Example:
            >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
            ...     writer.write_examples({"id": [1, 2, 3], "name": ["cat", "dog", "goat"]})
            >>> writer.num_records
            3
        """
        from tfwire.example import encode_examples

        self.write_many(encode_examples(columns))

    def _add(self, payloads: Sequence[bytes]) -> None:
        if self._pid != os.getpid():
            raise RuntimeError("the writer belongs to the process that made it, before a fork")
        with self._lock:
            if self._closed:
                raise ValueError("Writer is closed.")
            try:
                if self._shard_size is None:
                    self._deal(payloads)
                else:
                    self._fill(payloads, self._shard_size)
            except BaseException as error:
                self._lanes.fail(error)
                raise
            self.num_records += len(payloads)

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
        path = self._temporary(len(self._writers))
        self._writers.append(TFRecordWriter(path, self._options, compression_level=self._level))
        self._filled = 0

    def _temporary(self, number: int) -> str:
        return os.path.join(self._folder, f".{self._token}-{number}.tmp")

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
        >>> [tfw.base64_crc32c(crc) for crc in writer.file_crc32cs]  # as object stores show them
        ['jxTp0Q==', 'm7ZmkQ==']
        """
        return [writer.file_crc32c for writer in self._writers]

    # ---- Closing ------------------------------------------------------------------------------

    def close(self) -> None:
        """Completes the files and gives them their names; closing again does nothing, nor does it
        in a forked process.

        Raises:
            OSError: Writing failed, now or before. No file is left then.

        Example:
            >>> writer = ShardedWriter("part-{shard}-of-{shards}", num_shards=2)
            >>> writer.close()
            >>> writer.paths
            ['part-0-of-2', 'part-1-of-2']
        """
        if self._pid != os.getpid():
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                done = 0 if self._shard_size is None else len(self._writers) - 1
                for number in range(done, len(self._writers)):
                    self._lanes.submit(number, self._complete, number)
                self._lanes.wait()
                self.paths = self._publish()
            except BaseException:
                self._discard()
                raise
            self._lanes.close()

    def _complete(self, number: int) -> None:
        """Has a file on disk, with its index."""
        self._writers[number].close()
        sync_file(self._temporary(number))
        if self._index:
            RecordIndex.build(self._temporary(number)).save()

    def _publish(self) -> list[str]:
        """Gives the files, which are complete, their names; the names."""
        count = len(self._writers)
        names = [self._name.format(shard=i, shards=count) for i in range(count)]
        paths = [os.path.join(self._folder, name) for name in names]
        for path in paths:
            check_replaceable(path)
        moves = [(self._temporary(i), path) for i, path in enumerate(paths)]
        if self._index:
            moves += [(index_path_of(temporary), index_path_of(path)) for temporary, path in moves]
        with contextlib.ExitStack() as undo:
            for temporary, path in moves:
                os.replace(temporary, path)
                undo.callback(remove, path)
            sync_folder(os.path.realpath(self._folder))
            undo.pop_all()
        return paths

    def _discard(self) -> None:
        """Removes the files, unless they belong to the process that forked this one."""
        self._closed = True
        if self._pid != os.getpid():
            return
        self._lanes.close()
        for number, writer in enumerate(self._writers):
            writer._discard()
            temporary = self._temporary(number)
            remove(temporary)
            remove(index_path_of(temporary))

    def __enter__(self) -> ShardedWriter:
        return self

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

    def __del__(self) -> None:
        if getattr(self, "_closed", True):
            return
        if self._pid == os.getpid():
            warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
        self._discard()

    def __repr__(self) -> str:
        path = os.path.join(self._folder, self._name)
        return f"<ShardedWriter {path!r}{' closed' if self._closed else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("writers cannot be pickled; open files in the other process")
