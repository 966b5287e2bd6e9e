"""Regular files that a pipeline of C reads, with a gate before or after each call of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import tfwire as tfw
from tfwire._parsing import file_chunks
from tfwire._records.reading.pipeline import Chunk, NativePipeline

LAST = 39  # the number of the last record
SPEC = {"n": tfw.FixedLenFeature([], tfw.int64)}


class GatedPipeline(NativePipeline):
    """A pipeline that stops at the gate before or after it has drawn a chunk."""

    def __init__(self, gate: Any, step: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._gate, self._step = gate, step
        self._number = 0  # of the next record

    def next(self) -> Any:
        self._pass_gate("before")
        found = super().next()
        self._pass_gate("after")
        if isinstance(found, Chunk):
            self._number += found.num_records
        return found

    def _pass_gate(self, step: str) -> None:
        if step == self._step:
            self._gate(min(self._number, LAST))  # it is asked for the end of the file too


def parsed(gate: Any, path: str, step: str, **options: Any) -> Any:
    """Batches of one record of a regular file, each of them a range."""
    before = file_chunks._PARSED_BYTES, file_chunks.NativePipeline
    file_chunks._PARSED_BYTES = 1
    file_chunks.NativePipeline = partial(GatedPipeline, gate, step)
    try:
        return tfw.Parser(SPEC).parse_file(path, 1, compression_type=None, **options)
    finally:
        file_chunks._PARSED_BYTES, file_chunks.NativePipeline = before


REGULAR_FILES = {
    f"file, {step} a chunk, {num_threads} thread{'s' * (num_threads > 1)}": (
        lambda gate, path, step=step, num_threads=num_threads: parsed(
            gate, path, step, num_threads=num_threads
        )
    )
    for num_threads in (1, 2, 3)
    for step in ("before", "after")
}
