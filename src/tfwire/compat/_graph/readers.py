"""Readers of TensorFlow 1: the records of the files that a queue names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tfwire as tfw
from tfwire._base.arguments import integer
from tfwire._records.compression import compression_name
from tfwire._records.sources import check_ends
from tfwire.compat._convert import to_numpy
from tfwire.compat._data.lines import fixed_length_records, lines
from tfwire.compat._errors import Explained
from tfwire.compat._graph.batches import batch
from tfwire.compat._graph.outputs import parts
from tfwire.compat._graph.queues import Queue, SessionSource
from tfwire.compat._graph.session import Deferred, Next
from tfwire.compat._tensor import Tensor

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]

Keyed = Iterator[tuple[bytes, bytes]]


class _Reading(SessionSource):
    """The records of the files of a queue, with their keys."""

    def __init__(self, open_file: Callable[[str], Keyed], queue: Queue) -> None:
        super().__init__("the reader")
        self._open_file = open_file
        self._queue = queue

    def open(self, session: Any) -> Iterator[Any]:
        empty = 0
        for name in session.iterator(self._queue):
            empty += 1
            for key, record in self._open_file(os.fsdecode(to_numpy(name))):
                empty = 0
                yield Tensor(key), Tensor(record)
            if empty > self._queue.size_of_epoch(session):
                return  # repeated files without records


class ReaderBase(Explained):
    """Reads the records of files whose names a queue gives."""

    _tf_name = "TFRecordReader"

    def __init__(self, open_file: Callable[[str], Keyed]) -> None:
        self._open_file = open_file
        self._sources: dict[Queue, _Reading] = {}

    def _source(self, queue: Queue) -> _Reading:
        if not isinstance(queue, Queue):
            raise TypeError(
                f"`queue` must be what string_input_producer returned, found {type(queue).__name__}"
            )
        if queue not in self._sources:
            self._sources[queue] = _Reading(self._open_file, queue)
        return self._sources[queue]

    def read(self, queue: Any, name: str | None = None) -> tuple[Deferred, Deferred]:
        """The key (file name and place) and the bytes of the next record."""
        key, value = parts(Next(self._source(queue)), (None, None))
        return key, value

    def read_up_to(
        self, queue: Any, num_records: int, name: str | None = None
    ) -> tuple[Deferred, Deferred]:
        """The keys and the bytes of the next records of a file."""
        key, value = self.read(queue)
        keys, values = batch([key, value], num_records, allow_smaller_final_batch=True)
        return keys, values


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

    def __init__(self, name: str | None = None) -> None:
        super().__init__(_whole_file)


class IdentityReader(ReaderBase):
    """Gives the names themselves, as keys and as records; it opens no files."""

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
    records = tfw.read_records(path, kind, max_record_size=None)
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
