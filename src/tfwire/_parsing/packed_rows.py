"""Batches whose dense columns stay in the memory of a pipeline until there is a block for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfwire._base.aliases import BytesAs
from tfwire._base.native import call, ffi, lib
from tfwire._parsing.chunk_columns import batches_of_chunk
from tfwire._parsing.fields import Cuts
from tfwire._parsing.file_chunks import PathsOfFiles
from tfwire._parsing.parsers import Parser
from tfwire._records.reading.pipeline import Chunk


class DenseColumns(NamedTuple):
    """FixedLenFeatures of numbers.

    Attributes:
        keys: Of all features of the specification, in order.
        dense: Those of these features.
        dtypes, shapes: Of a row of each.
        numbers: The columns of C.
    """

    keys: list[Any]
    dense: list[Any]
    dtypes: list[np.dtype[Any]]
    shapes: list[tuple[int, ...]]
    numbers: list[int]

    def places(self, offsets: Sequence[int]) -> Any:
        """``tfw_packed[]`` of the columns, each at an offset in a block."""
        return ffi.new("tfw_packed[]", list(zip(self.numbers, offsets, strict=True)))


class PackedRows(NamedTuple):
    """A batch of parsed records.

    Attributes:
        chunk: Has the records.
        first, num_rows: Which of them.
        columns: Those that ``pack`` copies: one object for all batches of a pass.
        others: The results of the other features.
    """

    chunk: Chunk
    first: int
    num_rows: int
    columns: DenseColumns
    others: dict[Any, Any]

    def pack(self, places: Any, address: int, size: int) -> None:
        """Copies the dense columns into a block, without Python's lock. Any thread may call this.

        Args:
            places: Where they go: ``tfw_packed[]``.
            address, size: Of the block.

        Raises:
            ValueError: They do not fit.
        """
        memory, native = ffi.cast("uint8_t *", address), self.chunk.native
        rows, number = (self.first, self.num_rows), len(places)
        call(lib.tfw_chunk_pack, native, *rows, places, number, memory, size)


class PackingParser(Parser[Any, Any]):
    """A Parser whose batches of files are PackedRows. Where the records do not come from C, or
    columns must fit each other, they are as those of the parser that it is made of."""

    _others: Cuts
    _columns: DenseColumns

    @classmethod
    def over(cls, parser: Parser[Any, Any], bytes_as: BytesAs | None = None) -> PackingParser:
        """The one of a parser, so that passes go on with the memory of those before.

        Args:
            parser: The parser.
            bytes_as: The form of strings; None: as the parser has it.
        """
        bytes_as = bytes_as or parser._init["bytes_as"]
        made: dict[str, PackingParser] = vars(parser).setdefault("_packing", {})
        if bytes_as not in made:
            made[bytes_as] = cls._made(parser, bytes_as)
        return made[bytes_as]

    @classmethod
    def _made(cls, parser: Parser[Any, Any], bytes_as: BytesAs) -> PackingParser:
        found = cls.__new__(cls)
        found._start(parser._schemas, bytes_as, parser._init["empty_is_missing"])
        [plan] = found._plans
        assert plan is not None
        fields, (numbers, dtypes, shapes) = plan.fields, plan.cuts.dense
        others = {list(fields)[place]: field for place, field in plan.cuts.others}
        found._others = Cuts.of(others, {})
        keys = [key for key in fields if key not in others]
        columns = DenseColumns(list(fields), keys, dtypes, shapes, numbers)
        found._columns = columns
        return found

    def _batches_of(
        self, chunk: Chunk, count: int, size: int, paths: PathsOfFiles
    ) -> Iterator[Any]:
        others = batches_of_chunk(chunk, self._schemas[0], self._others, count, size, self._finish)
        for first, found in zip(range(0, count, size), others, strict=True):
            yield PackedRows(chunk, first, min(size, count - first), self._columns, found)
