"""Damage in record files: skipped regions, torn tails, flipped bits, and the text of errors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import repeat
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from tfwire._base.aliases import Compression
from tfwire._base.errors import DataLossError, public
from tfwire._base.native import DAMAGE_REASONS, damaged_record_error, ffi, lib
from tfwire._base.text import show_path
from tfwire._records.files.formats import Format, inflated, other_format
from tfwire._records.files.inflate import StreamDamage
from tfwire._records.files.paths import Path
from tfwire._records.files.urls import INDEX_SUFFIX

_KEPT_REGIONS = lib.TFW_MOST_REGIONS
# A tfw_region.
_REGION = np.dtype(
    [(name, "u8") for name in ("begin", "end", "record", "needed")]
    + [(name, "i4") for name in ("reason", "records")]
)


@public
class SkippedRegion(NamedTuple):
    """A part of a file that was left out.

    Attributes:
        path: The file, or None for an object without a name.
        begin, end: Its bytes [begin, end) in the file. In a compressed file they count decompressed
            bytes, except that the reason "compressed stream" counts bytes of the file itself. With
            on_corrupt="stop" the region ends with the file, or where reading ended if the size of
            the file is not known.
        record_index: Number of the first record left out.
        reason: As DataLossError.reason.
        num_records: How many records it counts as in the numbers of those after it. Damaged
            payloads whose lengths lead on are counted; bytes in which the next record had to be
            searched count as one, and damage to a compressed stream as none.
        is_exact: False if there may have been more.
    """

    path: str | os.PathLike[str] | None
    begin: int
    end: int
    record_index: int
    reason: str
    num_records: int = 1
    is_exact: bool = False


@public
class SkippedRegions(list[SkippedRegion]):
    """The regions that were left out, in order. If there are more than 65,536, only the first ones
    and the last of its file are listed; the totals count all.

    Attributes:
        num_regions: How many there are.
        num_bytes: Their total size.
    """

    def __init__(
        self, regions: Iterable[SkippedRegion] = (), num_regions: int = 0, num_bytes: int = 0
    ) -> None:
        super().__init__(regions)
        self.num_regions: int = num_regions
        self.num_bytes: int = num_bytes

    def __eq__(self, other: object) -> bool:
        """Whether the lists are equal, and the totals if the other one has them."""
        if isinstance(other, SkippedRegions):
            return self._totals() == other._totals() and list.__eq__(self, other)
        return list.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__: ClassVar[None] = None

    def _totals(self) -> tuple[int, int]:
        return self.num_regions, self.num_bytes

    def add(self, other: SkippedRegions) -> None:
        """Appends the regions of another file, or of another part of it."""
        self.extend(other[: max(0, _KEPT_REGIONS - len(self))])
        self.num_regions += other.num_regions
        self.num_bytes += other.num_bytes

    def first(self, count: int) -> SkippedRegions:
        """The first ``count`` regions."""
        if count >= self.num_regions:
            return self
        regions = self[:count]
        return SkippedRegions(regions, count, sum(region.end - region.begin for region in regions))


@public
class RecordPosition(NamedTuple):
    """A position between two records of a file, to go on from.

    Attributes:
        record_index: Number of the record that begins there.
        offset: Its byte in the file; in a compressed file, in the decompressed content.
    """

    record_index: int = 0
    offset: int = 0


@public
class TornTail(NamedTuple):
    """An incomplete record at the end of a file, whose writer died or has not finished.

    Attributes:
        present: Bytes of it in the file.
        needed: Its size in bytes, with the frame; 12, the size of a header, while the header is
            incomplete.
    """

    present: int
    needed: int


@public
class FlippedBit(NamedTuple):
    """A single bit that explains why a record did not verify.

    Attributes:
        path: The file, or None for an object without a name.
        offset: Its byte in the file; in a compressed file, in the decompressed content.
        bit: 0, the lowest, to 7.
        record_index: Number of the record.
        record_offset: Where the record begins.
        ambiguous: Another bit, or two bits, would explain it too (or might, in a long record).
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
    """The flipped bits that were found, in order. If there are more than 65,536, only the first
    ones and the last are listed; the totals count all.

    Attributes:
        num_bits: How many there are.
        num_corrected: How many of them were flipped back.
    """

    def __init__(self, bits: Iterable[FlippedBit], num_bits: int, num_corrected: int) -> None:
        super().__init__(bits)
        self.num_bits: int = num_bits
        self.num_corrected: int = num_corrected


