"""Batches of records by number, which a pipeline of C fetches, verifies and parses; and of records
in memory, which it parses."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np

from tfwire._base.aliases import Array
from tfwire._base.native import ffi, lib
from tfwire._base.strings import StringTable
from tfwire._parsing.failure import ParseFailure
from tfwire._parsing.file_chunks import FileParser
from tfwire._records.index.random_access import TFRecordFiles
from tfwire._records.index.record_numbers import IndexedTable, indexed_table
from tfwire._records.reading.pipeline import Chunk, Draw, NativePipeline, PipelineOptions

_ONE_BATCH = 1 << 30  # records of a batch that holds all that were ordered


class FetchedBatches:
    """Batches of records, in the order in which they are ordered. It handles nothing unusual: at
    damage, or a record that does not fit, somebody else reads on and says what it is.

    Args:
        parser: A Parser.
        table: The files; None: records are ordered that lie in memory.
        size: Records of a batch.
        num_threads: How many threads fetch and parse; 1: the caller's.
    """

    def __init__(
        self, parser: FileParser[Any], table: IndexedTable | None, size: int, num_threads: int = 1
    ) -> None:
        self._held: deque[StringTable] = deque()  # whose records are being parsed
        handles = [ffi.NULL if schema is None else schema.for_files() for schema in parser._schemas]
        sequence = lib.TFW_SEQUENCE if len(handles) == 2 else 0
        options = PipelineOptions(
            lib.TFW_PIPELINE_PARSE,
            handles[0],
            handles[-1] if sequence else ffi.NULL,
            batch_size=size,
            num_threads=num_threads,
            flags=parser._flags | sequence | (lib.TFW_PIPELINE_GIVEN if table is None else 0),
            indexed=() if table is None else table.native,
            held=(table, self._held),
        )
        self._parser = parser
        self._size = size
        self._pipeline = NativePipeline((), options)

    def order(self, records: Array | Draw | StringTable) -> None:
        """Orders records by their numbers, or where they are in memory. At most num_threads + 1
        orders may be left to take."""
        # A ValueError: a thread has found a record that is wrong, which ``take`` will say.
        with suppress(ValueError):
            if isinstance(records, StringTable):
                self._held.append(records)
                sent = self._pipeline.give(np.ascontiguousarray(records.table, np.uint64))
            else:
                sent = self._pipeline.fetch(records)
            assert sent, "fewer orders than there is space for"

    def take(self, count: int) -> list[Any] | None:
        """The batches of the next order, which is of so many records; None: one of them is not as
        it should be, and nothing comes after it.

        Raises:
            RuntimeError: It was cancelled or closed; or its threads are in the parent process.
            MemoryError: Out of memory.
        """
        chunk = self._pipeline.next()
        if not isinstance(chunk, Chunk) or chunk.num_records != count:
            return None
        if self._held:
            self._held.popleft()
        try:
            return list(self._parser._batches_of(chunk, count, self._size, lambda number: None))
        except ParseFailure:  # columns that do not fit each other
            return None

    def cancel(self) -> None:
        """Has ``take`` raise an error, also while it waits. Any thread may call this."""
        self._pipeline.cancel()

    def close(self) -> None:
        """Ends the threads, when nobody is in a call. Closing again is allowed."""
        self._pipeline.close()


class NumberedParser:
    """Parses records of files by their numbers, or records in memory, in the caller's thread; for
    any number of threads and forked processes.

    Args:
        parser: A Parser.
        files: The files.
    """

    def __init__(self, parser: Any, files: TFRecordFiles) -> None:
        self._parser = parser
        self._files = files
        self._unused: list[FetchedBatches] = []
        self._unused_given: list[FetchedBatches] = []
        self._is_careful = False  # C cannot read these files

    def parse(self, records: Array | StringTable) -> Any:
        """As ``parser.parse(files[numbers])``, without an object for each record.

        Args:
            records: Numbers, int64, counted from the beginning; or the records.
        """
        given = isinstance(records, StringTable)
        unused = self._unused_given if given else self._unused
        batches = self._acquire(unused, given) if len(records) else None
        if batches is not None:
            batches.order(records if given else np.ascontiguousarray(records, np.int64))
            found = batches.take(len(records))
            if found is not None:
                unused.append(batches)
                return found[0]
        # Which also says what is wrong.
        return self._parser.parse(records if given else self._files[records])

    def _acquire(self, unused: list[FetchedBatches], given: bool) -> FetchedBatches | None:
        try:
            return unused.pop()
        except IndexError:
            table = None if given or self._is_careful else indexed_table(self._files)
        if table is None and not given:
            self._is_careful = True
            return None
        return FetchedBatches(self._parser, table, _ONE_BATCH)

    def __reduce__(self) -> Any:
        return type(self), (self._parser, self._files)
