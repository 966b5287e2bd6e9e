"""Reads records of one file by number: with pread, or by inflating up to them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakSet

import numpy as np

from tfwire._base import system
from tfwire._base.arrays import keep_heap
from tfwire._base.errors import DataLossError, record_error
from tfwire._base.native import address, create, ffi, lib, objects
from tfwire._base.strings import strings_from_spans
from tfwire._records.files.byte_sources import FileSource, read_at
from tfwire._records.files.paths import Path
from tfwire._records.files.seek_points import NotReadable, SeekableContent, SeekPoints
from tfwire._records.frames import FRAME
from tfwire._records.index.fetched_records import (
    FETCH_RECORDS,
    FetchedRecords,
    ends_by_size,
    is_plain,
)
from tfwire._records.index.offset_checks import FileLayout, raise_unverified, stale_at
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import span_table
from tfwire._records.reading.options import make_options
from tfwire._records.reading.pipeline import Stop
from tfwire._records.remote.random_ranges import RemoteFile

Array = np.ndarray[Any, Any]

_HEADER, _FOOTER, _OK = lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE, lib.TFW_OK
_read_record = objects.tfw_read_record

# From this payload size, reading header and footer separately costs less than copying the payload
# out of the whole record.
_LONG_PAYLOAD_BYTES = (1 << 15) - FRAME
# Each of so many records is read by itself.
_READ_ALONE = 32
_LARGEST_OFFSET = 1 << 62


class FileAccess:
    """Records of an uncompressed file, for any number of threads and forked processes.

    Args:
        source: The file. It is closed when this object and all its calls have ended.
        offsets: Of all records, and the end of the last.
        known: True if the offsets were found in this very file.
        cache: A ``tfw_cache *`` for the file, or None.

    Attributes:
        at_once: How many records to ask for at a time when all are read.
    """

    at_once = 16 * FETCH_RECORDS

    def __init__(
        self, source: FileSource, offsets: Array, known: bool = False, cache: Any = None
    ) -> None:
        self._source = source
        self._layout = FileLayout(source, offsets, known)
        self._path: Path = source.path or ""
        self._array = offsets
        self._offsets = offsets.data  # a memoryview: its items cost half of an array's
        self._cache = cache
        self._native = ffi.new("tfw_indexed_file[1]")
        native = self._native[0]
        native.offsets = ffi.from_buffer("int64_t[]", offsets)
        native.count, native.fd = len(offsets) - 1, source.fd
        native.cache = ffi.NULL if cache is None else cache
        self._address = address(self._native)
        self._fetched = FetchedRecords(self._native, (source, offsets, cache))
        keep_heap()

    @property
    def num_checked(self) -> int:
        """How many records are known to lie where the index says."""
        return self._layout.checked

    def one(self, number: int) -> bytes:
        """One record, verified."""
        payload: bytes | None = _read_record(self._address, number)
        if payload is not None and number < self._layout.checked:
            return payload
        return self._unusual(number, payload)

    def _unusual(self, number: int, payload: bytes | None) -> bytes:
        """One record, which may be another one, or was not read so far."""
        if payload is not None:
            self._layout.check(number, self._path)
            return payload
        begin, end = self._offsets[number], self._offsets[number + 1]
        length = end - begin - FRAME
        if length < 0 or begin < 0 or end > _LARGEST_OFFSET:  # somebody has changed the offsets
            raise stale_at(self._path, number, "no record has its offsets")
        return (
            self._long(number, begin, end)
            if length >= _LONG_PAYLOAD_BYTES
            else self._reread(number)
        )

    def _long(self, number: int, begin: int, end: int) -> bytes:
        """A long record, read to where it stays."""
        fd, length = self._source.fd, end - begin - FRAME
        self._check_size(number, end)
        header = system.pread(fd, _HEADER, begin)
        payload = read_at(fd, length, begin + _HEADER)
        footer = system.pread(fd, _FOOTER, end - _FOOTER)
        if len(header) == _HEADER and len(payload) == length and len(footer) == _FOOTER:
            status = lib.tfw_verify_record(header, payload, length, footer, ffi.NULL)
            if status == _OK:
                self.check_read(number)
                return payload
        payload = b""  # frees its memory before it is read again
        return self._reread(number)

    def _reread(self, number: int) -> bytes:
        """A record whose read was short, or that did not verify: raises the error."""
        found = self._fetched.one(number)
        if isinstance(found, Stop):
            raise_unverified(found.status, found.error, self._source.path)
        return found

    @property
    def native(self) -> Any:
        """The ``tfw_indexed_file``, which needs this object."""
        return self._native[0]

    def is_as_indexed(self) -> bool:
        """Whether the file has the records that its index says: headers are compared, once."""
        count = len(self._array) - 1
        return self.num_checked == count or self._layout.first_wrong(count - 1) is None

    def sizes(self, numbers: Array) -> Array:
        """The sizes of records, with their frames."""
        sizes: Array = self._array[numbers + 1] - self._array[numbers]
        return sizes

    def longest(self) -> int:
        """The size of the longest record, with its frame."""
        return int(np.diff(self._array).max(initial=0))

    def again(self) -> FileAccess:
        """Access for another iterator."""
        return self

    def many(self, numbers: Array) -> Iterator[Sequence[bytes]]:
        """Records in increasing order of their numbers, verified, in pieces of some 100 KiB."""
        if len(numbers) <= _READ_ALONE:
            yield list(map(self.one, numbers.tolist()))
            return
        sizes = self.sizes(numbers)
        done = 0
        if sizes.mean() < _LONG_PAYLOAD_BYTES:
            for records in self._fetched.pieces(numbers, ends_by_size(sizes)):
                done += len(records)
                self.check_read(int(numbers[done - 1]))
                yield records
        yield from ([self.one(number)] for number in numbers[done:].tolist())

    def check_read(self, number: int) -> None:
        """Refuses records that were read, up to this one, if they have other numbers."""
        if number >= self._layout.checked:
            self._layout.check(number, self._path)

    def _check_size(self, number: int, end: int) -> None:
        """Refuses a record that does not fit into the file, before memory is allocated for it: the
        index is wrong, or the file was cut."""
        size = self._source.size() or 0
        if end > size:
            begin = self._offsets[number]
            text = f"takes {end - begin} bytes but the file ends at byte {size}; "
            text += "the index is stale, or the file was cut"
            raise record_error(self._path, number, begin, text, "truncated")


def new_cache(size: int) -> Any:
    """A ``tfw_cache *`` for a file of this size; None if there is no room for one."""
    try:
        return ffi.gc(create(lib.tfw_cache_create, "tfw_cache", size), lib.tfw_cache_free)
    except MemoryError:
        return None


def caches_for(paths: Sequence[Path], indexes: Sequence[Any], cache_bytes: int) -> dict[int, Any]:
    """The caches of the first files that fit: they stay also while a file is not open."""
    caches: dict[int, Any] = {}
    for number, (path, index) in enumerate(zip(paths, indexes, strict=True)):
        if 0 < index.size <= cache_bytes and is_plain(path, index):
            cache_bytes -= index.size
            caches[number] = new_cache(index.size)
    return caches


# Readers of a compressed file that are kept for later calls: each takes its buffer of 256 KiB, or
# the longest record so far, and what inflating takes. Of those with a long record one is kept.
_KEPT_STREAMS = 8
_KEPT_STREAMS_OF_ALL = 64
_LONG_BATCH = 1 << 22
# To begin at a seek point costs as much as inflating this much content.
_BEGINNING_COST = 1 << 19


_accesses: WeakSet[StreamAccess] = WeakSet()  # of all compressed files that are open


class _OpenStream:
    """A reader of a compressed file, and its current batch; None: the file has ended."""

    def __init__(self, reader: BatchReader) -> None:
        self.reader = reader
        self.batch = reader.next()

    def go_to(self, number: int) -> bool:
        """Reads up to the batch that holds a record; False: the file ends before it."""
        while self.batch is not None and number >= self.batch.first_record + self.batch.count:
            self.batch = self.reader.next()
        return self.batch is not None


class StreamAccess:
    """Records of a compressed file, for any number of threads and forked processes. A call reads on
    where an earlier one ended, if its record comes after that; else from the nearest seek point, or
    from the beginning.

    Args:
        source: The file, or an object. It stays open: another file may get its name.
        compression: "GZIP" or "ZLIB".
        offsets: Of all records, and the end of the last.
        points: Of the file; None: it is read from its beginning alone.
    """

    at_once = FETCH_RECORDS

    def __init__(
        self,
        source: FileSource | RemoteFile,
        compression: str,
        offsets: Array,
        points: SeekPoints | None = None,
    ) -> None:
        self._source = source
        self._path: Path = source.path or ""
        self._compression = compression
        self._offsets = offsets
        self._points = points
        self._pid = os.getpid()
        self._streams: list[_OpenStream] = []  # those that nobody uses, the last used at the end
        _accesses.add(self)

    def one(self, number: int) -> bytes:
        """One record, verified."""
        return self._take(np.array([number], np.int64))[0]

    def again(self) -> StreamAccess:
        """Access for another iterator, with a position of its own."""
        return StreamAccess(self._source, self._compression, self._offsets, self._points)

    def many(self, numbers: Array) -> Iterator[Sequence[bytes]]:
        """Records in increasing order of their numbers, verified, in pieces."""
        first = 0
        while first < len(numbers):
            records = self._take(numbers[first:])
            yield records
            first += len(records)

    def _take(self, numbers: Array) -> Sequence[bytes]:
        """The first of these records, and those in the same batch."""
        if self._pid != os.getpid():  # threads that fetch an object are in the parent
            self._streams, self._pid = [], os.getpid()
        if self._points is not None:
            with contextlib.suppress(NotReadable, DataLossError):
                return self._read(numbers)
            # Reading from the beginning tells what is wrong, and where; or the record comes just
            # before what is damaged.
            stream = self._moved(self._opened_at_beginning(), int(numbers[0]))
            return self._strings(stream.batch, numbers)
        return self._read(numbers)

    def _read(self, numbers: Array) -> Sequence[bytes]:
        stream = self._batch_with(int(numbers[0]))
        records = self._strings(stream.batch, numbers)
        if stream.batch.data_len > _LONG_BATCH:
            self._streams.clear()
        self._streams.append(stream)
        del self._streams[: -self._most_kept()]
        return records

    def _most_kept(self) -> int:
        """How many streams wait: each has an open file and memory. Without points one serves."""
        if self._points is None:
            return 1
        return max(1, min(_KEPT_STREAMS, _KEPT_STREAMS_OF_ALL // max(len(_accesses), 1)))

    def _batch_with(self, number: int) -> _OpenStream:
        """A stream whose batch holds a record, and which nobody else uses."""
        return self._moved(self._kept_before(number) or self._opened_before(number), number)

    def _moved(self, stream: _OpenStream, number: int) -> _OpenStream:
        if not stream.go_to(number):
            raise stale_at(self._path, number, "the file ends before it")
        return stream

    def _kept_before(self, number: int) -> _OpenStream | None:
        """A stream to read on from to a record, which is taken; None: there is none, or reading
        from a seek point takes less."""
        points, best, first = self._points, None, -1
        count = 0
        for stream in tuple(self._streams):
            batch = stream.batch  # another thread may use it by now
            if batch is not None and first < batch.first_record <= number:
                best, first, count = stream, batch.first_record, batch.count
        if best is None:
            return None
        end = int(self._offsets[min(first + count, len(self._offsets) - 1)])
        point = 0 if points is None else points.before(int(self._offsets[number]))
        if end + _BEGINNING_COST < point:
            return None
        try:
            self._streams.remove(best)
        except ValueError:  # another thread has taken it
            return None
        return best if best.batch.first_record <= number else None

    def _opened_before(self, number: int) -> _OpenStream:
        """A new stream that comes to a record."""
        points, offset = self._points, int(self._offsets[number])
        if points is None or not points.before(offset):
            return self._opened_at_beginning()
        content = SeekableContent(self._source.duplicate(), self._compression, points)
        start = RecordPosition(number, offset)
        return _OpenStream(
            BatchReader([content], make_options("", max_record_size=None), start=start)
        )

    def _opened_at_beginning(self) -> _OpenStream:
        options = make_options(self._compression, max_record_size=None)
        return _OpenStream(BatchReader([self._source.duplicate()], options))

    def _strings(self, batch: Any, numbers: Array) -> Sequence[bytes]:
        within = numbers[: np.searchsorted(numbers, batch.first_record + batch.count)]
        rows = span_table(batch)[within - batch.first_record]
        begins = rows[:, 0] + (batch.offset - lib.TFW_HEADER_SIZE)
        ends = begins + rows[:, 1] + FRAME
        wrong = (begins != self._offsets[within]) | (ends != self._offsets[within + 1])
        if wrong.any():
            raise stale_at(self._path, int(within[wrong][0]), "it is not where the index says")
        data = np.frombuffer(ffi.buffer(batch.data, batch.data_len), np.uint8)
        return strings_from_spans(data, rows)
