"""Records of open files by number as bytes objects: a pipeline of C reads and verifies them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.native import address, ffi, lib, objects
from tfwire._records.files.urls import ObjectPath
from tfwire._records.reading.pipeline import (
    MOST_THREADS,
    Chunk,
    NativePipeline,
    PipelineOptions,
    Stop,
)

# Of an order. Its records become objects while they are in the cache: with fewer, an order takes
# longer than they do.
_FETCH_BYTES = 1 << 20
FETCH_RECORDS = 1 << 12
# With several threads, an order has at least so many: fewer are not worth waking one.
_LEAST_ORDERED = 1 << 8
# One thread reads records of this mean size one by one: a copy less.
_READ_ALONE_BYTES = 1 << 15
# A pipeline keeps the memory of its largest order: with more, it does not serve again.
_KEPT_BYTES = 1 << 22
_MOST_UNUSED = 2  # pipelines that wait, with their threads and their memory

_bytes_of_spans = objects.tfw_bytes_of_spans


class FetchedRecords:
    """Reads records of open files, for any number of threads and forked processes. It handles
    nothing unusual: at a record that is not as it should be somebody else reads on, and says what
    is wrong.

    Args:
        files: ``tfw_indexed_file[]``. Of those of which no record is asked for, the counts alone.
        held: What owns what these point to.
        num_threads: How many threads read, the caller included.
    """

    def __init__(self, files: Any, held: Any, num_threads: int = 1) -> None:
        self._options = PipelineOptions(
            lib.TFW_PIPELINE_SPANS, num_threads=num_threads, indexed=files, held=held
        )
        # Orders on their way, beside the next one.
        self._ahead = min(num_threads, MOST_THREADS) if num_threads > 1 else 0
        self._unused: list[NativePipeline] = []  # at rest
        self._pid = os.getpid()

    def pieces(self, numbers: Array, ends: Sequence[int]) -> Iterator[list[bytes]]:
        """Records in order, order by order; up to an order with a record that is not as it should
        be.

        Args:
            numbers: int64, contiguous; counted through all files.
            ends: Where each order ends in them.
        """
        pipeline = self._acquire()
        begins = [0, *ends]
        sent = largest = 0
        for i, end in enumerate(ends):
            while sent < min(i + 1 + self._ahead, len(ends)):
                if not _send(pipeline, numbers[begins[sent] : ends[sent]]):
                    break
                sent += 1
            chunk = _next(pipeline)
            if chunk is None or chunk.num_records != end - begins[i]:
                return
            largest = max(largest, chunk.info.data_len)
            yield _taken(chunk)
        if largest <= _KEPT_BYTES and len(self._unused) < _MOST_UNUSED:
            self._unused.append(pipeline)

    def one(self, number: int) -> bytes | Stop:
        """A record, or why there is none."""
        pipeline = self._acquire()
        pipeline.fetch(np.array([number], np.int64))
        found = pipeline.next()
        assert found is not None
        return _taken(found)[0] if isinstance(found, Chunk) else found

    def _acquire(self) -> NativePipeline:
        if self._pid != os.getpid():  # the threads of these are those of the parent
            self._unused, self._pid = [], os.getpid()
        with suppress(IndexError):  # threads may share this object
            return self._unused.pop()
        return NativePipeline((), self._options)


def _send(pipeline: NativePipeline, numbers: Array) -> bool:
    """Orders records. False: there is no space, or a thread has found a record that is wrong."""
    with suppress(ValueError, RuntimeError):
        return pipeline.fetch(numbers)
    return False


def _next(pipeline: NativePipeline) -> Chunk | None:
    """The next chunk; None: there is none, as offsets are impossible, a record is wrong, or the
    threads are those of a parent process."""
    with suppress(RuntimeError):
        found = pipeline.next()
        return found if isinstance(found, Chunk) else None
    return None


def _taken(chunk: Chunk) -> list[bytes]:
    """The records of a chunk, which gives its memory back."""
    info = chunk.info
    records: list[bytes] = _bytes_of_spans(
        address(info.data), info.data_len, address(info.spans), info.records
    )
    chunk.release()
    return records


def ends_by_size(sizes: Array) -> list[int]:
    """Where the orders of records of these sizes (int64) end."""
    # Of offsets that somebody has changed, sizes may be anything.
    totals = np.cumsum(np.maximum(sizes, 0), dtype=np.int64)
    if len(totals) <= FETCH_RECORDS and (not len(totals) or totals[-1] <= _FETCH_BYTES):
        return [len(totals)] if len(totals) else []
    ends: list[int] = []
    end = 0
    while end < len(totals):
        most = (int(totals[end - 1]) if end else 0) + _FETCH_BYTES
        fitting = int(np.searchsorted(totals, most, "right"))
        end = min(max(fitting, end + 1), end + FETCH_RECORDS)
        ends.append(end)
    return ends


class _Opened(NamedTuple):
    """The files that are open. Threads read it: it never changes.

    Attributes:
        native: ``tfw_indexed_file[]``, of others their counts alone.
        is_open: Which of them are.
        longest: Of their records, in bytes.
        fetched: Reads them.
    """

    native: Any
    is_open: Array
    longest: int
    fetched: FetchedRecords


class FetchedFiles:
    """Reads records of many plain files, which it opens when a record of them is asked for.

    Args:
        counts: How many records each file has.
        mean: The mean size of all records in bytes.
        num_threads: How many threads read, the caller included.
    """

    def __init__(self, counts: Sequence[int], mean: int, num_threads: int) -> None:
        self._num_threads = num_threads
        self._mean = mean
        self._ends = np.cumsum(counts, dtype=np.int64)
        self._begins = self._ends - counts
        self._checked = self._begins.copy()  # up to where records of each file have their numbers
        self._accesses: dict[int, Any] = {}  # which stay: their numbers are in pipelines
        native = ffi.new("tfw_indexed_file[]", len(counts))
        for number, count in enumerate(counts):
            native[number].count = count
        self._opened = self._new(native, np.zeros(len(counts), bool), 0)

    def _new(self, native: Any, is_open: Array, longest: int) -> _Opened:
        fetched = FetchedRecords(native, (native, self._accesses), self._num_threads)
        return _Opened(native, is_open, longest, fetched)

    def pieces(self, numbers: Array, open_file: Callable[[int], Any]) -> Iterator[list[bytes]]:
        """Records in order, in pieces; up to a piece with one that is not as it should be.

        Args:
            numbers: int64, contiguous; counted through all files.
            open_file: Gives access to a file by its number: a FileAccess.
        """
        files = np.searchsorted(self._ends, numbers, "right")
        opened = self._opened
        if not opened.is_open[files].all():
            found = self._open(opened, np.unique(files), open_file)
            if found is None:
                return
            opened = found
        ends = self._order_ends(opened.longest, files, numbers)
        done = 0
        for records in opened.fetched.pieces(numbers, ends):
            part = slice(done, done := done + len(records))
            self._check(files[part], numbers[part])
            yield records

    def _open(
        self, before: _Opened, files: Array, open_file: Callable[[int], Any]
    ) -> _Opened | None:
        """Opens files, beside those before. None: somebody has given one another index."""
        native = ffi.new("tfw_indexed_file[]", len(before.native))
        ffi.memmove(native, before.native, ffi.sizeof(native))
        is_open, longest = before.is_open.copy(), before.longest
        for number in files[~is_open[files]].tolist():
            # Another thread may open it, too: the first one counts, and stays open.
            access = self._accesses.setdefault(number, open_file(number))
            if access.native.count != native[number].count:
                return None
            native[number] = access.native
            longest = max(longest, access.longest())
            self._checked[number] = self._begins[number] + access.num_checked
        is_open[files] = True
        # Of two threads that open files, one may replace what the other has opened: then that is
        # looked for again.
        opened = self._opened = self._new(native, is_open, longest)
        return opened

    def _check(self, files: Array, numbers: Array) -> None:
        """Refuses records that were read if they have other numbers than the index says."""
        late = numbers >= self._checked[files]
        for file in np.unique(files[late]).tolist():
            access, begin = self._accesses[file], int(self._begins[file])
            access.check_read(int(numbers[files == file].max()) - begin)
            self._checked[file] = begin + access.num_checked

    def _order_ends(self, longest: int, files: Array, numbers: Array) -> list[int]:
        """Where the orders of these records end; none if one thread had better read each alone."""
        count = len(numbers)
        each = max(1, min(FETCH_RECORDS, _FETCH_BYTES // self._mean))
        if each * longest > _KEPT_BYTES:  # they may be much longer than the mean
            sizes = np.empty(count, np.int64)
            for file in np.unique(files).tolist():
                chosen = files == file
                sizes[chosen] = self._accesses[file].sizes(numbers[chosen] - self._begins[file])
            is_long = self._num_threads == 1 and sizes.mean() >= _READ_ALONE_BYTES
            return [] if is_long else ends_by_size(sizes)
        if self._num_threads > 1:
            each = min(each, max(_LEAST_ORDERED, -(-count // (2 * self._num_threads))))
        return [min(first + each, count) for first in range(0, count, each)]


def is_plain(path: Any, index: Any) -> bool:
    """Whether records of a file, of which this is the RecordIndex, lie in it as they are."""
    return not index.compression and not isinstance(path, ObjectPath)


def fetched_files(
    paths: Sequence[Any], indexes: Sequence[Any], max_open_files: int, num_threads: int
) -> FetchedFiles | None:
    """What reads many records of all these files at once; None: some files are not plain, or they
    cannot be open together, or records are long."""
    counts = list(map(len, indexes))
    mean = sum(index.size for index in indexes) // max(sum(counts), 1) + 1
    if not 0 < len(paths) <= max_open_files or not all(map(is_plain, paths, indexes)):
        return None
    if num_threads == 1 and mean >= _READ_ALONE_BYTES:
        return None
    return FetchedFiles(counts, mean, num_threads)
