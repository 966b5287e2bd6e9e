"""Files cut into partitions, which the workers of an engine read one by one.

The driver calls ``plan_partitions``; partitions are pickled; a worker calls ``read_partition`` or
``count_records``. Reading a partition again gives the same batches in the same order, so a task may
be tried again.

Where no specification is given, the driver asks ``infer_table`` for one, or ``open_reader``, whose
``features`` it is; workers are sent that, and make the same columns of the same types. It knows
whether it is that of all records (``is_sample``: it is not): if not, workers warn of features that
no column is of (``notes_unknown``; ``ParsingOptions`` have both words).
``string_types`` are those of a reader's strings.

Workers make a reader by ``open_no_files``. Engines that cut files themselves read an index with
``offsets_of_index``; ``build_indexes`` makes new ones. They parse a part of a file, or a file that
they have opened, with ``read_inputs`` of an ArrowReader, or with ``parse_from`` of a Parser, as
``ParsingOptions`` say.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import (
    Array,
    DetectedCompressionType,
    OnCorrupt,
    RemotePath,
    StorageOptions,
    TableFeatures,
)
from tfwire._base.arguments import boolean, integer
from tfwire._base.errors import DataLossError, warn
from tfwire._parsing.parse_file import ParsingOptions as ParsingOptions, parse_from as parse_from
from tfwire._records.files.byte_sources import SectionSource
from tfwire._records.files.paths import absolute, index_beside, is_path, split_paths
from tfwire._records.files.urls import ObjectPath, raise_naming, with_storage_options
from tfwire._records.index.index_files import offsets_of_lengths, read_contents
from tfwire._records.index.offset_checks import stale
from tfwire._records.index.record_index import RecordIndex, build_indexes as build_indexes
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.options import make_options
from tfwire.arrow import ArrowReader, RecordBatch, open_reader
from tfwire.arrow._reader import read_inputs as read_inputs
from tfwire.arrow._table_types import (
    infer_table as infer_table,
    is_sample as is_sample,
    notes_unknown as notes_unknown,
)

# Records from which the mean length of others is guessed.
_SAMPLE = 64


class FilePartition(NamedTuple):
    """What one task reads: some whole files, or consecutive records of one plain file.

    Attributes:
        paths: Absolute paths and URLs.
        start: The first record.
        stop: The byte at which the last record ends; None: read to the end of the last file.
        num_bytes: Size of all this in the files.
        num_records: Records of all this, where an index says so; else None.
    """

    paths: tuple[Any, ...]
    start: RecordPosition
    stop: int | None
    num_bytes: int
    num_records: int | None


def string_types(reader: ArrowReader) -> dict[str, str]:
    """Arrow's names of the types of strings, by the columns that have them."""
    fields = reader._layout.fields
    return {field.name: field.strings for field in fields if field.strings is not None}


def open_no_files(features: TableFeatures, **options: Any) -> ArrowReader:
    """A reader of what ``read_inputs`` and ``read_partition`` give it; else as ``open_reader``."""
    return open_reader(iter(()), features, **options)  # of an empty list, it warns


def plan_partitions(
    paths: RemotePath | Iterable[RemotePath],
    *,
    partition_bytes: int,
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
    scan: bool = False,
    storage_options: StorageOptions = None,
) -> list[FilePartition]:
    """Cuts files into partitions. The same files give the same partitions, in their order.

    Small files share a partition. A longer local file that is not compressed is split between
    records, by the index that is saved beside it. Files are not split where damage in one part
    would end the others: where ``on_corrupt`` is "tail" or "stop".

    Args:
        paths: Files and URLs, as ``input_paths`` or the ``paths`` of a reader have them.
        partition_bytes: Bytes of a partition in the files, about. Longer are those of files that
            cannot be split, and of longer records.
        compression_type, on_corrupt, storage_options: As for ``open_reader``.
        scan: Read the headers of a file that is longer and has no index.

    Raises:
        ValueError, TypeError: An argument is not valid.
        OSError: There is no such file, or it cannot be read.
        DataLossError: A header is damaged, with ``scan`` alone.
    """
    partition_bytes = integer("partition_bytes", partition_bytes, 1)
    scan = boolean("scan", scan)
    make_options(compression_type, True, on_corrupt, None, None)  # to check them now
    partitions: list[FilePartition] = []
    for path in split_paths(paths):
        path = with_storage_options(path, storage_options)
        if not is_path(path):
            raise TypeError(f"paths must be paths or URLs, found {type(path).__name__}")
        place = path if isinstance(path, ObjectPath) else absolute(path)
        size = _size(place)
        splits = size > partition_bytes and on_corrupt in ("raise", "skip")
        index = None if isinstance(place, ObjectPath) else _index(place, scan and splits)
        if index is not None and splits and not index.compression:
            partitions += _sections(place, index.offsets, partition_bytes)
        else:
            num_records = None if index is None else len(index)
            whole = FilePartition((place,), RecordPosition(), None, size, num_records)
            _append(partitions, whole, partition_bytes)
    if on_corrupt == "raise":
        return partitions
    return [partition._replace(num_records=None) for partition in partitions]


