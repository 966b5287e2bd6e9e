"""write_records, which writes a whole file of records."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from tfwire._base.aliases import CompressionType, FeatureKinds, Output, Record, StorageOptions
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
    kinds: FeatureKinds | None = None,
) -> int:
    """Writes a file of records.

    Args:
        path, options, compression_type, storage_options, kinds: As for TFRecordWriter.
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
    as_records(first, kinds)  # checked before an existing file is emptied
    with TFRecordWriter(path, options, storage_options=storage_options, kinds=kinds) as writer:
        return writer._write_chunks(chain([first], pieces))
