"""TFRecord files: reading and writing records of bytes."""

from __future__ import annotations

import itertools
import math
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

from tfwire._arguments import seconds
from tfwire._public import public
from tfwire._records.compression import TFRecordOptions
from tfwire._records.followed import FollowedFile
from tfwire._records.markers import Markers
from tfwire._records.options import as_position, make_options
from tfwire._records.payloads import as_records, chunks
from tfwire._records.record_batches import CLOSED, RecordBatches
from tfwire._records.regions import RecordPosition, SkippedRegion, SkippedRegions, TornTail
from tfwire._records.sources import is_path
from tfwire._records.streams import BatchReader
from tfwire._records.writer import TFRecordWriter
from tfwire.receipts import Receipt

__all__ = [
    "RecordIterator",
    "RecordPosition",
    "SkippedRegion",
    "SkippedRegions",
    "TFRecordOptions",
    "TFRecordWriter",
    "TornTail",
    "follow_records",
    "read_records",
    "write_records",
]

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
    start: RecordPosition | None = None,
) -> RecordIterator:
    """Reads the records of TFRecord files, one file after another.

    Where a file belongs to a set that a ShardedWriter left half published, a TfwireWarning says so.

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
            TfwireWarning says so when the file ends. Where the search behind damage meets records
            inside the payload of a record, it cannot tell them from others.
        max_record_size: Longer records are damage; None: no limit. Memory grows only with the
            bytes that are there.
        buffer_size: Bytes read at a time; None or 0: 256 KiB.
        receipt: Keep account of the records and of the file's checksum, for the iterator's
            ``receipt`` and ``file_crc32c``.
        start: Where to begin in the first file: an earlier iterator's ``position``. A compressed
            file and a file object are read up to there.

    Returns:
        An iterator of bytes.

    Raises:
        ValueError, TypeError: An argument that is not valid.
        DataLossError: While iterating: by ``on_corrupt``, after every record before the damage.
        OSError: While iterating: a file cannot be opened or read.

    Example:
        >>> for record in read_records("train.tfrecord"):
        ...     print(len(record))
        3
        3
        4
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
            start=start,
            markers=Markers(),
        )
    )


def follow_records(
    path: Any,
    compression_type: Any = "auto",
    *,
    start: RecordPosition | None = None,
    interval: float = 1.0,
    timeout: float | None = None,
    verify: bool = True,
    max_record_size: int | None = 2**30,
    buffer_size: int | None = None,
) -> Iterator[bytes]:
    """Reads the records of a file that is still being written, as they come.

    An incomplete record at the end is waited for; other damage is an error. To keep track of
    progress, call ``read_records(path, on_corrupt="tail", start=position)`` again and again
    instead, which is what this function does.

    Args:
        path: A path or a URL. A compressed file is read from its beginning each time, and shows
            what its writer has flushed.
        compression_type, verify, max_record_size, buffer_size: As for ``read_records``.
        start: Where to begin: an iterator's ``position``.
        interval: Seconds between looks at a file that has nothing new.
        timeout: End after so many seconds without a new record; None: never.

    Returns:
        An iterator of bytes.

    Raises:
        ValueError, TypeError: An argument that is not valid.
        DataLossError: While iterating: damage that is no incomplete record; the file became
            shorter, or another file has taken its place.
        OSError: While iterating: the file cannot be opened or read.

    Example:
        >>> for record in follow_records("a.tfrecord", timeout=0.01):  # seconds without a record
        ...     print(len(record))
        3
        3
    """
    if not is_path(path):
        raise TypeError(f"path must be a path or a URL, found {type(path).__name__}")
    options: dict[str, Any] = {
        "verify": verify,
        "max_record_size": max_record_size,
        "buffer_size": buffer_size,
    }
    make_options(compression_type, on_corrupt="tail", **options)  # checks them
    interval = seconds("interval", interval)
    timeout = math.inf if timeout is None else seconds("timeout", timeout)
    position = as_position("start", start)
    return _follow(FollowedFile(path), compression_type, options, position, interval, timeout)


def _follow(
    file: FollowedFile,
    compression_type: Any,
    options: dict[str, Any],
    position: RecordPosition,
    interval: float,
    timeout: float,
) -> Iterator[bytes]:
    deadline = time.monotonic() + timeout
    while True:
        source = file.open(position)
        reader = BatchReader(source, compression_type, on_corrupt="tail", start=position, **options)
        reader.warn = _ignore  # an incomplete record is no news
        with RecordIterator(reader) as records:
            yield from records
            before, position = position, records.position
        now = time.monotonic()
        if position != before:
            deadline = now + timeout
        if now >= deadline:
            return
        time.sleep(min(interval, deadline - now))


def _ignore(message: str) -> None:
    """Takes the place of a warning."""


def write_records(path: Any, records: Iterable[Any], options: Any = None) -> int:
    """Writes a file of records.

    Args:
        path, options: As for TFRecordWriter.
        records: As for ``TFRecordWriter.write_many``.

    Returns:
        The number of records.

    Raises:
        As TFRecordWriter; the records before a fault are in the file. It is not opened if already
        the first record cannot be written.
    """
    pieces = chunks(records)
    first = next(pieces, [])
    as_records(first)  # an existing file is not emptied for what cannot be written
    with TFRecordWriter(path, options) as writer:
        return writer._write_chunks(itertools.chain([first], pieces))


@public
class RecordIterator:
    """Iterates over records as bytes; made by ``read_records``.

    ``for`` and ``next`` draw on the same records. After an error the iterator is at its end.
    Threads may share it: each record is given to one of them, once. A process that forks may go on
    on both sides, when it reads paths. Closing is optional; it is also a context manager.
    """

    def __init__(self, reader: BatchReader) -> None:
        self._batches = RecordBatches(reader)
        self._turn = threading.RLock()  # where there is no GIL
        self._records: Iterator[bytes] = itertools.chain.from_iterable(self._batches)
        self._positions: Iterator[tuple[Any, int, int, bytes]] | None = None

    def __iter__(self) -> Iterator[bytes]:
        # A __next__ in Python would cost as much as all the rest.
        return self._records if _gil_enabled() else self

    def __next__(self) -> bytes:
        if _gil_enabled():
            return next(self._records)
        with self._turn:
            return next(self._records)

    def with_positions(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """The records that are left as tuples (path, index, offset, record).

        Index counts the records of the file, a region left out as one; offset is where the record's
        header begins, in the decompressed content of a compressed file. From now on the records
        come from the returned iterator alone; it is for one thread.

        Example:
            >>> for path, index, offset, record in read_records("a.tfrecord").with_positions():
            ...     print(f"{path}[{index}] at byte {offset}: {len(record)} bytes")
            a.tfrecord[0] at byte 0: 3 bytes
            a.tfrecord[1] at byte 19: 3 bytes
        """
        if self._positions is None:
            self._records = _Refusing("the records are being read with positions")
            self._positions = self._batches.positions()
        return self._positions

    @property
    def skipped(self) -> SkippedRegions:
        """The regions left out so far, in the order of the files; the last may still grow."""
        return self._batches.skipped

    @property
    def position(self) -> RecordPosition:
        """Where the record begins that is handed out next, in the file at hand: behind the last
        whole record at its end. ``read_records(path, start=position)`` goes on there, also in
        another process and at another time.

        Example:
            >>> records = read_records("train.tfrecord")
            >>> first = next(records)
            >>> rest = read_records("train.tfrecord", start=records.position)
        """
        return self._batches.position

    @property
    def tail(self) -> TornTail | None:
        """The incomplete record at the end of the file that was read to its end last; None before
        that, and where the file ends behind a whole record."""
        return self._batches.tail

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
        return self._batches.receipt

    @property
    def file_crc32c(self) -> int | None:
        """The CRC-32C of all bytes of the file that was read to its end last; None before that, and
        where some of them were left out.

        Raises:
            ValueError: ``read_records`` was not asked for a receipt.
        """
        return self._batches.file_crc32c

    def close(self) -> None:
        """Closes the files; going on is a ValueError then. Closing again is allowed.

        Any thread may close, at any time. A thread that waits for a pipe gets the ValueError at
        once; one that is inside a file object is waited for, but not for ever: then it closes the
        files when it comes back, and gets the ValueError.
        """
        self._records = _Refusing(CLOSED)
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
