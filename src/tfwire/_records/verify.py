"""verify_file: verifies every record of a file, and reports its contents and damage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfwire._base.arguments import boolean
from tfwire._base.errors import DataLossError, public
from tfwire._base.native import ffi, lib
from tfwire._records.damage import SkippedRegions, display_name
from tfwire._records.options import make_options
from tfwire._records.receipts import Receipt, crc32c_of_file
from tfwire._records.record_file import RecordFile
from tfwire._records.sources import check_input, is_file_object, is_url, open_source

if TYPE_CHECKING:
    from tfwire._base.aliases import Compression, DetectedCompressionType, Input

__all__ = [
    "FileReport",
    "hint_of",
    "verify_file",
]

_BUFFER = 1 << 20  # long records are moved less often, and nothing else needs the cache


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
        crc32c: CRC-32C of the file's bytes, as they are stored; None if not asked for, or if the
            input is damaged and cannot be read again.
        receipt: The receipt of the records that verify; None if not asked for.
        hint: If no record verifies, the error that a reader raises: it may not be a record file.
    """

    path: str
    compression: Compression
    num_records: int
    payload_bytes: int
    shortest: int
    longest: int
    first: bytes | None
    skipped: SkippedRegions
    crc32c: int | None
    receipt: Receipt | None = None
    hint: str | None = None

    @property
    def intact(self) -> bool:
        """Whether every byte of the file belongs to a record that verifies."""
        return not self.skipped


def verify_file(
    path: Input,
    *,
    compression_type: DetectedCompressionType = "auto",
    max_record_size: int | None = None,
    crc32c: bool = False,
    receipt: bool = False,
    progress: Callable[[int], None] | None = None,
) -> FileReport:
    """Verifies every record of a file. Damage is reported, and raises nothing.

    Args:
        path: A path, a URL or a file object.
        compression_type: As for ``read_records``.
        max_record_size: Longer records are damage; None: no limit. Memory grows with the longest
            record.
        crc32c: Compute the CRC-32C of the file too, in the same pass; a damaged file is read once
            more for it.
        receipt: Compute the receipt of the records too.
        progress: Called with the number of bytes read so far.

    Returns:
        A FileReport.

    Raises:
        ValueError, TypeError: An argument that is not valid, or a device without an end.
        OSError: The file cannot be opened or read.

    Example:
        >>> verify_file("train.tfrecord").intact
        True
    """
    scan = _Scan()
    crc32c, receipt = boolean("crc32c", crc32c), boolean("receipt", receipt)
    options = make_options(
        compression_type, True, "skip", max_record_size, _BUFFER, receipt=crc32c or receipt
    )
    check_input("path", path)
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable, found {type(progress).__name__}")
    with contextlib.closing(RecordFile(open_source(path), options)) as file:
        batch = ffi.new("tfw_batch *")
        while file.next(0, batch):
            scan.take(batch)
            if progress is not None:
                progress(file.bytes_read)
        regions = file.skipped()
        compression, name = file.compression, display_name(file.path)
        file_crc = file.file_crc32c if crc32c else None
        # A pipe cannot be read again.
        again = not is_file_object(path) and (is_url(path) or file.at_hand)
        found = file.tally.receipt if receipt and file.tally is not None else None
    if crc32c and file_crc is None and again:
        file_crc = crc32c_of_file(path)
    hint = None
    if again and regions and not scan.records:
        hint = hint_of(path, compression_type, max_record_size)
    return FileReport(
        name,
        compression,
        scan.records,
        scan.payload_bytes,
        scan.shortest,
        scan.longest,
        scan.first,
        regions,
        file_crc,
        found,
        hint,
    )


def hint_of(path: Any, compression_type: Any, max_record_size: int | None = None) -> str | None:
    """The error that a reader raises for a file that begins with damage, as text; else None."""
    if is_file_object(path):
        return None
    options = make_options(compression_type, True, "raise", max_record_size, None)
    with contextlib.closing(RecordFile(open_source(path), options)) as file:
        try:
            file.next(1, ffi.new("tfw_batch *"))
        except DataLossError as error:
            return str(error)
    return None


class _Scan:
    """Counts and lengths, summed over batches."""

    def __init__(self) -> None:
        self.records = 0
        self.payload_bytes = 0
        self.first: bytes | None = None
        self._shortest = ffi.new("uint64_t *", 2**64 - 1)
        self._longest = ffi.new("uint64_t *")

    @property
    def shortest(self) -> int:
        return int(self._shortest[0]) if self.records else 0

    @property
    def longest(self) -> int:
        return int(self._longest[0])

    def take(self, batch: Any) -> None:
        if self.first is None:
            start = batch.data + batch.spans[0].offset
            self.first = bytes(ffi.buffer(start, batch.spans[0].length))
        self.records += batch.count
        self.payload_bytes += batch.payload_bytes
        lib.tfw_span_lengths(batch.spans, batch.count, self._shortest, self._longest)
