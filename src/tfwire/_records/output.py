"""Records on their way into a sink: framed, written, and added up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tfwire._records.packing import FRAME, Packer, ends_of_records, frame_apart
from tfwire._records.sinks import Sink
from tfwire._records.tally import Tally
from tfwire.receipts import Receipt

__all__ = ["LONG", "Output"]

# From this mean length on payloads are not copied: header, payload and footer are gathered.
LONG = 1 << 14


class Output:
    """Frames records into a sink. For one thread at a time.

    Args:
        sink: Takes the framed records.
        file_crc32c: The CRC-32C of what its file holds already.
    """

    def __init__(self, sink: Sink, file_crc32c: int) -> None:
        self.sink = sink
        self._packer = Packer()
        self._tally = Tally(file_crc32c)

    def write(self, records: Sequence[bytes], size: int) -> None:
        """Writes records of that many bytes in all, with their frames, or about so many."""
        if size >= LONG * len(records):
            self._write_long(records)
        else:
            self.write_leading(records)

    def write_leading(self, records: Sequence[Any]) -> int:
        """Writes records up to the first that is not a bytes object; returns how many."""
        done = 0
        while done < len(records):
            for block, count in self._packer.blocks(records[done:] if done else records):
                self.write_block(block)
                done += count
            if done == len(records) or type(records[done]) is not bytes:
                break
            self._write_long(records[done : done + 1])  # it does not fit into a block
            done += 1
        return done

    def write_block(self, block: memoryview) -> None:
        """Writes framed records."""
        try:
            self.sink.write([block])
        except BaseException:
            block = block[: self._salvage(ends_of_records(block))]
            self._tally.add_block(block, len(block))
            raise
        self._tally.add_block(block, len(block))

    def _write_long(self, records: Sequence[bytes]) -> None:
        """Writes records with their frames around the payloads where they are."""
        buffers: list[bytes] = []
        crcs: list[int] = []
        for record in records:
            header, footer, crc = frame_apart(record)
            buffers += header, record, footer
            crcs.append(crc)
        try:
            self.sink.write(buffers)
        except BaseException:
            ends = [0, *accumulate(len(record) + FRAME for record in records)]
            self._add_long(crcs[: ends.index(self._salvage(ends))], records)
            raise
        self._add_long(crcs, records)

    def _add_long(self, crcs: list[int], records: Sequence[bytes]) -> None:
        for crc, record in zip(crcs, records, strict=False):
            self._tally.add_record(crc, len(record))

    def _salvage(self, ends: Sequence[int]) -> int:
        """Keeps the whole records of a write that failed; their bytes."""
        try:
            return self.sink.salvage(ends)
        except OSError:  # the first failure says more
            return 0

    @property
    def receipt(self) -> Receipt:
        """The receipt of the records written."""
        return self._tally.receipt

    @property
    def file_crc32c(self) -> int:
        """The CRC-32C of the whole file as far as it is written."""
        found = self.sink.crc32c
        return self._tally.file_crc32c if found is None else found
