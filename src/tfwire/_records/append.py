"""Where a record file may be continued."""

from __future__ import annotations

import contextlib
import os

from tfwire._core import ffi, lib
from tfwire._records.compression import DETECT_SIZE, detect_compression
from tfwire._records.options import make_options
from tfwire._records.recordfile import RecordFile
from tfwire._records.regions import Position
from tfwire._records.sources import FileSource, Path
from tfwire._records.streams import BatchReader
from tfwire._records.tally import crc32c_of_file
from tfwire._text import show_path
from tfwire.errors import DataLossError

__all__ = ["append_position"]


def append_position(path: Path, compression: str, repair_tail: bool) -> tuple[int, int]:
    """Checks that a file ends with a whole record.

    Every header is checked and the payload of the last record; in a GZIP file everything.

    Args:
        path: The file; it may be missing.
        compression: "", "GZIP" or "ZLIB", as the new records will be written.
        repair_tail: Leave out a torn last record: one that is cut, one whose data were not written
            (its checksum is wrong), and a rest of nothing but zeros, as a crash of the system may
            leave it. Not one behind whose beginning other records verify: they would be lost.

    Returns:
        The offset behind the last whole record, and the CRC-32C of the file up to there.

    Raises:
        DataLossError: The file is damaged, or its tail torn and repair_tail False.
        ValueError: The file is compressed in another way, or in one that cannot be continued.
    """
    try:
        head, size = _head(path)
    except FileNotFoundError:
        return 0, 0
    if size == 0:
        return 0, 0
    if compression == "ZLIB":
        raise ValueError(
            f"{show_path(path)}: a ZLIB file cannot be continued, because TensorFlow reads its "
            "first stream only; use GZIP"
        )
    found = detect_compression(head)
    if found != compression:
        raise ValueError(
            f"{show_path(path)}: the file is {found or 'not compressed'}, options say "
            f"{compression or 'not compressed'}"
        )
    if compression == "GZIP":
        with BatchReader(path, compression, max_record_size=None, receipt=True) as reader:
            while reader.next() is not None:
                pass
            crc32c = reader.file_crc32c
        return size, crc32c_of_file(path) if crc32c is None else crc32c
    return _end_of_records(path, size, repair_tail)


def _head(path: Path) -> tuple[bytes, int]:
    source = FileSource(path)
    try:
        return source.peek(DETECT_SIZE), source.size() or 0
    finally:
        source.close()


def _end_of_records(path: Path, size: int, repair_tail: bool) -> tuple[int, int]:
    """The size and the CRC-32C of a file that ends with a whole record, or with a torn tail that
    is cut off."""
    try:
        last, crc32c = _walk(path)
        if last is not None:
            _check_record(path, *last)
    except DataLossError as error:
        begin = error.offset or 0
        torn = error.reason in ("truncated", "data crc") or _is_zero(path, begin)
        if not torn:
            raise
        if not repair_tail:
            error.args = (f"{error}; repair_tail=True would cut the file there",)
            raise
        if _holds_records(path, Position(error.record_index or 0, begin)):
            error.args = (
                f"{error}; records that verify lie behind it: 'tfwire repair' keeps them",
            )
            raise
        os.truncate(path, begin)
        return _end_of_records(path, begin, repair_tail) if begin else (0, 0)
    return size, crc32c


def _walk(path: Path) -> tuple[tuple[int, int, int] | None, int]:
    """Number, offset and size of the last record, and the CRC-32C of the file, by a walk over all
    headers."""
    last = None
    with BatchReader(path, "", verify=False, max_record_size=None, receipt=True) as reader:
        while (batch := reader.next()) is not None:
            span = batch.spans[batch.count - 1]
            number = batch.first_record + batch.count - 1
            begin = batch.offset + span.offset - lib.TFW_HEADER_SIZE
            last = number, begin, span.length + lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE
        return last, reader.file_crc32c or 0


def _check_record(path: Path, number: int, begin: int, size: int) -> None:
    """Verifies the payload of one record."""
    with open(path, "rb", buffering=0) as file:
        record = os.pread(file.fileno(), size, begin)
    crc = lib.tfw_crc32c(0, ffi.from_buffer(record) + lib.TFW_HEADER_SIZE, size - 16)
    if lib.tfw_crc32c_mask(crc) != int.from_bytes(record[-lib.TFW_FOOTER_SIZE :], "little"):
        raise DataLossError(
            f"{os.fspath(path)}: record {number} at byte {begin}: its payload does not agree with "
            "its checksum",
            path=path,
            offset=begin,
            record_index=number,
            reason="data crc",
        )


def _holds_records(path: Path, start: Position) -> bool:
    """Whether any record verifies from a place on."""
    options = make_options("", True, "skip", None, None)
    with contextlib.closing(RecordFile(FileSource(path), options, start)) as file:
        return file.next(1, ffi.new("tfw_batch *"))


def _is_zero(path: Path, begin: int) -> bool:
    """Whether the file holds nothing but zeros from a place on."""
    with open(path, "rb") as file:
        file.seek(begin)
        return not any(any(block) for block in iter(lambda: file.read(1 << 20), b""))
