"""RecordIndex: the offset of every record of a file, and whether it still fits the file."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tfwire._base.arguments import boolean, integer, show_path
from tfwire._base.errors import public
from tfwire._base.native import lib
from tfwire._base.parallel_map import Check, ParallelMap, never_stopped
from tfwire._records.compression import DETECT_SIZE, compression_name, detect_compression
from tfwire._records.damage import Reading
from tfwire._records.frames import FRAME
from tfwire._records.index_file import (
    Contents,
    file_identity,
    offsets_in_file,
    offsets_in_stream,
    offsets_of_lengths,
    read_index,
    read_text,
    save_identity,
    stale,
    write_index,
    write_text,
)
from tfwire._records.sources import (
    FileSource,
    Path,
    absolute,
    local_path,
    open_regular,
    split_paths,
)

if TYPE_CHECKING:
    from tfwire._base.aliases import AnyPath, Compression, DetectedCompressionType

__all__ = [
    "RecordIndex",
    "check_index",
    "index_beside",
    "open_indexed",
]

Array = np.ndarray[Any, Any]
_SUFFIX = ".tfwindex"
_SAMPLES = 64  # places that the fingerprint of a file is computed from
_SAMPLE_BYTES = 16  # bytes of each


@public
class RecordIndex:
    """The offset of every record of a file. Made by ``build``, ``load`` or ``read_text``.

    It takes 8 bytes per record in memory, and 4 bytes when saved.

    Attributes:
        path: The record file.
        offsets: int64 of shape (records + 1,): where the header of each record begins, and where
            the last record ends. In a compressed file they count decompressed bytes.
        compression: "", "ZLIB" or "GZIP".
        size, mtime_ns: Size in bytes and time of modification of the file when it was indexed.
        fingerprint: A checksum of samples from the whole file.

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
        compression: Compression,
        size: int,
        mtime_ns: int,
        fingerprint: int,
    ) -> None:
        self.path = path
        self._made_of = path, absolute(path)  # valid also after a chdir
        self.offsets = offsets
        self.offsets.flags.writeable = False
        self.compression: Compression = compression
        self.size = size
        self.mtime_ns = mtime_ns
        self.fingerprint = fingerprint
        self._identity: str | None = None  # of the file in which the offsets were found

    # ---- Making one ---------------------------------------------------------------------------

    @classmethod
    def build(
        cls, path: AnyPath, compression_type: DetectedCompressionType = "auto"
    ) -> RecordIndex:
        """Indexes a file by its headers. Payloads are not verified, and those longer than a page
        are not read. A compressed file is read to its end.

        Args:
            path: A regular file.
            compression_type: As for ``read_records``.

        Returns:
            The index, in memory; ``save`` puts it beside the file.

        Raises:
            DataLossError: A header is damaged, or the file ends within a record.
            OSError: The file cannot be read.
            ValueError: Not a regular file, or an unknown compression_type.

        Example:
            >>> RecordIndex.build("train.tfrecord").offsets.tolist()
            [0, 19, 38, 58]
        """
        named = compression_name(compression_type, auto=True)
        return cls._build(local_path("path", path), named, never_stopped)

    @classmethod
    def build_many(
        cls,
        paths: AnyPath | Iterable[AnyPath],
        compression_type: DetectedCompressionType = "auto",
        *,
        num_threads: int = 1,
    ) -> list[RecordIndex]:
        """Indexes several files side by side, as ``build`` indexes one.

        Args:
            paths: A regular file, or an iterable of them.
            compression_type: As for ``read_records``.
            num_threads: How many files to index at a time. Only the speed depends on it.

        Returns:
            One index per file, in the order of ``paths``.

        Raises:
            DataLossError, OSError, ValueError: As ``build``, for the first file at fault.

        Example:
            >>> paths = ["a.tfrecord", "b.tfrecord"]
            >>> for index in RecordIndex.build_many(paths, num_threads=2):
            ...     index.save()
        """
        named = compression_name(compression_type, auto=True)
        threads = integer("num_threads", num_threads, 1)
        checked = [local_path("paths", path) for path in split_paths(paths)]

        def build(path: Path, check: Check) -> RecordIndex:
            return cls._build(path, named, check)

        with ParallelMap(build, checked, threads) as indexes:
            return list(indexes)

    @classmethod
    def _build(cls, path: Path, named: Compression | Literal["auto"], check: Check) -> RecordIndex:
        auto = named == "auto"
        source = open_indexed(path)
        try:
            compression = detect_compression(source.peek(DETECT_SIZE)) if named == "auto" else named
            status = os.fstat(source.fd)
            identity = file_identity(status)
            if compression:
                offsets = offsets_in_stream(path, compression, check)
            else:
                reading = Reading(source.path, "", auto)
                offsets = offsets_in_file(source, status.st_size, reading, check)
            index = cls._of(source, offsets, compression, status)
            index._identity = identity
            return index
        finally:
            source.close()

    @classmethod
    def load(
        cls, path: AnyPath, index_path: AnyPath | None = None, *, ignore_mtime: bool = False
    ) -> RecordIndex:
        """Loads the saved index of a file, if it fits the file as it is now.

        Args:
            path: The record file.
            index_path: The index; None: the path with ".tfwindex" appended.
            ignore_mtime: Accept another time of modification, for a file that was copied. Size and
                fingerprint must still match.

        Returns:
            An index equal to the one saved.

        Raises:
            DataLossError: With the reason "index": the index is stale or damaged.
            FileNotFoundError: There is no index; ``build`` or ``tfwire index`` makes one.
            OSError: The index or the file cannot be read.
            ValueError: Not a regular file.

        Example:
            >>> RecordIndex.build("train.tfrecord").save()
            >>> len(RecordIndex.load("train.tfrecord"))
            3
        """
        path = local_path("path", path)
        index_path = _index_path(path, index_path)
        ignore_mtime = boolean("ignore_mtime", ignore_mtime)
        source = open_indexed(path)
        try:
            contents, identity = _saved(index_path, path, source.size() or 0)
            index = cls(path, offsets_of_lengths(contents.lengths), *contents[:-1])
            index._identity = identity
            check_index(index, source, index_path, ignore_mtime)
            if ignore_mtime:
                index.mtime_ns = os.fstat(source.fd).st_mtime_ns
        finally:
            source.close()
        return index

    @classmethod
    def read_text(cls, path: AnyPath, index_path: AnyPath) -> RecordIndex:
        """Reads an index in the text form of tfrecord2idx: lines "offset size".

        The text does not identify its file: if it is stale, its records fail to verify.

        Args:
            path: The record file.
            index_path: The text.

        Returns:
            The index; ``save`` writes it in tfwire's own format.

        Raises:
            DataLossError: With the reason "index": the text is malformed, leaves gaps or does not
                end where the file ends.
            OSError: The text or the file cannot be read.
            ValueError: Not a regular file.

        Example:
            >>> RecordIndex.build("train.tfrecord").write_text("train.idx")
            >>> RecordIndex.read_text("train.tfrecord", "train.idx").lengths.tolist()
            [3, 3, 4]
        """
        path = local_path("path", path)
        index_path = local_path("index_path", index_path)
        source = open_indexed(path)
        try:
            status = os.fstat(source.fd)
            compression = detect_compression(source.peek(DETECT_SIZE))
            offsets = read_text(index_path, path, status.st_size, compression)
            if not compression and offsets[-1] != status.st_size:
                raise stale(path, index_path, f"{offsets[-1]} bytes", f"{status.st_size} bytes")
            return cls._of(source, offsets, compression, status)
        finally:
            source.close()

    @classmethod
    def _of(
        cls, source: FileSource, offsets: Array, compression: Compression, status: os.stat_result
    ) -> RecordIndex:
        size = status.st_size
        fingerprint = _fingerprint(source.fd, offsets, compression, size)
        assert source.path is not None
        return cls(source.path, offsets, compression, size, status.st_mtime_ns, fingerprint)

    # ---- Saving it ----------------------------------------------------------------------------

    def save(self, index_path: AnyPath | None = None) -> None:
        """Saves the index. It appears when it is complete, with the permissions of the index that
        it replaces; a new one is readable by no more users than the record file.

        Args:
            index_path: Where to save it; None: the path of the file with ".tfwindex" appended.

        Raises:
            OSError: It cannot be written.
            shutil.SameFileError: index_path is the record file itself.

        Example:
            >>> RecordIndex.build("train.tfrecord").save("index of train")
            >>> RecordIndex.load("train.tfrecord", "index of train")
            <RecordIndex of 3 records in 'train.tfrecord'>
        """
        index_path = _index_path(self._location, index_path)
        self._check_output(index_path)
        write_index(
            index_path,
            Contents(self.compression, self.size, self.mtime_ns, self.fingerprint, self.lengths),
            self._location,
        )
        save_identity(index_path, self._identity)

    def write_text(self, index_path: AnyPath) -> None:
        """Writes the index in the text form of tfrecord2idx: lines "offset size", where sizes
        include the frame of 16 bytes.

        Args:
            index_path: The text to write.

        Raises:
            OSError: It cannot be written.
            shutil.SameFileError: index_path is the record file itself.

        Example:
            >>> from pathlib import Path
            >>> RecordIndex.build("train.tfrecord").write_text("train.idx")
            >>> print(Path("train.idx").read_text(), end="")
            0 19
            19 19
            38 20
        """
        index_path = local_path("index_path", index_path)
        self._check_output(index_path)
        write_text(index_path, self.offsets, self._location)

    @property
    def _location(self) -> Path:
        """Where the file is, also after a chdir."""
        path, location = self._made_of
        return location if path is self.path else self.path

    def _check_output(self, index_path: Path) -> None:
        """Refuses to overwrite the record file with its index."""
        with contextlib.suppress(FileNotFoundError):
            if os.path.samefile(index_path, self._location):
                raise shutil.SameFileError(f"{show_path(index_path)}: is the record file itself")

    # ---- Using it -----------------------------------------------------------------------------

    @property
    def lengths(self) -> Array:
        """Bytes of each payload; int64 of shape (records,).

        >>> RecordIndex.build("train.tfrecord").lengths.tolist()
        [3, 3, 4]
        """
        lengths: Array = np.diff(self.offsets) - FRAME
        return lengths

    def __len__(self) -> int:
        """The number of records."""
        return len(self.offsets) - 1

    def __eq__(self, other: object) -> bool:
        """True if path, offsets and all other attributes are equal."""
        if not isinstance(other, RecordIndex):
            return NotImplemented
        return self._header() == other._header() and np.array_equal(self.offsets, other.offsets)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # the attributes can be set

    def _header(self) -> tuple[Any, ...]:
        path = os.fsdecode(self.path)
        return path, self.compression, self.size, self.mtime_ns, self.fingerprint

    def __repr__(self) -> str:
        return f"<RecordIndex of {len(self)} records in {os.fspath(self.path)!r}>"


