"""RecordIndex: the offset of every record of a file, and whether it still fits the file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable
from typing import Any, ClassVar, Literal

import numpy as np

from tfwire._base.aliases import (
    AnyPath,
    Array,
    Compression,
    DetectedCompressionType,
    IntegerArray,
    StorageOptions,
)
from tfwire._base.arguments import boolean, integer
from tfwire._base.arrays import int64_array
from tfwire._base.errors import public
from tfwire._base.parallel_map import Check
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.compression import (
    DETECT_SIZE,
    Detected,
    compression_name,
    detect_compression,
    either_word,
)
from tfwire._records.files.paths import Path, absolute, local_path
from tfwire._records.files.seek_points import SeekPoints, find_points
from tfwire._records.files.urls import ObjectPath, with_storage_options
from tfwire._records.frames import FRAME
from tfwire._records.index.find_offsets import offsets_in_file, offsets_in_stream
from tfwire._records.index.index_files import (
    Contents,
    index_path_of,
    indexed_path,
    indexed_paths,
    offsets_of_lengths,
    one_indexed_path,
    open_indexed,
    open_regular_file,
    read_text,
    refuse_itself,
    saved_index,
    write_index,
    write_text,
)
from tfwire._records.index.offset_checks import (
    check_index,
    file_identity,
    fingerprint_of_file,
    fingerprint_of_object,
    save_identity,
    stale,
)
from tfwire._records.index.offsets_of_files import OffsetsOfFiles
from tfwire._records.index.record_keys import RecordKeys, key_column
from tfwire._records.index.records_by_key import JoinedKeys
from tfwire._records.reading.damage import Reading
from tfwire._records.reading.file_passes import Passage
from tfwire._records.remote.random_ranges import RemoteFile
from tfwire._records.remote.read_ahead import RemoteSource


@public
class RecordIndex:
    """The offset of every record of a file. Made by ``build``, ``load`` or ``read_text``.

    It takes 8 bytes per record in memory, and 4 bytes when saved.

    Attributes:
        path: The record file.
        compression: "", "ZLIB" or "GZIP".
        size, mtime_ns: Size in bytes and time of modification of the file when it was indexed; of
            an object in an object store the time is 0.
        fingerprint: A checksum of samples from the whole file.
        version: Size and version (ETag, or time) of an object when it was indexed; None: a file.
        seek_points: How many places of a compressed file reading may begin at, but its beginning.
        key: The feature whose values are the keys of the records; None: they have no keys.

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
        version: str | None = None,
    ) -> None:
        self.path = path
        self._made_of = path, absolute(path)  # valid also after a chdir
        self.offsets = offsets
        self.compression: Compression = compression
        self.size = size
        self.mtime_ns = mtime_ns
        self.fingerprint = fingerprint
        self.version = version

    @property
    def offsets(self) -> Array:
        """Where the header of each record begins, and where the last record ends; int64 of shape
        (records + 1,). In a compressed file they count decompressed bytes."""
        offsets: Array = self._offsets
        offsets.flags.writeable = False  # unpickled ones are
        return offsets

    @offsets.setter
    def offsets(self, offsets: IntegerArray) -> None:
        self._offsets = int64_array("offsets", offsets).view()
        # The file, or the version of the object, in which the offsets were found; None: whatever
        # they are, its headers have to say the same.
        self._identity: str | None = None
        self._points: SeekPoints | None = None  # nothing else says which number a record has there
        self._keys: RecordKeys | None = None

    @property
    def seek_points(self) -> int:
        return 0 if self._points is None else len(self._points)

    @property
    def key(self) -> str | None:
        return None if self._keys is None else self._keys.name.decode("utf-8", "surrogateescape")

    # ---- Making one ---------------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        path: AnyPath,
        compression_type: DetectedCompressionType = "auto",
        *,
        key: str | bytes | None = None,
        options: DetectedCompressionType = None,
        storage_options: StorageOptions = None,
    ) -> RecordIndex:
        """Indexes a file by its headers. Payloads are not verified, and those longer than a page
        are not read. Compressed files and objects are read to their end; with rapidgzip
        (``pip install 'tfwire[gzip]'``) compressed files of a mebibyte or more a second time, for
        seek points.

        Args:
            path: A regular file, a URL, or a pattern that one file matches.
            compression_type, options: As for ``read_records``.
            key: A feature of one int64 or one string, which no two records share: the key by which
                ``TFRecordFile.by_key`` finds them. Then the file is read whole, and verified. None:
                the records have no keys.
            storage_options: fsspec's options of the filesystem of URLs.

        Returns:
            The index, in memory; ``save`` puts it beside the file.

        Raises:
            DataLossError: A header is damaged, or the file ends within a record.
            OSError: The file cannot be read.
            ParseError: A record has no key, several, or one of another kind than the first record.
            ValueError: Not a regular file, or an unknown compression_type; or two records have the
                same key.

        Example:
            >>> RecordIndex.build("train.tfrecord").offsets.tolist()
            [0, 19, 38, 58]
        """
        named = compression_name(either_word(compression_type, options, "auto"), auto=True)
        path = one_indexed_path(path, storage_options, "RecordIndex.build_many(paths)")
        with contextlib.closing(build_indexes([path], named, 1, key)) as indexes:
            return next(indexes)

    @classmethod
    def build_many(
        cls,
        paths: AnyPath | Iterable[AnyPath],
        compression_type: DetectedCompressionType = "auto",
        *,
        key: str | bytes | None = None,
        num_threads: int = 1,
        options: DetectedCompressionType = None,
        storage_options: StorageOptions = None,
    ) -> list[RecordIndex]:
        """Indexes several files side by side, as ``build`` indexes one.

        Args:
            paths: Regular files and URLs, as for ``read_records``.
            compression_type, options: As for ``read_records``.
            key: As for ``build``. That records of two files have the same is not looked for.
            num_threads: All threads that read, the caller included: one large file, too. Of
                compressed files and objects, and with a key, each reads one. Only the speed depends
                on it.
            storage_options: As for ``build``.

        Returns:
            One index per file, in the order of ``paths``.

        Raises:
            DataLossError, OSError, ParseError, ValueError: As ``build``, for the first file at
                fault.

        Example:
            >>> paths = ["a.tfrecord", "b.tfrecord"]
            >>> for index in RecordIndex.build_many(paths, num_threads=2):
            ...     index.save()
        """
        compression_type = either_word(compression_type, options, "auto")
        named = compression_name(compression_type, auto=True)
        threads = integer("num_threads", num_threads, 1)
        checked = indexed_paths(paths, storage_options)
        with contextlib.closing(build_indexes(checked, named, threads, key)) as indexes:
            return list(indexes)

    @classmethod
    def _build(cls, path: Path, named: Any, key: Any, check: Check) -> RecordIndex:
        column = None if key is None else key_column(key)
        remote = RemoteFile(path) if isinstance(path, ObjectPath) else None
        opened: Any = open_regular_file(path) if remote is None else remote.duplicate()
        with contextlib.closing(opened) as source:
            compression = _detected(source).compression if named == "auto" else named
            if remote is not None:  # from its beginning to its end, by large ranges
                offsets = offsets_in_stream(source, named, check, column)
                index = cls._of_object(remote, offsets, compression)
            else:
                index = cls._of_file(source, named, compression, check, column)
        if column is not None:
            index._keys = column.finish()
            JoinedKeys.of([path], [index])  # refuses what two records have
        return index

    @classmethod
    def _of_file(
        cls, source: FileSource, named: Any, compression: Compression, check: Check, column: Any
    ) -> RecordIndex:
        status = os.fstat(source.fd)
        identity = file_identity(status)
        if compression or column is not None:
            offsets = offsets_in_stream(source.duplicate(), named, check, column)
        else:
            reading = Reading(source.path, "", named == "auto")
            offsets = offsets_in_file(source, status.st_size, reading, check)
        index = cls._of(source, offsets, compression, status, identity)
        if compression:
            index._points = find_points(source, int(offsets[-1]), check)
        return index

    @classmethod
    def _of_object(cls, file: RemoteFile, offsets: Array, compression: Compression) -> RecordIndex:
        fingerprint = fingerprint_of_object(file, offsets, compression)
        file.check_unchanged()
        index = cls(file.path, offsets, compression, file.size, 0, fingerprint, file.version)
        index._identity = file.version
        return index

    @classmethod
    def _of_written(cls, path: Path, offsets: Array, compression: Compression) -> RecordIndex:
        """The index of a file whose offsets its writer noted."""
        if isinstance(path, ObjectPath):
            return cls._of_object(RemoteFile(path), offsets, compression)
        source = open_regular_file(path)
        try:
            status = os.fstat(source.fd)
            return cls._of(source, offsets, compression, status, file_identity(status))
        finally:
            source.close()

    @classmethod
    def load(
        cls,
        path: AnyPath,
        index_path: AnyPath | None = None,
        *,
        ignore_mtime: bool = False,
        storage_options: StorageOptions = None,
    ) -> RecordIndex:
        """Loads the saved index of a file, if it fits the file as it is now.

        Args:
            path: The record file, or its URL.
            index_path: The index file. The index of an object may be a local file. None: the path
                with ".tfwindex" appended.
            ignore_mtime: True accepts another time of modification, for a file that was copied.
                Size and fingerprint must still match. An object whose index was made for a file
                is accepted without it.
            storage_options: fsspec's options of the filesystem of URLs.

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
        path = indexed_path("path", path, storage_options)
        index_path = index_path_of(path, index_path, storage_options)
        ignore_mtime = boolean("ignore_mtime", ignore_mtime)
        source = open_indexed(path)
        try:
            size = source.size if isinstance(source, RemoteFile) else source.size() or 0
            found, identity = saved_index(index_path, path, size)
            offsets = offsets_of_lengths(found.lengths)
            facts = found.compression, found.size, found.mtime_ns, found.fingerprint
            index = cls(path, offsets, *facts, found.version)
            index._identity, index._points, index._keys = identity, found.points, found.keys
            check_index(index, source, index_path, ignore_mtime)
            if isinstance(source, RemoteFile):
                index.version = source.version
            else:
                if found.version is not None:  # it was made of an object
                    index.version = index._identity = None
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
        source = open_regular_file(path)
        try:
            status = os.fstat(source.fd)
            compression, sure = _detected(source)
            offsets = read_text(index_path, path, status.st_size, compression)
            if not sure and offsets[-1] == status.st_size:  # a plain file whose length is damaged
                compression = ""
            if not compression and offsets[-1] != status.st_size:
                raise stale(path, index_path, f"{offsets[-1]} bytes", f"{status.st_size} bytes")
            return cls._of(source, offsets, compression, status)
        finally:
            source.close()

    @classmethod
    def _of(
        cls,
        source: FileSource,
        offsets: Array,
        compression: Compression,
        status: os.stat_result,
        identity: str | None = None,
    ) -> RecordIndex:
        size = status.st_size
        fingerprint = fingerprint_of_file(source.fd, offsets, compression, size)
        assert source.path is not None
        index = cls(source.path, offsets, compression, size, status.st_mtime_ns, fingerprint)
        index._identity = identity
        return index

    # ---- Saving it ----------------------------------------------------------------------------

    def save(self, index_path: AnyPath | None = None) -> None:
        """Saves the index. It appears when it is complete, with the permissions of the index that
        it replaces; a new one is readable by no more users than the record file.

        Args:
            index_path: Where to save it; None: the path of the file with ".tfwindex" appended. A
                URL has the storage_options of the record file's.

        Raises:
            OSError: It cannot be written.
            shutil.SameFileError: index_path is the record file itself.

        Example:
            >>> RecordIndex.build("train.tfrecord").save("index of train")
            >>> RecordIndex.load("train.tfrecord", "index of train")
            <RecordIndex of 3 records in 'train.tfrecord'>
        """
        location = with_storage_options(self._location)
        options = location.options if isinstance(location, ObjectPath) else None
        index_path = index_path_of(location, index_path, options)
        refuse_itself(index_path, self._location)
        facts = self.compression, self.size, self.mtime_ns, self.fingerprint
        # The index of a copied file says nothing of the object that it was copied to.
        version = self.version if self._identity is not None else None
        contents = Contents(*facts, self.lengths, version, self._points, self._keys)
        checksum = write_index(index_path, contents, location)
        if self.version is None:
            save_identity(index_path, self._identity, checksum)

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
        refuse_itself(index_path, self._location)
        write_text(index_path, self.offsets, self._location)

    @property
    def _location(self) -> Path:
        """Where the file is, also after a chdir."""
        path, location = self._made_of
        return location if path is self.path else self.path

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
        return (
            self._header() == other._header()
            and self._points == other._points
            and self._keys == other._keys
            and np.array_equal(self.offsets, other.offsets)
        )

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # the attributes can be set

    def _header(self) -> tuple[Any, ...]:
        path = os.fsdecode(self.path)
        return path, self.compression, self.size, self.mtime_ns, self.fingerprint, self.version

    def __repr__(self) -> str:
        return f"<RecordIndex of {len(self)} records in {os.fspath(self.path)!r}>"


def build_indexes(
    paths: Iterable[Any],
    compression: Compression | Literal["auto"],
    num_threads: int,
    key: str | bytes | None = None,
) -> Generator[RecordIndex, None, None]:
    """The indexes of files and objects, in their order. Close this generator."""

    def build(path: Any, check: Check) -> RecordIndex:
        return RecordIndex._build(indexed_path("path", path), compression, key, check)

    is_plain = compression in ("", "auto") and key is None
    what = OffsetsOfFiles(is_plain, RecordIndex._of, build)
    return Passage(what, paths, num_threads).results()


def _detected(source: FileSource | RemoteSource) -> Detected:
    return detect_compression(source.peek(DETECT_SIZE))
