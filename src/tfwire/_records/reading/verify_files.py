"""verify_file, verify_files: verify every record of files, and report contents and damage."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tfwire._base.aliases import Compression, DetectedCompressionType, Input, StorageOptions
from tfwire._base.arguments import boolean, check_callable, integer
from tfwire._base.errors import DataLossError, public
from tfwire._base.native import ffi, lib, new_struct
from tfwire._base.parallel_map import Check, ParallelMap
from tfwire._records.files.compression import either_word
from tfwire._records.files.find_files import input_paths, one_input
from tfwire._records.files.paths import is_file_object
from tfwire._records.files.urls import ObjectPath, is_url
from tfwire._records.reading.damage import RecordPosition, SkippedRegions, display_name
from tfwire._records.reading.file_passes import (
    FileMap,
    FilePass,
    Passage,
    PlainFile,
    regular_status,
)
from tfwire._records.reading.options import make_options, open_source
from tfwire._records.reading.pipeline import Chunk
from tfwire._records.reading.receipts import Receipt, Tally, crc32c_of_file
from tfwire._records.reading.record_file import RecordFile

_BUFFER_BYTES = 1 << 20  # long records are moved less often, and nothing else needs the cache
_PROGRESS_BYTES = 1 << 24  # between two calls of a progress function


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
        path: A path, a URL, a path of universal_pathlib, a pattern that one file matches, or a file
            object.
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
    path = one_input(path, storage_options, "verify_files(paths)")
    verify = _Verify(compression_type, max_record_size, file_crc32c, receipt)
    if progress is not None:
        check_callable("progress", progress)
        verify.progress = lambda _, done: progress(done)
    with contextlib.closing(Passage(verify, [path], 1).results()) as reports:
        return next(reports)


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
        paths: As for ``read_records``.
        compression_type, options, max_record_size, file_crc32c, receipt, storage_options: As for
            ``verify_file``.
        progress: Called with a path and the number of its bytes read so far. With several threads,
            any of them may call it.
        num_threads: All threads that read and verify, the caller included: of one large file, too.
            What is not a plain file without damage is verified by one of them. Only the speed
            depends on it.

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
        verify.progress = progress
    return _verify_all(verify, list(input_paths(paths, storage_options)), threads)


def verify_inputs(
    inputs: Iterable[Any],
    compression_type: DetectedCompressionType,
    file_crc32c: bool,
    receipt: bool,
    progress: Callable[[Any, int], None],
    num_threads: int,
    max_record_size: int | None = None,
) -> FileMap[Any, FileReport]:
    """As verify_files, of inputs in which no pattern is expanded."""
    verify = _Verify(compression_type, max_record_size, file_crc32c, receipt)
    verify.progress = progress
    return _verify_all(verify, inputs, num_threads)


def _verify_all(
    verify: _Verify, inputs: Iterable[Any], num_threads: int
) -> FileMap[Any, FileReport]:
    if num_threads > 1:  # another thread opens the next object, not what this one would prepare
        inputs = (path.alone() if isinstance(path, ObjectPath) else path for path in inputs)
    return FileMap(verify, inputs, num_threads)


# ---- How it is done ---------------------------------------------------------------------------


class _Totals(PlainFile[FileReport]):
    """What the records of a file add up to, as far as they were read.

    Args:
        status: Of a regular file, or None.
        report: Makes a report of this.
        progress: Called with the number of bytes read so far.
    """

    def __init__(
        self,
        status: Any,
        report: Callable[[_Totals], FileReport],
        progress: Callable[[int], None],
    ) -> None:
        super().__init__(status)
        self.first: bytes | None = None
        self.tally = Tally()
        self.end = RecordPosition()
        self._lengths = ffi.new("uint64_t[2]", (2**64 - 1, 0))
        self._report = report
        self._progress = progress
        self._told = 0

    def add(self, chunk: Chunk) -> None:
        info, lengths = chunk.info, self._lengths
        if info.begin.offset == 0:
            self.first = bytes(ffi.buffer(info.data, info.data_len)) if info.data_len else b""
        self.tally.add(info.tally, info.end.offset - info.begin.offset)
        lengths[0] = min(lengths[0], info.shortest)
        lengths[1] = max(lengths[1], info.longest)
        self.end = RecordPosition(info.end.record, info.end.offset)
        if self.end.offset - self._told >= _PROGRESS_BYTES:
            self._tell(self.end.offset)

    def read(self, file: RecordFile, check: Check) -> None:
        """Takes all records of a file, from its start on."""
        batch, lengths, sums = new_struct("tfw_batch"), self._lengths, ffi.new("tfw_tally *")
        while file.next(0, batch):
            check()
            sums.records += batch.count
            sums.payload_bytes += batch.payload_bytes
            if self.first is None:
                span = batch.spans[0]
                self.first = bytes(ffi.buffer(batch.data + span.offset, span.length))
            lib.tfw_span_lengths(batch.spans, batch.count, lengths, lengths + 1)
            if file.bytes_read - self._told >= _PROGRESS_BYTES:
                self._tell(file.bytes_read)
        self.tally.add(sums if file.tally is None else file.tally.native, 0)
        self.finish_progress(file.bytes_read)

    def finish_progress(self, done: int) -> None:
        """Tells the number of bytes that were read, at the end."""
        if self.first is not None and done != self._told:
            self._tell(done)

    def _tell(self, done: int) -> None:
        self._told = done
        self._progress(done)

    def finish(self) -> FileReport:
        self.finish_progress(self.end.offset)
        return self._report(self)

    @property
    def shortest(self) -> int:
        return int(self._lengths[0]) if self.first is not None else 0

    @property
    def longest(self) -> int:
        return int(self._lengths[1])


class _Verify(FilePass[Input, FileReport]):
    """verify_file with its arguments checked; for any number of files and threads.

    Attributes:
        progress: Called with a file and the number of its bytes read so far.
    """

    mode = lib.TFW_PIPELINE_VERIFY

    def __init__(
        self, compression_type: Any, max_record_size: Any, file_crc32c: Any, receipt: Any
    ) -> None:
        self._file_crc32c = boolean("file_crc32c", file_crc32c)
        self._receipt = boolean("receipt", receipt)
        self._compression_type, self._max_record_size = compression_type, max_record_size
        tallied = self._file_crc32c or self._receipt
        self._options = make_options(
            compression_type, True, "skip", max_record_size, _BUFFER_BYTES, receipt=tallied
        )
        self.flags = lib.TFW_PIPELINE_TALLY if tallied else 0
        self.max_record_size = self._options.max_record_size
        self.progress: Callable[[Any, int], None] = lambda path, done: None

    def begin(self, item: Any) -> _Totals | None:
        status = regular_status(item) if self._options.compression in ("", "auto") else None
        return None if status is None else self._totals(item, status)

    def _totals(self, item: Any, status: os.stat_result | None) -> _Totals:
        def report(totals: _Totals) -> FileReport:
            crc = totals.tally.file_crc32c
            return self._report(display_name(item), "", totals, SkippedRegions(), crc)

        return _Totals(status, report, partial(self.progress, item))

    def read(self, item: Any, check: Check, begun: Any = None) -> FileReport:
        totals = begun if begun is not None else self._totals(item, None)
        options, is_begun = self._options, totals.first is not None
        if is_begun:
            options = options._replace(compression="")
        with contextlib.closing(RecordFile(open_source(item), options, totals.end)) as file:
            totals.read(file, check)
            regions = file.skipped()
            compression, name = file.compression, display_name(file.path)
            file_crc = file.file_crc32c
            # A pipe cannot be read again.
            again = not is_file_object(item) and (is_url(item) or file.at_hand)
        if self._file_crc32c and file_crc is None and again:

            def checked() -> None:
                check()
                self.progress(item, 0)

            file_crc = crc32c_of_file(item, checked)
        hint = None
        if again and regions and totals.first is None:
            hint = damage_hint(item, self._compression_type, self._max_record_size)
        return self._report(name, compression, totals, regions, file_crc, hint)

    def _report(
        self,
        name: str,
        compression: Compression,
        totals: _Totals,
        regions: SkippedRegions,
        file_crc: int | None,
        hint: str | None = None,
    ) -> FileReport:
        receipt = totals.tally.receipt
        return FileReport(
            name,
            compression,
            receipt.num_records,
            receipt.payload_bytes,
            totals.shortest,
            totals.longest,
            totals.first,
            regions,
            file_crc if self._file_crc32c else None,
            receipt if self._receipt else None,
            hint,
        )


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