def check_index(
    index: RecordIndex, source: FileSource, index_path: Any = None, ignore_mtime: bool = False
) -> bool:
    """Checks by samples that an index fits an open file as it is now.

    Args:
        index: The index.
        source: The file.
        index_path: The name of the index in messages; None: "the index".
        ignore_mtime: As for ``RecordIndex.load``.

    Returns:
        Whether it is certainly the same file as was indexed, unchanged.

    Raises:
        DataLossError: With the reason "index": it is stale.
    """
    status = os.fstat(source.fd)
    identity = file_identity(status)
    path, name = source.path, index_path or "the index"
    if index.size != status.st_size:
        raise stale(path, name, f"{index.size} bytes", f"{status.st_size} bytes")
    if not index.compression and index.offsets[-1] != index.size:
        raise stale(path, name, f"records of {index.offsets[-1]} bytes", f"{index.size} bytes")
    if index.mtime_ns != status.st_mtime_ns and not ignore_mtime:
        raise stale(path, name, f"mtime {index.mtime_ns} ns", f"{status.st_mtime_ns} ns")
    found = _fingerprint(source.fd, index.offsets, index.compression, index.size)
    if index.fingerprint != found:
        raise stale(path, name, f"fingerprint 0x{index.fingerprint:08x}", f"0x{found:08x}")
    return identity is not None and identity == index._identity


