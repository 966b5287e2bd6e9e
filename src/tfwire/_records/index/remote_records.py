"""Reads records of uncompressed objects by number: neighbours share a range."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.native import lib, new_error
from tfwire._base.strings import strings_from_spans
from tfwire._records.files.compression import begins_record
from tfwire._records.frames import FRAME, scanned
from tfwire._records.index.offset_checks import Layout, raise_unverified, stale_at
from tfwire._records.remote.random_ranges import RemoteFile

Array = np.ndarray[Any, Any]

_HEADER, _FOOTER = lib.TFW_HEADER_SIZE, lib.TFW_FOOTER_SIZE
_LENGTH = 8  # bytes of it in the header
_HEADERS_AT_ONCE = 1 << 16
# Reading the bytes between two records costs less than another request, up to this many.
_GAP_BYTES = 64 << 10
_RANGE_BYTES = 8 << 20  # at most, of one request


class _Group(NamedTuple):
    """Records that are read together.

    Attributes:
        begin, end: Their bytes.
        first, last: Their places in the array of numbers.
    """

    begin: int
    end: int
    first: int
    last: int

    def ranges(self) -> Iterator[tuple[int, int]]:
        """The requests: more than one only for a record that is longer than a range."""
        for begin in range(self.begin, self.end, _RANGE_BYTES):
            yield begin, min(begin + _RANGE_BYTES, self.end)


class RemoteAccess:
    """Records of an uncompressed object, for any number of threads and forked processes.

    Args:
        file: The object.
        offsets: Of all records, and the end of the last.
        known: True if the offsets were found in this version of the object.

    Attributes:
        at_once: How many records to ask for at a time when all are read.
    """

    at_once = 1 << 17

    def __init__(self, file: RemoteFile, offsets: Array, known: bool) -> None:
        self._file, self._size = file, file.size
        self._offsets = offsets
        self._layout = _ObjectLayout(file, offsets, known)

    def one(self, number: int) -> bytes:
        """One record, verified."""
        return next(self.many(np.array([number], np.int64)))[0]

    def again(self) -> RemoteAccess:
        """Access for another iterator."""
        return self

    def many(self, numbers: Array) -> Iterator[Sequence[bytes]]:
        """Records in increasing order of their numbers, verified, in pieces of at most 8 MiB, or of
        one record."""
        begins, ends = self._offsets[numbers], self._offsets[numbers + 1]
        wrong = (begins < 0) | (ends - begins < FRAME) | (ends > self._file.size)
        if wrong.any():  # somebody has changed the offsets
            number = int(numbers[wrong][0])
            raise stale_at(self._file.path, number, "no record has its offsets")
        with closing(_read_groups(self._file, self._size, begins, ends)) as groups:
            for group, data in groups:
                read = numbers[group.first : group.last]
                records = self._records(group, data, read)
                self._check_numbers(read)
                yield records
        if len(numbers) and int(ends[-1]) - int(begins[0]) > _RANGE_BYTES:
            self._file.check_versions()

    def _check_numbers(self, numbers: Array) -> None:
        """Refuses records that verify but have other numbers: one before is not where the index
        says."""
        last = int(numbers[-1])
        if (np.diff(numbers) == 1).all():
            self._layout.take_read(int(numbers[0]), last + 1)
        self._layout.check(last, self._file.path)

    def _records(self, group: _Group, data: bytes, numbers: Array) -> Sequence[bytes]:
        """The records of a group, whose bytes are data."""
        if numbers[-1] - numbers[0] == len(numbers) - 1 > 0:
            spans = scanned(data, len(numbers))
            expected = self._offsets[numbers] + _HEADER - group.begin
            if len(spans) == len(numbers) and np.array_equal(spans[:, 0], expected):
                return strings_from_spans(np.frombuffer(data, np.uint8), spans)
        return [self._verified(number, data, group.begin) for number in numbers.tolist()]

    def _verified(self, number: int, data: bytes, begin: int) -> bytes:
        """A record within data, which begins at a byte of the object."""
        at, end = self._offsets[number] - begin, self._offsets[number + 1] - begin
        payload, error = data[at + _HEADER : end - _FOOTER], new_error()
        header, footer = data[at : at + _HEADER], data[end - _FOOTER : end]
        status = lib.tfw_verify_record(header, payload, len(payload), footer, error)
        if status == lib.TFW_OK:
            return payload
        self._file.check_unchanged()
        error.record, error.offset = number, begin + at
        raise_unverified(status, error, self._file.path)


class _ObjectLayout(Layout):
    """A Layout of an object: headers that are close to each other share a range."""

    def __init__(self, file: RemoteFile, offsets: Array, known: bool) -> None:
        super().__init__(offsets, known)
        self._file, self._size = file, file.size

    def _step(self, first: int, number: int) -> None:
        end = min(number + 1, first + _HEADERS_AT_ONCE)
        offsets = self._offsets[first : end + 1].copy()  # which anybody may change
        sizes = np.diff(offsets)
        wrong = np.flatnonzero((sizes < FRAME) | (offsets[1:] > self._end))
        count = int(wrong[0]) if len(wrong) else len(sizes)
        begins, lengths = offsets[:count], sizes[:count] - FRAME
        with closing(_read_groups(self._file, self._size, begins, begins + _HEADER)) as groups:
            for group, data in groups:
                places = (
                    begins[group.first : group.last, None]
                    - group.begin
                    + np.arange(_HEADER, dtype=np.int64)
                )
                headers = np.frombuffer(data, np.uint8)[places]
                found = headers[:, :_LENGTH].copy().view("<i8").ravel()
                for i in np.flatnonzero(found != lengths[group.first : group.last]).tolist():
                    if begins_record(headers[i].tobytes()):
                        self._wrong = first + group.first + i
                        return
                self.checked = first + group.last


def _read_groups(
    file: RemoteFile, size: int, begins: Array, ends: Array
) -> Generator[tuple[_Group, bytes], None, None]:
    """Parts of an object of this size, in increasing order, those together that are close to each
    other."""
    groups = list(_groups(begins.tolist(), ends.tolist()))
    pieces = file.read([part for group in groups for part in group.ranges()])
    with closing(pieces):
        for group in groups:
            parts = [next(pieces) for _ in group.ranges()]
            file.check_size(size)
            yield group, parts[0] if len(parts) == 1 else b"".join(parts)


def _groups(begins: list[int], ends: list[int]) -> Iterator[_Group]:
    """Records in increasing order, of which neighbours are read together."""
    first = 0
    for i in range(1, len(begins) + 1):
        if (
            i == len(begins)
            or begins[i] - ends[i - 1] > _GAP_BYTES
            or ends[i] - begins[first] > _RANGE_BYTES
        ):
            yield _Group(begins[first], ends[i - 1], first, i)
            first = i
