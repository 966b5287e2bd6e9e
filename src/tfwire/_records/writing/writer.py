"""TFRecordWriter, which writes records to a file."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from tfwire._base.aliases import (
    CompressionType,
    FeatureKinds,
    Output,
    Record,
    Row,
    StorageOptions,
    SupportsArrow,
    TableFeatures,
)
from tfwire._base.arguments import boolean, integer
from tfwire._base.errors import public
from tfwire._base.parallel_map import Check, ParallelMap
from tfwire._records.files.byte_sinks import DeflatedSink
from tfwire._records.files.compression import either_word
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.frames import (
    FRAME,
    Packer,
    as_record,
    chunks,
    ends_of_payloads,
    ends_of_records,
    frame_apart,
)
from tfwire._records.index.written_offsets import indexing
from tfwire._records.reading.receipts import Receipt, Tally
from tfwire._records.writing.open_sink import open_sink
from tfwire._records.writing.writer_base import WriterBase

_COLLECTED_BYTES = 1 << 18  # before they are framed and written
# A chunk with at least this many rows or records is written directly; a smaller one is collected.
_MANY_ROWS = 64
_MANY_RECORDS = 1024
# Bytes of a compressed member, before it is compressed.
_MEMBER_BYTES = 1 << 20
# Payloads of at least this mean length are not copied: writev takes header, payload and footer.
_LONG_MEAN_BYTES = 1 << 14


@public
class TFRecordWriter(WriterBase):
    """Writes records to a TFRecord file.

    Records are collected and written in blocks, by the thread that completes a block. Threads may
    share a writer: every record is written once and whole. After a fork the writer belongs to the
    process that made it.

    A write that fails leaves in the file every whole record that reached it, and nothing else;
    every later call raises the same error. A file that is being appended to cannot be opened by
    another writer, and a writer raises if its file is changed by something else.

    Args:
        path: A str or os.PathLike, a URL or a path of universal_pathlib (through fsspec), or an
            object with ``write``, which is not closed. A file is created or emptied; folders are
            not created. An object of a URL appears when the writer is closed; an exception within
            ``with`` discards it.
        options, compression_type: Two words for one argument, that of TensorFlow's writers and that
            of its readers: None or "" (not compressed), "GZIP" or "ZLIB" in any case, or
            TFRecordOptions. As in TensorFlow the name of the file does not matter; with None, one
            that ends in .gz, .gzip or .zlib gives a TfwireWarning.
        compression_level: 0 to 9 or -1, of a compressed file. It replaces the level of
            TFRecordOptions.
        append: Continue the file instead of emptying it. Its headers and its last record are
            checked first. A GZIP file gets another member; ZLIB cannot be continued.
        repair_tail: With append, cut off a torn last record instead of refusing the file, unless
            records that verify follow it. Not of a GZIP file: ``repair_file`` makes one that can be
            continued.
        atomic: Write to a temporary file in the same folder. ``close`` renames it when all is on
            disk; an exception within ``with`` discards it. The new file gets the permissions of the
            file that it replaces, and its owner if the process may set that.
        index: Save a RecordIndex beside the file once it is complete. Its offsets are noted during
            writing: nothing is read again but a few samples. Excludes ``append``.
        num_threads: How many threads ``write_columns`` uses to encode and checksum, the caller's
            included; with GZIP, so many compress: each mebibyte of records is then a gzip member of
            its own. The records, their order and the bytes of other files do not depend on it. One
            plain file gains 1.6 times at most: the system writes into a file in one thread.
        storage_options: fsspec's options of the filesystem of a URL.
        kinds: As for ``encode_examples``. The rows and columns that a writer is given must agree in
            the kinds of their features, from its opening to its end; into records that are bytes it
            does not look, nor into what a file held before.

    Raises:
        OSError: The file cannot be opened. BlockingIOError: Another writer has it open.
        DataLossError: The file to append to is damaged.
        ValueError, TypeError: Invalid arguments; nothing was opened.

    Example:
        >>> with TFRecordWriter("pets.tfrecord") as writer:
        ...     writer.write(b"any bytes")
        ...     writer.write({"label": 1, "name": "cat"})
        ...     writer.write_columns({"label": [2, 3], "name": ["dog", "goat"]})
    """

    def __init__(
        self,
        path: Output,
        options: CompressionType = None,
        *,
        compression_level: int | None = None,
        append: bool = False,
        repair_tail: bool = False,
        atomic: bool = False,
        index: bool = False,
        num_threads: int = 1,
        compression_type: CompressionType = None,
        storage_options: StorageOptions = None,
        kinds: FeatureKinds | None = None,
    ) -> None:
        super().__init__(kinds, path)
        options = either_word(compression_type, options)
        self._num_threads = integer("num_threads", num_threads, 1)
        self._path = path = with_storage_options(path, storage_options)
        self._indexing = indexing(path, options, append) if boolean("index", index) else None
        self._pending: list[bytes] = []
        self._room = _COLLECTED_BYTES  # bytes that may still be collected
        self._min_room: float = 0  # write() only collects while this much room is left
        self._saved = False  # True: close() has written everything
        self._atomic = atomic or isinstance(path, ObjectPath)
        self._sink, crc32c = open_sink(
            path, options, compression_level, append, repair_tail, atomic
        )
        self._packer, self._tally = Packer(), Tally(crc32c)
        self._open()

    def write(self, record: Record) -> None:
        """Writes one record.

        Args:
            record: A bytes-like object; a str (as UTF-8); a mapping (encoded as an Example); a
                protobuf message; an object whose ``numpy()`` is one of them.

        Raises:
            TypeError: Anything else, or a mapping whose kinds differ from those before, which names
                both records.
            ValueError: The writer is closed. The record is not in the file, unlike every record
                whose ``write`` returned.
            OSError: Writing failed, now or before.
            RuntimeError: Called by a signal handler that interrupted the writer: the record is not
                in the file. Or by a thread that the writer's file object waits for: it may be.
        """
        if type(record) is not bytes:
            record = as_record(record, self._encode_row)
        self._pending.append(record)
        self._room -= len(record) + FRAME
        # close() raises the limit before it writes the collected records: a call that does not see
        # the new limit has added its record in time.
        if self._room < self._min_room:
            self._write_collected([record])

    def write_many(self, records: Iterable[Record]) -> int:
        """Writes records in bulk.

        Args:
            records: An iterable (also a generator, which is consumed piecewise) of what ``write``
                takes.

        Returns:
            The number of records.

        Raises:
            TypeError, ValueError, OSError: As ``write``; records before a faulty one are written.
        """
        return self._write_chunks(chunks(records))

    def _write_chunks(self, pieces: Iterable[list[Any]]) -> int:
        count = 0
        encode = None
        for chunk in pieces:
            count += len(chunk)
            if len(chunk) >= _MANY_ROWS and isinstance(chunk[0], Mapping):
                encode = encode or self._the_rows().framer()
                self._write_rows(encode, chunk)
            elif len(chunk) >= _MANY_RECORDS:
                self._run(self._write_pending)
                done = self._run(self._write_leading, chunk)
                if done < len(chunk):
                    self._collect(chunk[done:])
            else:
                self._collect(chunk)
        return count

    def write_columns(
        self, columns: Row | SupportsArrow, *, features: TableFeatures | None = None
    ) -> None:
        """Writes columns as ``tf.train.Example`` records, or as SequenceExamples, encoded and
        framed at once.

        Args:
            columns: As for ``encode_columns``: names to columns, or a table of Arrow data, which is
                read batch by batch.
            features: As for ``encode_columns``: how lists in lists are written.

        Raises:
            TypeError, ValueError: As ``encode_columns``, or the writer is closed. TypeError: A
                feature is of another kind than in records before (``kinds``). Records of a table
                before the faulty one may have been written.
            OSError: Writing failed, now or before, or the table's stream did.
        """
        from tfwire._examples.encode import encode_framed

        self._run(self._write_pending)
        sink = self._sink
        if self._num_threads > 1 and isinstance(sink, DeflatedSink) and sink.has_members:
            self._write_members(columns, features, sink)
            return
        agree = self._the_rows().agree(self._next_number())
        with closing(encode_framed(columns, features, self._num_threads, agree)) as blocks:
            for block in blocks:
                self._run(self._write_block, block.view, block.tally)

    def _write_members(
        self, columns: Row | SupportsArrow, features: TableFeatures | None, sink: DeflatedSink
    ) -> None:
        """Writes columns as compressed members. Compressing takes nearly all of the time, so one
        thread at a time encodes."""
        from tfwire._examples.encode import encode_framed_apart

        def compressed(block: Any, check: Check) -> tuple[Any, bytes]:
            return block, sink.member(block.view)

        agree = self._the_rows().agree(self._next_number())
        with (
            closing(encode_framed_apart(columns, features, 1, agree, _MEMBER_BYTES)) as blocks,
            ParallelMap(compressed, blocks, self._num_threads) as members,
        ):
            for block, member in members:
                write = partial(sink.write_member, member)
                self._run(self._write_block, block.view, block.tally, write)

    def _write_rows(self, encode: Any, rows: Sequence[Any]) -> None:
        """Writes rows, encoded and framed at once."""
        self._run(self._write_pending)
        done = 0
        try:
            for block in encode(rows, self._next_number()):
                self._run(self._write_block, block.view)
                done += len(block.spans)
        except (TypeError, ValueError):  # also for records among the rows
            for record in rows[done:]:
                self.write(record)

    def _collect(self, records: Sequence[Any]) -> None:
        try:
            payloads = self._as_records(records)
        except (TypeError, ValueError):
            for record in records:
                self.write(record)
            return
        self._pending.extend(payloads)
        self._room -= sum(map(len, payloads)) + FRAME * len(payloads)
        if self._room < self._min_room:
            self._write_collected(payloads)

    def flush(self) -> None:
        """Makes all records written so far visible to readers of the file; a compressed stream
        ends a block for it.

        Raises:
            ValueError: The writer is closed.
            OSError: Writing failed, now or before.
            RuntimeError: Called by a signal handler that interrupted the writer. The records will
                be written, but not by this call.
        """
        self._run(self._flush)

    def _flush(self) -> None:
        self._write_pending()
        self._sink.flush()

    def _next_number(self) -> int:
        return int(self._tally.native.records) + len(self._pending)

    # ---- The collected records ----------------------------------------------------------------

    def _write_collected(self, added: Sequence[bytes]) -> None:
        """Writes the collected records, including those that this call has just added."""
        with self._turn():
            if self._inside:  # the exception that follows says that they are not written
                self._take_back(added)
            self._run(self._write_pending, added)

    def _write_pending(self, added: Sequence[bytes] = ()) -> None:
        """Writes the collected records. Other threads may add more meanwhile.

        Args:
            added: Records that this call has just added: before ``close`` wrote the others, or too
                late for it.
        """
        if self._saved and added and not self._take_back(added):
            return
        self._check()
        if not self._pending:
            return
        size, self._room = _COLLECTED_BYTES - self._room, _COLLECTED_BYTES
        records = self._pending[:]
        parts = [(records, size)]
        last = len(records[-1])
        if last >= _LONG_MEAN_BYTES and len(records) > 1:
            parts = [(records[:-1], size - last), (records[-1:], last)]
        for part, size in parts:
            if size >= _LONG_MEAN_BYTES * len(part):
                self._write_long(part)
            else:
                self._write_leading(part)
            del self._pending[: len(part)]

    def _take_back(self, added: Sequence[bytes]) -> bool:
        """Removes records that were collected last; False if they are not among the others."""
        pending, count = self._pending, len(added)
        for i in reversed(range(len(pending) - count + 1)):  # the same object may be there twice
            if all(map(operator.is_, pending[i : i + count], added)):
                del pending[i : i + count]
                return True
        return False

    # ---- Framing and writing ------------------------------------------------------------------

    def _write_leading(self, records: Sequence[Any]) -> int:
        """Writes records up to the first that is not a bytes object; returns how many."""
        done = 0
        while done < len(records):
            for block, count in self._packer.blocks(records[done:] if done else records):
                self._write_block(block)
                done += count
            if done == len(records) or type(records[done]) is not bytes:
                break
            self._write_long(records[done : done + 1])  # larger than a block
            done += 1
        return done

    def _write_framed(self, block: memoryview, tally: Any) -> None:
        self._write_pending()
        self._write_block(block, tally)

    def _write_block(
        self, block: memoryview, tally: Any = None, write: Callable[[], None] | None = None
    ) -> None:
        """Writes framed records.

        Args:
            block: Their bytes.
            tally: Their ``tfw_tally *``, if it is known.
            write: Writes them in another form.
        """
        self._check()
        try:
            if write is None:
                self._sink.write([block])
            else:
                write()
        except BaseException:  # some may have reached the file
            block = block[: self._salvage(ends_of_records(block))]
            self._tally.add_block(block, len(block))
            raise
        if tally is None:
            self._tally.add_block(block, len(block))
        else:
            self._tally.add(tally, len(block))
        if self._indexing is not None:
            self._indexing.add_block(block)

    def _write_long(self, records: Sequence[bytes]) -> None:
        """Writes records without copying their payloads."""
        self._check()
        buffers: list[bytes] = []
        crcs: list[int] = []
        for record in records:
            header, footer, crc = frame_apart(record)
            buffers += header, record, footer
            crcs.append(crc)
        try:
            self._sink.write(buffers)
        except BaseException:
            ends = [0, *ends_of_payloads(records)]
            self._tally_records(crcs[: ends.index(self._salvage(ends))], records)
            raise
        self._tally_records(crcs, records)
        if self._indexing is not None:
            self._indexing.add_lengths([len(record) for record in records])

    def _tally_records(self, crcs: list[int], records: Sequence[bytes]) -> None:
        for crc, record in zip(crcs, records, strict=False):
            self._tally.add_record(crc, len(record))

    def _salvage(self, ends: Sequence[int]) -> int:
        """After a write that failed: keeps its whole records in the file; returns their bytes."""
        try:
            return self._sink.salvage(ends)
        except OSError:  # the first failure says more
            return 0

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records written so far; some may be waiting for ``flush``."""
        return self._tally.receipt

    @property
    def file_crc32c(self) -> int:
        """The CRC-32C of the file as written so far; complete once the writer is closed. It costs
        no second pass. With ``append`` it includes what the file held before, which was read when
        its tail was checked. For a file object: of what this writer wrote to it.

        Example:
            >>> with TFRecordWriter("pets.tfrecord") as writer:
            ...     writer.write(b"any bytes")
            >>> tfw.checksum.base64_crc32c(writer.file_crc32c)  # as object stores show it
            'lMxi1A=='
        """
        found = self._sink.crc32c
        return self._tally.file_crc32c if found is None else found

    # ---- Closing ------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes the remaining records and closes the file. Closing again does nothing.

        Raises:
            OSError: Writing failed, now or before: the file holds only the records before that. Or
                its index could not be saved, which the error names: the file is complete.
            RuntimeError: Called by a signal handler that interrupted the writer; it stays open.
        """
        if not self._closed:
            self._run(self._complete)

    def _complete(self) -> None:
        if self._closed:  # by another thread
            return
        self._min_room = math.inf  # from now on write() waits for the end of this
        try:
            self._write_pending()
            self._closed = True
            self._sink.close()
        except BaseException:
            self._drop()
            raise
        self._saved = True
        self._fail(ValueError("Writer is closed."))
        if self._indexing is not None:
            self._indexing.save()

    def _discard(self) -> None:
        self._run(self._drop)

    def _drop(self) -> None:
        self._closed = True
        self._sink.discard()
        self._fail(ValueError("Writer is closed."))

    def _fail(self, failure: Exception) -> None:
        super()._fail(failure)
        self._min_room = math.inf
        if not self._saved:
            self._pending.clear()

    def _end_unclosed(self) -> None:
        if self._atomic:
            self._discard()
        else:
            self.close()

    def _after_fork(self) -> None:
        super()._after_fork()
        with contextlib.suppress(OSError):
            self._sink.abandon()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if error is None or (self._failure is None and not self._atomic):
            self.close()
        elif not self._closed:  # the exception that is being raised says more
            self._discard()

    def __repr__(self) -> str:
        return f"<TFRecordWriter {self._path!r}{' closed' if self._closed else ''}>"


def write_framed(writer: TFRecordWriter, block: memoryview, tally: Any) -> None:
    """Writes framed records, for a writer of several files: their bytes, and their ``tfw_tally *``,
    if it is known."""
    writer._run(writer._write_framed, block, tally)
