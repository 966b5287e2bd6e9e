"""TFRecord files: reading and writing records of bytes."""

from __future__ import annotations

import itertools
import operator
import pickle
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tfwire._core import ffi, lib
from tfwire._records import longreads
from tfwire._records.compression import TFRecordOptions
from tfwire._records.streams import BatchReader, SkippedRegion
from tfwire._records.tally import Tally, block_of
from tfwire._records.writer import TFRecordWriter
from tfwire.receipts import Receipt

__all__ = [
    "RecordIterator",
    "SkippedRegion",
    "TFRecordOptions",
    "TFRecordWriter",
    "read_records",
    "tf_record_iterator",
    "write_records",
]

# Below this mean length a pickle stream makes bytes objects faster than slices do.
_SHORT = 2048

# A C-level iterator handed out by __iter__ is shared by threads, and itertools holds no lock of its
# own where there is no GIL.
_gil_enabled = getattr(sys, "_is_gil_enabled", lambda: True)


def read_records(
    paths: Any,
    compression_type: Any = "auto",
    *,
    verify: bool = True,
    on_corrupt: str = "raise",
    max_record_size: int | None = 2**30,
    buffer_size: int | None = None,
    receipt: bool = False,
) -> RecordIterator:
    """Reads the records of TFRecord files, one file after another.

    Args:
        paths: A path (str, bytes or os.PathLike), a URL (through fsspec), a file object (anything
            with ``readinto`` or ``read``, read from where it stands and not closed), or an
            iterable of them. A file is opened when it is reached, not before the first record is
            asked for.
        compression_type: "auto" looks at the file; None or "" (not compressed), "GZIP", "ZLIB" in
            any case; TFRecordOptions. Concatenated gzip members and zlib streams are all read;
            zeros between and behind them are padding, anything else is damage.
        verify: False leaves out the checksums of payloads; headers are always checked.
        on_corrupt: What to do at damage. "raise"; "skip": leave out damaged records and go on at
            the next one that verifies, in a GZIP file also at the next member that inflates;
            "tail": take a torn last record (a writer died) for the end, raise at other damage;
            "stop": take any damage for the end. What is left out is in ``skipped``, and a
            UserWarning says so when the file ends. Where the search behind damage meets records
            inside the payload of a record, it cannot tell them from others.
        max_record_size: Longer records are damage; None: no limit. Memory grows only with the
            bytes that are there.
        buffer_size: Bytes read at a time; None or 0: 256 KiB.
        receipt: Keep account of the records and of the file's checksum, for the iterator's
            ``receipt`` and ``file_crc32c``.

    Returns:
        An iterator of bytes.

    Raises:
        ValueError, TypeError: An argument that is not valid.
        DataLossError: While iterating: by ``on_corrupt``, after every record before the damage.
        OSError: While iterating: a file cannot be opened or read.

    Example:
        >>> for record in read_records("train.tfrecord.gz"):
        ...     print(len(record))
    """
    return RecordIterator(
        BatchReader(
            paths,
            compression_type,
            verify=verify,
            on_corrupt=on_corrupt,
            max_record_size=max_record_size,
            buffer_size=buffer_size,
            receipt=receipt,
        )
    )


def tf_record_iterator(path: Any, options: Any = None) -> RecordIterator:
    """Reads the records of one file: TensorFlow 1's name.

    Args:
        path: The file.
        options: TFRecordOptions or a compression type; None looks at the file.

    Returns:
        An iterator of bytes.

    Raises:
        As read_records.

    Example:
        >>> first = next(tf_record_iterator("train.tfrecord"))
    """
    return read_records(path, "auto" if options is None else options)


def write_records(path: Any, records: Iterable[Any], options: Any = None) -> int:
    """Writes a file of records.

    Args:
        path, options: As for TFRecordWriter.
        records: As for ``TFRecordWriter.write_many``.

    Returns:
        The number of records.

    Raises:
        As TFRecordWriter; the records before a fault are in the file.
    """
    with TFRecordWriter(path, options) as writer:
        return writer.write_many(records)


