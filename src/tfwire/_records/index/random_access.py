"""TFRecordFile and TFRecordFiles: random access to records by number."""

from __future__ import annotations

import contextlib
import itertools
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfwire._base.aliases import AnyPath, Array, StorageOptions
from tfwire._base.arguments import integer
from tfwire._base.arrays import int64_array
from tfwire._base.errors import DataLossError, public, warn
from tfwire._base.parallel_map import Check, ParallelMap
from tfwire._base.text import plural, show_path
from tfwire._records.files.byte_sources import FileSource
from tfwire._records.files.paths import Path, absolute
from tfwire._records.files.urls import ObjectPath
from tfwire._records.index.fetched_records import fetched_files
from tfwire._records.index.index_files import (
    indexed_path,
    indexed_paths,
    one_indexed_path,
    open_indexed,
)
from tfwire._records.index.local_records import FileAccess, StreamAccess, caches_for, new_cache
from tfwire._records.index.offset_checks import check_index
from tfwire._records.index.record_index import RecordIndex, build_indexes
from tfwire._records.index.record_sequence import RecordSequence
from tfwire._records.index.remote_records import RemoteAccess
from tfwire._records.reading.publishing_markers import Markers
from tfwire._records.remote.random_ranges import RemoteFile

_FOUND_ALONE = 48  # each of so many records is read by itself
_OBJECTS_AT_ONCE = 8  # whose indexes are loaded, or whose records are read


@public
class TFRecordFile(RecordSequence):
    """The records of one file as a sequence of bytes.

    Every read verifies the record's header, its length and its payload, so that even a wrong index
    returns only records of the file; seek points of a compressed one are trusted as the file is.
    Threads and forked processes may share it. Unpickling it opens the file again.

    A compressed file is read from the nearest seek point of its index, which passes over 2 MiB of
    content for a record, in the mean: ask for many records at once. Seek points are found where
    rapidgzip is installed (``pip install 'tfwire[gzip]'``) when the file is indexed, and saved with
    the index; they need it no more. Without them, the file is read up to the record, and again from
    its beginning for an earlier one.

    Of an object, in an object store or on the web, records are read by ranges. Those that are less
    than 64 KiB apart share one, of at most 8 MiB; several are in flight. Ask for many records at
    once here, too. Without an index, the whole object is read to build one.

    Args:
        path: A regular file, a URL, or a pattern that one file matches.
        index: A RecordIndex, or the path of a saved one; None: the one saved beside the file if it
            fits the file, else one is built in memory.
        cache_bytes: What is read of the file stays in memory, if it takes no more bytes than these:
            reading it again costs no call of the system. 0: nothing stays. It pays where records
            are read more than once, or in random order, and are short, and memory is not short: the
            system keeps the same bytes, too. What was read counts, also if the file changes. A
            compressed file, and an object, are not kept.
        storage_options: fsspec's options of the filesystem of URLs.

    Attributes:
        path: The file.
        index: Its RecordIndex.
        by_key: The records by key, if the index was built with one; see RecordsByKey.

    Raises:
        DataLossError: The given index is stale or damaged, or the file cannot be indexed.
        OSError: The file cannot be opened.

    Example:
        >>> with TFRecordFile("train.tfrecord") as records:
        ...     print(len(records), records[-1], records[[2, 0]])
        3 b'goat' [b'goat', b'cat']
    """

    _kept: FileAccess | StreamAccess | RemoteAccess | None

    def __init__(
        self,
        path: AnyPath,
        index: RecordIndex | AnyPath | None = None,
        *,
        cache_bytes: int = 0,
        storage_options: StorageOptions = None,
    ) -> None:
        self._cache_bytes = integer("cache_bytes", cache_bytes, 0)
        path = one_indexed_path(path, storage_options, "TFRecordFiles(paths)")
        self.path: Path = path
        if index is None:
            _warn_if_half_published(path, Markers())
            [index] = _saved_or_built([path], 1)
        elif not isinstance(index, RecordIndex):
            index = RecordIndex.load(path, indexed_path("index", index, storage_options))
        self.index: RecordIndex = index
        self._begin(open_indexed(path), self._cache_bytes)

    def _begin(
        self, source: FileSource | RemoteFile, cache_bytes: int = 0, cache: Any = None
    ) -> None:
        index = self.index
        # An attribute, which may be anything by now.
        offsets = int64_array("offsets", index.offsets)
        if offsets.ndim != 1 or not len(offsets):
            raise ValueError(
                f"offsets must be of rank 1 and not empty, found shape {offsets.shape}"
            )
        self._count = len(index)
        known = check_index(index, source)
        if index.compression:
            self._kept = StreamAccess(source, index.compression, offsets, index._points)
        elif isinstance(source, RemoteFile):
            self._kept = RemoteAccess(source, offsets, known)
        else:
            if cache is None and 0 < index.size <= cache_bytes:
                cache = new_cache(index.size)
            self._kept = FileAccess(source, offsets, known, cache)

    def _access(self) -> FileAccess | StreamAccess | RemoteAccess:
        records = self._kept
        if records is None:
            raise ValueError(f"{self._name}: the file is closed")
        return records

    @property
    def _name(self) -> str:
        return show_path(self.path)

    def _one(self, number: int) -> bytes:
        records = self._kept  # as _access, which takes longer to call
        return records.one(number) if records is not None else self._access().one(number)

    def _indexed(self) -> tuple[list[Path], list[RecordIndex]]:
        return [self.path], [self.index]

    def _ascending(self, numbers: Array) -> Iterator[Sequence[bytes]]:
        return self._access().many(numbers)

    def _pieces(self) -> Iterator[Sequence[bytes]]:
        access = self._access().again()
        for first in range(0, len(self), access.at_once):
            end = min(first + access.at_once, len(self))
            yield from access.many(np.arange(first, end, dtype=np.int64))

    def __repr__(self) -> str:
        state = " closed" if self._is_closed else ""
        return f"<TFRecordFile {os.fspath(self.path)!r} of {plural(len(self), 'record')}{state}>"

    def __reduce__(self) -> Any:
        return partial(type(self), cache_bytes=self._cache_bytes), (self.path, self.index)


