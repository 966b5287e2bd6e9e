"""Files to batches, in one thread or several.

Work is cut into units of whole batches. Neither the number of threads nor the size of units changes
what a batch holds.
"""

from __future__ import annotations

from typing import NamedTuple

from tfwire._base.native import lib
from tfwire._parsing.builders import BuilderPool, Outcome, unused_block
from tfwire._records.reading.batch_reader import BatchReader
from tfwire._records.reading.damage import RecordPosition
from tfwire._records.reading.native_batches import window_of
from tfwire._records.reading.unit_block import Block

# Room for records at first. It grows with the records, so that a huge batch_size costs only what
# the files hold.
_ROOM = 4096
# Bytes of a unit: large enough to share the cost per unit, small enough that one batch that is kept
# does not keep much memory of others.
_UNIT_BYTES = 1 << 20
# With threads, every unit also costs waiting for the GIL.
_PARALLEL_UNIT_BYTES = 1 << 21
# Up to this many threads are kept busy by inflating. Then the thread that reads also parses, while
# the data is in its cache: copying it for another thread would cost more than half of parsing.
_FEW_THREADS = 3
_FRAME_SIZE = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE


class Sizes:
    """The number of records to put into a unit, from the size of those before it.

    From pipes and the like, every batch is a unit: it must not wait for others.
    """

    def __init__(self, reader: BatchReader, batch_size: int, unit_bytes: int) -> None:
        self._reader = reader
        self._batch_size = batch_size
        self._unit_bytes = unit_bytes
        self._num_batches = 1

    def num_records(self) -> int:
        return self._batch_size * (self._num_batches if self._reader.at_hand else 1)

    def note(self, num_records: int, num_bytes: int) -> None:
        """Notes the size of a unit that was read."""
        if num_records:
            batch_bytes = self._batch_size * (num_bytes // num_records)
            self._num_batches = -(-self._unit_bytes // batch_bytes)


class SequentialUnits:
    """Units read and parsed in one thread, in the reader's buffer.

    Args:
        builders: For the thread.
        reader: Of the files.
        windows: C reads no file by itself: the reader gives all records.
    """

    def __init__(
        self, builders: BuilderPool, reader: BatchReader, *, windows: bool = False
    ) -> None:
        self._builders = builders
        self._reader = reader
        self._sizes = Sizes(reader, builders.batch_size, _UNIT_BYTES)
        self._room = _ROOM
        windows = windows or builders.needs_windows
        self._stretch = None if windows else builders.block().passing

    def step(self) -> Outcome:
        """The next batches. The last is incomplete at the end or before an error."""
        builder = self._builders.get()
        goal = self._sizes.num_records()
        num_records = num_bytes = 0
        error = None
        try:
            builder.begin(min(goal, self._room), goal)
            while builder.count < goal:
                missing = goal - builder.count
                batch = self._reader.next(missing, stretch=self._stretch)
                if batch is None:
                    break
                if batch.count:
                    builder.add(window_of(batch, self._reader.path))
                    num_records += batch.count
                    num_bytes += batch.payload_bytes + batch.count * _FRAME_SIZE
                elif (stretch := self._stretch) is not None:
                    first, begin = stretch.position
                    builder.read(stretch, missing)
                    num_records += stretch.record - first
                    num_bytes += stretch.native.offset - begin
        except Exception as found:
            error = found
        self._room = max(_ROOM, builder.count)
        self._sizes.note(num_records, num_bytes)
        outcome = builder.finish(self._reader.num_skipped, error, last=builder.count < goal)
        return outcome._replace(place=self._reader.place)


class Unit(NamedTuple):
    """The records of some batches, for a thread to verify and parse.

    Attributes:
        block: The records.
        marks: Pairs of a number of records and a number of regions: so many regions had been
            skipped before the block's records from that number on.
        error: The error that ended the reading, or None.
        last: True if no unit comes after this one.
        place: Where the records after it begin.
    """

    block: Block
    marks: list[tuple[int, int]]
    error: Exception | None
    last: bool
    place: tuple[int, RecordPosition]


class ParallelUnits:
    """Units read in turn and parsed by several threads at once.

    Args:
        builders: For the threads.
        reader: Of the files.
        verify: Verify the checksums of payloads when they are parsed, where the reader can leave
            that to them.
        num_threads: How many threads parse.
    """

    def __init__(
        self, builders: BuilderPool, reader: BatchReader, verify: bool, num_threads: int
    ) -> None:
        self._builders = builders
        self._reader = reader
        self._verify = verify
        self._sizes = Sizes(reader, builders.batch_size, _PARALLEL_UNIT_BYTES)
        self._blocks = builders.parser._blocks
        self._in_turn = num_threads <= _FEW_THREADS
        self._sequential = SequentialUnits(builders, reader, windows=True)

    def read(self) -> Unit | Outcome:
        """The records of the next batches, or the batches; fewer at the end or before an error."""
        if self._in_turn and self._reader.at_compressed:
            return self._sequential.step()
        block = unused_block(self._blocks)
        block.takes_unverified = self._verify
        marks: list[tuple[int, int]] = []
        goal, error = self._sizes.num_records(), None
        try:
            while block.num_records < goal:
                if not self._reader.next_into(block, goal - block.num_records):
                    break
                marks.append((block.num_records, self._reader.num_skipped))
        except Exception as found:
            error = found
        marks.append((goal, self._reader.num_skipped))
        self._sizes.note(block.num_records, block.num_bytes)
        return Unit(block, marks, error, block.num_records < goal, self._reader.place)

    def parse(self, unit: Unit | Outcome) -> Outcome:
        """The batches of a unit; in any thread."""
        if isinstance(unit, Outcome):
            return unit
        block, marks, error, last, place = unit
        num_skipped = marks[-1][1]
        builder = self._builders.get()
        try:
            builder.begin(block.num_records, block.num_records)
            for stretch, num_records in block.stretches(0 if self._verify else lib.TFW_NO_DATA_CRC):
                builder.read_all(stretch, num_records)
        except Exception as found:
            error = found
            num_skipped = next(skipped for count, skipped in marks if count > builder.count)
        block.clear()
        self._blocks.append(block)
        return builder.finish(num_skipped, error, last)._replace(place=place)