class RecordIterator:
    """Iterates over records as bytes; made by ``read_records``.

    ``for`` and ``next`` draw on the same records. After an error the iterator is at its end.
    Threads may share it: each record is given to one of them, once. A process that forks may go on
    on both sides, when it reads paths. Closing is optional; it is also a context manager.
    """

    def __init__(self, reader: BatchReader) -> None:
        self._batches = _Batches(reader)
        self._records: Iterator[bytes] = itertools.chain.from_iterable(self._batches)
        self._positions: Iterator[tuple[Any, int, int, bytes]] | None = None

    def __iter__(self) -> Iterator[bytes]:
        # A __next__ in Python would cost as much as all the rest.
        return self._records if _gil_enabled() else self

    def __next__(self) -> bytes:
        if _gil_enabled():
            return next(self._records)
        with self._batches.lock:
            return next(self._records)

    def with_positions(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """The records that are left as tuples (path, index, offset, record).

        Index counts the records of the file, a region left out as one; offset is where the record's
        header begins, in the decompressed content of a compressed file. From now on the records
        come from the returned iterator alone; it is for one thread.

        Example:
            >>> for path, index, offset, record in read_records(paths).with_positions():
            ...     print(f"{path}[{index}] at byte {offset}: {len(record)} bytes")
        """
        if self._positions is None:
            self._records = _Refusing("the records are being read with positions")
            self._positions = self._batches.positions()
        return self._positions

    @property
    def skipped(self) -> list[SkippedRegion]:
        """The regions left out so far, in the order of the files; the last may still grow."""
        return self._batches.skipped()

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records handed out so far. With ``verify=False`` it is that of the
        checksums which they carry.

        Raises:
            ValueError: ``read_records`` was not asked for it.

        Example:
            >>> records = read_records("train.tfrecord", receipt=True)
            >>> sum(1 for _ in records) == records.receipt.records
            True
        """
        return self._batches.receipt()

    @property
    def file_crc32c(self) -> int | None:
        """The CRC-32C of all bytes of the file that was read to its end last; None before that, and
        where some of them were left out.

        Raises:
            ValueError: ``read_records`` was not asked for a receipt.
        """
        return self._batches.file_crc32c()

    def close(self) -> None:
        """Closes the files; going on is a ValueError then. Closing again is allowed."""
        self._records = _Refusing("the record iterator is closed")
        self._batches.close()

    def __enter__(self) -> RecordIterator:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("record iterators cannot be pickled; open the files in the other process")


class _Refusing(Iterator[bytes]):
    """Takes the place of records that must not be drawn any more."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __next__(self) -> bytes:
        raise ValueError(self._reason)


class _Batches(Iterator[Iterator[bytes]]):
    """The records of a reader, as one iterator per batch.

    Two threads may find in the common chain that a batch is used up, and both come here for the
    next. The second one then gets the same iterator again, so that none is dropped half-used.
    """

    def __init__(self, reader: BatchReader) -> None:
        self.lock = threading.RLock()
        self._reader = reader
        self._batch: Any = None
        self._long: longreads.LongRecords | None = None  # instead of a batch
        self._expect_long = False
        self._current: Iterator[bytes] = iter(())
        self._dropped = Receipt()  # of the records that close took back
        self._stream = ffi.new("uint8_t[]", 1)
        self._stream_len = ffi.new("size_t *")

    def __next__(self) -> Iterator[bytes]:
        with self.lock:
            if not operator.length_hint(self._current):
                self._current = iter(self._load())
            return self._current

    def _load(self) -> Sequence[bytes]:
        """The records that come next."""
        self._long = self._reader.read_long() if self._expect_long else None
        if self._long is not None:
            return self._long.records
        self._batch = self._reader.next()
        if self._batch is None:
            raise StopIteration
        self._expect_long = self._batch.payload_bytes >= longreads.LONG * self._batch.count
        return self._strings(self._batch)

    def _strings(self, batch: Any) -> Sequence[bytes]:
        """The records of a batch as bytes objects."""
        count, size = batch.count, batch.payload_bytes
        if size < _SHORT * count:
            capacity = lib.tfw_pickle_bound(count, size)
            if capacity > len(self._stream):
                self._stream = ffi.new("uint8_t[]", capacity)
            status = lib.tfw_pickle_spans(
                batch.data, batch.spans, count, self._stream, capacity, self._stream_len
            )
            assert status == lib.TFW_OK
            strings: tuple[bytes, ...] = pickle.loads(ffi.buffer(self._stream, self._stream_len[0]))
            return strings
        data = ffi.buffer(batch.data, batch.data_len)
        return [data[begin : begin + length] for begin, length in _table(batch).tolist()]

    def positions(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """All that is left, with positions."""
        while (rest := self._take()) is not None:
            yield from rest

    def _take(self) -> Iterator[tuple[Any, int, int, bytes]] | None:
        """What is left of the current batch, or the next one; nobody else gets it."""
        with self.lock:
            records = list(next(self, ()))
            if not records:
                return None
            if self._long is not None:
                first, offsets = self._long.first_record, self._long.offsets
            else:
                first = self._batch.first_record
                header = self._batch.offset - lib.TFW_HEADER_SIZE
                offsets = (_table(self._batch)[:, 0] + header).tolist()
            done = len(offsets) - len(records)
            path = itertools.repeat(self._reader.path, len(records))
            indices = range(first + done, first + len(offsets))
            self._current = iter(records)
            return zip(path, indices, offsets[done:], self._current, strict=True)

    def skipped(self) -> list[SkippedRegion]:
        with self.lock:
            return self._reader.skipped

    def receipt(self) -> Receipt:
        with self.lock:
            return self._reader.receipt - self._dropped - self._waiting()

    def file_crc32c(self) -> int | None:
        with self.lock:
            return self._reader.file_crc32c

    def _waiting(self) -> Receipt:
        """The receipt of what is left of the current batch."""
        count, tally = operator.length_hint(self._current), Tally()
        if count and self._long is not None:
            for crc, record in zip(
                self._long.crcs[-count:], self._long.records[-count:], strict=True
            ):
                tally.add_record(crc, len(record))
        elif count:
            tally.add_block(*block_of(self._batch, self._batch.count - count))
        return tally.receipt

    def close(self) -> None:
        with self.lock:
            self._dropped += self._waiting()
            for _ in self._current:  # the chain holds it too
                pass
            self._reader.close()


def _table(batch: Any) -> np.ndarray[Any, Any]:
    """Offset and length of every record of a batch, a view of its memory."""
    size = batch.count * ffi.sizeof("tfw_span")
    return np.frombuffer(ffi.buffer(batch.spans, size), np.int64).reshape(-1, 2)
