"""Batches of records whose columns must fit each other, which Python checks after C.

The pipeline gives records one by one, as batches of one: each lies whole in one chunk, with its
place. So the record at fault can be named, or left out; the others become batches here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

from tfwire._parsing.chunk_columns import Rows, first_misfit, joined, rows_of_chunk
from tfwire._parsing.failure import ParseFailure
from tfwire._parsing.native_session import Schema
from tfwire._parsing.spec import Plan
from tfwire._records.reading.pipeline import Chunk, FilePlace


class ResultMaker(Protocol):
    """What this module needs of a parser."""

    _plans: Sequence[Plan | None]
    _schemas: tuple[Schema | None, ...]

    def _batches(self, parts: Any, count: int, size: int) -> Iterator[Any]: ...


class Misfit(NamedTuple):
    """A record whose columns do not fit each other.

    Attributes:
        failure: What is wrong.
        place: The record.
    """

    failure: ParseFailure
    place: FilePlace


class Assembler:
    """Puts records together to batches.

    Args:
        parser: Makes the results.
        size: Records of a batch.

    Attributes:
        begin: Where the first record begins that is not in a batch yet, or None.
    """

    def __init__(self, parser: ResultMaker, size: int) -> None:
        self._parser = parser
        self._size = size
        self._pieces: list[Rows] = []
        self._count = 0  # of the records in them
        self.begin: FilePlace | None = None

    def add(self, chunk: Chunk) -> Iterator[Iterator[Any] | Misfit]:
        """Adds the records of a chunk; gives the batches that are full then, and each record that
        does not fit in its place among them. What is not asked for is not added."""
        rows, first = rows_of_chunk(chunk, self._parser._schemas), 0
        while rows.num_rows:
            failure = first_misfit(self._parser._plans, rows)
            good = rows.num_rows if failure is None else failure.record or 0
            yield self._add(rows.between(0, good), chunk, first)
            if failure is None:
                return
            yield Misfit(failure, chunk.place(first + good))
            first += good + 1
            rows = rows.between(good + 1, rows.num_rows - good - 1)

    def _add(self, rows: Rows, chunk: Chunk, first: int) -> Iterator[Any]:
        batches: list[Iterator[Any]] = []
        done = 0
        if self._count:
            done = min(self._size - self._count, rows.num_rows)
            self._hold(rows.between(0, done))
            if self._count == self._size:
                batches.append(self.rest())
        left = rows.num_rows - done
        whole = left - left % self._size
        if whole:
            parts = rows.between(done, whole).parts
            batches.append(self._parser._batches(parts, whole, self._size))
        if left > whole:
            self.begin = chunk.place(first + done + whole)
            self._hold(rows.between(done + whole, left - whole))
        return chain.from_iterable(batches)

    def _hold(self, rows: Rows) -> None:
        self._pieces.append(rows)
        self._count += rows.num_rows

    def rest(self) -> Iterator[Any]:
        """The last batch, of fewer records, if there are any left."""
        if not self._count:
            return iter(())
        rows = joined(self._pieces)
        self._pieces, self._count, self.begin = [], 0, None
        return self._parser._batches(rows.parts, rows.num_rows, self._size)
