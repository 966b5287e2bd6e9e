"""How many records damage has lost, between which, and how sure that is."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import compress, groupby, repeat
from typing import Any, NamedTuple, Protocol

import numpy as np

from tfwire._base.aliases import Array, Compression
from tfwire._base.errors import Error
from tfwire._base.native import ffi, lib
from tfwire._base.text import plural
from tfwire._records.files.byte_sources import FileSource, open_regular
from tfwire._records.files.paths import index_beside
from tfwire._records.frames import FRAME
from tfwire._records.index.find_offsets import Walk
from tfwire._records.reading.damage import SkippedRegion, SkippedRegions

_LOOKED_AT = 1000  # gaps whose bytes are looked at
_LARGEST_LOOKED_AT = 1 << 26  # bytes
_NEIGHBOURS = 100  # records after a gap, whose sizes say how many it may have held


class DamagedFile(Protocol):
    """A FileReport or a RepairReport."""

    @property
    def compression(self) -> Compression: ...
    @property
    def num_records(self) -> int: ...
    @property
    def payload_bytes(self) -> int: ...
    @property
    def skipped(self) -> SkippedRegions: ...


class LostRecords(NamedTuple):
    """The records that are lost between two that are kept.

    Attributes:
        regions: What was left out there.
        first: The number of the first lost record in the original file.
        first_is_exact: Whether that is sure.
        num_records: How many are lost.
        certainty: What that number is: "exact"; "about", by the sizes of other records; "at least";
            or "zeros", of bytes at the end of the file that are all zeros.
        kept: How many records before it are kept, which is the number of the next one in a file of
            the records that are kept. None: not known.
        is_last: Whether no record follows.
        by_index: Whether the index of the file says so.
    """

    regions: list[SkippedRegion]
    first: int
    first_is_exact: bool
    num_records: int
    certainty: str
    kept: int | None
    is_last: bool
    by_index: bool = False

    @property
    def num_bytes(self) -> int:
        """The size of the regions; of a compressed file, that of their content if it is known."""
        sizes = [region.end - region.begin for region in self.regions]
        inside = [not _of_stream(region) for region in self.regions]
        chosen = inside if any(inside) else repeat(True)
        return sum(compress(sizes, chosen))

    @property
    def is_whole(self) -> bool:
        """Whether the bytes of all lost records are there."""
        return all(region.is_exact for region in self.regions) or (
            self.certainty == "exact" and not self.by_index
        )

    def __str__(self) -> str:
        """In one line."""
        size, about = plural(self.num_bytes, "byte"), "" if self.first_is_exact else "about "
        first, last = f"{about}record {self.first:,}", self.first + self.num_records - 1
        if self.certainty == "zeros":
            after = f"after record {self.first - 1:,} of the original " if self.first else ""
            return f"{size} {after}are zeros: room that was never written, or records that are lost"
        if self.num_records == 0 and self.certainty != "exact":
            where, fault = f"before {first} of the original", "are none"
            if any(map(_of_stream, self.regions)):
                where, fault = f"of the compressed stream {where}", "do not inflate"
            return f"{size} {where} {fault}: no record is known to be lost"
        if self.num_records == 0:
            return f"no record is lost in {size} before {first} of the original" + self._origin
        if self.certainty == "exact" and self.num_records > 1:
            text = f"{about}records {self.first:,} to {last:,} of the original "
            text += f"({plural(self.num_records, 'record')}, {size}) are lost"
        elif self.certainty == "exact":
            text = f"{first} of the original (1 record, {size}) is lost"
        else:
            verb = "is" if self.num_records == 1 else "are"
            text = f"{self.certainty} {plural(self.num_records, 'record')} ({size}) from {first} "
            text += f"of the original on {verb} lost"
        return text + self._origin + self._next(last + 1)

    @property
    def _origin(self) -> str:
        return ", as its index says" if self.by_index else ""

    def _next(self, number: int) -> str:
        if self.is_last:
            return "; no record follows"
        exact = self.first_is_exact and self.certainty == "exact"
        name = f"record {number:,}" if exact else "the next one"
        return "" if self.kept is None else f"; {name} is record {self.kept:,} of the repaired file"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "first": self.first,
            "first_is_exact": self.first_is_exact,
            "records": self.num_records,
            "certainty": self.certainty,
            "bytes": self.num_bytes,
            "kept_before": self.kept,
            "by_index": self.by_index,
        }


class TotalLost(NamedTuple):
    """How many records a file has lost.

    Attributes:
        num_records: How many.
        certainty: As of LostRecords; "zeros" never.
    """

    num_records: int
    certainty: str

    def __str__(self) -> str:
        if self.num_records == 0:
            known = "" if self.certainty == "exact" else "known to be "
            return f"no record is {known}lost"
        verb = "is" if self.num_records == 1 else "are"
        how = "" if self.certainty == "exact" else f"{self.certainty} "
        return f"{how}{plural(self.num_records, 'record')} {verb} lost"


def total_lost(report: DamagedFile, lost: Sequence[LostRecords]) -> TotalLost:
    """What gaps add up to, all of them or the first."""
    found = {gap.certainty for gap in lost}
    if len(report.skipped) < report.skipped.num_regions or "zeros" in found:
        found.add("at least")
    for certainty in ("about", "at least"):
        if certainty in found:
            return TotalLost(sum(gap.num_records for gap in lost), certainty)
    return TotalLost(sum(gap.num_records for gap in lost), "exact")


def lost_records(report: DamagedFile, path: Any = None) -> list[LostRecords]:
    """Says what was lost in each gap between records that were kept: exactly by an index beside the
    file, or where the bytes show it, else by the sizes of records.

    Args:
        report: Of the file. Of very many gaps the last one is left out.
        path: A regular file, which is read again; None: there is none.
    """
    gaps = list(_gaps(report))
    source = None
    with contextlib.suppress(OSError, ValueError, TypeError):
        source = None if path is None else open_regular(path)
    if source is None:
        return _numbered([_by_sizes(gap, report, None) for gap in gaps])
    with contextlib.closing(source):
        size = source.size() or 0
        counted = _by_index(gaps, report, path, size)
        if counted is not None:
            return counted
        look = _Look(source, size) if not report.compression else None
        whole = size if report.compression else None
        found = [_by_sizes(gap, report, whole) for gap in gaps]
        if look is not None:
            found[:_LOOKED_AT] = [look.at(gap) for gap in found[:_LOOKED_AT]]
        return _numbered(found)


def _of_stream(region: SkippedRegion) -> bool:
    return region.reason == "compressed stream"


def _gaps(report: DamagedFile) -> Iterator[LostRecords]:
    """What the numbers of the reader say, before more is known."""
    regions = report.skipped[: -1 if len(report.skipped) < report.skipped.num_regions else None]
    regions = sorted(regions, key=lambda region: region.record_index)
    before, placed, broken = 0, [], False
    for region in regions:
        placed.append((region.record_index - before, region))
        before += region.num_records
    for kept, group in groupby(placed, lambda each: each[0]):
        found = [region for _, region in group]
        counted = sum(region.num_records for region in found)
        exact = all(region.is_exact for region in found)
        # A record of a compressed file may be met twice after damage, and counts once.
        known = None if broken else kept
        broken = broken or any(map(_of_stream, found))
        certainty = "exact" if exact else "at least"
        last = kept >= report.num_records
        yield LostRecords(found, kept, True, counted, certainty, known, last)


def _numbered(gaps: list[LostRecords]) -> list[LostRecords]:
    """Gaps with the numbers of the original: those before them add to these."""
    lost, exact, found = 0, True, []
    for gap in gaps:
        found.append(gap._replace(first=gap.first + lost, first_is_exact=exact))
        lost += gap.num_records
        exact = exact and gap.certainty == "exact" and gap.kept is not None
    return found


# ---- By sizes ---------------------------------------------------------------------------------


def _by_sizes(gap: LostRecords, report: DamagedFile, file_size: int | None) -> LostRecords:
    """A gap with an estimate, if there is one: by the mean size of the records that are kept.

    Args:
        gap: See there.
        report: Of the file.
        file_size: Of a compressed file, if it is known.
    """
    if gap.certainty == "exact" or not report.num_records:
        return gap
    mean = report.payload_bytes / report.num_records + FRAME
    if all(map(_of_stream, gap.regions)):
        if file_size is None:
            return gap
        damaged = filter(_of_stream, report.skipped)
        left = file_size - sum(region.end - region.begin for region in damaged)
        mean = max(left, 1) / report.num_records
    return _estimated(gap, mean)


def _estimated(gap: LostRecords, mean: float) -> LostRecords:
    """By the size of records. A record that is cut says nothing of those that are missing, nor do
    the rests of two, between which bytes were removed."""
    known = _least(gap.regions)
    guess = round(gap.num_bytes / mean)
    if guess <= known + 1 or gap.regions[-1].reason == "truncated":
        return gap._replace(num_records=known, certainty="at least")
    return gap._replace(num_records=guess, certainty="about")


def _least(regions: Sequence[SkippedRegion]) -> int:
    """How many records regions are at least. Where a stream breaks, the two rests count as records,
    and may be one."""
    known = sum(region.num_records for region in regions)
    return max(min(known, 1), known - sum(map(_of_stream, regions)))


class _Look:
    """Looks at the bytes of a plain file."""

    def __init__(self, source: FileSource, size: int) -> None:
        self._source, self._size = source, size
        self._walk = Walk(source.fd, source.path, size)

    def at(self, gap: LostRecords) -> LostRecords:
        """A gap, as its bytes and the records after it show it."""
        begin, end = gap.regions[0].begin, gap.regions[-1].end
        if gap.certainty == "exact":
            return gap
        if end - begin < FRAME and end != self._size:  # no record is as short
            return gap._replace(num_records=0, certainty="at least")
        if end - begin <= _LARGEST_LOOKED_AT:
            data = self._read(begin, end - begin)
            if len(gap.regions) == 1 and _is_one_record(data):
                return gap._replace(num_records=1, certainty="exact")
            flipped = len(data) > lib.TFW_HEADER_SIZE  # a bit, perhaps; no header has one alone
            if end == self._size and data.count(0) >= len(data) - flipped:
                return gap._replace(num_records=0, certainty="zeros")
        offsets = np.empty(_NEIGHBOURS, np.int64)
        self._walk.start(end)
        found, _ = self._walk.step(offsets, 0)
        return _estimated(gap, (self._walk.offset - end) / found) if found else gap

    def _read(self, begin: int, size: int) -> bytes:
        data = bytearray(size)
        got = ffi.new("size_t *")
        out = ffi.from_buffer("uint8_t[]", data)
        lib.tfw_read_at(self._source.fd, out, size, begin, got, ffi.NULL)
        return bytes(data[: got[0]])


def _is_one_record(data: bytes) -> bool:
    """Whether a payload with its checksum lies behind a header that is damaged."""
    payload = data[lib.TFW_HEADER_SIZE : -lib.TFW_FOOTER_SIZE]
    if len(data) < FRAME:
        return False
    crc = lib.tfw_crc32c_mask(lib.tfw_crc32c(0, payload, len(payload)))
    return bool(crc == int.from_bytes(data[-lib.TFW_FOOTER_SIZE :], "little"))


# ---- By the index -----------------------------------------------------------------------------


def records_in_index(path: Any, size: int) -> int | None:
    """How many records the index beside a file counts, if it was made of a file of another size."""
    beside = index_beside(path)
    if not os.path.exists(beside):
        return None
    from tfwire._records.index.index_files import read_index  # as below

    try:
        contents, _ = read_index(beside, path, size)
    except (OSError, Error, ValueError):
        return None
    return None if contents.size == size else len(contents.lengths)


def _by_index(
    gaps: list[LostRecords], report: DamagedFile, path: Any, size: int
) -> list[LostRecords] | None:
    """Gaps by the index that was made of the file before it was damaged; None: there is none that
    fits."""
    # Not imported above: verifying starts without what opens remote indexes.
    from tfwire._records.index.index_files import offsets_of_lengths, read_index

    try:
        contents, _ = read_index(index_beside(path), path, size)
    except (OSError, Error, ValueError):
        return None
    lengths = contents.lengths
    if contents.compression != report.compression or len(lengths) < report.num_records:
        return None
    if report.compression:
        return _by_number(gaps, report, len(lengths))
    moved = contents.size - size  # bytes that are missing, all in one gap
    offsets = offsets_of_lengths(lengths)
    begins = np.array([gap.regions[0].begin for gap in gaps], np.int64)
    ends = np.array([gap.regions[-1].end for gap in gaps], np.int64)
    found = []
    for place in range(len(gaps) if moved and len(gaps) <= _NEIGHBOURS else 1):
        here = np.arange(len(gaps), dtype=np.int64)
        first = _numbers(offsets, begins + moved * (here > place))
        after = _numbers(offsets, ends + moved * (here >= place))
        if first is not None and after is not None and (first <= after).all():
            found.append((first, after - first))
    if len(found) != 1 or int(found[0][1].sum(dtype=np.int64)) + report.num_records != len(lengths):
        return None
    numbered = list(zip(gaps, *map(Array.tolist, found[0]), strict=True))
    # An index of what the file held before it was written anew.
    if any(gap.certainty == "exact" and count != gap.num_records for gap, _, count in numbered):
        return None
    return [
        gap._replace(first=first, num_records=count, certainty="exact", by_index=True)
        for gap, first, count in numbered
    ]


def _by_number(
    gaps: list[LostRecords], report: DamagedFile, count: int
) -> list[LostRecords] | None:
    """A single gap of a compressed file, by the number of records in its index."""
    if len(gaps) != 1:
        return None
    lost = count - report.num_records
    return [gaps[0]._replace(num_records=lost, certainty="exact", by_index=True)]


def _numbers(offsets: Array, places: Array) -> Array | None:
    """The numbers of the records that begin at some places; None: one is no such place."""
    found = np.searchsorted(offsets, places)
    fits = found < len(offsets)
    return found if fits.all() and (offsets[found] == places).all() else None
