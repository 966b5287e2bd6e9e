"""Records of plain files that the threads of C read and verify ahead."""

from __future__ import annotations

import os
from typing import Any

from tfwire._base.native import ffi, lib, new_struct
from tfwire._records.files.paths import Path
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import split
from tfwire._records.reading.options import ReadOptions
from tfwire._records.reading.pipeline import Chunk, FilePlace, NativePipeline, PipelineOptions, Stop

# Bytes of a range. Records become objects in the caller's thread, from a cache that is not shared
# by all: with ranges of 1 MiB that takes longer.
_AT_A_TIME = 1 << 18
_FRAME_SIZE = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE


class RecordsAhead:
    """The records of one file after another, by a pipeline.

    It goes as far as a file is undamaged. Where it ends, whoever has opened the file looks why: at
    once in a forked child, which has none of the threads.

    Args:
        options: How to read the files.
        num_threads: How many threads read them, the caller's included.
        range_bytes: What each reads at a time; 0: the size of the buffer, or what is best where
            records become objects.

    Attributes:
        chunk: The records that were read last; hold it to keep them.
    """

    def __init__(self, options: ReadOptions, num_threads: int, range_bytes: int = 0) -> None:
        self._options = PipelineOptions(
            lib.TFW_PIPELINE_SPANS,
            max_record_size=options.max_record_size,
            range_bytes=range_bytes or max(options.buffer_size, _AT_A_TIME),
            num_threads=num_threads,
            flags=lib.TFW_PIPELINE_NO_DATA_CRC if options.flags & lib.TFW_NO_DATA_CRC else 0,
        )
        self._pid = os.getpid()
        self._pipeline: NativePipeline | None = None
        self._file = -1  # number of the last one
        self._to_seek = False  # the pipeline has stopped
        self.chunk: Chunk | None = None
        self._left = new_struct("tfw_batch")  # records of the chunk

    def begin(self, path: Path, position: RecordPosition) -> None:
        """Goes on at a record of another file."""
        if os.getpid() != self._pid:
            return
        self._file += 1
        place = FilePlace(self._file, position)
        if self._pipeline is None:
            self._pipeline = NativePipeline([path], self._options, place)
            return
        self._pipeline.add([path])
        if self._to_seek:
            self._pipeline.seek(place)
            self._to_seek = False

    def next(self, max_records: int, batch: Any) -> bool:
        """Fills a ``tfw_batch *`` with at most so many of the next records of the file; 0: those
        that are ready. They are valid until the next call. False: there are none for C to read."""
        if not self._left.count and not self._draw():
            return False
        batch[0] = split(self._left, max_records or self._left.count)[0]
        return True

    def _draw(self) -> bool:
        """Takes the next chunk."""
        if os.getpid() != self._pid:
            return False
        assert self._pipeline is not None
        self.chunk = None  # its memory serves the next
        found = self._pipeline.next()
        if not isinstance(found, Chunk):
            self._to_seek = isinstance(found, Stop)
            return False
        self.chunk, left, info = found, self._left, found.info
        begin = info.begin.offset + lib.TFW_HEADER_SIZE
        left.data, left.data_len, left.spans = info.data, info.data_len, info.spans
        left.count, left.first_record, left.numbers = info.records, info.begin.record, ffi.NULL
        left.offset = begin - info.spans[0].offset
        left.payload_bytes = info.end.offset - info.begin.offset - _FRAME_SIZE * info.records
        return True

    def cancel(self) -> None:
        """Wakes the thread that waits for records."""
        pipeline = self._pipeline
        if pipeline is not None:
            pipeline.cancel()

    def close(self) -> None:
        """Ends the threads."""
        self._left.count = 0
        self.chunk = None
        if self._pipeline is not None:
            self._pipeline.close()
