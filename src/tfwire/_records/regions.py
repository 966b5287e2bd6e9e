"""What a native reader found wrong with a file: regions that it left out, and flipped bits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from tfwire._core import DAMAGE_REASONS, ffi, lib
from tfwire._public import public
from tfwire._records.sources import Path

__all__ = [
    "FlippedBit",
    "FlippedBits",
    "RecordPosition",
    "SkippedRegion",
    "SkippedRegions",
    "TornTail",
    "flipped_bits",
    "skipped_regions",
    "torn_tail",
]

_MOST = lib.TFW_MOST_REGIONS

# A tfw_region.
_REGION = np.dtype(
    [
        ("begin", "u8"),
        ("end", "u8"),
        ("record", "u8"),
        ("needed", "u8"),
        ("reason", "i4"),
        ("", "i4"),
    ]
)


@public
class SkippedRegion(NamedTuple):
    """A stretch of a file that was left out.

    Attributes:
        path: The file, or None for an object without a name.
        begin, end: Its bytes [begin, end) in the file; in the file's decompressed content where
            it is compressed, save that a region whose reason is "compressed stream" counts the
            bytes of the compressed file itself. With on_corrupt="stop" the end is that of the
            file, or how far it had been read where that is not known.
        record_index: Number of the first record left out. A region counts as one record.
        reason: As DataLossError.reason.
    """

    path: str | os.PathLike[str] | None
    begin: int
    end: int
    record_index: int
    reason: str


@public
class SkippedRegions(list[SkippedRegion]):
    """The regions that were left out, in their order. Of more than 65,536 only the first ones are
    listed, and the last of its file; the totals count them all.

    Attributes:
        num_regions: How many there are.
        num_bytes: The bytes in them.
    """

    def __init__(
        self, regions: Iterable[SkippedRegion] = (), num_regions: int = 0, num_bytes: int = 0
    ) -> None:
        super().__init__(regions)
        self.num_regions = num_regions
        self.num_bytes = num_bytes

    def __eq__(self, other: object) -> bool:
        """Whether the lists are equal, and the totals where the other one has them."""
        if isinstance(other, SkippedRegions):
            return self._totals() == other._totals() and list.__eq__(self, other)
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def _totals(self) -> tuple[int, int]:
        return self.num_regions, self.num_bytes

    def add(self, other: SkippedRegions) -> None:
        """Adds the regions of another file, or of another part of it."""
        self.extend(other[: max(0, _MOST - len(self))])
        self.num_regions += other.num_regions
        self.num_bytes += other.num_bytes

    def first(self, count: int) -> SkippedRegions:
        """The first so many of them."""
        if count >= self.num_regions:
            return self
        regions = self[:count]
        return SkippedRegions(regions, count, sum(region.end - region.begin for region in regions))


@public
class RecordPosition(NamedTuple):
    """A place between two records of a file, to go on from.

    Attributes:
        record_index: Number of the record that begins there.
        offset: Byte of the file; of the file's decompressed content where it is compressed.
    """

    record_index: int = 0
    offset: int = 0


@public
class TornTail(NamedTuple):
    """An incomplete record at the end of a file, whose writer died or is not done yet.

    Attributes:
        present: Bytes of it that are there.
        needed: Bytes that it takes, frame and all, as far as known: 12, those of a header, before
            that is there.
    """

    present: int
    needed: int


@public
class FlippedBit(NamedTuple):
    """A single bit that explains why a record did not verify.

    Attributes:
        path: The file, or None for an object without a name.
        offset: Its byte in the file; in the file's decompressed content where it is compressed.
        bit: 0, the lowest, to 7.
        record_index: Number of the record.
        record_offset: Where the record begins.
        ambiguous: Another bit, or two, would explain it too (or might, in a long record).
        corrected: Whether the record was delivered with the bit flipped back.
    """

    path: str | os.PathLike[str] | None
    offset: int
    bit: int
    record_index: int
    record_offset: int
    ambiguous: bool
    corrected: bool


@public
class FlippedBits(list[FlippedBit]):
    """The flipped bits that were found, in their order. Of more than 65,536 only the first ones are
    listed, and the last; the totals count them all.

    Attributes:
        num_bits: How many there are.
        num_corrected: How many of them were flipped back.
    """

    def __init__(self, bits: Iterable[FlippedBit], num_bits: int, num_corrected: int) -> None:
        super().__init__(bits)
        self.num_bits = num_bits
        self.num_corrected = num_corrected


def skipped_regions(reader: Any, path: Path | None) -> SkippedRegions:
    """The regions that a ``tfw_reader *`` left out so far."""
    size = ffi.new("uint64_t *")
    total = lib.tfw_reader_skipped_total(reader, size)
    if not total:
        return SkippedRegions()
    count = lib.tfw_reader_skipped(reader, 0, ffi.NULL, 0)
    regions = ffi.new("tfw_region[]", count)
    lib.tfw_reader_skipped(reader, 0, regions, count)
    table = np.frombuffer(ffi.buffer(regions), _REGION)
    columns = (table[name].tolist() for name in ("begin", "end", "record"))
    reasons = map(DAMAGE_REASONS.__getitem__, table["reason"].tolist())
    rows = zip(repeat(path), *columns, reasons, strict=False)  # there may be very many
    return SkippedRegions(map(SkippedRegion._make, rows), total, size[0])


def torn_tail(reader: Any, behind: int) -> TornTail | None:
    """The incomplete record for which a ``tfw_reader *`` left out the end of its input, behind the
    last record, which ends there."""
    region = ffi.new("tfw_region *")
    count = lib.tfw_reader_skipped(reader, 0, ffi.NULL, 0)
    lib.tfw_reader_skipped(reader, max(count, 1) - 1, region, 1)
    torn = region.needed and region.begin >= behind
    return TornTail(region.end - region.begin, region.needed) if torn else None


def flipped_bits(reader: Any, path: Path | None) -> FlippedBits:
    """The flipped bits that a ``tfw_reader *`` found so far."""
    applied = ffi.new("uint64_t *")
    total = lib.tfw_reader_flips_total(reader, applied)
    count = lib.tfw_reader_flips(reader, 0, ffi.NULL, 0)
    flips = ffi.new("tfw_flip[]", count)
    lib.tfw_reader_flips(reader, 0, flips, count)
    found = (
        FlippedBit(
            path,
            flip.offset + flip.byte,
            flip.bit,
            flip.record,
            flip.offset,
            bool(flip.ambiguous),
            bool(flip.applied),
        )
        for flip in flips
    )
    return FlippedBits(found, total, applied[0])
