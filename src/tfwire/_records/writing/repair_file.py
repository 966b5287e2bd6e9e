"""repair_file: copies the intact records of a damaged file, and flips single bits back."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfwire._base.aliases import (
    AnyPath,
    Compression,
    DetectedCompressionType,
    Input,
    StorageOptions,
)
from tfwire._base.arguments import boolean, check_callable
from tfwire._base.errors import DataLossError, public
from tfwire._base.native import new_struct
from tfwire._base.text import show_path
from tfwire._records.files.byte_sinks import DeflatedSink, DraftSink, Sink
from tfwire._records.files.compression import (
    compression_name,
    compressor,
    either_word,
    split_name,
)
from tfwire._records.files.find_files import one_input
from tfwire._records.files.paths import Path, is_file_object, local_path
from tfwire._records.files.urls import is_url
from tfwire._records.frames import FRAME, pack
from tfwire._records.reading.damage import FlippedBits, SkippedRegions, display_name
from tfwire._records.reading.options import make_options, open_source
from tfwire._records.reading.record_file import RecordFile


@public
@dataclass(frozen=True)
class RepairReport:
    """What ``repair_file`` wrote and what it lost.

    Attributes:
        path: The damaged file.
        compression: "", "GZIP" or "ZLIB", of the damaged file.
        num_records: Records written, including corrected ones.
        payload_bytes: Sum of their lengths.
        skipped: What could not be kept; see SkippedRegions.
        flipped_bits: Single flipped bits that explain damaged records; see FlippedBits. Those with
            ``corrected`` were flipped back; the records of the others are lost.
    """

    path: str
    compression: Compression
    num_records: int
    payload_bytes: int
    skipped: SkippedRegions
    flipped_bits: FlippedBits


def repair_file(
    path: Input,
    out_path: AnyPath,
    *,
    compression_type: DetectedCompressionType = "auto",
    max_record_size: int | None = None,
    correct: bool = False,
    accept_ambiguous: bool = False,
    overwrite: bool = False,
    out_compression_type: DetectedCompressionType = "auto",
    progress: Callable[[int], None] | None = None,
    options: DetectedCompressionType = None,
    storage_options: StorageOptions = None,
) -> RepairReport:
    """Copies every record of a file that verifies to a new file, byte for byte.

    Args:
        path: The damaged file: a path, a URL, a path of universal_pathlib or a file object. It is
            only read.
        out_path: The new file. It appears when it is complete, with the permissions of the file
            that it replaces; if there is none, those of the damaged file at most, limited by the
            umask.
        compression_type, options: As for ``read_records``.
        max_record_size: Longer records are damage; None: no limit. Memory grows with the longest
            record.
        correct: Flip a bit back if that single bit explains why a record does not verify, and no
            other damage of one or two bits does.
        accept_ambiguous: With ``correct``, flip a bit also if it is not the only explanation.
        overwrite: Replace out_path if it exists.
        out_compression_type: None or "", "GZIP" or "ZLIB"; "auto": as the name of out_path says
            (.gz, .gzip, .zlib), else as the damaged file has it.
        progress: Called with the number of bytes read so far.
        storage_options: fsspec's options of the filesystem of ``path``, a URL.

    Returns:
        A RepairReport.

    Raises:
        ValueError, TypeError: An argument that is not valid, or a device without an end.
        FileExistsError: out_path exists.
        shutil.SameFileError: out_path is the damaged file itself.
        DataLossError: No record verifies; nothing was written.
        OSError: A file cannot be read or written; nothing was written.

    Example:
        >>> from pathlib import Path
        >>> content = bytearray(Path("train.tfrecord").read_bytes())
        >>> content[13] ^= 1  # a bit of the first record
        >>> _ = Path("damaged.tfrecord").write_bytes(content)
        >>> report = repair_file("damaged.tfrecord", "repaired.tfrecord", correct=True)
        >>> report.num_records, report.skipped
        (3, [])
    """
    compression_type = either_word(compression_type, options, "auto")
    reading = make_options(
        compression_type,
        True,
        "skip",
        max_record_size,
        None,
        correct=correct,
        accept_ambiguous=accept_ambiguous,
    )
    path = one_input(path, storage_options, "repair_file for each")
    out_path = local_path("out_path", out_path)
    overwrite = boolean("overwrite", overwrite)
    if progress is not None:
        check_callable("progress", progress)
    chosen = compression_name(out_compression_type, True, "out_compression_type")
    if chosen == "auto":
        chosen = split_name(out_path)[1] or "auto"
    _check_output(path, out_path, overwrite)
    with contextlib.closing(RecordFile(open_source(path), reading)) as file:
        local: Any = None if is_file_object(path) or is_url(path) else path
        new = file.compression if chosen == "auto" else chosen
        return _copy(file, out_path, new, local, progress)


def _check_output(path: Any, out_path: Any, overwrite: bool) -> None:
    """Refuses to write over the input, or over another file without ``overwrite``."""
    if not os.path.lexists(out_path):
        return
    if not is_file_object(path) and os.path.exists(path) and os.path.samefile(path, out_path):
        raise shutil.SameFileError(
            f"{show_path(out_path)}: is the damaged file itself; name another"
        )
    if not overwrite:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(out_path))


def _copy(
    file: RecordFile,
    out_path: Path,
    compression: Compression,
    like: Path | None,
    progress: Callable[[int], None] | None,
) -> RepairReport:
    """Copies all records that verify; the new file appears only if there are any."""
    sink: Sink = DraftSink(out_path, like)
    compressed = compressor(compression, None)
    if compressed is not None:
        sink = DeflatedSink(sink, compressed)
    records = payload_bytes = 0
    batch = new_struct("tfw_batch")
    try:
        while file.next(0, batch):
            # With their frames, equal to those in the file.
            size = batch.payload_bytes + FRAME * batch.count
            sink.write([pack(batch.data, batch.data_len, batch.spans, batch.count, size)])
            records += batch.count
            payload_bytes += batch.payload_bytes
            if progress is not None:
                progress(file.bytes_read)
        lost = file.skipped()
        if lost and not records:
            raise _nothing_left(file, lost)
    except BaseException:
        sink.discard()
        raise
    sink.close()
    return RepairReport(
        display_name(file.path),
        file.compression,
        records,
        payload_bytes,
        lost,
        file.flipped_bits(),
    )


def _nothing_left(file: RecordFile, lost: SkippedRegions) -> DataLossError:
    return DataLossError(
        f"{display_name(file.path)}: no record verifies ({lost[0].reason} at byte "
        f"{lost[0].begin}); nothing was written",
        path=file.path,
        offset=lost[0].begin,
        record_index=0,
        reason=lost[0].reason,
    )
