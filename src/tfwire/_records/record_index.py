"""Where the records of a file lie."""

from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np

from tfwire._core import lib
from tfwire._records.compression import DETECT_SIZE, compression_name, detect_compression
from tfwire._records.damage import Reading
from tfwire._records.index_file import (
    Contents,
    offsets_of_lengths,
    read_index,
    read_text,
    write_index,
    write_text,
)
from tfwire._records.offsets import offsets_in_file, offsets_in_stream
from tfwire._records.packing import FRAME
from tfwire._records.sources import FileSource, Path, is_url
from tfwire._text import show_path
from tfwire.errors import DataLossError

__all__ = ["RecordIndex", "open_regular"]

Array = np.ndarray[Any, Any]

_SUFFIX = ".tfwindex"
_SAMPLES = 64  # places of a file that its fingerprint is taken from
_SAMPLE = 16  # bytes of each


class RecordIndex:
    """Where each record of a file lies. Made by ``build``, ``load`` or ``read_text``.

    It takes 8 bytes per record in memory and, saved, 4 bytes.

    Attributes:
        path: The record file.
        offsets: int64 array, one longer than there are records: where each begins, header and all,
            and where the last ends. In a compressed file they count decompressed bytes.
        compression: "", "ZLIB" or "GZIP".
        size, mtime_ns: Size in bytes and time of modification of the file when it was indexed.
        fingerprint: A checksum of places all over the file.

    Example:
        >>> index = RecordIndex.build("train.tfrecord")
        >>> index
        <RecordIndex of 3 records in 'train.tfrecord'>
        >>> index.save()  # as train.tfrecord.tfwindex, where TFRecordFile looks for it
    """

    def __init__(
        self,
        path: Path,
        offsets: Array,
        compression: str,
        size: int,
        mtime_ns: int,
        fingerprint: int,
    ) -> None:
        self.path = path
        self.offsets = offsets
        self.offsets.flags.writeable = False
        self.compression = compression
        self.size = size
        self.mtime_ns = mtime_ns
        self.fingerprint = fingerprint

    # ---- Making one ---------------------------------------------------------------------------

    @classmethod
    def build(cls, path: Any, compression_type: Any = "auto") -> RecordIndex:
        """Indexes a file by its headers. Payloads longer than a page are not even read, none is
        verified; a compressed file is read through.

        Args:
            path: A regular file.
            compression_type: As for ``read_records``.

        Returns:
            The index, in memory; ``save`` puts it beside the file.

        Raises:
            DataLossError: A header is damaged, or the file ends within a record.
            OSError: The file cannot be read.
            ValueError: No regular file, or an unknown compression_type.

        Example:
            >>> RecordIndex.build("train.tfrecord").offsets.tolist()
            [0, 19, 38, 58]
        """
        source = open_regular(path)
        try:
            auto = isinstance(compression_type, str) and compression_type.lower() == "auto"
            if auto:
                compression = detect_compression(source.peek(DETECT_SIZE))
            else:
                compression = compression_name(compression_type)
            status = os.fstat(source.fd)
            if compression:
                offsets = offsets_in_stream(path, compression)
            else:
                offsets = offsets_in_file(source, status.st_size, Reading(source.path, "", auto))
            return cls._of(source, offsets, compression, status)
        finally:
            source.close()

    @classmethod
    def load(cls, path: Any, index_path: Any = None, *, ignore_mtime: bool = False) -> RecordIndex:
        """Loads the saved index of a file, if it belongs to the file as it is now.

        Args:
            path: The record file.
            index_path: The index; None: the path with ".tfwindex" behind it.
            ignore_mtime: Take an index of another time of modification too, for a file that has
                been copied. Its size and fingerprint must agree all the same.

        Returns:
            An index equal to the one saved.

        Raises:
            DataLossError: With the reason "index": the index is stale or damaged.
            FileNotFoundError: There is no index; ``build`` or ``tfwire index`` makes one.
            OSError: The index or the file cannot be read.
            ValueError: No regular file.

        Example:
            >>> RecordIndex.build("train.tfrecord").save()
            >>> len(RecordIndex.load("train.tfrecord"))
            3
        """
        index_path = index_path_of(path) if index_path is None else index_path
        source = open_regular(path)
        try:
            contents = _saved(index_path)
            index = cls(path, offsets_of_lengths(contents.lengths), *contents[:-1])
            index.check(source, index_path, ignore_mtime)
            if ignore_mtime:
                index.mtime_ns = os.fstat(source.fd).st_mtime_ns
        finally:
            source.close()
        return index

    @classmethod
    def read_text(cls, index_path: Any, path: Any) -> RecordIndex:
        """Reads an index in the text form of tfrecord2idx: lines "offset size".

        The text says nothing about its file: where it is stale, its records fail to verify.

        Args:
            index_path: The text.
            path: The record file.

        Returns:
            The index; ``save`` gives it tfwire's own form.

        Raises:
            DataLossError: With the reason "index": the text is malformed, leaves gaps or does not
                end where the file ends.
            OSError: The text or the file cannot be read.
            ValueError: No regular file.

        Example:
            >>> RecordIndex.build("train.tfrecord").write_text("train.idx")
            >>> RecordIndex.read_text("train.idx", "train.tfrecord").lengths.tolist()
            [3, 3, 4]
        """
        offsets = read_text(index_path)
        source = open_regular(path)
        try:
            status = os.fstat(source.fd)
            compression = detect_compression(source.peek(DETECT_SIZE))
            if not compression and offsets[-1] != status.st_size:
                raise _stale(path, index_path, f"{offsets[-1]} bytes", f"{status.st_size} bytes")
            return cls._of(source, offsets, compression, status)
        finally:
            source.close()

    @classmethod
    def _of(
        cls, source: FileSource, offsets: Array, compression: str, status: os.stat_result
    ) -> RecordIndex:
        size = status.st_size
        fingerprint = _fingerprint(source.fd, offsets, compression, size)
        assert source.path is not None
        return cls(source.path, offsets, compression, size, status.st_mtime_ns, fingerprint)

    # ---- Saving it ----------------------------------------------------------------------------

    def save(self, index_path: Any = None) -> None:
        """Saves the index; it takes its name when it is complete.

        Args:
            index_path: None: the path of the file with ".tfwindex" behind it.

        Raises:
            OSError: It cannot be written.

        Example:
            >>> RecordIndex.build("train.tfrecord").save("index of train")
            >>> RecordIndex.load("train.tfrecord", "index of train")
            <RecordIndex of 3 records in 'train.tfrecord'>
        """
        index_path = index_path_of(self.path) if index_path is None else index_path
        write_index(
            index_path,
            Contents(self.compression, self.size, self.mtime_ns, self.fingerprint, self.lengths),
        )

    def write_text(self, index_path: Any) -> None:
        """Writes the index in the text form of tfrecord2idx: lines "offset size", where sizes are
        with the frame of 16 bytes.

        Args:
            index_path: The text to write.

        Raises:
            OSError: It cannot be written.

        Example:
            >>> from pathlib import Path
            >>> RecordIndex.build("train.tfrecord").write_text("train.idx")
            >>> print(Path("train.idx").read_text(), end="")
            0 19
            19 19
            38 20
        """
        write_text(index_path, self.offsets)

    # ---- Using it -----------------------------------------------------------------------------

    @property
    def lengths(self) -> Array:
        """Bytes of each payload; int64, of the shape (records,).

        >>> RecordIndex.build("train.tfrecord").lengths.tolist()
        [3, 3, 4]
        """
        lengths: Array = np.diff(self.offsets) - FRAME
        return lengths

    def __len__(self) -> int:
        """The number of records."""
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<RecordIndex of {len(self)} records in {os.fspath(self.path)!r}>"

    def check(self, source: FileSource, index_path: Any = None, ignore_mtime: bool = False) -> None:
        """Checks that the index belongs to an open file as it is now.

        Args:
            source: The file.
            index_path: What messages call the index; None: "the index".
            ignore_mtime: As for ``load``.

        Raises:
            DataLossError: With the reason "index": it is stale.
        """
        status = os.fstat(source.fd)
        path, name = source.path, index_path or "the index"
        if self.size != status.st_size:
            raise _stale(path, name, f"{self.size} bytes", f"{status.st_size} bytes")
        if not self.compression and self.offsets[-1] != self.size:
            raise _stale(path, name, f"records of {self.offsets[-1]} bytes", f"{self.size} bytes")
        if self.mtime_ns != status.st_mtime_ns and not ignore_mtime:
            raise _stale(path, name, f"mtime {self.mtime_ns} ns", f"{status.st_mtime_ns} ns")
        found = _fingerprint(source.fd, self.offsets, self.compression, self.size)
        if self.fingerprint != found:
            raise _stale(path, name, f"fingerprint 0x{self.fingerprint:08x}", f"0x{found:08x}")


