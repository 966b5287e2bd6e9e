"""write_records: a file of records in one call."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from tfwire._base.aliases import CompressionType, Output, Record, StorageOptions
from tfwire._records.files.compression import either_word
from tfwire._records.frames import as_records, chunks
from tfwire._records.writing.writer import TFRecordWriter


def write_records(
    path: Output,
    records: Iterable[Record],
    options: CompressionType = None,
    *,
    compression_type: CompressionType = None,
    storage_options: StorageOptions = None,
) -> int:
    """Writes a file of records.

    Args:
        path, options, compression_type, storage_options: As for TFRecordWriter.
        records: As for ``TFRecordWriter.write_many``.

    Returns:
        The number of records.

    Raises:
        As TFRecordWriter. The records before an invalid one are in the file; it is not opened if
        the first one is invalid.
    """
    options = either_word(compression_type, options)
    pieces = chunks(records)
    first = next(pieces, [])
    as_records(first)  # checked before an existing file is emptied
    with TFRecordWriter(path, options, storage_options=storage_options) as writer:
        return writer._write_chunks(itertools.chain([first], pieces))
