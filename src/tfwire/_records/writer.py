"""The writer of TFRecord files."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tfwire._records.output import LONG, Output
from tfwire._records.packing import FRAME
from tfwire._records.payloads import as_record, as_records, chunks
from tfwire._records.sinks import open_sink
from tfwire.receipts import Receipt

__all__ = ["TFRecordWriter"]

_BLOCK = 1 << 18  # bytes collected before they are framed and written

# So many records at once are worth a write of their own; fewer are collected.
_MANY = 64


class TFRecordWriter:
    """Writes records to a TFRecord file.

    Records are collected and written in blocks, by the thread that completes a block. Threads may
    share a writer: every record is written once and whole. After a fork the writer belongs to the
    process that made it.

    Args:
        path: A str or os.PathLike, a URL (through fsspec), or an object with ``write``; the last
            is not closed. A file is made or emptied, but no folder is made.
        options: None or "" (not compressed), "GZIP" or "ZLIB" in any case, or TFRecordOptions.
        compression_level: 0 to 9 or -1, as for TFRecordOptions, whose own it replaces.
        append: Continue the file instead of emptying it. Its headers and its last record are
            checked first. A GZIP file gets another member; ZLIB cannot be continued.
        repair_tail: With append, cut off a torn last record instead of refusing the file, unless
            records that verify lie behind it.
        atomic: Write to a temporary file in the same folder. ``close`` gives it the name when
            all is on disk; an exception within ``with`` discards it.

    Raises:
        OSError: The file cannot be opened.
        DataLossError: append to a file that is damaged.
        ValueError, TypeError: Arguments that are not valid.

    Example:
        >>> with TFRecordWriter("pets.tfrecord") as writer:
        ...     writer.write(b"any bytes")
        ...     writer.write({"label": 1, "name": "cat"})
        ...     writer.write_examples({"label": [2, 3], "name": ["dog", "goat"]})
    """

    def __init__(
        self,
        path: Any,
        options: Any = None,
        *,
        compression_level: int | None = None,
        append: bool = False,
        repair_tail: bool = False,
        atomic: bool = False,
    ) -> None:
        self._closed = True  # until all went well
        self._path = path
        self._pending: list[bytes] = []
        self._room = _BLOCK
        self._lock = threading.Lock()
        self._failure: Exception | None = None
        self._atomic = atomic
        self._output = Output(
            *open_sink(path, options, compression_level, append, repair_tail, atomic)
        )
        self._closed = False
        _open_writers.add(self)

    # ---- Taking records -----------------------------------------------------------------------

    def write(self, record: Any) -> None:
        """Writes one record.

        Args:
            record: A bytes-like object; a str (as UTF-8); a mapping (encoded as an Example); a
                protobuf message; an object whose ``numpy()`` is one of them.

        Raises:
            TypeError: Anything else.
            ValueError: The writer is closed.
            OSError: Writing failed, now or before.
        """
        if type(record) is not bytes:
            record = as_record(record)
        self._pending.append(record)
        self._room -= len(record) + FRAME
        if self._room < 0:
            self._drain()

    def write_many(self, records: Iterable[Any]) -> int:
        """Writes records in bulk.

        Args:
            records: An iterable (also a generator, which is consumed piecewise) of what ``write``
                takes.

        Returns:
            The number of records.

        Raises:
            TypeError, ValueError, OSError: As ``write``; records before a faulty one are written.
        """
        count = 0
        encode = None
        for chunk in chunks(records):
            count += len(chunk)
            if len(chunk) < _MANY:
                self._collect(chunk)
            elif isinstance(chunk[0], Mapping):
                encode = encode or _rows_encoder()
                self._write_rows(encode, chunk)
            else:
                self._write_records(chunk)
        return count

    def write_examples(self, columns: Mapping[str, Any]) -> None:
        """Writes columns as ``tf.train.Example`` records, encoded and framed at once.

        Args:
            columns: As for ``encode_examples``.

        Raises:
            TypeError, ValueError: As ``encode_examples``; and the writer is closed.
            OSError: Writing failed, now or before.
        """
        from tfwire.example import encode_framed

        self._drain()
        for block in encode_framed(columns):
            with self._lock:
                self._guarded(self._output.write_block, block.view)

    def _write_rows(self, encode: Any, rows: Sequence[Any]) -> None:
        """Writes rows, encoded and framed at once."""
        self._drain()
        done = 0
        try:
            for block in encode(rows):
                with self._lock:
                    self._guarded(self._output.write_block, block.view)
                done += len(block.spans)
        except (TypeError, ValueError):  # also for records among the rows
            for record in rows[done:]:
                self.write(record)

    def _write_records(self, records: Sequence[Any]) -> None:
        """Writes bytes objects, framed at once; what follows another type is collected."""
        self._drain()
        with self._lock:
            done = self._guarded(self._output.write_leading, records)
        if done < len(records):
            self._collect(records[done:])

    def _collect(self, records: Sequence[Any]) -> None:
        try:
            payloads = as_records(records)
        except (TypeError, ValueError):
            for record in records:
                self.write(record)
            return
        self._pending.extend(payloads)
        self._room -= sum(map(len, payloads)) + FRAME * len(payloads)
        if self._room < 0:
            self._drain()

    # ---- Writing ------------------------------------------------------------------------------

    def flush(self) -> None:
        """Makes all records written so far visible to readers of the file; a compressed stream
        ends a block for it.

        Raises:
            ValueError: The writer is closed.
            OSError: Writing failed, now or before.
        """
        self._drain()
        with self._lock:
            self._guarded(self._output.sink.flush)

    def _drain(self) -> None:
        """Writes the records collected so far. Other threads may append to them meanwhile."""
        with self._lock:
            self._check()
            size, self._room = _BLOCK - self._room, _BLOCK
            records = self._pending[:]
            last = len(records[-1]) if records else 0
            if last >= LONG and len(records) > 1:
                self._guarded(self._output.write, records[:-1], size - last)
                del self._pending[: len(records) - 1]
                records, size = records[-1:], last
            self._guarded(self._output.write, records, size)
            del self._pending[: len(records)]

    def _guarded(self, operation: Any, *arguments: Any) -> Any:
        """Runs an operation of the output. After one that failed nothing more is written, so that
        the file is a prefix of what was asked for."""
        self._check()
        try:
            return operation(*arguments)
        except Exception as error:
            self._fail(error)
            raise
        except BaseException:
            self._fail(RuntimeError("writing was interrupted"))
            raise

    def _check(self) -> None:
        if self._failure is not None:
            self._pending.clear()
            raise self._failure

    def _fail(self, failure: Exception) -> None:
        """Makes every further call raise."""
        self._failure = failure
        self._room = -1

    # ---- What was written ---------------------------------------------------------------------

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records that this writer has written; some may wait for ``flush``."""
        return self._output.receipt

    @property
    def file_crc32c(self) -> int:
        """The CRC-32C of the whole file as far as it is written; complete once it is closed. It
        costs no second pass: with ``append``, what the file held before is part of it, read while
        the tail was being checked. Of a file object: of what was written to it here.

        Example:
            >>> with TFRecordWriter("pets.tfrecord") as writer:
            ...     writer.write(b"any bytes")
            >>> tfw.base64_crc32c(writer.file_crc32c)  # as object stores show it
            'lMxi1A=='
        """
        return self._output.file_crc32c

    # ---- Closing ------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes what is left and closes the file; closing again does nothing.

        Raises:
            OSError: Writing failed, now or before: the file holds only what came before that.
        """
        if self._closed:
            return
        try:
            self._drain()
        except BaseException:
            self._discard()
            raise
        with self._lock:
            if not self._closed:
                self._closed = True
                self._guarded(self._output.sink.close)
                self._fail(ValueError("Writer is closed."))

    def _discard(self) -> None:
        self._closed = True
        self._output.sink.discard()
        self._fail(ValueError("Writer is closed."))

    def _disown(self) -> None:
        """In a forked process: what is pending is the other process's to write."""
        self._closed = True
        self._lock = threading.Lock()
        self._pending.clear()
        with contextlib.suppress(OSError):
            self._output.sink.abandon()
        self._fail(RuntimeError("the writer belongs to the process that made it, before a fork"))

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None or (self._failure is None and not self._atomic):
            self.close()
        elif not self._closed:  # the exception on its way says more than close could
            self._discard()

    def __del__(self) -> None:
        if getattr(self, "_closed", True):
            return
        warnings.warn(f"{self!r} was not closed", ResourceWarning, stacklevel=2, source=self)
        if self._atomic:
            self._discard()
        else:
            self.close()

    def __repr__(self) -> str:
        return f"<TFRecordWriter {self._path!r}{' closed' if self._closed else ''}>"

    def __reduce__(self) -> Any:
        raise TypeError("writers cannot be pickled; open a file in the other process")


def _rows_encoder() -> Any:
    """What makes framed blocks of rows; its buffers serve one thread."""
    from tfwire.example import FramedRows

    return FramedRows().encode


_open_writers: weakref.WeakSet[TFRecordWriter] = weakref.WeakSet()


def _disown_all() -> None:
    for writer in list(_open_writers):
        writer._disown()


os.register_at_fork(after_in_child=_disown_all)
