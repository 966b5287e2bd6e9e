"""What the records of a file add up to, kept in C: their receipt and the file's CRC-32C."""

from __future__ import annotations

import contextlib
from typing import Any

from tfwire._core import check, ffi, lib, new_error
from tfwire._records.sources import open_source
from tfwire.receipts import Receipt

__all__ = ["Tally", "crc32c_of_file"]

_BLOCK = 1 << 20


class Tally:
    """The sum over records, in the order in which they lie in the file.

    Args:
        file_crc32c: The CRC-32C of what precedes them in the file.
        verified: Whether their payloads are known to agree with their checksums.
    """

    def __init__(self, file_crc32c: int = 0, verified: bool = True) -> None:
        self._flags = 0 if verified else lib.TFW_NO_DATA_CRC
        self._sum = ffi.new("tfw_tally *")
        self._sum.file_crc = file_crc32c

    def add_block(self, data: Any, size: int) -> None:
        """Adds the whole records that size bytes consist of; data is a pointer or a buffer."""
        if not isinstance(data, ffi.CData):
            data = ffi.from_buffer("uint8_t[]", data)
        error = new_error()
        check(lib.tfw_tally_block(self._sum, data, size, self._flags, error), error)

    def add_batch(self, batch: Any, first: int = 0) -> None:
        """Adds the records of a ``tfw_batch *``, from one of them on."""
        spans, count, error = batch.spans + first, batch.count - first, new_error()
        status = lib.tfw_tally_spans(
            self._sum, batch.data, batch.data_len, spans, count, self._flags, error
        )
        check(status, error)

    def add_record(self, crc: int, length: int) -> None:
        """Adds a verified record by the CRC-32C and the length of its payload."""
        lib.tfw_tally_record(self._sum, crc, length)

    @property
    def receipt(self) -> Receipt:
        return Receipt(self._sum.records, self._sum.payload_bytes, self._sum.hash)

    @property
    def file_crc32c(self) -> int:
        """The CRC-32C of what preceded the records and of the records."""
        return int(self._sum.file_crc)


def crc32c_of_file(path: Any) -> int:
    """The CRC-32C of a file's bytes as they are, which are read for it."""
    crc, block = 0, bytearray(_BLOCK)
    data = ffi.from_buffer("uint8_t[]", block)
    with contextlib.closing(open_source(path)) as source:
        while got := source.readinto(memoryview(block)):
            crc = lib.tfw_crc32c(crc, data, got)
    return crc
