"""Receipts: fingerprints of records that do not depend on their order, and that add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfwire._public import public

__all__ = ["Receipt"]

_MODULUS = 2**64


@public
@dataclass(frozen=True, slots=True)
class Receipt:
    """What a collection of records adds up to, whatever their order.

    Two collections of the same records have the same receipt, however they are ordered and spread
    over files, shards, workers or epochs; the receipt of two collections is the sum of theirs. So
    a writer and its readers, or the workers of a job, can show that no record was lost, doubled or
    changed, without a second look at the data.

    It is a checksum, not a signature. Records of the same CRC-32C and length count as the same
    record: a changed record goes unnoticed with probability 2^-32, and anyone can forge one.

    Args:
        records: How many records.
        payload_bytes: Sum of their lengths.
        hash: Sum of a hash of every record's CRC-32C and length, modulo 2^64.

    Example:
        >>> before = Receipt.of([b"cat", b"dog", b"goat"])
        >>> before == Receipt.of([b"goat"]) + Receipt.of([b"dog", b"cat"])
        True
        >>> before - Receipt.of([b"cat", b"dog"]) == Receipt.of([b"goat"])
        True
        >>> sum([before, before]).records
        6
    """

    records: int = 0
    payload_bytes: int = 0
    hash: int = 0

    @classmethod
    def of(cls, records: Iterable[Any]) -> Receipt:
        """The receipt of records that are at hand.

        Args:
            records: An iterable of what ``TFRecordWriter.write`` takes.

        Returns:
            Their receipt; the same whatever their order.

        Raises:
            TypeError, ValueError: As ``TFRecordWriter.write``.

        Example:
            >>> Receipt.of([b"cat", b"goat"])
            Receipt(records=2, payload_bytes=7, hash=14460557446372002743)
        """
        from tfwire._records.packing import Packer
        from tfwire._records.payloads import as_records, chunks
        from tfwire._records.tally import Tally

        tally, packer = Tally(), Packer()
        for chunk in chunks(records):
            for block, _ in packer.blocks(as_records(chunk)):
                tally.add_block(block, len(block))
        return tally.receipt

    def __add__(self, other: Receipt) -> Receipt:
        """The receipt of the records of both."""
        if not isinstance(other, Receipt):
            return NotImplemented
        return Receipt(
            self.records + other.records,
            self.payload_bytes + other.payload_bytes,
            (self.hash + other.hash) % _MODULUS,
        )

    def __radd__(self, other: Any) -> Receipt:
        """``sum`` begins with 0."""
        return self if other == 0 else NotImplemented

    def __sub__(self, other: Receipt) -> Receipt:
        """What ``other`` lacks of this; counts are negative where it has more.

        >>> (Receipt.of([b"cat", b"dog"]) - Receipt.of([b"dog"])).records
        1
        """
        if not isinstance(other, Receipt):
            return NotImplemented
        return Receipt(
            self.records - other.records,
            self.payload_bytes - other.payload_bytes,
            (self.hash - other.hash) % _MODULUS,
        )

    def as_dict(self) -> dict[str, Any]:
        """The receipt as JSON may hold it.

        Returns:
            "records" and "payload_bytes" as integers, "hash" as 16 hexadecimal digits, because not
            every reader of JSON knows integers of 64 bits.

        Example:
            >>> Receipt.of([b"cat"]).as_dict()
            {'records': 1, 'payload_bytes': 3, 'hash': '83c5eeead95f53d0'}
        """
        return {
            "records": self.records,
            "payload_bytes": self.payload_bytes,
            "hash": f"{self.hash:016x}",
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Receipt:
        """The receipt that ``as_dict`` gave.

        Args:
            fields: Its dict, also after a way through JSON.

        Returns:
            A receipt equal to the one that it was made of.

        Raises:
            KeyError: A field is missing.
            TypeError, ValueError: A field is no count, or no hexadecimal number.

        Example:
            >>> receipt = Receipt.of([b"cat", b"dog"])
            >>> Receipt.from_dict(receipt.as_dict()) == receipt
            True
        """
        if not isinstance(fields, Mapping):
            raise TypeError(f"fields must be a dict, found {type(fields).__name__}")
        receipt = cls(fields["records"], fields["payload_bytes"], int(fields["hash"], 16))
        if type(receipt.records) is not int or type(receipt.payload_bytes) is not int:
            raise TypeError("the counts of a receipt are integers")
        return receipt

    def __str__(self) -> str:
        return f"{self.records} records, {self.payload_bytes} bytes, {self.hash:016x}"
