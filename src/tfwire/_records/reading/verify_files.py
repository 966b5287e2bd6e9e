"""verify_file, verify_files: verify every record of files, and report contents and damage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tfwire._base.aliases import Compression, DetectedCompressionType, Input, StorageOptions
from tfwire._base.arguments import boolean, check_callable, integer
from tfwire._base.errors import DataLossError, public
from tfwire._base.native import ffi, new_struct
from tfwire._base.parallel_map import Check, ParallelMap
from tfwire._records.files.compression import either_word
from tfwire._records.files.paths import is_file_object
from tfwire._records.files.urls import is_url
from tfwire._records.reading.damage import SkippedRegions, display_name
from tfwire._records.reading.options import input_paths, make_options, one_input, open_source
from tfwire._records.reading.receipts import Receipt, Summary, crc32c_of_file
from tfwire._records.reading.record_file import RecordFile

_BUFFER_BYTES = 1 << 20  # long records are moved less often, and nothing else needs the cache
_BYTES_PER_SUMMARY = 1 << 24  # of one call into C; an interrupt is handled between calls


@public
@dataclass(frozen=True)
class FileReport:
    """The contents of a file, as ``verify_file`` found them.

    Attributes:
        path: The file.
        compression: "", "GZIP" or "ZLIB".
        num_records: How many records verify.
        payload_bytes: Sum of their lengths.
        shortest, longest: The smallest and the largest of their lengths; 0 if there are none.
        first: The first of them, or None.
        skipped: Everything else in the file, which is damaged; see SkippedRegions.
        file_crc32c: CRC-32C of the file's bytes, as they are stored; None if not asked for, or if
            the input is damaged and cannot be read again.
        receipt: The receipt of the records that verify; None if not asked for.
        hint: If no record verifies, the error that a reader raises: it may not be a record file.
    """

    path: str
    compression: Compression
    num_records: int
    payload_bytes: int
    shortest: int
    longest: int
    first: bytes | None = field(repr=False)  # it may be long
    skipped: SkippedRegions
    file_crc32c: int | None
    receipt: Receipt | None = None
    hint: str | None = None

    @property
    def intact(self) -> bool:
        """Whether every byte of the file belongs to a record that verifies."""
        return not self.skipped


def verify_file(
    path: Input,
    compression_type: DetectedCompressionType = "auto",
    *,
    max_record_size: int | None = None,
    file_crc32c: bool = False,
    receipt: bool = False,
    progress: Callable[[int], None] | None = None,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> FileReport:
    """Verifies every record of a file. Damage is reported, and raises nothing.

    Args:
        path: A path, a URL, a path of universal_pathlib or a file object.
        compression_type, options: As for ``read_records``.
        max_record_size: Longer records are damage; None: no limit. Memory grows with the longest
            record.
        file_crc32c: Compute the CRC-32C of the file too, in the same pass; a damaged file is read
            once more for it.
        receipt: Compute the receipt of the records too.
        progress: Called with the number of bytes read so far.
        storage_options: fsspec's options of the filesystem of URLs.

    Returns:
        A FileReport.

    Raises:
        ValueError, TypeError: An argument that is not valid, or a device without an end.
        OSError: The file cannot be opened or read.

    Example:
        >>> verify_file("train.tfrecord").intact
        True
    """
    compression_type = either_word(compression_type, options, "auto")
    path = one_input(path, storage_options)
    verify = _Verify(compression_type, max_record_size, file_crc32c, receipt)
    if progress is None:
        return verify(path, lambda done: None)
    check_callable("progress", progress)
    return verify(path, progress)


def verify_files(
    paths: Input | Iterable[Input],
    compression_type: DetectedCompressionType = "auto",
    *,
    max_record_size: int | None = None,
    file_crc32c: bool = False,
    receipt: bool = False,
    progress: Callable[[Input, int], None] | None = None,
    num_threads: int = 1,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> ParallelMap[Input, FileReport]:
    """Verifies every record of several files side by side, each as ``verify_file`` does it.

    Args:
        paths: A path, a URL, a path of universal_pathlib or a file object, or an iterable of them.
        compression_type, options, max_record_size, file_crc32c, receipt, storage_options: As for
            ``verify_file``.
        progress: Called with a path and the number of its bytes read so far. With several threads,
            they call it.
        num_threads: How many files to verify at a time. Only the speed depends on it.

    Returns:
        An iterator of a FileReport per file, in the order of ``paths``. Leaving it early, by its
        ``close()`` too, stops the threads. Threads may share it.

    Raises:
        ValueError, TypeError: An argument that is not valid.
        OSError: While iterating, after the reports of the files before: a file cannot be opened or
            read.

    Example:
        >>> reports = verify_files(["a.tfrecord", "b.tfrecord"], receipt=True, num_threads=2)
        >>> sum(report.receipt for report in reports)
        Receipt(num_records=4, payload_bytes=15, hash=7381539549816173650)
    """
    compression_type = either_word(compression_type, options, "auto")
    verify = _Verify(compression_type, max_record_size, file_crc32c, receipt)
    threads = integer("num_threads", num_threads, 1)
    if progress is not None:
        check_callable("progress", progress)

    def report(path: Input, check: Check) -> FileReport:
        def on_progress(done: int) -> None:
            check()
            if progress is not None:
                progress(path, done)

        return verify(path, on_progress)

    return ParallelMap(report, list(input_paths(paths, storage_options)), threads)


class _Verify:
    """verify_file with its arguments checked; for any number of files and threads."""

    def __init__(
        self, compression_type: Any, max_record_size: Any, file_crc32c: Any, receipt: Any
    ) -> None:
        self._file_crc32c = boolean("file_crc32c", file_crc32c)
        self._receipt = boolean("receipt", receipt)
        self._compression_type, self._max_record_size = compression_type, max_record_size
        needs_tally = self._file_crc32c or self._receipt
        self._options = make_options(
            compression_type, True, "skip", max_record_size, _BUFFER_BYTES, receipt=needs_tally
        )

    def __call__(self, path: Any, progress: Callable[[int], None]) -> FileReport:
        summary = Summary()
        with contextlib.closing(RecordFile(open_source(path), self._options)) as file:
            first = _first_record(file, summary)
            more = first is not None
            while more:
                more = file.summarize(summary, _BYTES_PER_SUMMARY)
                progress(file.bytes_read)
            regions = file.skipped()
            compression, name = file.compression, display_name(file.path)
            file_crc = file.file_crc32c if self._file_crc32c else None
            # A pipe cannot be read again.
            again = not is_file_object(path) and (is_url(path) or file.at_hand)
            receipt = file.tally.receipt if self._receipt and file.tally is not None else None
        if self._file_crc32c and file_crc is None and again:
            file_crc = crc32c_of_file(path, lambda: progress(0))
        hint = None
        if again and regions and first is None:
            hint = damage_hint(path, self._compression_type, self._max_record_size)
        return FileReport(
            name,
            compression,
            summary.num_records,
            summary.payload_bytes,
            summary.shortest,
            summary.longest,
            first,
            regions,
            file_crc,
            receipt,
            hint,
        )


def _first_record(file: RecordFile, summary: Summary) -> bytes | None:
    """Reads the first record of a file, and adds it to a summary; None if there is none."""
    batch = summary.batch
    if not file.next(1, batch):
        return None
    summary.add_batch()
    return bytes(ffi.buffer(batch.data + batch.spans[0].offset, batch.spans[0].length))


def detected_compression(path: Any) -> Compression:
    """How a file is compressed; "" if it is not."""
    options = make_options("auto", True, "skip", None, None)
    with contextlib.closing(RecordFile(open_source(path), options)) as file:
        return file.compression


def damage_hint(path: Any, compression_type: Any, max_record_size: int | None = None) -> str | None:
    """The error that a reader raises for a file that begins with damage, as text; else None."""
    if is_file_object(path):
        return None
    options = make_options(compression_type, True, "raise", max_record_size, None)
    with contextlib.closing(RecordFile(open_source(path), options)) as file:
        try:
            file.next(1, new_struct("tfw_batch"))
        except DataLossError as error:
            return str(error)
    return None
