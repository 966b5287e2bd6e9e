"""What is said of damage in a file, and of a file that holds no records at all."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tfwire._core import data_loss, lib
from tfwire._records.inflate import StreamDamage
from tfwire._records.regions import RecordPosition
from tfwire._records.sources import Path
from tfwire.errors import DataLossError

__all__ = ["Reading", "display_name"]


class Reading(NamedTuple):
    """What a file is read as.

    Attributes:
        path: The file, or None for an object without a name.
        compression: "", "GZIP" or "ZLIB".
        auto: Whether the file was asked for its compression, and not the user.
    """

    path: Path | None
    compression: str
    auto: bool

    def record_error(self, status: int, error: Any) -> DataLossError:
        """What a native function found wrong with a record."""
        found = data_loss(status, error, self.path)
        if not self.compression and status == lib.TFW_E_LENGTH_CRC and found.offset == 0:
            found.args = (f"{found}; {self._others('plain records, GZIP and ZLIB')}",)
        return found

    def stream_error(self, damage: StreamDamage, position: RecordPosition) -> DataLossError:
        """A compressed stream that ends in the record at this position."""
        record, offset = position
        message = (
            f"{display_name(self.path)}: record {record} at byte {offset} of the decompressed "
            f"content: {damage} at byte {damage.offset} of the compressed file"
        )
        if record == 0 and (self.auto or damage.offset <= 2):  # auto, or the magic bytes are wrong
            message += f"; {self._others(f'plain records and {self.compression}')}"
        return DataLossError(
            message,
            path=self.path,
            offset=offset,
            record_index=record,
            reason="compressed stream",
        )

    def _others(self, tried: str) -> str:
        """What a file that holds nothing at all was read as, and what else it could be."""
        if self.auto:
            return f"compression_type='auto' tried {tried}, and nothing fits"
        given = self.compression or "none"
        return f"compression_type is {given}; readers detect others with compression_type='auto'"


def display_name(path: Path | None) -> str:
    """How messages call a file."""
    return "input" if path is None else os.fspath(path)
