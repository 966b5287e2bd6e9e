"""Files to batches, some at a time: in one thread, or in several.

What a unit of work holds does not depend on the number of threads, nor on the size of units what a
batch holds.
"""

from __future__ import annotations

from typing import NamedTuple

from tfwire._core import lib
from tfwire._parsing.builder import Builders, Outcome
from tfwire._records.blocks import Block, Window
from tfwire._records.streams import BatchReader

__all__ = ["Parallel", "Sequential"]

# Room for so many records at first; it grows as records come, so that a huge batch_size costs only
# what the files hold.
_ROOM = 4096

# Units of work are whole batches of so many bytes together: what costs per batch and not per record
# is shared, and a batch that is kept holds little memory of others.
_UNIT_BYTES = 1 << 20

# Threads that take turns at the GIL lose time at every turn: for them more.
_PARALLEL_UNIT_BYTES = 1 << 21

_FRAME_SIZE = lib.TFW_HEADER_SIZE + lib.TFW_FOOTER_SIZE


class Sizes:
    """How many records to put into a unit: known from the size of those before it.

    Batches of pipes and the like must not wait for others.
    """

    def __init__(self, reader: BatchReader, batch_size: int, unit_bytes: int) -> None:
        self._reader = reader
        self._batch_size = batch_size
        self._unit_bytes = unit_bytes
        self._num_batches = 1

    def num_records(self) -> int:
        return self._batch_size * (self._num_batches if self._reader.at_hand else 1)

    def note(self, num_records: int, num_bytes: int) -> None:
        """Notes what was read of a unit."""
        if num_records:
            batch_bytes = self._batch_size * (num_bytes // num_records)
            self._num_batches = -(-self._unit_bytes // batch_bytes)


class Sequential:
    """Batches one after the other, parsed where the reader's buffer is."""

    def __init__(self, builders: Builders, reader: BatchReader) -> None:
        self._builders = builders
        self._reader = reader
        self._sizes = Sizes(reader, builders.batch_size, _UNIT_BYTES)
        self._room = _ROOM

    def step(self) -> Outcome:
        """The next batches, the last of them incomplete at the end or before an error."""
        builder = self._builders.get()
        goal = self._sizes.num_records()
        num_records = num_bytes = 0
        error = None
        try:
            builder.begin(min(goal, self._room))
            while builder.count < goal:
                batch = self._reader.next(goal - builder.count)
                if batch is None:
                    break
                num_records += batch.count
                num_bytes += batch.payload_bytes + batch.count * _FRAME_SIZE
                builder.add(
                    Window(
                        batch.data,
                        batch.data_len,
                        batch.spans,
                        batch.count,
                        self._reader.path,
                        batch.first_record,
                        batch.numbers,
                    )
                )
        except Exception as found:
            error = found
        self._room = max(_ROOM, builder.count)
        self._sizes.note(num_records, num_bytes)
        return builder.finish(self._reader.num_skipped, error, last=builder.count < goal)


class Unit(NamedTuple):
    """The records of some batches, for a thread to verify and parse.

    Attributes:
        block: The records.
        marks: After how many of its records how many regions of the files were left out.
        error: What ended the reading, or None.
        last: There is no unit behind this one.
    """

    block: Block
    marks: list[tuple[int, int]]
    error: Exception | None
    last: bool


class Parallel:
    """Batches that threads read one after the other and parse side by side.

    Args:
        builders: For the threads.
        reader: Of the files.
        verify: The reader leaves the checksums of payloads to the threads.
    """

    def __init__(self, builders: Builders, reader: BatchReader, verify: bool) -> None:
        self._builders = builders
        self._reader = reader
        self._flags = 0 if verify else lib.TFW_NO_DATA_CRC
        self._sizes = Sizes(reader, builders.batch_size, _PARALLEL_UNIT_BYTES)
        self._blocks = builders.parser._blocks

    def read(self) -> Unit:
        """The records of the next batches; fewer at the end or before an error."""
        block = self._blocks.pop() if self._blocks else Block()
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
        return Unit(block, marks, error, block.num_records < goal)

    def parse(self, unit: Unit) -> Outcome:
        """The batches of a unit; in any thread."""
        block, marks, error, last = unit
        num_skipped = marks[-1][1]
        builder = self._builders.get()
        try:
            builder.begin(block.num_records)
            for window in block.scan(self._flags):
                builder.add(window)
        except Exception as found:
            error = found
            num_skipped = next(skipped for count, skipped in marks if count > builder.count)
        block.clear()
        self._blocks.append(block)
        return builder.finish(num_skipped, error, last)