def index_beside(path: Any) -> str:
    """The path where the index of a file is saved."""
    return os.fsdecode(path) + _SUFFIX


def _index_path(path: Path, index_path: Any) -> Path:
    """The path of an index: the given one, or the default one beside the file."""
    return index_beside(path) if index_path is None else local_path("index_path", index_path)


def _saved(index_path: Path, path: Path, size: int) -> tuple[Contents, str | None]:
    """Reads a saved index. If there is none, the error says how to make one."""
    try:
        return read_index(index_path, path, size)
    except FileNotFoundError:
        text = "no such index; RecordIndex.build(path).save() or 'tfwire index FILE' makes one"
        raise FileNotFoundError(errno.ENOENT, text, os.fspath(index_path)) from None


def open_indexed(path: Any, location: str | None = None) -> FileSource:
    """Opens a file for random access; the arguments are those of ``open_regular``."""
    source = open_regular(local_path("path", path), location)
    if source is None:
        raise ValueError(f"{show_path(path)}: random access needs a regular file")
    return source


def _fingerprint(fd: int, offsets: Array, compression: Compression, size: int) -> int:
    """CRC-32C of 16 bytes at each of some places throughout a file: a payload's checksum and the
    next record's header; in a compressed file, any bytes."""
    last, end = size - _SAMPLE_BYTES, len(offsets) - 1
    steps = range(_SAMPLES)
    if compression:
        places = [step * max(last, 0) // (_SAMPLES - 1) for step in steps]
    else:
        numbers = sorted({step * end // (_SAMPLES - 1) for step in steps})
        begins = offsets[numbers] - lib.TFW_FOOTER_SIZE
        places = np.clip(begins, 0, max(last, 0)).tolist()
    data = b"".join([os.pread(fd, _SAMPLE_BYTES, place) for place in places])
    return int(lib.tfw_crc32c(0, data, len(data)))
