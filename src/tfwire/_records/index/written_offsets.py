"""Notes the offsets of records while they are written, and makes the index of the finished file."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfwire._base.aliases import Array, Compression, CompressionType
from tfwire._base.native import lib
from tfwire._records.files.byte_sinks import Sink
from tfwire._records.files.compression import compression_name
from tfwire._records.files.paths import Path, absolute
from tfwire._records.files.urls import ObjectPath
from tfwire._records.frames import FRAME, scanned
from tfwire._records.index.index_files import offsets_of_lengths
from tfwire._records.index.record_index import RecordIndex


def indexing(path: Any, options: CompressionType, append: Any) -> Indexing:
    """What notes the offsets for a TFRecordWriter, whose arguments these are.

    Raises:
        ValueError: A file object has no place for an index, or the file is continued.
    """
    if append:
        raise ValueError("index and append exclude each other: use RecordIndex.build(path).save()")
    if isinstance(path, Sink):
        return Indexing(None, compression_name(options))
    if isinstance(path, ObjectPath):
        return Indexing(path.alone(), compression_name(options))
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError("index needs a path: the index is saved beside the file")
    return Indexing(absolute(path), compression_name(options))  # valid also after a chdir


class Indexing:
    """The lengths of the records that are written to a file.

    Args:
        path: The file, or the object; None: it has no name yet, and its index is made and saved by
            what names it.
        compression: "", "ZLIB" or "GZIP".
    """

    def __init__(self, path: Path | None, compression: Compression) -> None:
        self._path, self._compression = path, compression
        self._lengths: list[Array] = []

    def add_block(self, block: memoryview) -> None:
        """Notes framed records that were written."""
        spans = scanned(block, len(block) // FRAME, lib.TFW_NO_DATA_CRC)
        self._lengths.append(spans[:, 1].astype(np.int64))

    def add_lengths(self, lengths: Sequence[int]) -> None:
        """Notes records by the bytes of their payloads."""
        self._lengths.append(np.array(lengths, np.int64))

    def index(self, path: Path) -> RecordIndex:
        """The index of the finished file.

        Args:
            path: Where the file is by now.

        Raises:
            OSError: The file cannot be read, or is another one.
        """
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        offsets = offsets_of_lengths(lengths)
        index = RecordIndex._of_written(path, offsets, self._compression)
        if not self._compression and index.size != offsets[-1]:
            text = f"was written with {offsets[-1]} bytes and has {index.size}: no index was saved"
            raise OSError(errno.ESTALE, text, str(path))
        return index

    def save(self) -> None:
        """Saves the index beside the file.

        Raises:
            OSError: It cannot be.
        """
        if self._path is not None:
            self.index(self._path).save()
