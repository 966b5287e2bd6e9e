"""ShardedWriter, which writes a dataset as several files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

from tfwire._base.aliases import (
    CompressionType,
    FeatureKinds,
    Record,
    RemotePath,
    Row,
    StorageOptions,
    SupportsArrow,
    TableFeatures,
)
from tfwire._base.arguments import boolean, integer, size_in_bytes
from tfwire._base.errors import public
from tfwire._records.files.compression import either_word, warn_of_name
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.frames import Framed, as_record, chunks, ends_of_payloads
from tfwire._records.reading.receipts import Receipt
from tfwire._records.shards.shard_files import (
    LocalShards,
    RemoteShards,
    in_turn,
    names_of_shards,
    some_names_of_shards,
)
from tfwire._records.shards.shard_threads import ShardThreads
from tfwire._records.writing.writer import TFRecordWriter, write_framed
from tfwire._records.writing.writer_base import WriterBase


@public
class ShardedWriter(WriterBase):
    """Writes records to several files, which appear together when all are complete.

    Until ``close`` the files have temporary names in the same folder, and only their owner may read
    them. An exception within ``with``, or a failure in ``close``, removes them and leaves existing
    files unchanged. A killed process leaves hidden files (``.tfwire-*.tmp``), which can be removed.
    Threads may share a writer: every record is written once and whole.

    A file system renames one file at a time. While ``close`` renames the files, the folder holds a
    file ``.tfwire-publishing``; without it, the set is either the old one or the new one, complete.
    If the process is killed in that time, the marker stays: readers warn of it, and the next
    ShardedWriter in the folder, or ``tfwire.sharding.recover_shards``, restores the old files.
    Files that are not in the new set are not touched; {shards} in the pattern gives sets of
    different sizes different names.

    In an object store, too, nothing has a final name before ``close``, which puts the marker,
    copies the objects that will be replaced, gives every object its name, sixteen at a time, and
    removes the marker. A failure puts the copies back. With ``num_shards``, objects are uploads,
    and naming one completes it: one request. With ``shard_size``, names are known at the end, and a
    temporary object (``.tfwire-*.tmp``) is copied within the store. Stores have no
    transactions: until the marker is gone, readers may find objects of both sets; readers of lists
    and patterns warn of that. Stores have no locks either: where a marker is found, a ShardedWriter
    refuses to begin, and ``recover_shards`` restores the old objects when you say that no writer
    runs. What a killed process uploaded in part is removed by a rule of the bucket.

    A set may have more files than a process may open: a file is open only during a write.

    As in TFRecordWriter, ``options`` alone say whether files are compressed; None with a pattern
    that ends in .gz, .gzip or .zlib gives a TfwireWarning.

    Rows and columns must agree in the kinds of their features over all files; ``kinds`` is as for
    TFRecordWriter.

    Attributes:
        paths: The files, once the writer is closed, relative if the pattern is; None before.
        num_records: The number of records written.

    Raises:
        OSError: A file cannot be opened, or its name is too long.
        ValueError, TypeError: Invalid arguments; nothing was opened.

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
        pattern: RemotePath,
        *,
        shard_size: int | str | None = None,
        num_shards: int | None = None,
        options: CompressionType = None,
        compression_level: int | None = None,
        index: bool = False,
        num_threads: int = 1,
        compression_type: CompressionType = None,
        storage_options: StorageOptions = None,
        kinds: FeatureKinds | None = None,
    ) -> None:
        super().__init__(kinds, pattern)
        options = either_word(compression_type, options)
        if (shard_size is None) == (num_shards is None):
            raise ValueError("give either shard_size or num_shards")
        count = None if num_shards is None else integer("num_shards", num_shards, 1)
        threads = integer("num_threads", num_threads, 1)
        self._shard_size = None if shard_size is None else size_in_bytes("shard_size", shard_size)
        self._index = boolean("index", index)
        pattern = with_storage_options(pattern, storage_options)
        self._files: LocalShards | RemoteShards
        if isinstance(pattern, ObjectPath):
            self._files = RemoteShards(pattern, self._index)
        else:
            self._files = LocalShards(pattern, self._index)
        self._name = self._files.name
        self._files.check_names(some_names_of_shards(self._name, count))
        warn_of_name(pattern, options)
        self._num_shards = count
        self._files.restore(self._current_name(0))
        self.paths: list[str] | None = None
        self.num_records: int = 0
        self._options = options
        self._level = compression_level
        self._sinks = self._files.sinks
        self._writers: list[TFRecordWriter] = []
        self._filled = 0  # bytes in the last file, with shard_size
        self._num_threads = threads
        self._workers = ShardThreads(threads if count is None else min(threads, count))
        try:
            for _ in range(count or 1):
                self._open_next()
        except BaseException:
            self._drop()
            raise
        self._open()

    def write(self, record: Record) -> None:
        """Writes one record.

        Args:
            record: As for TFRecordWriter.write.

        Raises:
            TypeError, ValueError, OSError: As TFRecordWriter.write.
            RuntimeError: The writer was made before a fork, or the caller is a signal handler that
                interrupted the writer.

        Example:
            >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
            ...     writer.write(b"cat")
            >>> writer.num_records
            1
        """
        self._run(self._distribute, [as_record(record, self._encode_row)])

    def write_many(self, records: Iterable[Record]) -> int:
        """Writes records in bulk.

        Args:
            records: As for TFRecordWriter.write_many.

        Returns:
            The number of records.

        Raises:
            TypeError, ValueError, OSError, RuntimeError: As ``write``; records before a faulty one
                are written.

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
                payloads = self._as_records(chunk)
            except (TypeError, ValueError):
                for record in chunk:
                    self.write(record)
            else:
                self._run(self._distribute, payloads)
        return count

    def write_columns(
        self, columns: Row | SupportsArrow, *, features: TableFeatures | None = None
    ) -> None:
        """Writes columns as ``tf.train.Example`` records, or as SequenceExamples.

        Args:
            columns, features: As for ``encode_columns``.

        Raises:
            TypeError, ValueError, OSError, RuntimeError: As ``TFRecordWriter.write_columns`` and
                ``write``. Records of a table before the faulty one may have been written.

        Example:
            >>> with ShardedWriter("part-{shard}-of-{shards}", num_shards=2) as writer:
            ...     writer.write_columns({"id": [1, 2, 3], "name": ["cat", "dog", "goat"]})
            >>> writer.num_records
            3
        """
        from tfwire._examples.encode import encode_dealt, encode_framed_apart

        agree = self._the_rows().agree(self.num_records)
        if self._num_shards is None:
            with closing(
                encode_framed_apart(columns, features, self._num_threads, agree)
            ) as blocks:
                for block in blocks:
                    self._run(self._distribute, Framed.of(block))
            return
        self._run(self._workers.begin, self._num_shards)
        for_each = self._workers.for_each
        threads = self._num_threads
        dealing = encode_dealt(columns, features, self._num_shards, threads, for_each, agree)
        with closing(dealing) as dealt:
            for parts in dealt:
                self._run(self._write_parts, parts)

    def _next_number(self) -> int:
        return self.num_records

    def _distribute(self, records: Sequence[bytes] | Framed) -> None:
        self._check()
        if self._shard_size is not None:
            self._fill_in_turn(records, self._shard_size)
        elif not isinstance(records, Framed):
            self._write_round_robin(records)
        self.num_records += len(records)

    def _write_parts(self, parts: Sequence[Any]) -> None:
        """Writes the EncodedBlocks of records that were dealt out to all files, or None."""
        self._check()
        count = len(self._writers)
        for i, part in enumerate(parts):
            if part is not None:
                number = (self.num_records + i) % count
                writer = self._writers[number]
                self._workers.submit(number, write_framed, writer, part.view, part.tally)
        self.num_records += sum(len(part.spans) for part in parts if part is not None)

    def _fail(self, failure: Exception) -> None:
        super()._fail(failure)
        self._workers.fail(failure)

    def _write_round_robin(self, payloads: Sequence[bytes]) -> None:
        """Writes one record to every file in turn."""
        count = len(self._writers)
        for i in range(min(count, len(payloads))):
            self._submit((self.num_records + i) % count, payloads[i::count])

    def _submit(self, number: int, records: Sequence[bytes] | Framed) -> None:
        """Has records written to a file."""
        writer = self._writers[number]
        if isinstance(records, Framed):
            self._workers.submit(number, write_framed, writer, records.data, records.tally)
        else:
            self._workers.submit(number, writer.write_many, records)

    def _fill_in_turn(self, records: Sequence[bytes] | Framed, shard_size: int) -> None:
        """Writes records to the last file; when it is full, to a new one."""
        ends: Any = records.ends() if isinstance(records, Framed) else ends_of_payloads(records)
        begin = 0
        for chosen in in_turn(ends, self._filled, shard_size):
            number = len(self._writers) - 1
            if chosen is None:
                self._workers.submit(number, self._complete, number)
                self._open_next()
            else:
                self._submit(number, records[chosen])
                end = int(ends[chosen.stop - 1])
                self._filled += end - begin
                begin = end

    def _open_next(self) -> None:
        known = self._num_shards is not None
        sink = self._files.open(self._current_name(len(self._sinks)), known)
        writer = TFRecordWriter(
            sink, self._options, compression_level=self._level, index=self._index
        )
        self._writers.append(writer)
        self._filled = 0

    def _current_name(self, number: int) -> str:
        """A file's name, or the pattern until the number of files is known."""
        if self._num_shards is None:
            return self._name
        return self._name.format(shard=number, shards=self._num_shards)

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
        """Completes the files and renames them. Closing again does nothing, and neither does
        closing in a forked process.

        Raises:
            OSError: Writing failed, now or before. The new files are removed, and the old ones are
                unchanged.
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
                self._workers.submit(number, self._complete, number)
            self._workers.wait()
            self.paths = self._publish()
        except BaseException:
            self._drop()
            raise
        self._workers.close()
        self._fail(ValueError("Writer is closed."))

    def _complete(self, number: int) -> None:
        """Writes a file and its index to disk."""
        writer = self._writers[number]
        writer.close()
        self._files.complete(number, self._current_name(number), writer._indexing)

    def _publish(self) -> list[str]:
        """Gives the complete files their names; returns their paths."""
        names = names_of_shards(self._name, len(self._writers))
        self._files.publish(names)
        return [self._files.path(name) for name in names]

    def _discard(self) -> None:
        self._run(self._drop)

    def _drop(self) -> None:
        """Removes the files."""
        self._closed = True
        self._fail(ValueError("Writer is closed."))
        self._workers.close()
        for writer in self._writers:
            writer._discard()
        self._files.discard()

    _end_unclosed = _discard

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None:
            self.close()
        elif not self._closed:
            self._discard()

    def __repr__(self) -> str:
        path = self._files.path(self._name)
        return f"<ShardedWriter {path!r}{' closed' if self._closed else ''}>"
