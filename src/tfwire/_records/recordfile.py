"""One record file: its bytes, and the native reader that finds the records in them."""

from __future__ import annotations

import sys
from bisect import bisect_left
from typing import Any

from tfwire._core import DAMAGE_REASONS, check, ffi, lib, new_error
from tfwire._records.batch import numbers_of, position_behind, position_of, split
from tfwire._records.blocks import Block
from tfwire._records.compression import DETECT_SIZE, detect_compression
from tfwire._records.damage import Reading, display_name
from tfwire._records.inflate import StreamDamage
from tfwire._records.inflate_ahead import InflatedAhead
from tfwire._records.longreads import LongReader, LongRecord
from tfwire._records.options import AS_TENSORFLOW, POLICIES, Options
from tfwire._records.regions import (
    FlippedBits,
    RecordPosition,
    SkippedRegion,
    SkippedRegions,
    TornTail,
    flipped_bits,
    skipped_regions,
    torn_tail,
)
from tfwire._records.repeats import Repeats
from tfwire._records.sources import FileSource, Source
from tfwire._records.tally import Tally
from tfwire.errors import DataLossError

__all__ = ["RecordFile"]

_BEGINNING = RecordPosition()


class RecordFile:
    """One open file: its bytes, and the native reader that finds the records in them.

    Args:
        source: Its bytes; this object takes them over.
        options: How to read it.
        start: Where to begin.

    Raises:
        DataLossError: Nothing begins there.
        ValueError: Damage is to be skipped in a device without an end.

    Attributes:
        path: Its name, or None.
        compression: "", "GZIP" or "ZLIB".
        tally: What the records delivered add up to; None unless the options ask for it.
        position: Where the record behind the last batch begins.
        at_hand: Whether it is a regular file, and not a pipe or the like.
    """

    def __init__(
        self, source: Source, options: Options, start: RecordPosition = _BEGINNING
    ) -> None:
        self.path = source.path
        self._input = source
        self._source: Source | InflatedAhead = source
        self._error = new_error()
        self._room = ffi.new("uint8_t **"), ffi.new("size_t *")
        self._num_bytes = ffi.new("uint64_t *")
        self._options = options
        self.position = self._native_position = _BEGINNING
        self.tally: Tally | None = None
        self._damage: StreamDamage | None = None
        self._ahead: Any = None  # a batch of records read already
        self._long: LongReader | None = None  # while it reads in the native reader's place
        self._resumed = False  # behind damage that the native reader takes for the end
        self._went_back = 0  # bytes, to a member within what had been inflated
        self._repeats: Repeats | None = None
        self._cut = False  # whether a compressed stream was taken for ended though it is cut
        self._stream_regions = SkippedRegions()
        self._cut_regions = SkippedRegions()  # of a stream that is cut, until its records end
        self._verify = not options.flags & lib.TFW_NO_DATA_CRC
        try:
            if options.on_corrupt == "skip":  # damage is passed over up to the end
                source.check_ends()
            self.compression = options.compression
            auto = options.compression == "auto"
            if auto:
                self.compression = detect_compression(source.peek(DETECT_SIZE))
            self._reading = Reading(self.path, self.compression, auto)
            if self.compression:
                self._source = InflatedAhead(source, self.compression)
                if options.on_corrupt == "skip":
                    self._repeats = Repeats()
            self.at_hand: bool = getattr(source, "regular", False)
            self._fed = not (self._source is source and self.at_hand)
            self._reader = self._create(options)
            if start != _BEGINNING:
                self._go_to(start)
        except BaseException:
            self._source.close()
            raise
        self._start = start
        if options.receipt:
            self.tally = Tally(verified=self._verify)

    def _create(self, options: Options) -> Any:
        settings = ffi.new("tfw_reader_options *")
        settings.size = ffi.sizeof("tfw_reader_options")
        settings.buffer_size = options.buffer_size
        settings.max_record_size = options.max_record_size
        settings.flags = options.flags
        settings.on_corrupt = POLICIES[options.on_corrupt]
        settings.fd = -1
        if not self._fed and isinstance(self._source, FileSource):
            settings.fd = self._source.fd
        out = ffi.new("tfw_reader **")
        check(lib.tfw_reader_create(settings, out, self._error), self._error)
        return ffi.gc(out[0], lib.tfw_reader_free)

    def _go_to(self, start: RecordPosition) -> None:
        """Goes to a place: at once in a regular file, else by reading up to it."""
        size = self._source.size()
        if self._fed:
            self._read_up_to(start)
        elif size is None or start.offset <= size:
            self._seek(start)
        number, begin = self.position
        # How much of a damaged stream is inflated differs by a symbol, by what is read at a time.
        begins_there = begin == start.offset or bool(self._stream_regions)
        if number != start.record_index or not begins_there:
            found = f"found record {number} at byte {begin}"
            if not self._fed:
                found = f"the file has {size} bytes"
            raise DataLossError(
                f"{display_name(self.path)}: record {start.record_index} does not begin at byte "
                f"{start.offset}, where reading is to go on: {found}; the file was cut or replaced",
                path=self.path,
                offset=start.offset,
                record_index=start.record_index,
                reason="truncated",
            )

    def _read_up_to(self, start: RecordPosition) -> None:
        batch = ffi.new("tfw_batch *")
        number, before = start.record_index, self.position
        while (left := number - self.position.record_index) > 0:
            before = self.position
            if not self.next(left, batch):
                return
        if left < 0:  # damaged records have numbers, too, and some were left out on the way
            done = split(batch, bisect_left(numbers_of(batch), number))
            before = position_behind(done) if done.count else before
            self._ahead = batch
            self.position = before if before == start else position_of(batch, 0)

    def _seek(self, position: RecordPosition) -> None:
        number, offset = self.position = self._native_position = position
        status = lib.tfw_reader_seek(self._reader, offset, number, self._error)
        check(status, self._error, self.path)

    def next(self, max_records: int, batch: Any) -> bool:
        """Fills batch; False at the end of the file."""
        if self._ahead is not None and self._ahead.count:
            batch[0] = split(self._ahead, max_records or self._ahead.count)[0]
            self.position = position_behind(batch)
        elif not self._next(max_records, batch):
            return False
        if self.tally is not None:
            self.tally.add_batch(batch)
        return True

    def _next(self, max_records: int, batch: Any) -> bool:
        """Fills batch by the native reader."""
        while True:
            status = lib.tfw_reader_next(self._reader, max_records, batch, self._error)
            if status == lib.TFW_OK:
                self.position = self._native_position = position_behind(batch)
                if self._repeats is None:
                    return True
                damaged = lib.tfw_reader_skipped(self._reader, 0, ffi.NULL, 0) != 0
                if self._repeats.take_off(batch, damaged):
                    return True
            elif status == lib.TFW_NEED_INPUT:
                self._feed()
            elif self._damage is not None:
                raise self._reading.stream_error(self._damage, self.position)
            elif status == lib.TFW_END and self._resumed:
                self._resumed = False
                if self._repeats is not None and self._went_back:
                    self._repeats.expect(self._went_back)
                self._feed()
            elif status == lib.TFW_END:
                self._end()
                return False
            else:
                self._fail(status)

    def next_into(self, block: Block, max_records: int, batch: Any) -> bool:
        """As next, but adds the records to a block: straight from a regular file of which only the
        headers are to be verified."""
        if self._options.flags == lib.TFW_NO_DATA_CRC and self.tally is None and not self._fed:
            assert isinstance(self._source, FileSource)
            longest = self._options.max_record_size
            end = block.read(self._source.fd, self.path, self.position, max_records, longest)
            if end != self.position:
                self._seek(end)
                return True
        if not self.next(max_records, batch):
            return False
        block.add(batch, self.path)
        return True

    def read_long(self) -> LongRecord | None:
        """The record behind the last one, if it is a long one of a plain file; None: the native
        reader goes on. To be called again until it returns None."""
        if self._long is None:
            if self._fed or not isinstance(self._source, FileSource):
                return None
            if self.tally is not None and not self._verify:
                return None
            longest = self._options.max_record_size or sys.maxsize
            self._long = LongReader(self._source.fd, self.position, longest, self._verify)
        found = self._long.next()
        if found is None:
            # The native reader may have gone on behind damage already, where none were read.
            if self._long.position != self._native_position:
                self._seek(self._long.position)
            self._long = None
            return None
        self.position = self._long.position
        if self.tally is not None:
            self.tally.add_record(found.crc, len(found.payload))
        return found

    @property
    def bytes_read(self) -> int:
        """How far the file has been read by the records delivered, in bytes of the file itself."""
        if isinstance(self._source, InflatedAhead):
            return self._source.offset
        return self.position.offset

    @property
    def file_crc32c(self) -> int | None:
        """At the end of the file: the CRC-32C of its bytes, where the options ask for a receipt.
        None where some of them were left out, or had to be read twice, and where reading began
        behind the beginning."""
        if self.tally is None or self.skipped() or self._start != _BEGINNING:
            return None
        if isinstance(self._source, InflatedAhead):
            return self._source.crc32c
        return self.tally.file_crc32c

    def interrupt(self) -> None:
        """Ends a wait for input, which another thread may be in. To be closed then."""
        self._input.interrupt()

    def close(self) -> None:
        ffi.release(self._reader)
        self._source.close()

    # ---- Fed input ----------------------------------------------------------------------------

    def _feed(self) -> None:
        """Gives the native reader more input, or the end of it."""
        data, size = self._room
        check(lib.tfw_reader_reserve(self._reader, data, size, self._error), self._error)
        try:
            got = self._source.readinto(ffi.buffer(data[0], size[0]))
        except StreamDamage as damage:
            got = 0
            self._meet(damage)
        check(lib.tfw_reader_commit(self._reader, got, self._error), self._error)

    def _meet(self, damage: StreamDamage) -> None:
        """Deals with a broken compressed stream. For the native reader it ends; what follows, if
        that can be read, begins anew: the beginning of a record before the damage and what lies
        behind may verify as one record, and be none.
        """
        assert isinstance(self._source, InflatedAhead)
        policy = self._options.on_corrupt
        ends = damage.cut and policy in ("tail", AS_TENSORFLOW)
        if policy in ("raise", "tail", AS_TENSORFLOW) and not ends:
            self._damage = damage
            return
        resumed = self._source.resume() if policy == "skip" else None
        self._cut = damage.cut and resumed is None
        end = resumed or self._source.size() or self._source.offset
        begin = min(damage.offset, end)
        region = SkippedRegion(
            self.path, begin, end, self.position.record_index, "compressed stream"
        )
        regions = SkippedRegions([region], 1, end - begin)
        if ends:  # the writer may go on; whether a record is cut, the native reader finds next
            self._cut_regions = regions
        else:
            self._stream_regions.add(regions)
        self._resumed = resumed is not None
        self._went_back = 0 if resumed is None else max(0, damage.offset - resumed)

    def _end(self) -> None:
        """Settles whether a stream that is cut left out the beginning of a record."""
        if torn_tail(self._reader, self.position.offset) is not None:
            self._stream_regions.add(self._cut_regions)
        self._cut_regions = SkippedRegions()

    # ---- Damage -------------------------------------------------------------------------------

    @property
    def num_skipped(self) -> int:
        """How many regions were left out so far."""
        in_content: int = lib.tfw_reader_skipped_total(self._reader, self._num_bytes)
        return self._stream_regions.num_regions + in_content

    def skipped(self) -> SkippedRegions:
        """The regions left out so far: of the compressed file, then of its content."""
        regions = SkippedRegions()
        regions.add(self._stream_regions)
        regions.add(skipped_regions(self._reader, self.path))
        return regions

    def tail(self) -> TornTail | None:
        """At the end of the file: the incomplete record that was left out there, None where the
        file ends behind a whole one. A compressed stream that is cut there could go on."""
        tail = torn_tail(self._reader, self.position.offset)
        return tail or (TornTail(0, lib.TFW_HEADER_SIZE) if self._cut else None)

    def flipped_bits(self) -> FlippedBits:
        """The flipped bits found so far, where they were looked for."""
        return flipped_bits(self._reader, self.path)

    def _fail(self, status: int) -> None:
        """Raises what fits a failure of the native reader."""
        if status in DAMAGE_REASONS:
            raise self._reading.record_error(status, self._error)
        check(status, self._error, self.path)
