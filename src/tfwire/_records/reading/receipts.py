"""What records add up to: receipts (checksums without order), lengths, CRC-32C of whole files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfwire._base.aliases import Record
from tfwire._base.arguments import check_type
from tfwire._base.errors import public
from tfwire._base.native import call, ffi, lib
from tfwire._base.parallel_map import Check, never_stopped
from tfwire._records.reading.options import open_source

_MODULUS = 2**64


@public
@dataclass(frozen=True, slots=True)
class Receipt:
    """A checksum of a collection of records, independent of their order.

    Two collections of the same records have the same receipt, however they are ordered and spread
    over files, shards, workers or epochs. The receipt of two collections together is the sum of
    theirs. So a writer and its readers, or the workers of a job, can show that no record was lost,
    duplicated or changed, without reading the data again.

    It is a checksum, not a signature. Records of the same CRC-32C and length count as the same
    record: a changed record goes unnoticed with probability 2^-32, and anyone can forge one.

    Args:
        num_records: The number of records.
        payload_bytes: Sum of their lengths.
        hash: Sum of a hash of every record's CRC-32C and length, modulo 2^64.

    Example:
        >>> before = Receipt.of([b"cat", b"dog", b"goat"])
        >>> before == Receipt.of([b"goat"]) + Receipt.of([b"dog", b"cat"])
        True
        >>> before - Receipt.of([b"cat", b"dog"]) == Receipt.of([b"goat"])
        True
        >>> sum([before, before]).num_records
        6
    """

    num_records: int = 0
    payload_bytes: int = 0
    hash: int = 0

    @classmethod
    def of(cls, records: Iterable[Record]) -> Receipt:
        """The receipt of records in memory.

        Args:
            records: An iterable of what ``TFRecordWriter.write`` takes.

        Returns:
            Their receipt; the same whatever their order.

        Raises:
            TypeError, ValueError: As ``TFRecordWriter.write``.

        Example:
            >>> Receipt.of([b"cat", b"goat"])
            Receipt(num_records=2, payload_bytes=7, hash=14460557446372002743)
        """
        from tfwire._records.frames import Packer, as_records, chunks

        tally, packer = Tally(), Packer()
        for chunk in chunks(records):
            for block, _ in packer.blocks(as_records(chunk)):
                tally.add_block(block, len(block))
        return tally.receipt

    def __add__(self, other: Receipt) -> Receipt:
        """The receipt of both collections together."""
        if not isinstance(other, Receipt):
            return NotImplemented
        return Receipt(
            self.num_records + other.num_records,
            self.payload_bytes + other.payload_bytes,
            (self.hash + other.hash) % _MODULUS,
        )

    def __radd__(self, other: Literal[0]) -> Receipt:
        """Makes ``sum`` work, which begins with 0."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: Receipt) -> Receipt:
        """What this has and ``other`` lacks; counts are negative if ``other`` has more.

        >>> (Receipt.of([b"cat", b"dog"]) - Receipt.of([b"dog"])).num_records
        1
        """
        if not isinstance(other, Receipt):
            return NotImplemented
        return self + Receipt(-other.num_records, -other.payload_bytes, -other.hash)

    def to_dict(self) -> dict[str, int | str]:
        """The receipt as a dict for JSON.

        Returns:
            "records" and "payload_bytes" as integers, "hash" as 16 hexadecimal digits, because not
            every JSON reader can hold integers of 64 bits.

        Example:
            >>> Receipt.of([b"cat"]).to_dict()
            {'records': 1, 'payload_bytes': 3, 'hash': '83c5eeead95f53d0'}
        """
        return {
            "records": self.num_records,
            "payload_bytes": self.payload_bytes,
            "hash": f"{self.hash:016x}",
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, object]) -> Receipt:
        """The inverse of ``to_dict``.

        Args:
            fields: What ``to_dict`` returned, also read back from JSON.

        Returns:
            A receipt equal to the original.

        Raises:
            KeyError: A field is missing.
            TypeError, ValueError: A field is not a count, or not a hexadecimal number.

        Example:
            >>> receipt = Receipt.of([b"cat", b"dog"])
            >>> Receipt.from_dict(receipt.to_dict()) == receipt
            True
        """
        check_type("fields", fields, Mapping, "a dict")
        values: Mapping[str, Any] = fields  # checked now
        receipt = cls(values["records"], values["payload_bytes"], int(values["hash"], 16))
        if type(receipt.num_records) is not int or type(receipt.payload_bytes) is not int:
            raise TypeError("the counts of a receipt must be integers")
        return receipt

    def __str__(self) -> str:
        return f"{self.num_records} records, {self.payload_bytes} bytes, {self.hash:016x}"


_FILE_BLOCK_BYTES = 1 << 20


class Tally:
    """Computes a receipt and a file's CRC-32C from its records, added in the order of the file.

    Args:
        file_crc32c: The CRC-32C of the bytes before the first record added.
        verified: Whether the payloads are known to match their checksums.

    Attributes:
        native: ``tfw_tally *``.
    """

    def __init__(self, file_crc32c: int = 0, verified: bool = True) -> None:
        self._flags = 0 if verified else lib.TFW_NO_DATA_CRC
        self.native: Any = ffi.new("tfw_tally *")
        self.native.file_crc = file_crc32c

    def add_block(self, data: Any, size: int) -> None:
        """Adds ``size`` bytes of whole records; ``data`` is a pointer or a buffer."""
        if not isinstance(data, ffi.CData):
            data = ffi.from_buffer("uint8_t[]", data)
        call(lib.tfw_tally_block, self.native, data, size, self._flags)

    def add_batch(self, batch: Any, first: int = 0) -> None:
        """Adds the records of a ``tfw_batch *``, from index ``first`` on."""
        data = batch.data, batch.data_len, batch.spans + first, batch.count - first
        call(lib.tfw_tally_spans, self.native, *data, self._flags)

    def add_record(self, crc: int, length: int) -> None:
        """Adds a verified record by the CRC-32C and the length of its payload."""
        lib.tfw_tally_record(self.native, crc, length)

    def add(self, more: Any, size: int) -> None:
        """Adds a ``tfw_tally *`` of ``size`` bytes of a file, which began with nothing."""
        total = self.native
        total.records += more.records
        total.payload_bytes = (total.payload_bytes + more.payload_bytes) % _MODULUS
        total.hash = (total.hash + more.hash) % _MODULUS
        total.file_crc = lib.tfw_crc32c_combine(total.file_crc, more.file_crc, size)

    @property
    def receipt(self) -> Receipt:
        return Receipt(self.native.records, self.native.payload_bytes, self.native.hash)

    @property
    def file_crc32c(self) -> int:
        """The CRC-32C of the file up to the end of the last record added."""
        return int(self.native.file_crc)


def crc32c_of_file(path: Any, checked: Check = never_stopped) -> int:
    """Reads a file and returns the CRC-32C of its bytes, compressed or not; ``checked`` is called
    again and again."""
    crc, block = 0, bytearray(_FILE_BLOCK_BYTES)
    data = ffi.from_buffer("uint8_t[]", block)
    with contextlib.closing(open_source(path)) as source:
        while got := source.readinto(memoryview(block)):
            crc = lib.tfw_crc32c(crc, data, got)
            checked()
    return crc
