"""Readers of TensorFlow 1: the records of the files that a queue names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tfwire as tfw
from tfwire import DataLossError, int64, string
from tfwire._interface.files import check_ends, compression_name, one_input
from tfwire._interface.messages import integer
from tfwire.compat._calls import parts
from tfwire.compat._constants import to_numpy
from tfwire.compat._data.file_datasets import fixed_length_records, lines
from tfwire.compat._errors import Explained, OutOfRangeError
from tfwire.compat._graph.fifo import FIFOQueue
from tfwire.compat._graph.queues import Queue, SessionSource
from tfwire.compat._graph.session import Deferred, SessionEffect, SessionStep
from tfwire.compat._ops import stack
from tfwire.compat._tensor import Tensor

Keyed = Iterator[tuple[bytes, bytes]]


class _Reading:
    """What a reader has read in one session: part of a file, and files before it.

    Args:
        open_file: Gives the records of a file, with their keys.
        whole: Files have one record each: with it, a file has been read.
    """

    def __init__(self, open_file: Callable[[str], Keyed], whole: bool) -> None:
        self._open_file, self._whole = open_file, whole
        self._records: Any = None
        self._error: Exception | None = None  # which has ended the records
        self.produced = self.completed = 0

    def close(self) -> None:
        """Leaves the file that it reads, and counts from 0."""
        if self._records is not None:
            self._records.close()
        self._records = self._error = None
        self.produced = self.completed = 0

    def take(self, session: Any, queue: Any, most: int) -> list[Any]:
        """The next records, fewer at the end of a file."""
        found: list[Any] = []
        empty = 0
        while len(found) < most and not (found and self._records is None):
            if self._records is None:
                if empty > queue.size_of_epoch(session):
                    raise OutOfRangeError(None, None, "repeated files without records")
                empty += 1
                name = os.fsdecode(to_numpy(queue.dequeued(session)))
                self._records = self._open_file(name)
            found.extend(self._next(self._records))
        return found

    def _next(self, records: Keyed) -> list[Any]:
        """The next record of a file; none at its end."""
        if self._error is not None:
            raise self._error
        try:
            found = next(records, None)
        except Exception as error:  # as in TensorFlow: later calls take the next file if it was
            if self._whole or isinstance(error, DataLossError):  # opening it that failed, else
                self._error = error  # they fail too
            else:
                self._records = None
            raise
        if found is None or self._whole:
            self._records = None
            self.completed += 1
        if found is None:
            return []
        self.produced += 1
        return [tuple(map(Tensor, found))]


class ReaderBase(Explained):
    """Reads the records of files whose names a queue gives."""

    _tf_name = "TFRecordReader"
    _whole = False  # each file is one record

    def __init__(self, open_file: Callable[[str], Keyed]) -> None:
        self._state = _State(partial(_Reading, open_file, self._whole))

    def read(self, queue: Any, name: str | None = None) -> tuple[Deferred, Deferred]:
        """The key (file name and place) and the bytes of the next record.

        Args:
            queue: What ``string_input_producer`` returned, or a FIFOQueue of strings.

        Raises:
            TypeError: It is another object.
        """
        return self._pair(queue, lambda session: self._reading(session).take(session, queue, 1)[0])

    def read_up_to(
        self, queue: Any, num_records: int, name: str | None = None
    ) -> tuple[Deferred, Deferred]:
        """The keys and the bytes of the next records of a file, fewer at its end."""

        def rows(session: Any, most: Any) -> Any:
            count = integer("num_records", to_numpy(most), 1)
            found = self._reading(session).take(session, queue, count)
            return list(map(stack, zip(*found, strict=True)))

        return self._pair(queue, rows, num_records)

    def _pair(
        self, queue: Any, function: Callable[..., Any], *args: Any
    ) -> tuple[Deferred, Deferred]:
        if not isinstance(queue, (Queue, FIFOQueue)):
            raise TypeError(
                "`queue` must be what string_input_producer returned, or a FIFOQueue, found "
                f"{type(queue).__name__}"
            )
        if isinstance(queue, FIFOQueue) and queue.dtypes != [string]:
            raise TypeError(f"`queue` must be one of strings, found {queue.dtypes}")
        key, value = parts(SessionStep(function, *args), (None, None))
        return key, value

    def _reading(self, session: Any) -> _Reading:
        found: _Reading = session.iterator(self._state)
        return found

    def num_records_produced(self, name: str | None = None) -> Deferred:
        """How many records a session has read."""
        return SessionStep(lambda session: Tensor(self._reading(session).produced, int64))

    def num_work_units_completed(self, name: str | None = None) -> Deferred:
        """How many files a session has read to their end."""
        return SessionStep(lambda session: Tensor(self._reading(session).completed, int64))

    def reset(self, name: str | None = None) -> Deferred:
        """An operation that leaves the file that is being read, and counts from 0."""
        return SessionEffect(lambda session: self._reading(session).close())


class _State(SessionSource):
    """What a session knows the state of a reader by."""

    def __init__(self, make: Callable[[], _Reading]) -> None:
        super().__init__("the reader")
        self._make = make

    def open(self, session: Any) -> _Reading:
        return self._make()


class TFRecordReader(ReaderBase):
    """Reads TFRecord files; keys are the file name, a colon and the offset of the record.

    Args:
        name: Ignored.
        options: TFRecordOptions, or a compression type.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(partial(_records, options))


class WholeFileReader(ReaderBase):
    """Reads each file as one record; keys are the file names."""

    _whole = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_whole_file)


class IdentityReader(ReaderBase):
    """Gives the names themselves, as keys and as records; it opens no files."""

    _whole = True

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_name)


class TextLineReader(ReaderBase):
    """Reads lines without their ends; keys are the file name, a colon and the number of the line.

    Args:
        skip_header_lines: How many lines of each file to skip.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(partial(_lines, skip_header_lines or 0))


class FixedLengthRecordReader(ReaderBase):
    """Reads records of one length; keys are the file name, a colon and the number of the record.

    Args:
        record_bytes: Bytes of a record.
        header_bytes, footer_bytes: Bytes to skip at both ends of a file.
        hop_bytes: Bytes from the start of a record to the next; None or 0: ``record_bytes``.
        encoding: "GZIP" or "ZLIB" for compressed files.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        kind = compression_name(encoding)
        size = integer("record_bytes", record_bytes, 1)
        ends = header_bytes or 0, footer_bytes or 0
        super().__init__(partial(_chunks, size, *ends, hop_bytes or size, kind))


def _records(options: Any, path: str) -> Keyed:
    kind: Any = "" if options is None else options
    file = one_input(path, None, "a queue of them", "the name in the queue")
    records = tfw.read_records(file, kind, max_record_size=None)
    with records:
        for _, _, offset, record in records.with_positions():
            yield _key(path, offset), record


def _whole_file(path: str) -> Keyed:
    with open(path, "rb") as file:
        check_ends(file, path)
        yield os.fsencode(path), file.read()


def _name(path: str) -> Keyed:
    yield os.fsencode(path), os.fsencode(path)


def _lines(skip: int, path: str) -> Keyed:
    for number, line in enumerate(lines(path), 1):
        if number > skip:
            yield _key(path, number), line


def _chunks(size: int, header: int, footer: int, hop: int, encoding: Any, path: str) -> Keyed:
    records = fixed_length_records(size, header, footer, hop, path, encoding)
    for number, record in enumerate(records):
        yield _key(path, number), record


def _key(path: str, place: int) -> bytes:
    return os.fsencode(path) + b":%d" % place
