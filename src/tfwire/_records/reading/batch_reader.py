"""Records of several files in batches: as C delivers them, and as bytes objects.

    with BatchReader([path], make_options(on_corrupt="skip")) as reader:
        while (batch := reader.next(1024)) is not None:
            lib.tfw_parse(..., batch.data, batch.data_len, batch.spans, batch.count, ...)

A batch is a ``tfw_batch *``. The reader owns its memory, which is valid until the next call of
``next`` or ``close``. ``reader.path`` is its file, ``batch.first_record`` the number of its first
record in that file. A batch never holds records of two files.
"""

from __future__ import annotations

import itertools
import operator
import threading
from collections.abc import Callable, Iterator
from typing import Any

from tfwire._base.errors import warn
from tfwire._base.native import address, lib, new_struct, objects
from tfwire._base.shared_iterator import SharedIterator
from tfwire._base.text import printable
from tfwire._records.files.byte_sources import Source
from tfwire._records.files.paths import Path
from tfwire._records.files.urls import ObjectPath
from tfwire._records.reading.damage import RecordPosition, SkippedRegions, TornTail, display_name
from tfwire._records.reading.files_ahead import FilesAhead
from tfwire._records.reading.native_batches import (
    record_numbers,
    record_position,
    span_table,
)
from tfwire._records.reading.options import ReadOptions, as_position, open_source
from tfwire._records.reading.publishing_markers import Markers
from tfwire._records.reading.receipts import Receipt, Tally
from tfwire._records.reading.record_file import RecordFile
from tfwire._records.reading.records_ahead import RecordsAhead

_NO_MORE: Any = object()
CLOSED = "the record iterator is closed"


