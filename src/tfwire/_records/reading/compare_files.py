"""Which records two sets of files share, and where.

Of each record 16 bytes are kept: its length, its checksum, and a hash of its payload. The seed of
the hash is secret and new each time: two different records count as the same with a probability of
about 2^-64, whoever wrote them.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.native import call, ffi, lib, new_struct
from tfwire._base.parallel_map import Check, ParallelMap
from tfwire._records.reading.alignment import Alignment, align
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition, SkippedRegions, display_name
from tfwire._records.reading.native_batches import record_keys, record_position, span_table
from tfwire._records.reading.options import make_options, open_source
from tfwire._records.reading.record_file import RecordFile

_BATCH_RECORDS = 1 << 12  # records


class ComparedFile(NamedTuple):
    """A file of a set.

    Attributes:
        item: The input.
        path: Its name.
        skipped: What was left out.
        keys: Of its records: uint64 of shape (2, n).
        starts: The first record of each batch, and where it begins.
    """

    item: Any
    path: str
    skipped: SkippedRegions
    keys: Array
    starts: tuple[Array, list[RecordPosition]]


class RecordSet:
    """The records of files, one file after the other, those that verify alone.

    Attributes:
        files: The files.
        firsts: The number of the first record of each, and that of all records.
    """

    def __init__(self, files: list[ComparedFile], compression_type: Any) -> None:
        self.files = files
        self.firsts: Array = np.cumsum([0, *(file.keys.shape[1] for file in files)], dtype=np.int64)
        self._compression_type = compression_type

    def __len__(self) -> int:
        return int(self.firsts[-1])

    def place(self, number: int) -> tuple[str, int]:
        """The file of a record, and its number there."""
        file = int(np.searchsorted(self.firsts, number, "right")) - 1
        return self.files[file].path, number - int(self.firsts[file])

    def records(self, numbers: Sequence[int]) -> Iterator[bytes]:
        """Some records, whose numbers ascend; their files are read again."""
        bounds = np.searchsorted(numbers, self.firsts).tolist()
        for i, file in enumerate(self.files):
            wanted = [number - int(self.firsts[i]) for number in numbers[bounds[i] : bounds[i + 1]]]
            if wanted:
                yield from _read_some(file, wanted, self._compression_type)


def read_set(
    items: Sequence[Any],
    compression_type: Any,
    seed: int,
    progress: Callable[[Any, int], None],
    num_threads: int,
) -> RecordSet:
    """Reads files, several at a time.

    Args:
        items: In which no pattern is expanded.
        compression_type: As for ``read_records``.
        seed: Of the hashes.
        progress: Called with an item and the number of its bytes read so far.
        num_threads: All that read.
    """
    options = make_options(compression_type, True, "skip", None)
    each = max(1, num_threads // max(1, len(items)))

    def read(item: Any, check: Check) -> ComparedFile:
        keys, numbers, places, count = [np.empty((2, 0), np.uint64)], [], [], 0
        with BatchReader([item], options, num_threads=each) as reader:
            reader.warn = lambda text: None
            while (batch := reader.next(_BATCH_RECORDS)) is not None:
                check()
                numbers.append(count)
                places.append(record_position(batch, 0))
                keys.append(np.stack([_hashes(batch, seed), record_keys(batch)]))
                count += batch.count
                progress(item, reader.position.offset)
            path, skipped = display_name(reader.path), reader.skipped
        return ComparedFile(
            *(item, path, skipped, np.concatenate(keys, axis=1)),
            (np.array(numbers, np.int64), places),
        )

    with contextlib.closing(ParallelMap(read, items, min(num_threads, len(items)))) as files:
        return RecordSet(list(files), compression_type)


def _hashes(batch: Any, seed: int) -> Array:
    hashes = np.empty(batch.count, np.uint64)
    out = ffi.from_buffer("uint64_t[]", hashes)
    call(lib.tfw_hash_spans, seed, batch.data, batch.data_len, batch.spans, batch.count, out)
    return hashes


def _read_some(file: ComparedFile, wanted: list[int], compression_type: Any) -> Iterator[bytes]:
    """Records of a file by their numbers, from where a batch with one of them began."""
    options = make_options(compression_type, True, "skip", None)
    numbers, places = file.starts
    while wanted:
        start = int(np.searchsorted(numbers, wanted[0], "right")) - 1
        at, batch = int(numbers[start]), new_struct("tfw_batch")
        with contextlib.closing(RecordFile(open_source(file.item), options, places[start])) as open:
            while wanted and open.next(_BATCH_RECORDS, batch):
                spans, data = span_table(batch), ffi.buffer(batch.data, batch.data_len)
                while wanted and wanted[0] < at + batch.count:
                    offset, length = spans[wanted.pop(0) - at].tolist()
                    yield data[offset : offset + length]
                at += batch.count
                if wanted and not open.compression and wanted[0] >= at + _BATCH_RECORDS:
                    break  # the next one lies far away


# ---- Two sets ---------------------------------------------------------------------------------


class Comparison:
    """How two sets of records differ.

    Attributes:
        a, b: The sets.
        alignment: Of their records, by number.
    """

    def __init__(self, a: RecordSet, b: RecordSet) -> None:
        self.a: RecordSet = a
        self.b: RecordSet = b
        self.alignment: Alignment = align(*_numbered(a, b))

    @property
    def same_records(self) -> bool:
        """Whether both have the same records, in any order."""
        found = self.alignment
        return not (found.changed.size or found.missing.size or found.added.size)

    @property
    def same(self) -> bool:
        """Whether both have the same records in the same order."""
        return self.same_records and not self.alignment.moved.size


def _numbered(a: RecordSet, b: RecordSet) -> tuple[Array, Array]:
    """A number for each different key: equal ones are equal."""
    files = [file.keys for file in a.files + b.files]
    hashes, words = (np.concatenate([keys[row] for keys in files]) for row in (0, 1))
    order = np.argsort(hashes)
    hashes, words = hashes[order], words[order]
    new = hashes[1:] != hashes[:-1]
    if (words[1:] != words[:-1])[~new].any():  # the same hash, of other lengths or checksums
        order = np.lexsort(np.concatenate(files, axis=1))
        hashes, words = np.concatenate(files, axis=1)[:, order]
        new = (hashes[1:] != hashes[:-1]) | (words[1:] != words[:-1])
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.concatenate([[0], np.cumsum(new, dtype=np.int64)])[: len(order)]
    return numbers[: len(a)], numbers[len(a) :]


def compare_files(
    a: Sequence[Any],
    b: Sequence[Any],
    compression_type: Any,
    progress: Callable[[Any, int], None],
    num_threads: int,
) -> Comparison:
    """Compares the records of two sets of files; the arguments are those of ``read_set``."""
    seed = secrets.randbits(64)
    sets = (read_set(each, compression_type, seed, progress, num_threads) for each in (a, b))
    return Comparison(*sets)