@public
class TFRecordFiles(RecordSequence):
    """The records of many files as one sequence of bytes; otherwise as TFRecordFile.

    Args:
        paths: Regular files and URLs, as for ``read_records``.
        max_open_files: How many files to keep open; others are opened when needed.
        num_threads: All threads that index files, check them against their saved indexes, or read
            records of a list or slice, the caller included; with URLs, at least 8. Only the speed
            depends on it.
        cache_bytes: As for TFRecordFile; of all files together: the first that fit are kept.
        storage_options: fsspec's options of the filesystem of URLs.

    Attributes:
        paths: List of the files.
        indexes: List of their RecordIndexes.
        by_key: The records by key, if all indexes were built with one; see RecordsByKey. No two
            records may have the same.

    Raises:
        DataLossError, OSError: As TFRecordFile.

    Example:
        >>> with TFRecordFiles(["a.tfrecord", "b.tfrecord"]) as records:
        ...     records[[3, 0]], len(records[np.random.default_rng(0).integers(4, size=32)])
        ([b'four', b'one'], 32)
    """

    _kept: OrderedDict[int, TFRecordFile] | None

    def __init__(
        self,
        paths: AnyPath | Iterable[AnyPath],
        *,
        max_open_files: int = 256,
        num_threads: int = 1,
        cache_bytes: int = 0,
        storage_options: StorageOptions = None,
    ) -> None:
        cache_bytes = integer("cache_bytes", cache_bytes, 0)
        max_open_files = integer("max_open_files", max_open_files, 1)
        num_threads = integer("num_threads", num_threads, 1)
        self.paths: list[Path] = indexed_paths(paths, storage_options)
        if any(isinstance(path, ObjectPath) for path in self.paths):
            num_threads = max(num_threads, _OBJECTS_AT_ONCE)
        markers = Markers()
        self._locations = list(map(absolute, self.paths))  # valid also after a chdir
        for path in self.paths:
            _warn_if_half_published(path, markers)
        self.indexes: list[RecordIndex] = _saved_or_built(self.paths, num_threads)
        self._begin(max_open_files, cache_bytes, num_threads)

    def _begin(self, max_open_files: int, cache_bytes: int, num_threads: int) -> None:
        self._max_open_files = max_open_files
        self._num_threads = num_threads
        self._cache_bytes = cache_bytes
        self._caches = caches_for(self.paths, self.indexes, cache_bytes)
        self._ends = list(itertools.accumulate(map(len, self.indexes)))
        self._count = self._ends[-1] if self._ends else 0
        self._fetched = fetched_files(self.paths, self.indexes, max_open_files, num_threads)
        self._kept = OrderedDict()

    def _access(self, number: int) -> FileAccess | StreamAccess | RemoteAccess:
        return self._file(number)._access()

    def _file(self, number: int) -> TFRecordFile:
        """A file, open. A file that is no longer kept closes when the last call on it has ended.

        There is no lock, which a signal handler or a fork could find held. Of two threads, both may
        open a file, and one of the two is kept.
        """
        kept = self._kept
        if kept is None:
            raise ValueError(f"{self._name}: the files are closed")
        file = kept.pop(number, None)
        if file is None:
            file = _open_at(
                self.paths[number],
                self.indexes[number],
                self._locations[number],
                self._caches.get(number),
            )
        kept[number] = file
        if len(kept) > self._max_open_files:
            with contextlib.suppress(KeyError):  # others have removed all of them
                kept.popitem(last=False)
        return file

    def _one(self, number: int) -> bytes:
        file = bisect_right(self._ends, number)
        return self._file(file)._one(number - self._first_number(file))

    @property
    def _name(self) -> str:
        first, *others = map(show_path, self.paths or ["no files"])
        return f"{first} and {plural(len(others), 'other file')}" if others else first

    def _indexed(self) -> tuple[list[Path], list[RecordIndex]]:
        return self.paths, self.indexes

    def _first_number(self, file: int) -> int:
        return self._ends[file - 1] if file else 0

    def _ascending(self, numbers: Array) -> Iterator[Sequence[bytes]]:
        fetched = None if self._is_closed else self._fetched
        if fetched is not None and len(numbers) <= _FOUND_ALONE:
            yield list(map(self._one, numbers.tolist()))
            return
        if fetched is not None:
            done = 0
            for records in fetched.pieces(numbers, self._access):
                done += len(records)
                yield records
            numbers = numbers[done:]
        parts = list(self._by_file(numbers))
        if not any(isinstance(self.paths[file], ObjectPath) for file, _ in parts):
            for file, within in parts:
                yield from self._file(file)._ascending(within)
            return

        def read(part: tuple[int, Array], check: Check) -> list[bytes]:
            file, within = part
            return list(itertools.chain.from_iterable(self._file(file)._ascending(within)))

        with ParallelMap(read, parts, _OBJECTS_AT_ONCE) as found:  # which wait for answers
            yield from found

    def _by_file(self, numbers: Array) -> Iterator[tuple[int, Array]]:
        """The files of some records in increasing order, and the numbers of these there."""
        at = 0
        while at < len(numbers):
            file = bisect_right(self._ends, int(numbers[at]))
            end = at + int(np.searchsorted(numbers[at:], self._ends[file]))
            yield file, numbers[at:end] - self._first_number(file)
            at = end

    def _pieces(self) -> Iterator[Sequence[bytes]]:
        for number in range(len(self.paths)):
            yield from self._file(number)._pieces()

    def close(self) -> None:
        """Closes the files. Closing again is allowed; calls in progress go on."""
        super().close()
        self._fetched = None

    def __repr__(self) -> str:
        count, files = plural(len(self), "record"), plural(len(self.paths), "file")
        return f"<TFRecordFiles: {count} in {files}>"

    def __reduce__(self) -> Any:
        options = (self._max_open_files, self._cache_bytes, self._num_threads)
        return _reopen, (self.paths, self.indexes, *options)