class BatchReader:
    """Batches of whole, verified records from one file after another.

    Only one thread may use it at a time; a second one gets RuntimeError. After a fork, parent and
    child may both go on reading paths: each keeps its own position.

    Args:
        inputs: The files, as ``input_paths`` gives them: a list, or an iterator. Each is opened
            when it is reached.
        options: How to read them.
        start: As for ``read_records``.
        markers: Finds half-published sets of files, to warn about them; None: no warning.
        num_threads: How many threads read a plain file, the caller's included, and how many
            compressed files of a list are read at a time.
        records_ahead: Threads that read plain files for several readers, one after the other.
            Whoever has made them ends them.

    Attributes:
        path: The file of the last batch.
        warn: Called with the text of every warning. Set this when reading from another thread, to
            issue the warnings in the user's.

    Raises:
        ValueError, TypeError: An argument that is not valid.
    """

    def __init__(
        self,
        inputs: list[Any] | Iterator[Any],
        options: ReadOptions,
        *,
        start: RecordPosition | None = None,
        markers: Markers | None = None,
        num_threads: int = 1,
        records_ahead: RecordsAhead | None = None,
    ) -> None:
        self.path: Path | None = None
        self.warn: Callable[[str], None] = warn
        self._options = options
        self._position = self._start = as_position("start", start)
        self._paths = iter(inputs)
        self._ahead = inputs if isinstance(inputs, FilesAhead) else None
        if num_threads > 1 and self._options.compression and isinstance(inputs, list):
            self._paths = self._ahead = FilesAhead(inputs, options, num_threads, self._start)
        self._own_ahead = RecordsAhead(options, num_threads) if num_threads > 1 else None
        self._records_ahead = records_ahead or self._own_ahead
        self._markers = markers
        self._opened: Any = None  # the path of the file
        self._file: RecordFile | None = None
        self._source: Source | None = None  # the open file's, set before the file is opened
        self._interrupted = False
        self._num_opened = 0
        self._tail: TornTail | None = None
        self._skipped = SkippedRegions()
        self._receipt = Receipt()  # of the files before the current one
        self._file_crc32c: int | None = None
        self._batch = new_struct("tfw_batch")
        self._closed = False
        self._lock = threading.Lock()

    def next(self, max_records: int = 0, *, in_file: bool = False) -> Any:
        """The next records of the current file, or of the next one that has some.

        Args:
            max_records: At most this many; 0: as many as are ready, up to a few thousand.
            in_file: Of the current file alone.

        Returns:
            A ``tfw_batch *`` of one record or more, valid until the next call; None at the end.

        Raises:
            DataLossError: As on_corrupt says; every record before the damage was returned. The
                reader is closed.
            OSError: A file cannot be opened or read. The reader is closed.
            ValueError: The reader is closed.
            RuntimeError: Another thread is using it.
        """
        with self._exclusive():
            if self._closed:
                raise ValueError("the reader is closed")
            try:
                while (file := self._file or self._open()) is not None:
                    if file.next(max_records, self._batch):
                        return self._batch
                    self._file_crc32c = file.file_crc32c
                    self._finish_file()
                    if in_file:
                        break
                return None
            except StopIteration as error:  # a file object's; the caller would see a clean end
                self._close()
                raise RuntimeError("an input raised StopIteration") from error
            except BaseException:
                self._close()
                raise

    def go_to(self, number: int, position: RecordPosition) -> None:
        """Goes on at a record of a file after the current one. Those between are left out."""
        with self._exclusive():
            self._finish_file()
            for _ in range(self._num_opened, number):
                next(self._paths)
            self._num_opened = max(self._num_opened, number)
            self._start = position

    def _open(self) -> RecordFile | None:
        """Opens the next file, if there is one."""
        path = next(self._paths, _NO_MORE)
        if path is _NO_MORE:
            return None
        self._num_opened += 1
        self._opened = path
        problem = None if self._markers is None else self._markers.find_problem(path)
        if problem is not None:
            self.warn(problem)
        start, self._start = self._start, RecordPosition()
        ahead = None if self._ahead is None or start != RecordPosition() else self._ahead.current
        self._source = source = open_source(path) if ahead is None else ahead.source
        if self._interrupted:
            source.interrupt()
        self._file = RecordFile(source, self._options, start, ahead or self._records_ahead)
        self.path = self._file.path
        return self._file

    @property
    def at_hand(self) -> bool:
        """Whether the next records can be read without waiting: they are in a regular file, or were
        read ahead."""
        return self._file is None or self._file.is_ready

    @property
    def parcel(self) -> Any:
        """The ``tfw_parcel *`` that has the last batch, and nothing else; None: there is none."""
        return None if self._file is None else self._file.parcel

    @property
    def num_skipped(self) -> int:
        """How many regions were left out so far. Only for the thread that reads."""
        file = self._file
        return self._skipped.num_regions + (0 if file is None else file.num_skipped)

    @property
    def skipped(self) -> SkippedRegions:
        """The regions left out so far, in the order of the files; the last may still grow."""
        with self._exclusive():
            regions = SkippedRegions()
            regions.add(self._skipped)
            if self._file is not None:
                regions.add(self._file.skipped())
            return regions

    @property
    def position(self) -> RecordPosition:
        """Where the record after the last batch begins, in the file of that batch."""
        with self._exclusive():
            return self._position if self._file is None else self._file.position

    @property
    def tail(self) -> TornTail | None:
        """RecordFile.tail of the file that ended last."""
        return self._tail

    @property
    def receipt(self) -> Receipt:
        """The receipt of all batches delivered so far.

        Raises:
            ValueError: It was not asked for.
        """
        with self._exclusive():
            self._check_receipt()
            tally = self._file.tally if self._file is not None else None
            return self._receipt + tally.receipt if tally is not None else self._receipt

    @property
    def file_crc32c(self) -> int | None:
        """RecordFile.file_crc32c of the file that ended last.

        Raises:
            ValueError: It was not asked for.
        """
        self._check_receipt()
        return self._file_crc32c

    def _check_receipt(self) -> None:
        if not self._options.receipt:
            raise ValueError("receipts and checksums of files cost a little; ask for receipt=True")

    def interrupt(self) -> None:
        """Wakes a thread that waits for a pipe: it gets ValueError. Close the reader after this."""
        self._interrupted = True
        if self._own_ahead is not None:
            self._own_ahead.cancel()
        source = self._source
        if source is not None:
            source.interrupt()

    def close(self) -> None:
        """Closes the current file. Closing again is allowed."""
        with self._exclusive():
            self._close()

    def _close(self) -> None:
        self._closed = True
        if self._ahead is not None:
            self._ahead.close()
        if self._own_ahead is not None:
            self._own_ahead.close()
        self._finish_file()
        if isinstance(self._opened, ObjectPath):
            self._opened.forget_following()

    def _finish_file(self) -> None:
        """Closes the current file and takes over its results; warns of what was left out."""
        file, self._file, self._source = self._file, None, None
        if file is None:
            return
        if file.tally is not None:
            self._receipt += file.tally.receipt
        self._position, self._tail = file.position, file.tail()
        regions = file.skipped()
        file.close()
        self._skipped.add(regions)
        if regions:
            first = regions[0]
            is_of_content = file.compression and first.reason != "compressed stream"
            content = " of the decompressed content" if is_of_content else ""
            self.warn(
                f"{printable(display_name(file.path))}: left out {regions.num_regions} damaged "
                f"region(s), {regions.num_bytes} bytes in all, the first at record "
                f"{first.record_index}, byte {first.begin}{content} ({first.reason})"
            )

    def _exclusive(self) -> threading.Lock:
        """The lock of the native reader. ``with`` on the lock itself is one step, which no
        interrupt can leave half done.

        Raises:
            RuntimeError: Another thread holds it.
        """
        if self._lock.locked():
            raise RuntimeError("the reader is in use, by another thread or by this one")
        return self._lock

    def __enter__(self) -> BatchReader:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("readers cannot be pickled; open the files again in the other process")


