"""Regular files of which C reads whole units, with a gate before or after each of these calls."""

from __future__ import annotations

from collections import deque
from typing import Any

import tfwire as tfw
from tfwire._parsing import file_units
from tfwire._parsing.native_session import Session
from tfwire._records.reading.unit_block import Block

LAST = 39  # the number of the last record
SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}


class GatedParser(tfw.Parser):
    """Parses by blocks and sessions that stop at the gate at one of their steps."""

    def __init__(self, gate: Any, step: str) -> None:
        super().__init__(SPEC)
        self._gate, self._step = gate, step
        self._blocks = GatedBlocks()
        self._blocks.parser = self

    def _acquire(self) -> Session:
        session = GatedSession(self._schemas, self._flags)
        session.parser = self
        return session

    def pass_gate(self, step: str, number: int) -> None:
        if step == self._step:
            self._gate(min(number, LAST))  # it is asked for the end of the file too


class GatedBlocks(deque):
    """The unused blocks of a parser, with a new one where there is none."""

    def pop(self) -> Block:
        try:
            return super().pop()
        except IndexError:
            block = GatedBlock()
            block.parser = self.parser
            return block


class GatedBlock(Block):
    def read_ahead(self, source: Any, start: Any, *limits: int) -> Any:
        self.parser.pass_gate("before finding", start.record_index)
        end = super().read_ahead(source, start, *limits)
        self.parser.pass_gate("after finding", start.record_index)
        return end


class GatedSession(Session):
    def read(self, stretch: Any, *counts: int) -> int:
        number = stretch.record
        self.parser.pass_gate("before parsing", number)
        status = super().read(stretch, *counts)
        self.parser.pass_gate("after parsing", number)
        return status


def parsed(gate: Any, path: str, step: str, **options: Any) -> Any:
    """Batches of one record of a regular file, each of them a unit."""
    before = file_units._UNIT_BYTES, file_units._PARALLEL_UNIT_BYTES
    file_units._UNIT_BYTES = file_units._PARALLEL_UNIT_BYTES = 1
    try:
        return GatedParser(gate, step).parse_file(path, 1, compression_type=None, **options)
    finally:
        file_units._UNIT_BYTES, file_units._PARALLEL_UNIT_BYTES = before


REGULAR_FILES = {
    f"file, {step}, {num_threads} thread{'s' * (num_threads > 1)}": (
        lambda gate, path, step=step, num_threads=num_threads: parsed(
            gate, path, step, num_threads=num_threads
        )
    )
    for num_threads, step in [
        (1, "before parsing"),
        (1, "after parsing"),
        (2, "before finding"),
        (2, "after finding"),
        (2, "before parsing"),
        (2, "after parsing"),
        (3, "after finding"),
        (3, "before parsing"),
    ]
}
