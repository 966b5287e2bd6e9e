"""read_records, and the iterator over records."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tfwire._base.aliases import DetectedCompressionType, Input, OnCorrupt, StorageOptions
from tfwire._base.arguments import integer
from tfwire._base.errors import public
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import input_paths
from tfwire._records.reading.batch_reader import CLOSED, BatchReader, RecordBatches
from tfwire._records.reading.damage import RecordPosition, SkippedRegions, TornTail
from tfwire._records.reading.options import make_options
from tfwire._records.reading.publishing_markers import Markers
from tfwire._records.reading.receipts import Receipt

R = TypeVar("R", bound="ChainedRecords")
# Threads share the itertools.chain that __iter__ returns, which has no lock of its own: without a
# GIL, __next__ needs one.
_gil_enabled = getattr(sys, "_is_gil_enabled", lambda: True)


def read_records(
    paths: Input | Iterable[Input],
    compression_type: DetectedCompressionType = "auto",
    *,
    verify: bool = True,
    on_corrupt: OnCorrupt = "raise",
    max_record_size: int | None = 2**30,
    buffer_size: int | None = None,
    receipt: bool = False,
    start: RecordPosition | None = None,
    num_threads: int = 1,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> RecordIterator:
    """Reads the records of TFRecord files, one file after another.

    A TfwireWarning says so if a file belongs to a set that a ShardedWriter left half published.

    Args:
        paths: A path (str, bytes or os.PathLike), a URL or a path of universal_pathlib (through
            fsspec), a file object (anything with ``readinto`` or ``read``, read from its current
            position and not closed), or an iterable of them. A folder is the files in it, and a
            pattern like "train-*" those that match, in the order of their names, without hidden
            files and those that lie beside records (indexes, checksums, JSON); "train@64" is all
            of "train-?????-of-00064". A file whose name looks like a pattern is itself. Each file
            is opened when it is reached.
        compression_type, options: Two words for one argument, that of TensorFlow's readers and that
            of its writers. "auto" detects it; None or "" (not compressed), "GZIP", "ZLIB" in any
            case; TFRecordOptions. Concatenated gzip members and zlib streams are all read. Zeros
            between and after them are padding, anything else is damage.
        verify: False skips the checksums of payloads; headers are always verified.
        on_corrupt: What to do at damage. "raise"; "skip": leave out damaged records and go on at
            the next one that verifies, in a GZIP file also at the next member that inflates;
            "tail": treat a torn last record (a writer died) as the end, raise at other damage;
            "stop": treat any damage as the end. What is left out is in ``skipped``, and a
            TfwireWarning says so when the file ends. After damage, the search may find records
            that are part of another record's payload: it cannot distinguish them.
        max_record_size: Longer records are damage; None: no limit. Memory grows only with the
            bytes that the file really has.
        buffer_size: Bytes read at a time; None or 0: 256 KiB.
        receipt: Compute the iterator's ``receipt`` and ``file_crc32c``.
        start: Where to begin in the first file: an earlier iterator's ``position``. A compressed
            file or a file object is read up to there; of a URL, only what follows.
        num_threads: How many threads read and verify a local file that is not compressed, the
            caller's included, some MiB ahead of the records. Of a list of compressed files, so many
            are inflated and verified at a time, each up to 16 MiB ahead; they are opened earlier
            then. Only the speed depends on it.
        storage_options: fsspec's options of the filesystem of URLs, for example
            ``{"anon": True}``.

    Returns:
        An iterator of bytes.

    Raises:
        ValueError, TypeError: An argument that is not valid.
        DataLossError: While iterating: damage, as ``on_corrupt`` says, after every record before
            it.
        FileNotFoundError: A folder or a pattern has no files, or a shard is missing.
        OSError: While iterating: a file cannot be opened or read.

    Warns:
        TfwireWarning: A list is empty.

    Example:
        >>> for record in read_records("train.tfrecord"):
        ...     print(len(record))
        3
        3
        4
    """
    compression_type = either_word(compression_type, options, "auto")
    reading = make_options(
        compression_type, verify, on_corrupt, max_record_size, buffer_size, receipt=receipt
    )
    num_threads = integer("num_threads", num_threads, 1)
    return RecordIterator(
        BatchReader(
            input_paths(paths, storage_options),
            reading,
            start=start,
            markers=Markers(),
            num_threads=num_threads,
        )
    )


class ChainedRecords:
    """The records of batches one by one, for ``for`` and ``next``; threads may share them.

    Args:
        batches: Iterators over the records of a batch each.
    """

    def __init__(self, batches: Iterable[Iterator[bytes]]) -> None:
        self._lock = threading.RLock()  # used without a GIL
        self._records: Iterator[bytes] = itertools.chain.from_iterable(batches)

    def __iter__(self) -> Iterator[bytes]:
        # A __next__ in Python would double the cost per record.
        return self._records if _gil_enabled() else self

    def __next__(self) -> bytes:
        if _gil_enabled():
            return next(self._records)
        with self._lock:
            return next(self._records)

    @abstractmethod
    def close(self) -> None: ...

    def __enter__(self: R) -> R:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("record iterators cannot be pickled; open the files in the other process")


@public
class RecordIterator(ChainedRecords):
    """Iterates over records as bytes; made by ``read_records``.

    ``for`` and ``next`` share the records. After an error the iterator is at its end. Threads may
    share it: each record goes to one of them. After a fork, parent and child may both go on if they
    read paths. Closing is optional; the iterator is also a context manager.
    """

    def __init__(self, reader: BatchReader) -> None:
        self._batches = RecordBatches(reader)
        super().__init__(self._batches)
        self._positions: Iterator[tuple[Any, int, int, bytes]] | None = None

    def with_positions(
        self,
    ) -> Iterator[tuple[str | os.PathLike[str] | None, int, int, bytes]]:
        """The records that are left, as tuples (path, index, offset, record).

        ``index`` counts the records of the file, and a skipped region as one; ``offset`` is where
        the record's header begins, in a compressed file in the decompressed content. From now on
        only the returned iterator gives records; it is for one thread.

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
        """The regions left out so far, in the order of the files. The last may still grow."""
        return self._batches.exclusively(lambda: self._batches.reader.skipped)

    @property
    def position(self) -> RecordPosition:
        """Where the next record begins in the current file; at its end, the end of the last whole
        record. ``read_records(path, start=position)`` goes on there, also in another process or
        later.

        Example:
            >>> records = read_records("train.tfrecord")
            >>> first = next(records)
            >>> rest = read_records("train.tfrecord", start=records.position)
        """
        return self._batches.exclusively(self._batches.position)

    @property
    def tail(self) -> TornTail | None:
        """The incomplete record at the end of the last file that was read to its end; None before
        that, and if the file ends after a whole record."""
        return self._batches.exclusively(lambda: self._batches.reader.tail)

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records handed out so far. With ``verify=False`` it is computed from
        their stored checksums.

        Raises:
            ValueError: Without ``receipt=True``.

        Example:
            >>> records = read_records("train.tfrecord", receipt=True)
            >>> sum(1 for _ in records) == records.receipt.num_records
            True
        """
        return self._batches.exclusively(self._batches.receipt)

    @property
    def file_crc32c(self) -> int | None:
        """The CRC-32C of all bytes of the last file that was read to its end; None before that, and
        if some of them were left out.

        Raises:
            ValueError: Without ``receipt=True``.
        """
        return self._batches.exclusively(lambda: self._batches.reader.file_crc32c)

    def close(self) -> None:
        """Closes the files; iterating further is a ValueError. Closing again is allowed.

        Any thread may close, at any time. A thread that waits for a pipe gets the ValueError at
        once. A thread inside a file object's method is waited for, but not forever; if it takes
        longer, it closes the files when it returns, and then gets the ValueError.
        """
        self._records = self._positions = _Refusing(CLOSED)
        self._batches.close()


class _Refusing(Iterator[Any]):
    """Replaces an iterator that must not be used any more."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __next__(self) -> Any:
        raise ValueError(self._reason)
