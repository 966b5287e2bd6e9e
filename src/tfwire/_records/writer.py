"""The writer of TFRecord files."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tfwire._public import public
from tfwire._records.guarded import Guarded
from tfwire._records.output import LONG, Output
from tfwire._records.packing import FRAME
from tfwire._records.payloads import as_record, as_records, chunks
from tfwire._records.targets import open_sink
from tfwire.receipts import Receipt

__all__ = ["TFRecordWriter"]

_BLOCK = 1 << 18  # bytes collected before they are framed and written

# So many rows or records at once are encoded and written by themselves; fewer are collected.
_MANY_ROWS = 64
_MANY_RECORDS = 1024


@public
class TFRecordWriter(Guarded):
    """Writes records to a TFRecord file.

    Records are collected and written in blocks, by the thread that completes a block. Threads may
    share a writer: every record is written once and whole. After a fork the writer belongs to the
    process that made it.

    A write that fails leaves every whole record in the file that reached it, and nothing else; from
    then on every call raises what failed. A file that is being appended to cannot be opened by
    another writer, and a writer notices when somebody else changes its file.

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
            all is on disk; an exception within ``with`` discards it. A file that is replaced passes
            on its permissions, and its owner as far as the process may do that.

    Raises:
        OSError: The file cannot be opened. BlockingIOError: Another writer has it open.
        DataLossError: append to a file that is damaged.
        ValueError, TypeError: Arguments that are not valid; nothing was opened.

    Example:
        >>> with TFRecordWriter("pets.tfrecord") as writer:
        ...     writer.write(b"any bytes")
        ...     writer.write({"label": 1, "name": "cat"})
        ...     writer.write_columns({"label": [2, 3], "name": ["dog", "goat"]})
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
        super().__init__()
        self._path = path
        self._pending: list[bytes] = []
        self._room = _BLOCK
        self._least: float = 0  # of room: with less, write() does more than collect
        self._saved = False  # whether close() has written everything
        self._atomic = atomic
        self._output = Output(
            *open_sink(path, options, compression_level, append, repair_tail, atomic)
        )
        self._open()

    # ---- Taking records -----------------------------------------------------------------------

    def write(self, record: Any) -> None:
        """Writes one record.

        Args:
            record: A bytes-like object; a str (as UTF-8); a mapping (encoded as an Example); a
                protobuf message; an object whose ``numpy()`` is one of them.

        Raises:
            TypeError: Anything else.
            ValueError: The writer is closed. The record is not in the file; any other is whose
                ``write`` returned.
            OSError: Writing failed, now or before.
        """
        if type(record) is not bytes:
            record = as_record(record)
        self._pending.append(record)
        self._room -= len(record) + FRAME
        # close() raises the least before it drains: who does not see that is drained.
        if self._room < self._least:
            self._settle([record])

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
        return self._write_chunks(chunks(records))

    def _write_chunks(self, pieces: Iterable[list[Any]]) -> int:
        count = 0
        encode = None
        for chunk in pieces:
            count += len(chunk)
            if len(chunk) >= _MANY_ROWS and isinstance(chunk[0], Mapping):
                encode = encode or _rows_encoder()
                self._write_rows(encode, chunk)
            elif len(chunk) >= _MANY_RECORDS:
                self._write_records(chunk)
            else:
                self._collect(chunk)
        return count

    def write_columns(self, columns: Mapping[str, Any]) -> None:
        """Writes columns as ``tf.train.Example`` records, encoded and framed at once.

        Args:
            columns: As for ``encode_columns``.

        Raises:
            TypeError, ValueError: As ``encode_columns``; and the writer is closed.
            OSError: Writing failed, now or before.
        """
        from tfwire.example import encode_framed

        self._run(self._write_pending)
        for block in encode_framed(columns):
            self._run(self._write_block, block.view)

    def _write_rows(self, encode: Any, rows: Sequence[Any]) -> None:
        """Writes rows, encoded and framed at once."""
        self._run(self._write_pending)
        done = 0
        try:
            for block in encode(rows):
                self._run(self._write_block, block.view)
                done += len(block.spans)
        except (TypeError, ValueError):  # also for records among the rows
            for record in rows[done:]:
                self.write(record)

    def _write_records(self, records: Sequence[Any]) -> None:
        """Writes bytes objects, framed at once; what follows another type is collected."""
        done = self._run(self._write_leading, records)
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
        if self._room < self._least:
            self._settle(payloads)

    # ---- Writing ------------------------------------------------------------------------------

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
        self._output.sink.flush()

    def _settle(self, added: Sequence[bytes]) -> None:
        """Writes what is collected, and with it what this call has just added."""
        with self._lock:
            if self._busy:  # the exception that follows means that they are not written
                self._take_back(added)
            self._run(self._write_pending, added)

    def _write_block(self, block: memoryview) -> None:
        self._check()
        self._output.write_block(block)

    def _write_leading(self, records: Sequence[Any]) -> int:
        self._write_pending()
        return self._output.write_leading(records)

    def _write_pending(self, added: Sequence[bytes] = ()) -> None:
        """Writes the records collected so far. Other threads may add to them meanwhile.

        Args:
            added: Records that this call has just added. They may have come too late for
                ``close``, or in time.
        """
        if self._saved and added and not self._take_back(added):
            return
        self._check()
        if not self._pending:
            return
        size, self._room = _BLOCK - self._room, _BLOCK
        records = self._pending[:]
        last = len(records[-1])
        if last >= LONG and len(records) > 1:
            self._output.write(records[:-1], size - last)
            del self._pending[: len(records) - 1]
            records, size = records[-1:], last
        self._output.write(records, size)
        del self._pending[: len(records)]

    def _take_back(self, added: Sequence[bytes]) -> bool:
        """Removes records from those that wait, if they are among them."""
        for i, record in enumerate(self._pending):
            if record is added[0]:
                del self._pending[i : i + len(added)]
                return True
        return False

    def _fail(self, failure: Exception) -> None:
        super()._fail(failure)
        self._least = math.inf
        if not self._saved:
            self._pending.clear()

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
            >>> tfw.checksum.base64_crc32c(writer.file_crc32c)  # as object stores show it
            'lMxi1A=='
        """
        return self._output.file_crc32c

    # ---- Closing ------------------------------------------------------------------------------

    def close(self) -> None:
        """Writes what is left and closes the file; closing again does nothing.

        Raises:
            OSError: Writing failed, now or before: the file holds only what came before that.
            RuntimeError: Called by a signal handler that interrupted the writer; it stays open.
        """
        if not self._closed:
            self._run(self._complete)

    def _complete(self) -> None:
        if self._closed:  # by another thread
            return
        self._least = math.inf  # what is added from now on waits for the end of this
        try:
            self._write_pending()
            self._closed = True
            self._output.sink.close()
        except BaseException:
            self._drop()
            raise
        self._saved = True
        self._fail(ValueError("Writer is closed."))

    def _discard(self) -> None:
        self._run(self._drop)

    def _drop(self) -> None:
        self._closed = True
        self._output.sink.discard()
        self._fail(ValueError("Writer is closed."))

    def _let_go(self) -> None:
        if self._atomic:
            self._discard()
        else:
            self.close()

    def _disown(self) -> None:
        super()._disown()
        with contextlib.suppress(OSError):
            self._output.sink.abandon()

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

    def __repr__(self) -> str:
        return f"<TFRecordWriter {self._path!r}{' closed' if self._closed else ''}>"


def _rows_encoder() -> Any:
    """What makes framed blocks of rows; its buffers serve one thread."""
    from tfwire.example import FramedRows

    return FramedRows().encode