def index_path_of(path: Any) -> str:
    """Where the index of a file is saved."""
    return os.fsdecode(path) + _SUFFIX


def _saved(index_path: Any) -> Contents:
    """A saved index. Where there is none, the error says how to make one."""
    try:
        return read_index(index_path)
    except FileNotFoundError:
        text = "no such index; RecordIndex.build(path).save() or 'tfwire index FILE' makes one"
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(index_path)) from None


def open_regular(path: Any) -> FileSource:
    """Opens a regular file."""
    if not is_url(path):
        source = FileSource(os.fsdecode(path) if isinstance(path, bytes) else path)
        if source.regular:
            return source
        source.close()
    raise ValueError(f"{show_path(path)}: random access needs a regular file")


def _fingerprint(fd: int, offsets: Array, compression: str, size: int) -> int:
    """CRC-32C of 16 bytes at places all over a file: where one record's payload checksum and the
    next one's header meet, or in a compressed file anywhere."""
    last, end = size - _SAMPLE, len(offsets) - 1
    steps = range(_SAMPLES)
    if compression:
        places = [step * max(last, 0) // (_SAMPLES - 1) for step in steps]
    else:
        numbers = sorted({step * end // (_SAMPLES - 1) for step in steps})
        begins = offsets[numbers] - lib.TFW_FOOTER_SIZE
        places = np.clip(begins, 0, max(last, 0)).tolist()
    data = b"".join([os.pread(fd, _SAMPLE, place) for place in places])
    return int(lib.tfw_crc32c(0, data, len(data)))


def _stale(path: Any, index_path: Any, expected: str, found: str) -> DataLossError:
    return DataLossError(
        f"{os.fspath(path)}: {os.fspath(index_path)} is stale: it is for {expected}, the file has "
        f"{found}",
        path=path,
        reason="index",
    )