class RecordBatches(SharedIterator[Iterator[bytes]]):
    """The records of a reader as bytes objects, one iterator per batch.

    Two threads may find in a shared chain that a batch is used up, and both ask for the next. The
    second one then gets the same iterator again, so that no batch is dropped half-used.

    Attributes:
        reader: The reader; call it by ``exclusively``.
    """

    def __init__(self, reader: BatchReader) -> None:
        super().__init__()
        self.reader = reader
        self._batch: Any = None
        self._current: Iterator[bytes] = iter(())
        self._before = reader.position  # of the last batch asked for
        self._dropped = Receipt()  # of the records that close took back
        self._closed_at: RecordPosition | None = None

    def step(self) -> Iterator[bytes]:
        """The next batch, or what is left of the current one."""
        if operator.length_hint(self._current):
            return self._current
        self._before = self.reader.position
        self._batch = batch = self.reader.next()
        if batch is None:
            raise StopIteration
        self._current = objects.tfw_iterate_spans(
            *(batch, address(batch.data), batch.data_len, address(batch.spans), batch.count)
        )
        return self._current

    def closed_error(self) -> Exception:
        return ValueError(CLOSED)

    def positions(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """The records that are left, as (path, index, offset, record)."""
        for _ in self:
            yield from self.exclusively(self._take)

    def _take(self) -> Iterator[tuple[Any, int, int, bytes]]:
        """Takes what is left of the current batch."""
        records = list(self._current)
        if not records:  # closed just now
            return iter(())
        numbers = record_numbers(self._batch)
        header = self._batch.offset - lib.TFW_HEADER_SIZE
        offsets = (span_table(self._batch)[:, 0] + header).tolist()
        done = len(offsets) - len(records)
        path = itertools.repeat(self.reader.path, len(records))
        self._current = iter(records)
        # Not strict: close() empties the records.
        return zip(path, numbers[done:], offsets[done:], self._current, strict=False)

    def position(self) -> RecordPosition:
        """Where the next record to be handed out begins. Call it by ``exclusively``."""
        if self._closed_at is not None:
            return self._closed_at
        return self._position(operator.length_hint(self._current))

    def _position(self, left: int) -> RecordPosition:
        """Where the last records of the current batch begin."""
        if self.error is not None and not isinstance(self.error, Exception):
            return self._before  # an interrupt: the batch may have been read, and is lost
        if not left:
            return self.reader.position
        return record_position(self._batch, self._batch.count - left)

    def receipt(self) -> Receipt:
        """The receipt of the records handed out. Call it by ``exclusively``."""
        left = operator.length_hint(self._current)
        return self.reader.receipt - self._dropped - self._waiting(left)

    def _waiting(self, count: int) -> Receipt:
        """The receipt of the last records of the current batch."""
        tally = Tally()
        if count:
            tally.add_batch(self._batch, self._batch.count - count)
        return tally.receipt

    def stop(self) -> None:
        self.reader.interrupt()  # a wait for a pipe

    def release(self) -> None:
        # In one step: a chain may hold it too, from which another thread takes records.
        left = len(list(self._current))
        self._closed_at = self._position(left)
        self._dropped += self._waiting(left)
        self.reader.close()