def _size(path: Any) -> int:
    """Bytes of a file or an object."""
    if not isinstance(path, ObjectPath):
        return os.path.getsize(path)
    fs, name = path.locate()
    try:
        return int(fs.info(name)["size"] or 0)
    except Exception as error:
        raise_naming(path, "looking for it", error)


def _index(path: str, scan: bool) -> RecordIndex | None:
    """The index of a file; None if it has none that fits."""
    try:
        return RecordIndex.load(path)
    except FileNotFoundError:
        return RecordIndex.build(path) if scan else None
    except DataLossError as error:  # the records themselves may be sound
        warn(f"{error}; the file is read without it")
        return None


def _sections(
    path: str, offsets: np.ndarray[Any, Any], partition_bytes: int
) -> list[FilePartition]:
    """The parts of a plain file, cut at the first record at or after each multiple of a size."""
    cuts = np.arange(0, offsets[-1], partition_bytes, dtype=np.int64)
    numbers = np.unique(np.searchsorted(offsets, cuts)).tolist()
    numbers = [number for number in numbers if number < len(offsets) - 1]
    parts = []
    for first, last in zip(numbers, [*numbers[1:], len(offsets) - 1], strict=True):
        begin, end = int(offsets[first]), int(offsets[last])
        start = RecordPosition(first, begin)
        parts.append(FilePartition((path,), start, end, end - begin, last - first))
    return parts


def _append(partitions: list[FilePartition], whole: FilePartition, partition_bytes: int) -> None:
    """Appends a whole file to the last partition if it fits, else as a partition of its own."""
    last = partitions[-1] if partitions else whole
    if last is whole or last.stop is not None or last.num_bytes + whole.num_bytes > partition_bytes:
        partitions.append(whole)
    else:
        counts = last.num_records, whole.num_records
        partitions[-1] = last._replace(
            paths=last.paths + whole.paths,
            num_bytes=last.num_bytes + whole.num_bytes,
            num_records=None if None in counts else sum(filter(None, counts)),
        )


def read_partition(partition: FilePartition, reader: ArrowReader) -> Iterator[RecordBatch]:
    """Reads a partition, which is opened when the first batch is asked for.

    Args:
        partition: Of ``plan_partitions``.
        reader: How to read it: ``open_no_files(features, ...)``, with the
            ``compression_type`` and ``on_corrupt`` of ``plan_partitions``.

    Raises:
        DataLossError, ParseError, OSError: As an ArrowReader. They name the file and the record's
            number and offset in it.
    """
    with _opened(partition) as inputs, read_inputs(reader, inputs, partition.start) as batches:
        yield from batches


def count_records(
    partition: FilePartition,
    *,
    compression_type: DetectedCompressionType = "auto",
    on_corrupt: OnCorrupt = "raise",
) -> int:
    """The number of records that ``read_partition`` gives. They are verified, and not parsed.

    Raises:
        DataLossError, OSError: As ``read_partition``.
    """
    if partition.num_records is not None:
        return partition.num_records
    compression = compression_type if partition.stop is None else ""
    num_records = 0
    with _opened(partition) as inputs:
        options = make_options(compression, on_corrupt=on_corrupt)
        with BatchReader(inputs, options, start=partition.start) as reader:
            while (batch := reader.next()) is not None:
                num_records += batch.count
    return num_records


def fitting_batch_size(
    partition: FilePartition, num_bytes: int, compression_type: DetectedCompressionType = "auto"
) -> int:
    """How many records as long as the first ones take this many bytes; 1 or more."""
    compression = compression_type if partition.stop is None else ""
    with _opened(partition) as inputs:
        options = make_options(compression, on_corrupt="stop")
        with BatchReader(inputs, options, start=partition.start) as reader:
            reader.warn = lambda text: None  # reading the partition warns
            batch = reader.next(_SAMPLE)
            mean = 1 if batch is None else batch.payload_bytes // batch.count
    return max(1, num_bytes // max(1, mean))


@contextlib.contextmanager
def _opened(partition: FilePartition) -> Iterator[list[Any]]:
    """The inputs of a partition."""
    if partition.stop is None:
        yield list(partition.paths)
        return
    (path,) = partition.paths
    with open(path, "rb", buffering=0) as file:
        yield [SectionSource(file, path, partition.stop)]


def offsets_of_index(data: bytes, path: str, size: int) -> tuple[Array, str]:
    """The offsets in an index, and the compression of its file.

    Args:
        data: The index, which lies beside the file.
        path, size: The file of records.

    Raises:
        DataLossError: It is stale or damaged.
    """
    index_path = index_beside(path)
    contents = read_contents(data, index_path, path, size)
    if contents.size != size:
        raise stale(path, index_path, f"{contents.size} bytes", f"{size} bytes")
    return offsets_of_lengths(contents.lengths), contents.compression
