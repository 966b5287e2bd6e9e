"""What a native reader found wrong with a file: regions that it left out, and flipped bits."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tfwire._core import DAMAGE_REASONS, ffi, lib
from tfwire._records.sources import Path

__all__ = ["FlippedBit", "SkippedRegion", "flipped_bits", "skipped_regions"]


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


def skipped_regions(reader: Any, path: Path | None) -> list[SkippedRegion]:
    """The regions that a ``tfw_reader *`` left out so far."""
    count = lib.tfw_reader_skipped(reader, 0, ffi.NULL, 0)
    regions = ffi.new("tfw_region[]", count)
    lib.tfw_reader_skipped(reader, 0, regions, count)
    return [
        SkippedRegion(path, r.begin, r.end, r.record, DAMAGE_REASONS[r.reason]) for r in regions
    ]


def flipped_bits(reader: Any, path: Path | None) -> list[FlippedBit]:
    """The flipped bits that a ``tfw_reader *`` found so far."""
    count = lib.tfw_reader_flips(reader, 0, ffi.NULL, 0)
    flips = ffi.new("tfw_flip[]", count)
    lib.tfw_reader_flips(reader, 0, flips, count)
    return [
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
    ]