def skipped_regions(reader: Any, path: Path | None) -> SkippedRegions:
    """The regions that a ``tfw_reader *`` has left out so far."""
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
    counts = table["records"].astype(np.int64)
    exact = (counts > 0) & (counts < np.iinfo(np.int32).max)
    known = np.abs(counts).tolist(), exact.tolist()
    rows = zip(repeat(path), *columns, reasons, *known, strict=False)  # there may be very many
    return SkippedRegions(map(SkippedRegion._make, rows), total, size[0])


def torn_tail(reader: Any, last_end: int) -> TornTail | None:
    """The incomplete record that a ``tfw_reader *`` left out at the end of its input, after the
    last record, which ends at ``last_end``."""
    region = ffi.new("tfw_region *")
    count = lib.tfw_reader_skipped(reader, 0, ffi.NULL, 0)
    lib.tfw_reader_skipped(reader, max(count, 1) - 1, region, 1)
    torn = region.needed and region.begin >= last_end
    return TornTail(region.end - region.begin, region.needed) if torn else None


def flipped_bits(reader: Any, path: Path | None) -> FlippedBits:
    """The flipped bits that a ``tfw_reader *`` has found so far."""
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


# ---- Errors: damage in a file, and files that hold no records at all ----


class Reading(NamedTuple):
    """How a file is read, for the text of errors.

    Attributes:
        path: The file, or None for an object without a name.
        compression: "", "GZIP" or "ZLIB".
        auto: True if the compression was detected, not given.
    """

    path: Path | None
    compression: Compression | Literal["auto"]
    auto: bool

    def record_error(
        self, status: int, error: Any, ends: tuple[bytes, bytes] = (b"", b"")
    ) -> DataLossError:
        """The error for a damaged record that a native function found.

        Args:
            status, error: What it reported.
            ends: The first and the last bytes of the file, as far as they are at hand.
        """
        found = damaged_record_error(status, error, self.path)
        other = self._other_format(*ends) if error.offset == 0 else None
        if other is not None:
            where = f"{display_name(self.path)}: record 0 at byte 0"
            looks = f"{where}: not a TFRecord file? it begins like {other.name}"
            found.args = (f"{looks}; {other.advice}" if other.advice else looks,)
        if other is not None and other.advice:
            return found
        if not self.compression and status == lib.TFW_E_LENGTH_CRC and found.offset == 0:
            name = os.fsdecode(self.path) if self.path is not None else ""
            if "an index that tfwire saved" in str(found) and name.endswith(INDEX_SUFFIX):
                hint = f"give the file that it is for, {show_path(name.removesuffix(INDEX_SUFFIX))}"
            else:
                hint = self._others("plain records, GZIP and ZLIB")
            found.args = (f"{found}; {hint}",)
        return found

    def stream_error(self, damage: StreamDamage, position: RecordPosition) -> DataLossError:
        """The error for a compressed stream that is damaged in the record at this position."""
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

    def _other_format(self, head: bytes, tail: bytes) -> Format | None:
        if self.compression:
            return other_format(inflated(head, self.compression), inside=True)
        return other_format(head, tail)

    def _others(self, tried: str) -> str:
        """How a file without any record was read, and what else it could be."""
        if self.auto:
            return f"compression_type='auto' tried {tried}, and nothing fits"
        given = self.compression or "none"
        return f"compression_type is {given}; readers detect others with compression_type='auto'"


def display_name(path: Path | None) -> str:
    """The name of a file in messages."""
    return "input" if path is None else os.fspath(path)