def _reopen(paths: list[Any], indexes: list[RecordIndex], *options: int) -> TFRecordFiles:
    files = TFRecordFiles(iter(()))
    files.paths, files.indexes, files._locations = paths, indexes, list(map(absolute, paths))
    files._begin(*options)
    return files


def _open_at(path: Path, index: RecordIndex, location: str, cache: Any) -> TFRecordFile:
    """Opens a file where it was when the index was made or loaded."""
    file = TFRecordFile.__new__(TFRecordFile)
    file.path, file.index, file._cache_bytes = path, index, 0
    file._begin(open_indexed(path, location), cache=cache)
    return file


def _warn_if_half_published(path: Any, markers: Markers) -> None:
    if (problem := markers.find_problem(path)) is not None:
        warn(problem)


def _saved_or_built(paths: list[Path], num_threads: int) -> list[RecordIndex]:
    """The indexes saved beside files where they fit, and new ones of the others."""
    with ParallelMap(_saved, paths, num_threads) as found:
        saved = list(found)
    others = [path for path, index in zip(paths, saved, strict=True) if index is None]
    with contextlib.closing(build_indexes(others, "auto", num_threads)) as built:
        return [next(built) if index is None else index for index in saved]


def _saved(path: Path, check: Check) -> RecordIndex | None:
    with contextlib.suppress(OSError, DataLossError):
        return RecordIndex.load(path)
    return None


def chosen_numbers(files: TFRecordFiles, key: Any) -> Array:
    """The numbers of the records in a slice or a sequence, counted from the beginning."""
    return files._numbers(key)
